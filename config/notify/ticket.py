#!/usr/bin/env python3
'''A notice as a new issue of GitLab, GitHub, Gitea or Forgejo: plumbline report --notify '/usr/local/sbin/plumbline-ticket
https://gitlab.example.org/api/v4/projects/7/issues /etc/plumbline/token'; of GitHub it is https://api.github.com/repos/OWNER/NAME/issues.
What is healthy again, or has a ticket, opens none.'''

import json
import os
import sys
import urllib.request
from pathlib import Path

told = json.loads(Path(os.environ['PLUMBLINE_NOTICE']).read_text())
now = [change['now'] for change in told.get('changes', ())] + [one['action'] for one in told.get('proposals', ())]      # those of a sweep
if now and {*now} <= {'PASS', 'KNOWN ISSUE', 'return'}:
    sys.exit()
try:
    address, token = sys.argv[1], Path(sys.argv[2]).read_text().strip()
    text = sys.stdin.read()
    issue = {'title': text.split('\n')[0], 'description': text, 'body': text}       # GitLab's word for it, and that of the others
    urllib.request.urlopen(urllib.request.Request(address, json.dumps(issue).encode(), {
        'Content-Type': 'application/json', 'Authorization': f'Bearer {token}'}), timeout=30)
except (IndexError, OSError, ValueError) as error:
    sys.exit(f"{' '.join(sys.argv[1:]) or 'name the address of the issues and the file with the token'}: {error}")

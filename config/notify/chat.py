#!/usr/bin/env python3
'''A notice to a chat whose hooks take {"text": ...} (Slack, Mattermost, Rocket.Chat): plumbline report --notify
'/usr/local/sbin/plumbline-chat /etc/plumbline/chat'; the file holds the hook's address, by which anybody could write there.'''

import json
import sys
import urllib.request
from pathlib import Path

try:
    address = Path(sys.argv[1]).read_text().strip()
    text = sys.stdin.read().replace('&', '&amp;').replace('<', '&lt;')      # of a log, say: <!channel> would call everybody
    urllib.request.urlopen(urllib.request.Request(address, json.dumps({'text': text}).encode(), {'Content-Type': 'application/json'}), timeout=30)
except (IndexError, OSError, ValueError) as error:
    sys.exit(f"{sys.argv[1] if len(sys.argv) > 1 else 'name the file with the address of the hook'}: {error}")

'''A command of the site's that is told something: started without a shell, and with an end.'''

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from plumbline.errors import PlumblineError, saying_why
from plumbline.system import trust

#: Seconds that the command may take.
PATIENCE = 60


def words(option, command):
    '''The words of a command, as in a shell.

    :arg option: that it was given by, for people.
    :raises PlumblineError: if there are none.
    '''
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise PlumblineError(f'{option} {command!r}: {error}: write a command and its words') from None
    if not found:
        raise PlumblineError(f'{option}: no command: name the program that sends the notice')
    return found


def run(option, command, said, notice, later, patience=PATIENCE):
    '''Run it: ``said`` is its standard input; ``PLUMBLINE_NOTICE`` names a file with ``notice`` as JSON, which is there until it ends.

    :arg option: as of :func:`words`.
    :arg later: what becomes of the notice where the command fails, for people.
    :raises PlumblineError: in one line, if it cannot be started, fails, or takes longer than ``patience`` seconds.
    '''
    called = words(option, command)
    trust.refuse(shutil.which(called[0]) or called[0])
    with tempfile.TemporaryDirectory(prefix='plumbline-notice-') as folder:
        path = Path(folder) / 'notice.json'
        path.write_text(json.dumps(notice, indent=1), encoding='utf-8')
        # Its output goes into a file: a child that it leaves behind could hold a pipe open for ever.
        with open(Path(folder) / 'output', 'w+', encoding='utf-8', errors='replace') as output:
            with saying_why(f'{option} {called[0]}: cannot be started'):
                process = subprocess.Popen(called, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, start_new_session=True,
                                           env={**os.environ, 'PLUMBLINE_NOTICE': str(path)})
            try:
                process.communicate(said, timeout=patience)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                raise PlumblineError(f'{option} {called[0]}: not ended after {patience:g} s, and was killed; {later}') from None
            if process.returncode:
                output.seek(0)
                last = (output.read().strip().splitlines() or ['it said nothing'])[-1]
                raise PlumblineError(f'{option} {called[0]}: ended with {process.returncode}: {last}; {later}')

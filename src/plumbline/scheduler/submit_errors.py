'''Jobs that a scheduler did not take or would not start: ReFrame's account of it in one line, with what fixes it.'''

import functools
import re

from plumbline.schemas.parsing import shipped

#: ReFrame's account of a command that failed, of a job that it cancelled for its reason to wait, and of a command that is missing.
_FAILED = re.compile(r"command '(?P<command>\S+)[^']*' (?P<how>failed with exit code \d+|timed out after \d+s)")
_BLOCKED = re.compile(r'job cancelled because it was blocked due to reason: (?P<why>.*)')
_MISSING = re.compile(r"No such file or directory: '\w+'$")

#: What a command wrote to its standard error, in the first of these accounts, and how Slurm begins there.
_STDERR = re.compile(r'--- stderr ---\n(.*?)\n*--- stderr ---', re.DOTALL)
_PREAMBLE = re.compile(r'^\w+: (?:error|fatal): (?:Batch job submission failed: )?')


@functools.cache
def _known():
    return [(re.compile(entry['says'], re.IGNORECASE), entry['fix']) for entry in shipped('scheduler_errors')]


def _fix(said):
    '''How that is fixed; None if it is not known.'''
    found = ((pattern.search(said), fix) for pattern, fix in _known())
    return next((fix.format(*match.groups()) for match, fix in found if match), None)


def with_fix(said):
    return ' - '.join(filter(None, (said, _fix(said))))


def in_a_line(reason):
    '''What ReFrame's ``fail_reason`` says of the scheduler: what, and how to fix it; None if it says nothing of it.'''
    if failed := _FAILED.search(reason):
        said = [_PREAMBLE.sub('', line).strip() for text in _STDERR.findall(reason) for line in text.splitlines() if line.strip()]
        return f"{failed['command']}: " + with_fix('; '.join(dict.fromkeys(said[-2:])) or failed['how'])
    if blocked := _BLOCKED.search(reason):
        return 'cancelled, since it would not start: ' + with_fix(blocked['why'])
    return _fix(reason) if _MISSING.search(reason) else None

'''The memory modules that the firmware's tables (DMI) tell of.

The standard library alone, and Python 3.6: the gate carries this file to nodes (:mod:`plumbline.gate.pack`).
'''

import re
import subprocess


def memory_slots(text):
    '''The memory slots in the output of ``dmidecode -t memory``.

    :returns: list of dictionaries ``locator``, ``bank``, ``size`` (texts), ``populated``, and in MT/s, or :obj:`None`, ``speed``, as configured,
        and ``rated``, the most that the module is made for.
    '''
    slots = []
    for block in re.split(r'\n\s*\n', text):
        if not re.search(r'^Memory Device$', block, re.MULTILINE):
            continue
        fields = dict(re.findall(r'^\s+([^:\n]+): (.*)$', block, re.MULTILINE))
        slots.append({'locator': fields.get('Locator', ''), 'bank': fields.get('Bank Locator', ''), 'size': fields.get('Size', ''),
                      'populated': bool(re.match(r'[1-9]\d* ', fields.get('Size', ''))),
                      'speed': _rate(fields.get('Configured Memory Speed') or fields.get('Configured Clock Speed')),
                      'rated': _rate(fields.get('Speed'))})
    return slots


def _rate(text):
    # dmidecode before 3.2 called it a clock and its unit MHz; the number is the same.
    found = re.match(r'(\d+) (?:MT/s|MHz)', text or '')
    return int(found.group(1)) if found else None


def read_memory(command='dmidecode', seconds=20):
    '''(output of ``dmidecode -t memory``, :obj:`None`) or (:obj:`None`, why there is none).'''
    try:
        done = subprocess.run([command, '-t', 'memory'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              timeout=seconds, check=False)
    except FileNotFoundError:
        return None, 'dmidecode is not installed'
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f'dmidecode: {error}'
    if done.returncode or 'Memory Device' not in done.stdout:
        said = (done.stderr.strip() or done.stdout.strip() or 'no memory devices').splitlines()[-1]
        return None, f'DMI not readable: {said}'
    return done.stdout, None

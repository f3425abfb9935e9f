'''Which way the messages within a node went, by what its loopback device has received before and after.

The device belongs to the whole node: others' traffic is in the numbers, too, and can only make them larger.
'''

import re

_MARK = 'plumbline: loopback bytes'

#: That fewer bytes of messages have crossed can be others' traffic.
_PROOF = 1e9


def look(of=''):
    '''The command of a job script that writes the count down.'''
    return f"echo '{_MARK}{of}' $(awk '$1 == \"lo:\" {{ print $2 }}' /proc/net/dev)"


def crossed(output, of=''):
    '''Bytes between the two looks; None if there are not two of them.'''
    seen = [int(number) for number in re.findall(rf'^{_MARK}{of} (\d+)$', output, re.MULTILINE)]
    return seen[1] - seen[0] if len(seen) == 2 else None


def judge(transport, moved, bytes_crossed):
    '''(wrong, unproved): texts, or None.

    :arg moved: bytes of messages that must have gone by this transport (``shm`` or ``tcp``).
    '''
    if not moved:
        return None, None
    told = f'{transport} was asked for, but of {moved:.3g} bytes of messages {bytes_crossed:.3g} went over the loopback device'
    if transport == 'tcp':
        return (told, None) if bytes_crossed < moved else (None, None)
    if bytes_crossed < moved:
        return None, None
    return (told, None) if moved >= _PROOF else (None, f'not proved that the messages went by {transport}: others use the loopback device meanwhile')

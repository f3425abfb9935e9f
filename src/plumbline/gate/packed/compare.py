'''Facts against expectations.

An expectation is a dictionary with ``severity`` and one form: ``is`` (that value), ``one_of`` (of these), ``from`` and ``to`` (a number
between them, or beyond one), ``holds`` (a list with at least these), ``matches`` (the text, from its beginning, this regular expression).
'''

import re
from collections import namedtuple

#: From little to much: told; the node works, and somebody should look; no job should run there.
NOTE, WARN, DRAIN = SEVERITIES = ('note', 'warn', 'drain')

#: A fact that is not as expected: one of another value, or, with ``absent``, one that is not there; or, with ``unread``, one that could not be read.
Difference = namedtuple('Difference', 'name severity text unread absent')

_GIB = 2**30


def _shown(name, value):
    if isinstance(value, list):
        return ','.join(map(str, value)) or 'nothing'
    if name.startswith(('memory.total', 'memory.swap', 'numa.memory.')) and isinstance(value, (int, float)):
        return f'{value / _GIB:.1f} GiB'
    if isinstance(value, float):
        return f'{value:.4g}'
    return str(value) or 'empty'


def expected(name, wanted):
    '''An expectation in words.'''
    low, high = (_shown(name, wanted[word]) if word in wanted else None for word in ('from', 'to'))
    parts = [f'{low} to {high}' if low and high else f'at least {low}' if low else f'at most {high}'] if low or high else []
    if 'is' in wanted:
        parts.append(_shown(name, wanted['is']))
    if 'one_of' in wanted:
        parts.append(' or '.join(_shown(name, one) for one in wanted['one_of']))
    if 'holds' in wanted:
        parts.append(f"{_shown(name, wanted['holds'])} in it")
    if 'matches' in wanted:
        parts.append(f"like {wanted['matches']}")
    return ' '.join(parts)


def same(value, wanted):
    '''Whether two values are equal, or read so: 0 and '0', which in a file differ by the quotes alone.'''
    return value == wanted or str(value) == str(wanted)


def holds(value, wanted):
    '''Whether a value is as expected; it is not where it is of another kind than the form asks for.'''
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return all((
        'is' not in wanted or same(value, wanted['is']),
        'one_of' not in wanted or any(same(value, one) for one in wanted['one_of']),
        'from' not in wanted or (number and value >= wanted['from']),
        'to' not in wanted or (number and value <= wanted['to']),
        'holds' not in wanted or (isinstance(value, list) and set(wanted['holds']) <= set(value)),
        'matches' not in wanted or (isinstance(value, str) and re.match(wanted['matches'], value) is not None)))


def _difference(name, wanted, found):
    '''A :class:`Difference`, or None.'''
    severity = wanted['severity']
    if name in found.facts:
        value = found.facts[name].value
        if holds(value, wanted):
            return None
        if 'holds' in wanted and isinstance(value, list):
            lacking = ','.join(one for one in wanted['holds'] if one not in value)
            return Difference(name, severity, f'{name} lacks {lacking}', False, False)
        return Difference(name, severity, f'{name} is {_shown(name, value)}, expected {expected(name, wanted)}', False, False)
    missing = found.why_missing(name)
    if missing is None:
        return Difference(name, severity, f'{name}: not there, expected {expected(name, wanted)}', False, True)
    if missing.late and name.startswith('mount.') and name.endswith('.answers'):
        return Difference(name, severity, f"mount {name[len('mount.'):-len('.answers')]}: {missing.why}", False, False)
    # What was not looked at is no PASS; nor does it show that anything is wrong.
    return Difference(name, min(severity, WARN, key=SEVERITIES.index), f'{name} not read: {missing.why}', True, False)


def differences(expectations, found):
    '''What is not as expected, the worst first.

    :arg expectations: dictionary name -> expectation; :arg found: :class:`reading.Found`.
    :returns: list of :class:`Difference`.
    '''
    told = list(filter(None, (_difference(name, wanted, found) for name, wanted in expectations.items())))
    # Of a mount or link that is not there, or a mount that hangs, one line says so; but what is worse is said itself.
    gone = {_of(one): one for one in told if one.absent and one.name.endswith(('.type', '.state'))}
    hung = {_of(one): one for one in told if one.name.endswith('.answers') and not one.unread}

    def said_already(one):
        by = gone.get(_of(one)) if one.absent else None
        if by is None and (one.absent or one.unread) and _of(one) not in gone:
            by = hung.get(_of(one))
        return by not in (None, one) and _rank(one) <= _rank(by)

    return sorted((one for one in told if not said_already(one)), key=lambda one: (-_rank(one), one.unread))


def _of(one):
    return one.name.rpartition('.')[0]


def _rank(one):
    return SEVERITIES.index(one.severity)

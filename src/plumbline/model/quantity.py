'''How numbers come into the units of the archive, and how they are shown: three significant digits, with the unit a reader thinks in.

Units are those of the archive: ``MB/s``, ``Mflop/s``, ``MHz``, ``us``, ``s``, ``bytes``, ``entries`` and ``1`` (a ratio).
'''

import re
from collections.abc import Sequence
from math import isfinite
from typing import Any, TypeGuard

#: Unit of the archive -> (smallest value, factor, unit shown), largest first.
SCALES: dict[str, list[tuple[float, float, str]]] = {
    'MB/s': [(1e6, 1e-6, 'TB/s'), (1e3, 1e-3, 'GB/s'), (0, 1, 'MB/s')],
    'Mflop/s': [(1e6, 1e-6, 'Tflop/s'), (1e3, 1e-3, 'Gflop/s'), (0, 1, 'Mflop/s')],
    'MHz': [(1e3, 1e-3, 'GHz'), (0, 1, 'MHz')],
    'us': [(1e6, 1e-6, 's'), (1e3, 1e-3, 'ms'), (1, 1, 'us'), (0, 1e3, 'ns')],
    's': [(1, 1, 's'), (1e-3, 1e3, 'ms'), (1e-6, 1e6, 'us'), (0, 1e9, 'ns')],
    'bytes': [(2**30, 2**-30, 'GiB'), (2**20, 2**-20, 'MiB'), (2**10, 2**-10, 'KiB'), (0, 1, 'B')],
    'entries': [(0, 1, 'entries')],
    '1': [(0, 1, '')],
}


def per_second(amount: Any, seconds: Any) -> Any:
    '''A rate, of numbers or arrays: MB/s of bytes (1 MB = 1e6 bytes), Mflop/s of operations.'''
    return amount / seconds / 1e6


def microseconds(seconds: Any) -> Any:
    '''A time as those of accesses, messages and calls are in the archive, of a number or an array.'''
    return seconds * 1e6


def known(value: float | None) -> TypeGuard[float]:
    '''True for a number that can be shown.'''
    return value is not None and isfinite(value)


def scale(value: float, unit: str | None) -> tuple[float, str]:
    '''(factor, unit shown) that suit a value of a unit; unknown units stay as they are.'''
    for smallest, factor, shown in SCALES.get(unit or '1', ()):
        if abs(value) >= smallest:
            return factor, shown
    return 1, unit or ''


def digits(value: float | None) -> str:
    """A number with three significant digits, as fixed point; '-' if there is none."""
    if not known(value):
        return '-'
    size = abs(value)
    if size != 0 and (size < 0.001 or size >= 1e7):
        return f'{value:.2e}'
    return f'{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}'


def number(value: float) -> str:
    '''A number that stands beside another that it may be near: four significant digits, two decimals at least between 0.01 and 100.'''
    if not isfinite(value) or abs(value) >= 1000:
        return f'{value:.0f}'
    text = f'{value:.4g}'
    if 0.01 <= abs(value) < 100:
        whole, _, decimals = text.partition('.')
        return f'{whole}.{decimals:0<2}'
    return text


def several(count: int | str, what: str) -> str:
    '''``1 node``, ``2 nodes``; ``one thread`` and ``all threads``.'''
    return f"{count} {what}{'' if str(count) in ('1', 'one') else 's'}"


def at_most(texts: Sequence[str], most: int) -> list[str]:
    '''The first of some texts, and ``and 3 more``.'''
    return [*texts[:most], *([f'and {len(texts) - most} more'] if len(texts) > most else [])]


def amount(value: float | None, unit: str | None, like: float | None = None) -> str:
    """A value with its unit, '31.2 GB/s'; scaled as the value ``like``, if that is given."""
    if unit == 'bytes':
        return size(value, like)
    if not known(value):
        return '-'
    factor, shown = scale(value if like is None else like, unit)
    return f'{digits(value * factor)} {shown}'.rstrip()


def percent(share: float | None, decimals: int = 1) -> str:
    """A share as '2.1 %', or '2 %' without decimals; from 100 % on without any; '710 times', 'over 1000 times': no one counts so many per cent."""
    if not known(share):
        return '-'
    if abs(share) >= 100:
        return f'{share:.0f} times' if abs(share) < 1000 else 'over 1000 times'
    return f'{100 * share:.{decimals if abs(share) < 0.995 else 0}f} %'


def change(share: float, decimals: int = 1) -> str:
    """A change as '+2.1 %'."""
    return f'{100 * share:+.{decimals}f} %'


def odds(chance: float) -> str:
    """A small probability as 'once in 5,200'; beyond a million the distributions are not known."""
    return f'once in {1 / chance:,.0f}' if chance >= 1e-6 else 'less than once in a million'


def seconds(value: float | None) -> str:
    """A wall time, '7.3 s' or '4 min 05 s'."""
    if not known(value):
        return '-'
    if value < 120:
        return f'{value:.1f} s'
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f'{hours} h {minutes:02d} min' if hours else f'{minutes} min {rest:02d} s'


def size(value: float | None, like: float | None = None) -> str:
    """A size in bytes, '48 KiB', of four digits at most: a power of two is one; scaled as the size ``like``, if that is given."""
    if not known(value):
        return '-'
    factor, shown = scale(value if like is None else like, 'bytes')
    return f'{value * factor:.4g} {shown}'


def memory(value: float) -> str:
    """The memory of a node in bytes, '126 GiB': what firmware keeps of it differs, and makes no other size."""
    return f'{value / 2**30:.0f} GiB'


#: Units of :func:`short_size`; of larger ones names know nothing.
_IN_NAMES = {unit: int(least) or 1 for least, _, unit in SCALES['bytes'][1:]}


def short_size(length: int) -> str:
    '''``4MiB``: bytes as a part of a name, in the largest unit that gives a whole number.'''
    unit, its = next((unit, its) for unit, its in _IN_NAMES.items() if its == 1 or (length and length % its == 0))
    return f'{length // its}{unit}'


def bytes_of(short: str) -> int | None:
    '''The bytes of :func:`short_size`; None for what is none.'''
    found = re.fullmatch(rf"(\d+)({'|'.join(_IN_NAMES)})", short)
    return int(found[1]) * _IN_NAMES[found[2]] if found else None


def interval(low: float | None, high: float | None, value: float | None, unit: str | None) -> str:
    """Bounds in the unit that the value is shown in, '24.1..33.1', '>=24.1' or '<=33.1'; '' without any."""
    factor, _ = scale(value, unit) if known(value) else (1, '')
    least = digits(low * factor) if known(low) else ''
    most = digits(high * factor) if known(high) else ''
    if least and most:
        return f'{least}..{most}'
    return f'>={least}' if least else f'<={most}' if most else ''

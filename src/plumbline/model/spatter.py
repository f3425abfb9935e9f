'''Spatter's JSON pattern files: read, checked, and written as lines that the program ``gather_patterns`` reads.

The specification is the README of the public hpcgarage/spatter and, where it is silent, the source of version 2.1: a file
is an array of configurations; each has a kernel, one or two patterns, and how often and how far apart they are repeated.
What is read here and unknown there, or the other way round, is refused by name; nothing is repaired.
'''

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.errors import PlumblineError
from plumbline.model import quantity, records

#: Kernel -> its keys that hold patterns.
KERNELS = {
    'gather': ('pattern',),
    'scatter': ('pattern',),
    'gs': ('pattern-gather', 'pattern-scatter'),
    'multigather': ('pattern', 'pattern-gather'),
    'multiscatter': ('pattern', 'pattern-scatter'),
}

#: Keys that are whole numbers -> (default, smallest).  ``pattern-size`` 0: the whole pattern; ``boundary`` 0: none.
NUMBERS = {'count': (1024, 1), 'wrap': (1, 1), 'delta': (8, 0), 'delta-gather': (8, 0), 'delta-scatter': (8, 0),
           'pattern-size': (0, 1), 'boundary': (0, 0)}

#: Keys that are checked and change nothing here: samples are the check's own, the seed is of values, not of patterns, and
#: the work size is that of a graphics processor.
WITHOUT_EFFECT = {'nruns': (10, 1), 'seed': (0, 0), 'local-work-size': (1024, 0)}

#: The largest index: the program's have 32 bits.
INDEX_MAX = 2**31 - 1

#: The most indices of one pattern: more of them are a data set, not a pattern.
LENGTH_MAX = 2**24


@dataclass(frozen=True)
class Config:
    '''One configuration, its patterns expanded.

    :attr name: its own name, letters, digits, _ and - of it, or ``KERNEL-N`` with its number in the file, from 1.
    :attr kernel: one of :data:`KERNELS`.
    :attr patterns: key -> list of indices.
    :attr numbers: key of :data:`NUMBERS` -> value, those that the kernel uses.
    '''
    name: str
    kernel: str
    patterns: dict
    numbers: dict

    @property
    def length(self) -> int:
        '''Indices of one row.'''
        return len(self.patterns[KERNELS[self.kernel][-1]])

    def memory(self, threads: int = 1) -> int:
        '''Bytes of the arrays and indices of the program.'''
        count = self.numbers['count']
        if self.kernel == 'gs':
            far = [(self.patterns[f'pattern-{side}'], self.numbers[f'delta-{side}']) for side in ('gather', 'scatter')]
            dense = 0
        else:
            far = [(self.patterns['pattern'], self.numbers['delta'])]
            dense = self.length * min(count, self.numbers['wrap'] * threads)
        sparse = sum(max(pattern) + delta * (count - 1) + 1 for pattern, delta in far)
        return 8 * (sparse + dense) + 4 * sum(map(len, self.patterns.values()))

    def line(self) -> str:
        '''The configuration as a line of ``gather_patterns --pattern FILE``.'''
        numbers = [f'{key}={value}' for key, value in self.numbers.items()]
        patterns = [f"{key}={','.join(map(str, pattern))}" for key, pattern in self.patterns.items()]
        return ' '.join([self.kernel, f'name={self.name}', *numbers, *patterns])


def read(path: str | Path, memory: int | None = None, threads: int = 1) -> list[Config]:
    '''The configurations of a file.

    :arg memory: bytes that there are; :obj:`None` if unknown.
    :arg threads: of the program: each has dense rows of its own.
    :returns: list of :class:`Config`, at least one; their names differ.
    :raises PlumblineError: naming file, configuration and key, for a file that cannot be read, malformed JSON, a kernel,
        pattern or key that is not supported, a value out of range, or more memory than there is.
    '''
    try:
        text = Path(path).read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, 'strerror', None) or 'is no text file'
        raise PlumblineError(f"pattern file {path}: {why}; give a JSON file of Spatter's") from None
    found = parse(text, str(path))
    for number, config in enumerate(found, start=1):
        if memory is not None and config.memory(threads) > memory:
            raise PlumblineError(f'{path}, configuration {number}: needs {quantity.size(config.memory(threads))}, and there are '
                                 f'{quantity.size(memory)}; choose a smaller count, delta or pattern')
    return found


def parse(text: str, source: str = 'pattern file') -> list[Config]:
    '''The configurations of a text; see :func:`read`.

    :arg source: what to call the text in errors.
    '''
    try:
        entries = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=records.refuse_number)
    except json.JSONDecodeError as error:
        raise PlumblineError(f'{source}, line {error.lineno}: malformed JSON: {error.msg}') from None
    except RecursionError:
        raise PlumblineError(f'{source}: nested too deeply; it must be an array of configurations') from None
    except ValueError as error:
        raise PlumblineError(f'{source}: {error}') from None
    if not isinstance(entries, list) or not entries:
        raise PlumblineError(f'{source}: must be an array of configurations, at least one: [{{"kernel": "Gather", ...}}, ...]')
    found, names = [], set()
    for number, entry in enumerate(entries, start=1):
        config = _config(entry, number, f'{source}, configuration {number}')
        while config.name in names:
            config = replace(config, name=f'{config.name}-{number}')
        names.add(config.name)
        found.append(config)
    return found


def lines(configs: Iterable[Config]) -> str:
    '''The text of the file that ``gather_patterns --pattern`` reads.'''
    return ''.join(f'{config.line()}\n' for config in configs)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'the key {next(key for key in keys if keys.count(key) > 1)!r} stands there twice')
    return found


def _config(entry: Any, number: int, where: str) -> Config:
    if not isinstance(entry, dict):
        raise PlumblineError(f'{where}: must be an object: {{"kernel": "Gather", "pattern": [0, 1, 2, 3]}}')
    kernel = entry.get('kernel', 'gather')
    if not isinstance(kernel, str) or kernel.lower() not in KERNELS:
        raise PlumblineError(f'{where}: kernel {kernel!r} is not supported; there are {", ".join(KERNELS)}')
    kernel = kernel.lower()
    known = {'name', 'kernel', 'pattern', 'pattern-gather', 'pattern-scatter', *NUMBERS, *WITHOUT_EFFECT}
    for key in entry:
        if key not in known:
            raise PlumblineError(f'{where}: the key {key!r} is not supported; there are {", ".join(sorted(known))}')
    numbers = {key: _number(entry, key, *range_of, where) for key, range_of in {**NUMBERS, **WITHOUT_EFFECT}.items()}
    patterns = {}
    for key in KERNELS[kernel]:
        if key not in entry:
            raise PlumblineError(f'{where}: {kernel} needs the key {key!r}')
        patterns[key], delta = _pattern(entry[key], f'{where}: {key}')
        if delta is not None:       # it takes the place of the key, as in Spatter
            numbers[key.replace('pattern', 'delta')] = delta
        patterns[key] = _cut(patterns[key], numbers, f'{where}: {key}')
    _fit(kernel, patterns, where)
    name = entry.get('name', '')
    if not isinstance(name, str):
        raise PlumblineError(f'{where}: name {name!r} must be a text')
    name = re.sub(r'[^A-Za-z0-9_-]+', '_', name).strip('_') or f'{kernel}-{number}'     # part of the metrics' names
    used = ('count', 'delta-gather', 'delta-scatter') if kernel == 'gs' else ('count', 'wrap', 'delta')
    return Config(name, kernel, patterns, {key: numbers[key] for key in used})


def _number(entry: dict[str, Any], key: str, default: int, least: int, where: str) -> int:
    value = entry.get(key, default)
    if key in entry and not _is_whole(value, least):
        raise PlumblineError(f'{where}: {key} {value!r} must be a whole number from {least} to {2**50}')
    return value


def _is_whole(value: object, least: int, most: int = 2**50) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _fit(kernel: str, patterns: dict[str, list[int]], where: str) -> None:
    '''Refuse patterns that do not go together.'''
    first, *second = patterns.values()
    if kernel == 'gs' and len(first) != len(second[0]):
        raise PlumblineError(f'{where}: pattern-gather has {len(first)} indices and pattern-scatter {len(second[0])}; give both as many')
    if kernel.startswith('multi') and max(second[0]) >= len(first):
        raise PlumblineError(f'{where}: {KERNELS[kernel][1]}: index {max(second[0])} is outside the pattern, which has {len(first)} indices')


def _cut(pattern: list[int], numbers: dict[str, int], where: str) -> list[int]:
    '''``pattern-size`` keeps the first indices, ``boundary`` is their modulus.'''
    if numbers['pattern-size'] > len(pattern):
        raise PlumblineError(f"{where}: pattern-size {numbers['pattern-size']} is more than its {len(pattern)} indices")
    kept = pattern[:numbers['pattern-size'] or None]
    return [index % numbers['boundary'] for index in kept] if numbers['boundary'] else kept


# --- patterns ------------------------------------------------------------------------------------------------

def _pattern(value: object, where: str) -> tuple[list[int], int | None]:
    '''(indices, delta or None) of a pattern, given as a list or as a text.'''
    if isinstance(value, str):
        kind, *arguments = value.split(':')
        expand = {'UNIFORM': _uniform, 'MS1': _ms1, 'LAPLACIAN': _laplacian}.get(kind)
        if expand:
            found, delta = expand(arguments, where)
        elif not arguments and kind[:1].isdigit():
            found, delta = _numbers(kind, where), None
        else:
            raise PlumblineError(f'{where}: the pattern {value[:40]!r} is not supported; there are UNIFORM:..., MS1:..., LAPLACIAN:..., and indices')
    elif isinstance(value, list):
        found, delta = value, None
    else:
        raise PlumblineError(f'{where}: {value!r} is no pattern; give a list of indices or a text')
    if not found:
        raise PlumblineError(f'{where}: is empty; give at least one index')
    _few(len(found), where)
    for index in found:
        if not _is_whole(index, 0, INDEX_MAX):
            raise PlumblineError(f'{where}: index {index!r} must be a whole number from 0 to {INDEX_MAX}')
    return found, delta


def _numbers(text: str, where: str, least: int = 0) -> list[int]:
    '''The whole numbers of a text with commas.'''
    found = []
    for item in text.split(','):
        if not (item.isascii() and item.isdigit() and len(item) <= 16 and int(item) >= least):
            raise PlumblineError(f'{where}: {item[:40]!r} must be a whole number, at least {least}')
        found.append(int(item))
    return found


def _one(text: str, name: str, where: str, least: int = 1) -> int:
    found = _numbers(text, f'{where}: {name}', least)
    if len(found) > 1:
        raise PlumblineError(f'{where}: {name} {text[:40]!r} must be one number')
    return found[0]


def _few(length: int, where: str) -> None:
    if length > LENGTH_MAX:
        raise PlumblineError(f'{where}: has {length} indices, and at most {LENGTH_MAX} are taken')


def _uniform(arguments: list[str], where: str) -> tuple[list[int], int | None]:
    '''``UNIFORM:length:stride[:delta]``; delta ``NR`` (no reuse) is length times stride.'''
    if len(arguments) not in (2, 3):
        raise PlumblineError(f'{where}: must be UNIFORM:<length>:<stride>[:<delta or NR>]')
    length, stride = _one(arguments[0], 'length', where), _one(arguments[1], 'stride', where)
    _few(length, where)
    delta = None
    if len(arguments) == 3:
        delta = length * stride if arguments[2] == 'NR' else _one(arguments[2], 'delta', where)
    return list(range(0, length * stride, stride)), delta


def _ms1(arguments: list[str], where: str) -> tuple[list[int], int | None]:
    '''``MS1:length:places:gaps``: stride 1, but for the gaps at these places; one gap is used at all of them.'''
    if len(arguments) != 3:
        raise PlumblineError(f'{where}: must be MS1:<length>:<gap locations>:<gaps>')
    length = _one(arguments[0], 'length', where)
    places, gaps = _numbers(arguments[1], f'{where}: gap locations'), _numbers(arguments[2], f'{where}: gaps')
    _few(length, where)
    if len(gaps) not in (1, len(places)):
        raise PlumblineError(f'{where}: MS1 has {len(places)} gap locations and {len(gaps)} gaps; give one gap, or as many')
    if places != sorted(set(places)) or places[-1] >= length:
        raise PlumblineError(f'{where}: the gap locations of MS1 must ascend and lie below its length {length}')
    gap_at = dict(zip(places, gaps * len(places) if len(gaps) == 1 else gaps))
    found, index = [], -1
    for j in range(length):
        index += gap_at.get(j, 1)
        found.append(index)
    return found, None


def _laplacian(arguments: list[str], where: str) -> tuple[list[int], int | None]:
    '''``LAPLACIAN:dimension:pseudo order:size``: a star of branches in each direction of a grid; delta is 1.'''
    if len(arguments) != 3:
        raise PlumblineError(f'{where}: must be LAPLACIAN:<dimension>:<pseudo order>:<problem size>')
    dimension, order, size = (_one(text, name, where) for text, name in zip(arguments, ('dimension', 'pseudo order', 'problem size')))
    _few(2 * dimension * order + 1, where)
    if dimension > 31 and size > 1:     # beyond all indices, and slow to compute
        raise PlumblineError(f'{where}: dimension {dimension} leads beyond the largest index {INDEX_MAX}')
    branch = [step * size**axis for axis in range(dimension) for step in range(1, order + 1)]
    middle = branch[-1]
    return [*(middle - step for step in reversed(branch)), middle, *(middle + step for step in branch)], 1

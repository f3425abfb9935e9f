'''What likwid-perfctr measures: its tables in CSV, its groups, and why it may measure nothing.

The format is that of ``printOutput`` in LIKWID 5.2.2's ``likwid.lua`` (option ``-O``, or ``-o`` to
a file that ends in ``.csv``)::

  STRUCT,Info,3,,
  CPU name:,...            (and two lines more)
  TABLE,Region triad,Group 1 Raw,MEM,20
  Region Info,HWThread 0,HWThread 1,,
  RDTSC Runtime [s],...
  call count,...
  Event,Counter,HWThread 0,HWThread 1,
  INSTR_RETIRED_ANY,FIXC0,...
  TABLE,Region triad,Group 1 Raw STAT,MEM,20
  ...
  TABLE,Region triad,Group 1 Metric,MEM,10
  Metric,HWThread 0,HWThread 1,,
  ...

The number in a TABLE line counts the lines of events or metrics.  ``-``, ``nan`` and ``inf`` stand for no value.
'''

import math
import re

from plumbline.errors import PlumblineError

_VOLUME = 'Memory data volume [GBytes]'

#: zen3 has eight memory channels and four counters for them: two groups, one half each.  LIKWID 5.3 has copies of them for zen4, where they count
#: nothing (its issue 613), or eight of twelve channels.
_HALVES = re.compile(r'Memory data volume \(channels (\d+)-(\d+)\) \[GBytes\]$')

#: What likwid-perfctr says when it cannot count, the most telling first.
_UNAVAILABLE = (
    r'Unsupported Processor', r'Cannot access MSR device file .*', r'.*perf_event_paranoid.*',
    r'Cannot get access to MSRs.*', r'Failed to (?:find|execute) the daemon .*',
    r'Exiting due to timeout: The socket file at .*', r'No groups defined for .*',
    r'Cannot get access to performance counters', r'.*[Pp]ermission denied.*',
    r'Marker API result file does not exist.*', r'No regions could be found in Marker API .*')


def _number(text):
    '''A value of a table; :obj:`None` where LIKWID has none.'''
    if text in ('-', ''):
        return None
    try:
        value = float(text)
    except ValueError:
        raise PlumblineError(f'likwid-perfctr: {text!r} is not a number; the table is garbled, run it again') from None
    return value if math.isfinite(value) else None


def _rows(text):
    '''The lines as lists of fields, without the empty fields that fill them up.'''
    *lines, cut = text.split('\n')
    for line in [*lines, cut.rpartition(',')[0]]:      # a line without an end may have lost some of its last field
        row = line.split(',')      # LIKWID quotes nothing, and a program's lines may hold quotes
        while row and row[-1] == '':
            row.pop()
        yield row


def _title(row):
    '''(region, kind, group, number of lines) of a TABLE line.'''
    found = re.fullmatch(r'TABLE,Region ([^,]*),Group \d+ ((?:Raw|Metric)(?: STAT)?),([^,]*),(\d+)', ','.join(row))
    if not found:
        raise PlumblineError(f"likwid-perfctr: cannot read {','.join(row)!r}; it is not the CSV of LIKWID 5, use its option -O")
    return *found.groups()[:3], int(found[4])


def _hwthreads(header, skip):
    '''CPU numbers from the heading of a table.'''
    try:
        return [int(field.split()[1]) for field in header[skip:]]
    except (IndexError, ValueError):
        raise PlumblineError(f"likwid-perfctr: cannot read {','.join(header)!r}; hardware threads were expected there, run it again") from None


def _table(rows, begins, count, what):
    '''Read a heading that begins with ``begins`` and ``count`` lines below it.

    :returns: dictionary name (``EVENT:COUNTER`` for events) -> CPU -> value.
    '''
    skip = len(begins)
    header: list[str] = next(rows, [])
    if header[:skip] != begins:
        raise PlumblineError(f'likwid-perfctr: {what} has no heading {",".join(begins)}; the table is cut off or garbled, run it again')
    cpus = _hwthreads(header, skip)
    table: dict[str, dict[int, float | None]] = {}
    for _ in range(count):
        row: list[str] = next(rows, [])
        if len(row) != skip + len(cpus):
            raise PlumblineError(f'likwid-perfctr: {what} has {len(table)} of {count} lines; it is cut off or garbled, run it again')
        table[':'.join(row[:skip])] = dict(zip(cpus, map(_number, row[skip:])))
    if len(table) != count:
        raise PlumblineError(f'likwid-perfctr: {what} has {count - len(table)} lines twice; it is garbled, run it again')
    return table


def _region_info(rows, what):
    info = _table(rows, ['Region Info'], 2, what)
    if info.keys() != {'RDTSC Runtime [s]', 'call count'}:
        raise PlumblineError(f'likwid-perfctr: {what} does not tell seconds and calls; it is garbled, run it again')
    return {'seconds': info['RDTSC Runtime [s]'], 'calls': info['call count']}


def parse_perfctr_csv(text):
    '''Read likwid-perfctr's tables.

    :arg text: its output in CSV; what else stands before the tables (the program's own output, with ``-O``) is passed over.  The STAT tables are
        derived and are not read.
    :returns: dictionary region -> group -> dictionary ``events`` and ``metrics``, both name -> CPU -> value (:obj:`None` for no value), and
        ``seconds`` and ``calls``, CPU -> value.  An event is named ``EVENT:COUNTER``, since groups count one event on several counters.
    :raises PlumblineError: if there is no table, or one is cut off.
    '''
    parsed: dict[str, dict[str, dict[str, dict]]] = {}
    kinds = {'Raw': 'events', 'Metric': 'metrics'}
    rows = _rows(text)
    for row in rows:
        if row[:1] != ['TABLE']:
            continue
        region, kind, group, count = _title(row)
        if kind.endswith('STAT'):
            continue
        what = f'table {kind} of group {group}, region {region}'
        result = parsed.setdefault(region, {}).setdefault(group, {'events': {}, 'metrics': {}})
        if result[kinds[kind]]:
            raise PlumblineError(f'likwid-perfctr: {what} stands there twice; did several programs write at once?')
        if kind == 'Raw':
            result |= _region_info(rows, what)
            result['events'] = _table(rows, ['Event', 'Counter'], count, what)
        else:
            result['metrics'] = _table(rows, ['Metric'], count, what)
    if not parsed:
        raise PlumblineError('likwid-perfctr wrote no table'
                             + (f': {reason}' if (reason := unavailable_reason(text)) else '')
                             + '; see its standard error')
    for region, groups in parsed.items():
        for group, found in groups.items():
            if not found['events'] or not found['metrics']:
                raise PlumblineError(f'likwid-perfctr: group {group}, region {region}: one of its two tables is missing; it is cut off or garbled, '
                                     'run it again')
    return parsed


def _sum(values):
    return sum(value for value in values.values() if value is not None)


def memory_volume_bytes(parsed, region):
    '''Bytes between memory and the caches during a region, reads and writes.

    Memory channels belong to a socket: LIKWID gives their counts to the first measured hardware
    thread of each socket and 0 to the others, so that the sum over the threads is right.

    :returns: 0 where nothing was counted: the counters of the memory controllers cannot be read.
    :arg parsed: what :func:`parse_perfctr_csv` returned; for zen3 with the groups MEM1 and MEM2, each of which counts one half of the channels.
    :raises PlumblineError: if the region is not there, no group measured memory, or half of the channels are missing.
    '''
    if region not in parsed:
        raise PlumblineError(f"no region {region!r} in likwid-perfctr's output, which has {', '.join(map(repr, parsed))}; run the program with -m")
    metrics = [group['metrics'] for group in parsed[region].values()]
    whole = [m[_VOLUME] for m in metrics if _VOLUME in m]
    halves = {int(match[1]): m[name] for m in metrics for name in m if (match := _HALVES.match(name))}
    if not whole and len(halves) != 2:
        raise PlumblineError(f"groups {', '.join(parsed[region])} did not count all the traffic of memory; measure what group_for() names")
    return 1e9 * (_sum(whole[0]) if whole else sum(map(_sum, halves.values())))


def parse_groups(text):
    '''The group names in the output of ``likwid-perfctr -a``; an empty list if LIKWID has none for this processor.'''
    _, _, table = text.partition('-' * 80)
    return [match[1] for match in re.finditer(r'^\s*(\w+)\t', table, re.MULTILINE)]


#: Processors, by their names in archspec, of which MEM is MEM_ACCESS_RD and MEM_ACCESS_WR (LIKWID's arm8 and arm8_n1; Arm, Cortex-A76 Core
#: Technical Reference Manual, events 0x66 and 0x67).
COUNT_INSTRUCTIONS = ('cortex_a72', 'neoverse_n1')


def group_for(architecture, available):
    '''The groups that count the traffic of memory.

    MEM_DP counts the same channels as MEM and spends counters on floating point besides; it is taken only where there is no MEM.

    :arg architecture: the processor's name in archspec, as ReFrame has it, for example ``'icelake'`` or ``'zen3'``.
    :returns: tuple of names: one group, or several to be measured in one run each whose volumes add up.
    :raises PlumblineError: if there is none of them, or they count something else.
    '''
    if architecture in COUNT_INSTRUCTIONS:
        raise PlumblineError(f'on {architecture} the event that LIKWID takes for memory counts instructions that load and store')
    for groups in (('MEM',), ('MEM1', 'MEM2'), ('MEM_DP',)):
        if set(groups) <= set(available):
            if len(groups) > 1 and architecture != 'zen3':
                raise PlumblineError(f'{" and ".join(groups)} of LIKWID count the memory channels of zen3, not those of {architecture}; '
                                     'LIKWID 5.5 has MEM for zen4 and zen5')
            return groups
    raise PlumblineError(f'LIKWID has no group for memory on {architecture}; see `likwid-perfctr -a`')


def unavailable_reason(text):
    '''Why likwid-perfctr could not count, in its own words.

    :arg text: its standard output and standard error.
    :returns: one line without LIKWID's source position; :obj:`None` if it complains of nothing that is known here.
    '''
    lines = [re.sub(r'^ERROR - \[[^]]*\]\s*', '', line).strip() for line in text.splitlines()]
    for pattern in _UNAVAILABLE:
        for line in lines:
            if re.fullmatch(pattern, line):
                return line
    return None

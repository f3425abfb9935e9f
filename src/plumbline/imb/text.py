'''Reading IMB's standard output.

Nothing here repairs or guesses.  The output says with which command line it was made and which benchmarks are to come; so every table and every row
is known before it is read, and one that is missing, unknown, out of its turn or contradicts itself is an error.
'''

import re
from dataclasses import dataclass, field

from plumbline.errors import PlumblineError
from plumbline.imb.contradiction import contradiction
from plumbline.imb.layout import BENCHMARKS, COLUMNS, HEADINGS, PARTS, SUITES, Asked, Shape

#: Characters of each column.
WIDTH = 13

_BANNER = re.compile(r'#    Intel ?\(R\) MPI Benchmarks (\S[^,]*), (\S+) part')
_LINE = re.compile(r'#-+')
_END = '# All processes entering MPI_Finalize'
_OURS = re.compile(r'#-+$|# Benchmarking |# !! |# All processes|# Calling sequence')
_NAME = re.compile(r'# (\w+)')
_COMMENT = re.compile(r'#     \S.*')
_HEADING = re.compile(r'# Benchmarking (\w+)')
_PROCESSES = re.compile(r'# #processes = (\d+)')
_IDLE = re.compile(r'# \( (\d+) additional process(?:es)? waiting in MPI_Barrier\)')
_MODE = re.compile(r'#    MODE: (NON-AGGREGATE|AGGREGATE)')


@dataclass(frozen=True)
class Row:
    '''A row of a table.

    :attr shape: the table it stands in (benchmark, mode, processes).
    :attr bytes: message length as IMB counts it; :obj:`None` for a barrier.
    :attr values: name of a column (:data:`COLUMNS`) -> number in the unit of its heading, ``repetitions`` among them.
    '''
    shape: Shape
    bytes: int | None
    values: dict


@dataclass
class Table:
    '''A table.

    :attr columns: their names, in their order.
    '''
    shape: Shape
    idle: int
    columns: tuple
    line: int
    rows: list = field(default_factory=list)


@dataclass
class Output:
    '''What one run printed.

    :attr program: ``IMB-MPI1``, ``IMB-RMA`` or ``IMB-NBC``.
    '''
    program: str
    version: str
    benchmarks: list
    tables: list

    @property
    def rows(self):
        '''All rows of all tables.'''
        return [row for table in self.tables for row in table.rows]


class _Reader:
    '''The lines of one run, one after the other, and the words to complain with.'''

    def __init__(self, lines, first, source):
        self.lines, self.first, self.at, self.source = [line.rstrip() for line in lines], first, 0, source
        self.what = 'preamble'

    @property
    def number(self):
        return self.first + self.at

    def wrong(self, text, number=None):
        return PlumblineError(f'{self.source}, line {number or self.number}: {self.what}: {text}')

    @property
    def here(self):
        '''The line that is next, without the blanks at its end.'''
        if self.at == len(self.lines):
            raise self.wrong('the output of IMB ends here; did it die, or was the job stopped?')
        return self.lines[self.at]

    def take(self):
        line = self.here
        self.at += 1
        return line

    def expect(self, pattern, what):
        '''The match of the next line.'''
        found = re.compile(pattern).fullmatch(self.here)
        if not found:
            raise self.wrong(f'expected {what}, found {_shown(self.here)}')
        self.at += 1
        return found

    def skip_blank(self, at_least=0):
        count = 0
        while not self.here:
            self.at += 1
            count += 1
        if count < at_least:
            raise self.wrong(f'expected the blank line after a table, found {_shown(self.here)}')


def _shown(line):
    return repr(line.strip() if len(line) < 90 else line.strip()[:80] + ' ...')


def outputs(text, source='output of IMB', runs=None, **expected):
    '''What all runs in a text printed.

    :arg text: standard output of one or more runs, one after the other; what stands before, between and behind them and is not IMB's is for people.
    :arg source: what to call the text in errors.
    :arg runs: how many there must be; at least one by default.
    :arg expected: ``sizes``, the lengths in the file of ``-msglen``, which the output does not repeat, bytes; and by default what the output says:
        ``benchmarks``, the names that were asked for, in any order and spelling; ``processes``, how many IMB was started with; ``arguments``, the
        words behind its name in the command line.
    :returns: list of :class:`Output`.
    :raises PlumblineError: naming line and benchmark.
    '''
    lines = text.split('\n')
    begins = [number for number, line in enumerate(lines) if _BANNER.match(line)]
    found = []
    free = 0
    for begin, end in zip(begins, [*begins[1:], len(lines)]):
        # Banner and rule above it belong to the run; between two runs that rule is the last line of the chunk.
        _nothing_of_imb(lines, free, begin - 1, source)
        reader = _Reader(lines[begin:end - (end < len(lines))], begin + 1, source)
        found.append(_run(reader, **expected))
        free = begin + reader.at
    _nothing_of_imb(lines, free, len(lines), source)
    if len(found) != runs if runs is not None else not found:
        raise PlumblineError(f'{source}: {len(found)} outputs of IMB instead of {runs or "one at least"}; the standard error of the job says why')
    return found


def _nothing_of_imb(lines, begin, end, source):
    for number in range(begin, end):
        if _OURS.match(lines[number].rstrip()):
            raise PlumblineError(f'{source}, line {number + 1}: {_shown(lines[number])} belongs to no run of IMB; is a '
                                 'banner missing, or did several write at once?')


def _run(reader, sizes, benchmarks=None, processes=None, arguments=None):
    version, part = reader.expect(_BANNER, "IMB's banner").groups()
    if part not in PARTS:
        raise reader.wrong(f'{part}: not one of {", ".join(PARTS)}', reader.number - 1)
    program = PARTS[part]
    reader.expect(_LINE, 'the line below the banner')
    begin, command = _command(reader)
    if arguments is not None and command[1:] != [str(word) for word in arguments]:
        raise reader.wrong(f'made by {" ".join(command)!r}, not with the arguments {" ".join(map(str, arguments))!r}')
    try:
        asked = Asked(command, sizes)
    except PlumblineError as error:
        raise reader.wrong(str(error), begin) from None
    listed = _listed(reader, SUITES[program])
    if benchmarks is not None and {name.lower() for name in benchmarks} != {name.lower() for name in listed}:
        raise reader.wrong(f'{", ".join(benchmarks)} were asked for, {", ".join(listed)} are run')
    output = Output(program, version, listed, [])
    reader.skip_blank()
    while reader.here != _END:
        output.tables.append(_table(reader, listed, asked))
    reader.what = 'end'
    reader.take()
    _every_table(reader, output, asked, processes)
    return output


def _command(reader):
    while reader.here != '# Calling sequence was:':
        if reader.here.startswith('# List of'):
            raise reader.wrong('the calling sequence is missing')
        reader.take()
    reader.take()
    reader.skip_blank()
    begin, words = reader.number, []
    while not re.match('# (Minimum|Message lengths)', reader.here):
        words += reader.take().lstrip('#').split()
    if not words:
        raise reader.wrong('the calling sequence is empty')
    return begin, words


def _listed(reader, suite):
    while reader.here != '# List of Benchmarks to run:':
        if _OURS.match(reader.here):
            raise reader.wrong('the list of benchmarks is missing')
        reader.take()
    reader.take()
    reader.skip_blank()
    names: list[str] = []
    while reader.here:
        if names and _COMMENT.fullmatch(reader.here):
            reader.take()
            continue
        name = reader.expect(_NAME, 'the name of a benchmark')[1]
        if name not in suite:
            raise reader.wrong(f'the benchmark {name} is not known', reader.number - 1)
        names.append(name)
    return names


def _table(reader, listed, asked):
    if reader.here.startswith('# !! '):
        raise reader.wrong(f'IMB says: {reader.here.strip("# !")}')
    reader.what = 'between tables'
    begin = reader.number
    reader.expect(_LINE, 'a table')
    name = reader.expect(_HEADING, "a benchmark's name")[1]
    reader.what = name
    if name not in listed:
        raise reader.wrong('not in the list of benchmarks to run', reader.number - 1)
    processes = int(reader.expect(_PROCESSES, 'the number of processes')[1])
    idle = int(reader.expect(_IDLE, 'the number of waiting processes')[1]) if _IDLE.fullmatch(reader.here) else 0
    reader.expect(_LINE, 'the line above a table')
    shape = Shape(name, _mode(reader), processes)
    headings = HEADINGS[BENCHMARKS[name].kind]
    if tuple(reader.here.split()) != headings:
        raise reader.wrong(f'expected the columns {" ".join(headings)}, found {_shown(reader.here)}')
    reader.take()
    table = Table(shape, idle, tuple(COLUMNS[heading] for heading in headings), begin)
    for length in asked.sizes(name):
        table.rows.append(_row(reader, table, asked, length))
    reader.skip_blank(1)
    return table


def _mode(reader):
    if reader.here != '#':
        return None
    reader.take()
    mode = reader.expect(_MODE, 'a mode')[1]
    reader.expect('#', "the end of the mode's heading")
    return mode


def _row(reader, table, asked, length):
    words = reader.here.split()
    if len(words) != len(table.columns) or ''.join(f'{word:>{WIDTH}}' for word in words) != reader.here:
        due = 'the row' if length is None else f'the row of {length} bytes'
        raise reader.wrong(f'expected {due} with {len(table.columns)} columns, found {_shown(reader.here)}')
    values = {}
    for column, word in zip(table.columns, words):
        decimals = 0 if column in ('bytes', 'repetitions') else 2
        if not re.fullmatch(r'\d+\.\d\d' if decimals else r'\d+', word):
            raise reader.wrong(f'{column} is {word!r}, not a number with {decimals} decimals')
        values[column] = float(word) if decimals else int(word)
    if values.pop('bytes', None) != length:
        raise reader.wrong(f'expected the row of {length} bytes, found {_shown(reader.here)}')
    wrong = contradiction(BENCHMARKS[table.shape.benchmark], table.shape.processes, length, values)
    most = max(asked.most_repetitions, table.shape.processes)
    if values['repetitions'] > most:
        wrong = f"{values['repetitions']} repetitions, at most {most} were asked for"
    if wrong:
        raise reader.wrong(wrong)
    reader.take()
    return Row(table.shape, length, values)


def _every_table(reader, output, asked, processes):
    '''Every table that the command line owes was printed, in its turn.'''
    total = processes or max((table.shape.processes + table.idle for table in output.tables), default=1)
    due = iter([shape for name in output.benchmarks for shape in asked.shapes(name, total)])
    for table in output.tables:
        shape = next(due, None)
        if shape != table.shape:
            raise reader.wrong(f'expected {f"the table {shape}" if shape else "no further table"}, found {table.shape}', table.line)
        if shape.processes + table.idle != total:
            raise reader.wrong(f'{table.idle} processes wait during {shape}, of {total}', table.line)
    missing = next(due, None)
    if missing:
        raise reader.wrong(f'the run ends without the table {missing}')

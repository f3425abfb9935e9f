'''What is known of IMB: its benchmarks, the columns of their tables, and what a command line owes.'''

from dataclasses import dataclass

from plumbline.errors import PlumblineError


@dataclass(frozen=True)
class Column:
    '''A column of a table.

    :attr name: what it is called in :attr:`Row.values`.
    :attr unit: ``bytes``, ``us``, ``MB/s`` (1e6 bytes per second), ``1/s``, ``%`` or ``1``.
    :attr decimals: how many IMB prints.
    '''
    name: str
    unit: str
    decimals: int = 2


#: Heading -> column.
COLUMNS = {
    'Group': Column('group', '1', 0),
    '#bytes': Column('bytes', 'bytes', 0),
    '#repetitions': Column('repetitions', '1', 0),
    't[usec]': Column('t', 'us'),
    't_min[usec]': Column('t_min', 'us'),
    't_max[usec]': Column('t_max', 'us'),
    't_avg[usec]': Column('t_avg', 'us'),
    't_ovrl[usec]': Column('t_ovrl', 'us'),
    't_pure[usec]': Column('t_pure', 'us'),
    't_CPU[usec]': Column('t_CPU', 'us'),
    'overlap[%]': Column('overlap', '%'),
    'Mbytes/sec': Column('bandwidth', 'MB/s'),
    'Msg/sec': Column('messages', '1/s', 0),
}

_SIZED = ('#bytes', '#repetitions')
_RANGE = ('t_min[usec]', 't_max[usec]', 't_avg[usec]')
_OVERLAP = ('t_ovrl[usec]', 't_pure[usec]', 't_CPU[usec]', 'overlap[%]')

#: Kind of benchmark -> headings of its table.
HEADINGS = {
    'pair': (*_SIZED, 't[usec]', 'Mbytes/sec'),
    'element': (*_SIZED, 't[usec]', 'Mbytes/sec'),
    'one to all': (*_SIZED, 't[usec]', 'Mbytes/sec'),
    'parallel': (*_SIZED, *_RANGE, 'Mbytes/sec'),
    'rate': (*_SIZED, 'Mbytes/sec', 'Msg/sec'),
    'collective': (*_SIZED, *_RANGE),
    'overlapped': (*_SIZED, *_OVERLAP),
    'passive': (*_SIZED, 't_pure[usec]', 't_ovrl[usec]'),
    'barrier': ('#repetitions', *_RANGE),
    'overlapped barrier': ('#repetitions', *_OVERLAP),
}


@dataclass(frozen=True)
class Benchmark:
    '''A benchmark of a suite.

    :attr kind: a key of :data:`HEADINGS`.
    :attr messages: Mbytes/sec counts this many times the bytes of a row in one time; 0 where there is no such column.
    :attr reduces: its sizes are multiples of the datatype of reductions.
    :attr modes: it is run in RMA's modes NON-AGGREGATE and AGGREGATE.
    '''
    kind: str
    messages: int = 1
    reduces: bool = False
    modes: bool = False


def _mpi1():
    pairs = [first + last for first in ('PingPong', 'PingPing') for last in ('', 'SpecificSource', 'AnySource')]
    reducing = ['Allreduce', 'Reduce', 'Reduce_local', 'Reduce_scatter', 'Reduce_scatter_block']
    moving = ['Allgather', 'Allgatherv', 'Gather', 'Gatherv', 'Scatter', 'Scatterv', 'Alltoall', 'Alltoallv', 'Bcast']
    return {
        **{name: Benchmark('pair') for name in pairs},
        'Sendrecv': Benchmark('parallel', messages=2),
        'Exchange': Benchmark('parallel', messages=4),
        **{name: Benchmark('collective', 0, reduces=True) for name in reducing},
        **{name: Benchmark('collective', 0) for name in moving},
        'Barrier': Benchmark('barrier', 0),
        'Uniband': Benchmark('rate'),
        'Biband': Benchmark('rate', messages=2),
    }


def _rma():
    pairs = ['Unidir_put', 'Unidir_get', 'Bidir_put', 'Bidir_get', 'Put_local', 'Get_local']
    one_to_all = ['One_put_all', 'One_get_all', 'Put_all_local', 'Get_all_local']
    collective = ['All_put_all', 'All_get_all', 'Exchange_put', 'Exchange_get']
    return {
        **{name: Benchmark('pair', modes=True) for name in pairs},
        **{name: Benchmark('pair', reduces=True, modes=True) for name in ('Accumulate', 'Get_accumulate')},
        **{name: Benchmark('element', reduces=True, modes=True) for name in ('Fetch_and_op', 'Compare_and_swap')},
        **{name: Benchmark('one to all') for name in one_to_all},
        **{name: Benchmark('collective', 0) for name in collective},
        'Truly_passive_put': Benchmark('passive', 0),
    }


def _nbc():
    moving = ['Iallgather', 'Iallgatherv', 'Ialltoall', 'Ialltoallv', 'Ibcast', 'Igather', 'Igatherv', 'Iscatter', 'Iscatterv']
    reducing = ['Iallreduce', 'Ireduce', 'Ireduce_scatter']
    found = {}
    for name in moving + reducing:
        found[name] = Benchmark('overlapped', 0, name in reducing)
        found[f'{name}_pure'] = Benchmark('collective', 0, name in reducing)
    return {**found, 'Ibarrier': Benchmark('overlapped barrier', 0), 'Ibarrier_pure': Benchmark('barrier', 0)}


#: Program -> name of a benchmark -> what is known of it.
SUITES = {'IMB-MPI1': _mpi1(), 'IMB-RMA': _rma(), 'IMB-NBC': _nbc()}

#: What a program calls itself in its banner -> program.
PARTS = {'MPI-1': 'IMB-MPI1', 'MPI-RMA': 'IMB-RMA', 'MPI-NBC': 'IMB-NBC'}

#: Name of a benchmark -> what is known of it.
BENCHMARKS = {name: benchmark for suite in SUITES.values() for name, benchmark in suite.items()}


def suite_of(name):
    '''The program that has a benchmark of this name.'''
    for program, suite in SUITES.items():
        if name in suite:
            return program
    raise PlumblineError(f'IMB has no benchmark {name!r}; it has {", ".join(BENCHMARKS)}')


_TYPE_BYTES = {'byte': 1, 'char': 1, 'int': 4, 'float': 4, 'double': 8, 'float16': 2, 'bfloat16': 2}
#: Repetitions in RMA's mode NON-AGGREGATE, unless the third number of ``-iter`` says otherwise.
_NON_AGGREGATE = 100

_OFF = ('off', '0', 'disable', 'no', 'false')


@dataclass(frozen=True)
class Shape:
    '''The part of a table's heading that repeats: which table it is.'''
    benchmark: str
    mode: str | None
    processes: int
    groups: int

    def __str__(self):
        mode = f', {self.mode}' if self.mode else ''
        groups = f'{self.groups} groups of ' if self.groups > 1 else ''
        return f'{self.benchmark}, {groups}{self.processes} processes{mode}'


class Asked:
    '''What a command line of IMB owes.

    :arg command: its words, the program first.
    :arg sizes: the lengths in the file of ``-msglen``, bytes.
    '''

    def __init__(self, command, sizes=None):
        self.command = list(command)
        self.given = self._listed(sizes)
        self.least, self.most = self._numbers('msglog', '0:22', ':') if ':' in self._option('msglog', ':') else (
            0, *self._numbers('msglog', '22'))
        self.units = {reduces: self._unit(*option) for reduces, option in
                      ((True, ('red_data_type', 'float')), (False, ('data_type', 'byte')))}
        self.with_zero = self._option('zero_size', 'on').lower() not in _OFF
        self.multi, = self._numbers('multi', '-1')
        self.npmin, = self._numbers('npmin', '2')
        often, *_, separately = [*self._numbers('iter', '1000', ','), _NON_AGGREGATE][:3]
        self.most_repetitions = max(often, separately)

    def _option(self, name, default=None):
        '''The last value of an option; IMB takes it from the next word.'''
        values = [value for word, value in zip(self.command, self.command[1:]) if word == f'-{name}']
        return values[-1] if values else default

    def _numbers(self, name, default, separator=None):
        text = self._option(name, default)
        try:
            return [int(number) for number in (text.split(separator) if separator else [text])]
        except ValueError:
            raise PlumblineError(f'-{name}: {text!r} was not expected of IMB') from None

    def _unit(self, name, default):
        text = self._option(name, default)
        if text not in _TYPE_BYTES:
            raise PlumblineError(f'-{name}: {text!r} is not one of {", ".join(_TYPE_BYTES)}')
        return _TYPE_BYTES[text]

    def _listed(self, sizes):
        if self._option('msgsize'):
            return self._numbers('msgsize', '', ',')
        if self._option('msglen') and sizes is None:
            raise PlumblineError(f"-msglen {self._option('msglen')}: which lengths were asked for is not in the output; "
                                 'give them')
        return list(sizes) if self._option('msglen') else None

    def headings(self, name):
        '''The headings of a benchmark's tables.'''
        kind = BENCHMARKS[name].kind
        if self.multi == 0 and kind in ('pair', 'element'):     # the slowest of the groups is shown, as a range
            kind = 'parallel'
        return ('Group',) * (self.multi > 0) + HEADINGS[kind]

    def sizes(self, name):
        '''The lengths that each table of a benchmark has rows for, bytes; [None] for a barrier.'''
        known = BENCHMARKS[name]
        if '#bytes' not in HEADINGS[known.kind]:
            return [None]
        unit = self.units[known.reduces]
        if known.kind == 'element':
            return [unit]
        largest = (1 << self.most) // unit * unit
        if self.given is not None:
            return [-(-min(length, largest) // unit) * unit for length in self.given]
        sizes, length = [0] * self.with_zero, -(-(1 << self.least) // unit) * unit
        while length < largest:
            sizes.append(length)
            length *= 2
        return [*sizes, largest]

    def shapes(self, name, processes):
        '''The tables that a benchmark prints on so many processes, in their order.'''
        known = BENCHMARKS[name]
        modes = {'aggregate': ['AGGREGATE'], 'non_aggregate': ['NON-AGGREGATE']}.get(
            self._option('aggregate_mode'), ['NON-AGGREGATE', 'AGGREGATE']) if known.modes else [None]
        least = self.npmin
        if known.kind == 'rate':
            processes, least = processes - processes % 2, least + least % 2
        if known.kind in ('pair', 'element', 'passive'):
            counts = [min(2, processes)]
        else:
            counts = [max(1, min(processes, least))]
            while counts[-1] < processes:
                counts.append(min(2 * counts[-1], processes))
        return [Shape(name, mode, count, processes // count if self.multi >= 0 else 1)
                for count in counts for mode in modes]

'''What is known of IMB: its benchmarks, the columns of their tables, and what a command line owes.'''

from dataclasses import dataclass

from plumbline.errors import PlumblineError

#: Heading -> what the column is called in :attr:`Row.values`.
COLUMNS = {
    '#bytes': 'bytes',
    '#repetitions': 'repetitions',
    't[usec]': 't',
    't_min[usec]': 't_min',
    't_max[usec]': 't_max',
    't_avg[usec]': 't_avg',
    't_ovrl[usec]': 't_ovrl',
    't_pure[usec]': 't_pure',
    't_CPU[usec]': 't_CPU',
    'overlap[%]': 'overlap',
    'Mbytes/sec': 'bandwidth',
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


def _alike(names, kind, messages=1, **more):
    return dict.fromkeys(names.split(), Benchmark(kind, messages, **more))


_NBC = 'Iallgather Iallgatherv Ialltoall Ialltoallv Ibcast Igather Igatherv Iscatter Iscatterv'
_NBC_REDUCING = 'Iallreduce Ireduce Ireduce_scatter'

#: Program -> name of a benchmark -> what is known of it.
SUITES = {
    'IMB-MPI1': {
        **_alike(' '.join(f'{name}{source}' for name in ('PingPong', 'PingPing') for source in ('', 'SpecificSource', 'AnySource')), 'pair'),
        **_alike('Sendrecv', 'parallel', 2), **_alike('Exchange', 'parallel', 4), **_alike('Barrier', 'barrier', 0),
        **_alike('Allreduce Reduce Reduce_local Reduce_scatter Reduce_scatter_block', 'collective', 0, reduces=True),
        **_alike('Allgather Allgatherv Gather Gatherv Scatter Scatterv Alltoall Alltoallv Bcast', 'collective', 0)},
    'IMB-RMA': {
        **_alike('Unidir_put Unidir_get Bidir_put Bidir_get Put_local Get_local', 'pair', modes=True),
        **_alike('Accumulate Get_accumulate', 'pair', reduces=True, modes=True),
        **_alike('Fetch_and_op Compare_and_swap', 'element', reduces=True, modes=True),
        **_alike('One_put_all One_get_all Put_all_local Get_all_local', 'one to all'),
        **_alike('All_put_all All_get_all Exchange_put Exchange_get', 'collective', 0), **_alike('Truly_passive_put', 'passive', 0)},
    'IMB-NBC': {
        **_alike('Ibarrier', 'overlapped barrier', 0), **_alike('Ibarrier_pure', 'barrier', 0),
        **_alike(_NBC, 'overlapped', 0), **_alike(_NBC_REDUCING, 'overlapped', 0, reduces=True),
        **_alike(_NBC.replace(' ', '_pure ') + '_pure', 'collective', 0),
        **_alike(_NBC_REDUCING.replace(' ', '_pure ') + '_pure', 'collective', 0, reduces=True)}}

#: What a program calls itself in its banner -> program.
PARTS = {'MPI-1': 'IMB-MPI1', 'MPI-RMA': 'IMB-RMA', 'MPI-NBC': 'IMB-NBC'}

#: Name of a benchmark -> what is known of it.
BENCHMARKS = {name: benchmark for suite in SUITES.values() for name, benchmark in suite.items()}

#: Repetitions in RMA's mode NON-AGGREGATE, unless the third number of ``-iter`` says otherwise.
_NON_AGGREGATE = 100


@dataclass(frozen=True)
class Shape:
    '''The part of a table's heading that repeats: which table it is.'''
    benchmark: str
    mode: str | None
    processes: int

    def __str__(self):
        mode = f', {self.mode}' if self.mode else ''
        return f'{self.benchmark}, {self.processes} processes{mode}'


class Asked:
    '''What a command line of IMB owes.

    :arg command: its words, the program first.
    :arg sizes: the lengths in the file of ``-msglen``, bytes.
    '''

    def __init__(self, command, sizes):
        self.command = list(command)
        self.given = list(sizes)
        self.npmin = self._numbers('npmin', '2')[0]
        often, *_, separately = [*self._numbers('iter', '1000'), _NON_AGGREGATE][:3]
        self.most_repetitions = max(often, separately)

    def _option(self, name, default=None):
        '''The last value of an option; IMB takes it from the next word.'''
        values = [value for word, value in zip(self.command, self.command[1:]) if word == f'-{name}']
        return values[-1] if values else default

    def _numbers(self, name, default):
        text = self._option(name, default)
        try:
            return [int(number) for number in text.split(',')]
        except ValueError:
            raise PlumblineError(f'-{name}: {text!r} was not expected of IMB') from None

    def sizes(self, name):
        '''The lengths that each table of a benchmark has rows for, bytes; [None] for a barrier.'''
        known = BENCHMARKS[name]
        if '#bytes' not in HEADINGS[known.kind]:
            return [None]
        unit = 4 if known.reduces else 1
        if known.kind == 'element':
            return [unit]
        return [-(-min(length, 2**22) // unit) * unit for length in self.given]

    def shapes(self, name, processes):
        '''The tables that a benchmark prints on so many processes, in their order.'''
        known = BENCHMARKS[name]
        modes = {'aggregate': ['AGGREGATE'], 'non_aggregate': ['NON-AGGREGATE']}.get(
            self._option('aggregate_mode'), ['NON-AGGREGATE', 'AGGREGATE']) if known.modes else [None]
        if known.kind in ('pair', 'element', 'passive'):
            counts = [min(2, processes)]
        else:
            counts = [max(1, min(processes, self.npmin))]
            while counts[-1] < processes:
                counts.append(min(2 * counts[-1], processes))
        return [Shape(name, mode, count) for count in counts for mode in modes]

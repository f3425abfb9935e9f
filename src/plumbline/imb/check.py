'''The base of the checks that run IMB.'''

import shlex

from reframe.core.builtins import run_after
from reframe.core.exceptions import ReframeError

from plumbline import imb
from plumbline.errors import PlumblineError, in_one_line
from plumbline.model import records
from plumbline.model.quantity import short_size
from plumbline.mpi import installed, loopback
from plumbline.mpi.check import MpiCheck
from plumbline.mpi.families import family_of

#: The file of message lengths that IMB is given.
_LENGTHS = 'lengths'

#: Where IMB is looked for, and where it can be had.
_WHERE = {'extra': 'imb', 'package': 'with Spack: intel-mpi-benchmarks; Intel MPI brings its own'}

#: Of which looks at the loopback device.
_OF_IMB = ' of IMB'


class ImbCheck(MpiCheck):
    '''Base plugin of the IMB checks (``checks/mpi/imb.py``): a check sets ``suite`` (the program), ``benchmarks`` (names), ``lengths``
    (bytes), ``runs``, ``buffers`` (GB) and ``iterations()`` (IMB's ``-iter``).

    IMB prints one number for each length of message, so the whole program is run :attr:`runs` times, and each run is one
    sample: the interval of the median then says what another run would find, the placing of its buffers included.

    IMB does not say where its processes ran.  A PingPong of our own ends the job, started in the same way: it proves the
    binding, and leaves the state of the machine.
    '''

    source = 'Intel MPI Benchmarks; hager2007, section 3.2'
    subsystem = 'messages'
    program = 'pingpong'
    samples = 10
    processes = 1       # runs of IMB are what is repeated
    LASTS = '20m'       # all of them

    # It is IMB's messages that are looked at, not those of our PingPong.
    counts_messages = False

    @property
    def cpus(self):
        '''The CPU of each rank; of all, an even number, because our PingPong needs pairs.'''
        return self.all_cpus[:len(self.all_cpus) // 2 * 2] if self.ranks == 'all' else self.all_cpus[:self.ranks]

    @run_after('setup', always_last=True)
    def find_imb(self):
        if self.nodes != 1:
            raise ReframeError(f'{type(self).__name__}.nodes={self.nodes}: the names of its metrics are of one node: take it away '
                               '(network_patterns measures between nodes)')
        try:
            self.binary = installed.find([self.suite], self.current_environ, family_of(self.current_environ), **_WHERE)
        except PlumblineError as error:
            self.skip_test(str(error))
        if len(self.all_cpus) < 2:
            self.skip_test('two ranks need two CPUs, there is one', symptom='too_few_cpus')

    def options(self):
        return ['--variants', 'standard', '--size', '65536', '--passes', '200']

    @property
    def fitting(self):
        '''The lengths for which the buffers of a collective (all lengths for all ranks, in and out) fit.'''
        return [length for length in self.lengths if 2 * len(self.cpus) * length <= self.buffers * 1e9]

    def start(self, command):
        if self.runs < records.MIN_SAMPLES:
            raise PlumblineError(f'{self.runs} runs of IMB are as many samples: {records.MIN_SAMPLES} at least are needed')
        for length in sorted(set(self.lengths) - set(self.fitting)):
            self.skip_metric(f'all at {short_size(length)}', f'{len(self.cpus)} ranks would need more than the '
                             f'{self.buffers:g} GB of buffers per process that IMB is given', [short_size(length)])
        ours = super().start(command)
        self.write_file(_LENGTHS, ''.join(f'{length}\n' for length in self.fitting))
        self.arguments = list(map(str, [
            '-npmin', len(self.cpus), '-msglen', _LENGTHS, '-iter', self.iterations(), '-mem', self.buffers, *self.benchmarks]))
        line = f'{self.job.launcher.run_command(self.job)} {shlex.join([self.binary, *self.arguments])}'
        self.prerun_cmds += [loopback.look(_OF_IMB), *[line] * self.runs, loopback.look(_OF_IMB)]
        return [*ours[:-len(command)], self.binary, *self.arguments]

    @run_after('sanity')
    def check_tables(self):
        '''Every table and row that was asked for is there, in every run.'''
        if self.is_dry_run():
            return
        with in_one_line():
            found = imb.outputs(self.output(), f'output of {self.suite}', self.runs, benchmarks=self.benchmarks,
                                processes=len(self.cpus), arguments=self.arguments, sizes=self.fitting)
            self.cases = imb.samples(found)
        self.note(f'{self.suite} {found[0].version}, {self.runs} runs, each of them a sample')
        self.note('IMB never touches its buffers: from caches that are shared its bandwidth is more than that of a message '
                  'which is used (see the check pingpong)')

    @run_after('sanity')
    def check_transport_of_benchmark(self):
        '''That our PingPong takes a way does not prove that collectives take it.'''
        if self.is_dry_run():
            return
        self.prove_transport(sum((case.bytes or 0) * float(sum(case.values['repetitions'])) for case in self.cases), _OF_IMB)

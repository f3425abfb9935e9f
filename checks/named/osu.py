import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.model import quantity
from plumbline.named import osu as text
from plumbline.named.check import NamedMpiCheck
from plumbline.rfm.variables import Whole

#: What osu_alltoall takes for its buffers, bytes (its -M).
MOST_MEMORY = 2**29


@rfm.simple_test
class osu(rfm.RunOnlyRegressionTest, NamedMpiCheck):
    '''What do the OSU micro-benchmarks say of messages in a node: two processes, and collectives of all?'''

    source = 'OSU micro-benchmarks; hager2007, section 3.2'
    subsystem = 'messages'
    product, transport = 'osu', 'shm'
    benchmark = parameter(list(text.PROGRAMS), type=str)

    #: The longest message, bytes.
    longest = variable(Whole, value=2**22, loggable=False)

    #: Repetitions of each length.
    iterations = variable(Whole, value=200, loggable=False)

    @run_after('init')
    def choose_ranks(self):
        self.ranks = text.PROGRAMS[self.benchmark].ranks
        self.numbered = self.ranks == 'all'

    @run_after('setup')
    def skip_without_two_cpus(self):
        if len(self.all_cpus) < 2:
            self.skip_test('two ranks need two CPUs, there is one', symptom='too_few_cpus')

    @run_after('setup')
    def shorten_messages(self):
        '''The benchmark cuts them off itself, so that its buffers of all messages stay below its limit of memory.'''
        most = 2**((MOST_MEMORY // len(self.cpus)).bit_length() - 1)
        if self.benchmark == 'osu_alltoall' and self.longest > most:
            self.longest = most
            self.note(f'messages of {quantity.size(most)} at most, since those to {len(self.cpus)} processes share {quantity.size(MOST_MEMORY)}')

    def names(self):
        return [self.benchmark]

    def options(self):
        return ['-m', f'{text.PROGRAMS[self.benchmark].least}:{self.longest}', '-i', self.iterations]

    def figures(self, output, source):
        return text.figures(output, source, name=self.benchmark, most=self.longest)

    @run_after('sanity')
    def check_transport_of_benchmark(self):
        if not self.is_dry_run():
            self.prove_transport(self.repeat * self.iterations * sum(text.lengths(self.benchmark, self.longest)))

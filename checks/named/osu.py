import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.model import quantity
from plumbline.named import osu as text
from plumbline.named.check import NamedMpiCheck
from plumbline.rfm.variables import Whole

#: What osu_alltoall takes for its buffers, bytes (its -M).
MOST_MEMORY = 2**29

#: Repetitions of each length, where nothing else is asked for; of osu_alltoall, whose bytes grow with the square of its processes, so many up to
#: 32 of these, fewer beyond, and no fewer than the last number.
USUAL, MANY, FEWEST = 200, 32, 20

#: Further ones of long messages, which OSU does not count; bytes that a process moves in a second at least, and how many at once do.
WARM_UP, LEAST_RATE, MOST_AT_ONCE = 10, 1e9, 20


@rfm.simple_test
class osu(rfm.RunOnlyRegressionTest, NamedMpiCheck):
    '''What do the OSU micro-benchmarks say of messages in a node: two processes, and collectives of all?'''

    source = 'OSU micro-benchmarks; hager2007, section 3.2'
    subsystem = 'messages'
    product, transport = 'osu', 'shm'
    benchmark = parameter(list(text.PROGRAMS), type=str)

    #: The longest message, bytes.
    longest = variable(Whole, value=2**22, loggable=False)

    #: Repetitions of each length; 0: 200, of osu_alltoall among many processes fewer.
    iterations = variable(Whole, value=0, loggable=False)

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

    @run_after('setup')
    def choose_iterations(self):
        fewer = USUAL * MANY**2 // len(self.cpus)**2 if self.benchmark == 'osu_alltoall' else USUAL
        self.iterations = self.iterations or max(FEWEST, min(USUAL, fewer))

    def takes(self):
        ranks = len(self.cpus)
        messages = {'osu_latency': 2, 'osu_bw': 64, 'osu_bibw': 128, 'osu_allreduce': 2 * ranks, 'osu_alltoall': ranks**2}[self.benchmark]
        moved = self.repeat * (self.iterations + WARM_UP) * messages * sum(text.lengths(self.benchmark, self.longest))
        return round(moved / (LEAST_RATE * min(MOST_AT_ONCE, ranks)))

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

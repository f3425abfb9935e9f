import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.model import metrics, probes
from plumbline.model.quantity import amount, microseconds, per_second, percent, size as text_of
from plumbline.mpi import messages, pingpong as model
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Size

#: Bytes: such a message takes longer than a protocol needs to ask its receiver first (rendezvous), so that none may cost it much.
LONG = 65536


def compact(size):
    '''``64KiB``.'''
    return text_of(size).replace(' ', '')


class Curve(MpiCheck):
    source = 'hager2007, section 3.2, figures 5 and 6'
    subsystem = 'messages'
    program = 'pingpong'
    samples = 10

    #: The largest message, bytes; the sizes are 0 and the powers of two up to it.
    largest = variable(Size, value=64 * 2**20)

    def options(self):
        sizes = [0, *(2**power for power in range(self.largest.bit_length()))]
        return ['--variants', self.variants, '--size', ','.join(map(str, sizes)), '--min-time', '0.002']

    def steadiness(self, variant, subject):
        '''Dips and collapses of the curve, by size and factor; the metric is the worst of them, in the state of its size; in shared memory long
        messages have one of their own.'''
        of_size = model.cases(self.measurements, variant)
        found, met = model.curve(self.measurements, variant), model.states_of(of_size)
        ratios = model.of_halves(found, met)
        for size, ratio in model.falls(found, ratios).items():
            self.note(f'{variant}: the bandwidth falls to {ratio:.2f} of itself from messages of {text_of(size // 2)} to {text_of(size)}')
        if apart := sorted(model.of_halves(found).keys() - ratios):
            self.note(f"{variant}: messages of {', '.join(map(text_of, apart))} and those of half the size met different states of the machine, "
                      'and are not held against each other')
        parts = {subject: ratios}
        if self.transport == 'shm':
            parts = {subject: model.of_halves({size: times for size, times in found.items() if size < LONG}, met),
                     f'{variant}.long.shm': model.of_halves({size: times for size, times in found.items() if size >= LONG // 2}, met)}
        for about, part in parts.items():
            if part:
                worst = min(part, key=lambda size: np.median(part[size]))
                yield metrics.Metric('of_halves', about, part[worst], remark=f'at {text_of(worst)}', record=of_size[worst])


@rfm.simple_test
class pingpong(rfm.RunOnlyRegressionTest, Curve):
    '''What are latency and bandwidth between two processes, is there a size at which messages become slow, and how much of the usual figures is a
    cache that nobody has touched: messages as IMB sends them, with the buffers changed over, and written and read by the processors?'''

    tags = {'upgrade', 'acceptance'}
    variants = 'all'
    transport = parameter(['shm', 'tcp'], type=str)

    @run_after('init')
    def tag_shm_as_health(self):
        if self.transport == 'shm':
            self.tags |= {'health'}

    def evaluate(self):
        curves = {variant: model.curve(self.measurements, variant) for variant in ('standard', 'swapped', 'touched')}
        for variant, found in curves.items():
            of_size = model.cases(self.measurements, variant)
            shortest, longest = of_size[min(of_size)], of_size[max(of_size)]
            yield metrics.latency(found[min(found)], f'{variant}.{self.transport}', shortest)
            yield from self.against_handover(variant, shortest)
            line = model.fit(found)
            self.note(f"{variant}: {amount(per_second(line.bandwidth, 1), 'MB/s')} for messages without end, residuals of the fit up to "
                      f'{percent(line.worst, 0)}')
            yield metrics.bandwidth(longest, f'{variant}.{self.transport}')
            yield from self.steadiness(variant, f'{variant}.{self.transport}')
            if variant == 'swapped':
                yield from self.along(of_size)
        self.say_where_it_switches(curves['swapped'])
        wrong = model.artefacts(curves['standard'], curves['swapped'])
        if wrong:
            worst = max(wrong, key=lambda size: np.median(wrong[size]))
            self.note(f'cache artefact at {len(wrong)} sizes from {text_of(min(wrong))} to {text_of(max(wrong))}: untouched '
                      f'buffers look up to {np.median(wrong[worst]):.2f} times as fast, at {text_of(worst)}')

    def along(self, of_size):
        '''The curve itself, so that a session can be compared with another wherever on it something has changed.'''
        for size in (256, 1024, 4096, 16384, 65536, 2**20):
            if size in of_size and size < max(of_size):
                yield metrics.bandwidth(of_size[size], f'swapped.{compact(size)}.{self.transport}')

    def against_handover(self, variant, shortest):
        '''A message in shared memory is at best one cache line from core to core; the rest is the library's.'''
        if self.transport != 'shm':
            return
        subject, limit = f'{variant}.{self.transport}', probes.beside(shortest, f'{probes.CORE_TO_CORE}.0')
        if limit is None:
            reason, symptom = model.without_handover(shortest)
            for metric in ('overhead', 'of_limit.latency'):
                self.skip_metric(f'{metric}.{subject}', reason, symptom=symptom)
            return
        known = np.isfinite(limit)
        latency, limit = messages.seconds(shortest)[known], limit[known]
        yield metrics.Metric('overhead', subject, microseconds(latency - limit), record=shortest)
        yield metrics.Metric('of_limit', f'latency.{subject}', limit / latency, record=shortest,
                             unjudged='the limit is of the cores, the time above it of the MPI')

    def say_where_it_switches(self, found):
        step = model.step(found)
        self.note(f'the time per message steps up between {text_of(step[0])} and {text_of(step[1])}: eager to rendezvous'
                  if step else 'no step in the time per message: no switch from eager to rendezvous is seen')


@rfm.simple_test
class pingpong_nodes(rfm.RunOnlyRegressionTest, Curve):
    '''What are latency and bandwidth between two nodes, over the network that the MPI chooses and over TCP, and is there a size at which
    messages become slow?'''

    tags = {'acceptance', 'health'}
    subsystem = 'messages, network'
    variants = 'standard'
    largest = 4 * 2**20
    ranks = 1
    nodes = 2
    transport = parameter(['default', 'tcp'], type=str)

    def evaluate(self):
        found, of_size = (read(self.measurements, 'standard') for read in (model.curve, model.cases))
        subject, least = f'{self.transport}.nodes', min(found)
        yield metrics.latency(found[least], subject, of_size[least])
        yield metrics.bandwidth(of_size[max(found)], subject)
        yield from self.steadiness('standard', subject)


@rfm.simple_test
class pingpong_eager(rfm.RunOnlyRegressionTest, Curve):
    '''How do the times follow the size up to which the MPI sends at once (Open MPI's btl_vader_eager_limit, MPICH's
    UCX_RNDV_THRESH, Intel MPI's size of a cell), as MPI_BUFFER_MAX does in the source?'''

    tags = {'acceptance'}
    variants = 'swapped'
    largest = 4 * 2**20
    transport = 'shm'

    #: Bytes up to which messages are sent at once.
    eager = parameter([4096, 16384, 65536, 262144], type=int)

    def settings(self):
        return self.family.eager.filled(value=self.eager)

    def evaluate(self):
        self.note(f'{self.family.parameter} = {self.eager}', 'parameter')
        found, of_size = (read(self.measurements, 'swapped') for read in (model.curve, model.cases))
        for size in (16384, 131072):
            if size in of_size:
                yield metrics.bandwidth(of_size[size], f'swapped.{compact(size)}.eager{self.eager}')
        step = model.step(found)
        self.note(f'step between {text_of(step[0])} and {text_of(step[1])}' if step else 'no step in the time per message')


@rfm.simple_test
class pingpong_single_copy(rfm.RunOnlyRegressionTest, Curve):
    '''How does the hump of the usual PingPong follow the size from which on the receiver copies messages itself (by CMA or xpmem), and is
    it gone where it never does, as with MPI_BUFFER_MAX in the source?

    A receiver that copies straight from what nobody touches reads its own cache.  ``hump`` is the bandwidth of that over that of the
    same messages with the buffers changed over.
    '''

    tags = {'acceptance'}
    variants = 'standard,swapped'
    largest = 16 * 2**20
    transport = 'shm'

    #: ``never``, or bytes from which on messages are copied once.
    single_copy = parameter(['never', '16384', '262144'], type=str)

    #: Bytes of messages that are copied once with the smaller threshold only, and with both.
    SIZES = (65536, 524288)

    def settings(self):
        how = self.family.single_copy
        if isinstance(how, str):
            self.skip_test(f'{self.family.title}: {how}')
        return how['never'] if self.single_copy == 'never' else how['from'].filled(value=self.single_copy)

    def evaluate(self):
        standard, swapped = (model.curve(self.measurements, variant) for variant in ('standard', 'swapped'))
        of_size = model.cases(self.measurements, 'swapped')
        setting = 'never' if self.single_copy == 'never' else f'from{compact(int(self.single_copy))}'
        for size in self.SIZES:
            if size in swapped:
                yield metrics.Metric('hump', f'{compact(size)}.{setting}', swapped[size] / standard[size], record=of_size[size])
                yield metrics.bandwidth(of_size[size], f'swapped.{compact(size)}.{setting}')
        yield metrics.bandwidth(of_size[max(of_size)], f'swapped.longest.{setting}')
        wrong = model.artefacts(standard, swapped)
        self.note(f"single copy {self.single_copy if self.single_copy == 'never' else f'from {text_of(int(self.single_copy))} on'}: "
                  + (f'a hump from {text_of(min(wrong))} to {text_of(max(wrong))}' if wrong else 'no hump'))

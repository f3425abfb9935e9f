import os
import re

import numpy as np
import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_before, variable

from plumbline.model import metrics, quantity
from plumbline.mpi import messages, rma
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.variables import Size, Wholes


class Pipeline(MpiCheck):
    source = 'anderson1997, figure 4 and table 10'
    subsystem = 'messages'
    samples = 10
    transport = parameter(['shm', 'tcp'], type=str)

    #: Variants of the program.
    ways = variable(typ.List[str], loggable=False)

    #: Messages outstanding at once, ascending.
    windows = variable(Wholes, value=[1, 2, 4, 8, 16, 32, 64, 128, 256], loggable=False)

    #: Bytes of a message: the source's word, and one whose bandwidth is that of the transport.
    word, block = 8, 65536

    def options(self):
        return ['--variants', ','.join(self.ways), '--size', f'{self.word},{self.block}', '--window',
                ','.join(map(str, self.windows)), '--messages', max(self.windows), '--memory', self.window_memory,
                '--min-time', '0.002']

    def evaluate(self):
        words, blocks = (rma.curves(self.measurements, size) for size in (self.word, self.block))
        for variant, curve in words.items():
            subject, last = f'{variant}.{self.transport}', max(curve)
            yield metrics.latency(messages.seconds(curve[min(curve)]), subject, curve[min(curve)])
            yield metrics.bandwidth(blocks[variant][last], subject)
            yield metrics.Metric('speedup', subject, rma.speedup(curve))
            yield metrics.Metric('half_window', subject, np.array([rma.half_window(curve)]), unjudged='a property of the MPI and its transport')


@rfm.simple_test
class rma_pipeline(rfm.RunOnlyRegressionTest, Pipeline):
    '''How much latency does pipelining hide: how does the bandwidth of words that are fetched from another process grow
    with the number of them that are outstanding, and what do latency and bandwidth of get, put and send compare to?'''

    tags = {'acceptance'}
    program = 'rma'
    ways = ['get', 'rget', 'rolling', 'put', 'rput', 'send']

    #: How the window comes by its memory: MPI_Win_allocate, or MPI_Win_create of our own.
    window_memory = parameter(['allocate', 'create'], type=str)


@rfm.simple_test
class rma_array(rfm.RunOnlyRegressionTest, MpiCheck):
    '''How much latency does pipelining hide of an array of 16 K words (128 KB), of which 1 to 256, as in the source, or all are fetched at
    once: in batches, and with a new get for every one that has come?'''

    source = 'anderson1997, figure 4'
    subsystem = 'messages'
    samples = 10
    tags = {'acceptance'}
    program = 'rma'
    transport = parameter(['shm', 'tcp'], type=str)

    #: Words of the array, of 8 bytes.
    words = variable(Size, value=16384, loggable=False)

    #: Words that are fetched at once, ascending; those above the whole array are skipped.
    windows = variable(Wholes, value=[1, 4, 32, 256, 2048, 16384], loggable=False)

    def options(self):
        windows = [window for window in self.windows if window <= self.words]
        return ['--variants', 'get,rolling', '--size', 8, '--window', ','.join(map(str, windows)), '--messages', self.words,
                '--memory', 'allocate', '--min-time', '0.002']

    def evaluate(self):
        for variant, curve in rma.curves(self.measurements, 8).items():
            for window, record in curve.items():
                yield metrics.bandwidth(record, f'{variant}.w{window}.{self.transport}')
            yield metrics.Metric('speedup', f'{variant}.{self.transport}', rma.speedup(curve))
            yield metrics.Metric('half_window', f'{variant}.{self.transport}', np.array([rma.half_window(curve)]),
                                 unjudged='a property of the MPI and its transport')


@rfm.simple_test
class rma_target(rfm.RunOnlyRegressionTest, MpiCheck):
    '''Is one-sided communication one-sided: do gets and puts go on while the target computes, or do they wait until it calls the
    MPI? And what do gets cost of what the target has just written, where those of old data read the origin's own cache?'''

    source = 'anderson1997, figure 4 and table 10'
    subsystem = 'messages'
    tags = {'acceptance'}
    program = 'rma'
    samples = 10
    transport = parameter(['shm', 'tcp'], type=str)
    window_memory = parameter(['allocate', 'create'], type=str)

    #: Variants of the program.
    ways = ['get', 'get_busy', 'get_rewritten', 'put', 'put_busy']

    #: Bytes of a transfer.
    size = variable(Size, value=1024)

    #: us that the target computes between two calls of the MPI: far longer than a transfer takes.
    compute = variable(Size, value=500)

    def options(self):
        return ['--variants', ','.join(self.ways), '--size', self.size, '--messages', 32, '--compute', self.compute, '--memory',
                self.window_memory, '--min-time', '0.002']

    def evaluate(self):
        ways = {record['variant']: record for record in self.measurements}
        for way in ('get', 'put'):
            progress = rma.progress(ways, way)
            busy = ways[f'{way}_busy']
            yield metrics.Metric('latency_busy_target', f'{way}.{self.transport}', quantity.microseconds(rma.seconds(busy)), record=busy)
            yield metrics.Metric('progress', f'{way}.{self.transport}', progress)
            if np.median(progress) < rma.SERVED:
                self.note(f'{way}: not one-sided: it waits until the target calls the MPI, which it does every {self.compute} us')
        for way in ('get', 'get_rewritten', 'put'):
            yield metrics.latency(rma.seconds(ways[way]), f'{way}.{self.transport}', ways[way])
        yield metrics.Metric('slowdown', f'get_rewritten.{self.transport}', rma.slowdown_rewritten(ways))


@rfm.simple_test
class shmem_pipeline(rfm.RunOnlyRegressionTest, Pipeline):
    '''Do OpenSHMEM's gets and puts cost less than those of MPI, and do more of them hide more latency?'''

    tags = {'acceptance'}
    program = 'rma-shmem'
    ways = ['get', 'put', 'send', 'shmem_get', 'shmem_get_nbi', 'shmem_put', 'shmem_put_nbi']
    window_memory = 'allocate'

    #: How an OpenSHMEM says that it cannot work here.  Open MPI sometimes loses the first of its lines on the way to the terminal.
    UNABLE = re.compile(r'No available spml components were found|SPML \w+ cannot be selected')

    @run_before('run')
    def skip_without_openshmem(self):
        if not self.is_dry_run() and not os.path.exists(self.programs.path(self.program)):
            self.skip_test(f'the MPI of {self.current_environ.name} has no OpenSHMEM')

    @run_before('sanity')
    def skip_without_start(self):
        if not self.is_dry_run() and self.job.exitcode != 0 and (why := self.UNABLE.search(self.output('stderr'))):
            self.skip_test(f'OpenSHMEM does not start here: {why.group()}')

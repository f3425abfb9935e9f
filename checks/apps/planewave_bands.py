import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import limits, metrics, quantity, records
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.variables import Size

#: Bands of each thread, and the least of all: the products of few are no work.
OF_A_THREAD, LEAST = 4, 32


@rfm.simple_test
class planewave_bands(rfm.RunOnlyRegressionTest, NativeCheck):
    '''What do the FFT and the BLAS of this machine make of a plane-wave code: many small transforms, and products of all its bands?

    ``of_parts`` is the time of the transforms and of the products, each alone, over that of the whole.
    '''

    source = 'hager2007, section 4: the class of EXX and Oak3D'
    subsystem = 'applications'
    program = 'planewave'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}
    env_vars = dict.fromkeys(('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'BLIS_NUM_THREADS'), '1')      # each thread of ours calls it

    #: Points along an edge of the grid: a band stays in the cache of a core.
    points = variable(Size, value=24, loggable=False)

    def options(self):
        bands = max(LEAST, OF_A_THREAD * len(self.cpus))
        return ['--variants', 'all', '--size', self.points, '--bands', bands, '--threads', len(self.cpus)]

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        found = {record['variant']: record for record in group}
        for variant, record in found.items():
            yield metrics.flops(record, variant)
        if 'whole' not in found:
            for metric in ('flops.whole', 'flops.fft', 'flops.product', 'of_parts.whole', 'speedup.whole'):
                self.skip_metric(metric, 'built without FFTW, or without BLAS: install libfftw3-dev and libopenblas-openmp-dev, or others, and '
                                 'build again')
            return
        whole, fft, product = (records.per_pass(found[v]) for v in ('whole', 'fft', 'product'))
        of_fft, of_product = (quantity.percent(float(np.median(part / whole)), 0) for part in (fft, product))
        self.note(f"{found['whole']['options']['library']}: transforms {of_fft}, products {of_product} of the time")
        yield metrics.Metric('of_parts', 'whole', (fft + product) / whole, record=found['whole'])
        yield metrics.Metric('speedup', 'whole', limits.paired_ratio(found['whole'], found['plain'], 'flops'))

'''Checks whose program prints what a story says: everything but the measuring is real.'''

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, variable

from plumbline.model import metrics
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.limited import LimitedCheck


class Story:
    '''What the canned checks have in common.'''

    subsystem = 'memory'

    def options(self):
        return ['--story', self.story, '--size', self.elements('memory', 32)]

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        found = self.against_limit(group)['plain']
        yield metrics.Metric('of_limit', 'plain', found.samples, limit=found.limit)
        for record in metrics.kernels(group):
            yield metrics.bandwidth(record, 'plain', found.limit)


class Canned(Story, rfm.RunOnlyRegressionTest, NativeCheck):
    program = 'triad'
    threads = variable(str, value='one')
    tags = {'health'}


@rfm.simple_test
class Told(Canned):
    '''Which stories are believed?'''

    story = parameter(['good', 'slow', 'impossible', 'noisy', 'wavering', 'unknown', 'crash',
                       'invalid', 'missing', 'silent', 'truncated', 'elsewhere', 'level', 'endless',
                       'short', 'few', 'timeless'])
    tags = set()


@rfm.simple_test
class Unmeasurable(Canned):
    '''Does a metric that cannot be evaluated count?'''

    story = 'good'

    @performance_function('s')
    def time(self):
        return sn.extractsingle(r'no such line (\d+)', self.stdout, 1, float)


@rfm.simple_test
class Nothing(Canned):
    '''Does a check without a metric pass?'''

    story = 'good'

    def evaluate(self):
        return ()


@rfm.simple_test
class NotANumber(Canned):
    '''Does a metric pass that is no number and has no reference?'''

    story = 'good'

    def evaluate(self):
        yield metrics.Metric('time', None, metrics.np.full(12, metrics.np.nan))


@rfm.simple_test
class OtherMetric(Canned):
    '''Do the metrics of two checks keep their names in the performance log?'''

    story = 'good'

    def evaluate(self):
        yield metrics.Metric('time', 'plain', metrics.np.full(12, 7.0))


@rfm.simple_test
class Unregistered(Canned):
    '''Does a metric count that the registry does not know?'''

    story = 'good'

    def evaluate(self):
        yield metrics.Metric('bandwith', 'plain', metrics.np.full(12, 7.0))


@rfm.simple_test
class Directions(Canned):
    '''Does a reference that was recorded see each of them get worse?'''

    story = 'good'
    tags = set()

    #: How much worse than usual.
    worse = variable(float, value=1.0)

    #: Whether a second run is as usual.
    once = variable(bool, value=False)

    def evaluate(self):
        second = self.again is not None and self.measurements[0]['process'] >= self.again
        worse = 1.0 if second and self.once else self.worse
        for name in ('communication', 'growth', 'redundancy', 'slowdown', 'split_over_fused'):
            yield metrics.Metric(name, 'plain', metrics.np.full(12, 2 * worse))
        for name in ('speedup', 'of_parts', 'work'):
            yield metrics.Metric(name, 'plain', metrics.np.full(12, 0.8 / worse))
        for name, impossible in (('of_limit', 1.2), ('cpu_availability', 1.01)):
            yield metrics.Metric(name, 'plain', metrics.np.full(12, impossible))


@rfm.simple_test
class Shared(Canned):
    '''Is a loss less of one because others had the CPUs in a second run?'''

    story = 'good'
    tags = set()

    def evaluate(self):
        yield metrics.Metric('efficiency', 'plain', metrics.np.full(12, 0.5), unjudged=self.disturbed())


@rfm.simple_test
class Skipped(Canned):
    '''What is said of a check that cannot run here?'''

    story = 'good'

    @run_after('setup')
    def skip_test(self):
        self.skip_metric('bandwidth', 'made to be skipped')
        self.skip('made to be skipped')


@rfm.simple_test
class Flaky(Canned):
    '''Is a check that failed measured again?'''

    story = variable(str, value='once slow')
    tags = {'health', 'acceptance'}


@rfm.simple_test
class CrossChecked(Story, rfm.RunOnlyRegressionTest, LimitedCheck):
    '''What does the report say of a cross-check that fails?'''

    program = 'triad'
    threads = variable(str, value='one')
    story = 'good'
    tags = {'health'}


@rfm.simple_test
class States(Canned):
    '''What is said of a machine that changes its state?'''

    story = variable(str, value='far')
    tags = set()


@rfm.simple_test
class AllThreads(Canned):
    '''On which CPUs do all threads run?'''

    story = 'good'
    threads = 'all'

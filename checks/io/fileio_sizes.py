import reframe as rfm
from reframe.core.builtins import parameter, run_after

from plumbline.model import metrics
from plumbline.rfm import file_systems
from plumbline.rfm.file_systems import FileSystemCheck

#: Array -> elements, and what is measured of it: the fast modes only, and of the largest each in a test of its own, for its own time.
SIZES = {'1MB': (125000, ['c', 'whole_stream', 'whole_sequential']),
         '64MB': (8000000, ['c', 'whole_stream', 'whole_sequential']),
         '1GB': (125000000, ['whole_stream']), '1GB_sequential': (125000000, ['whole_sequential'])}


@rfm.simple_test
class fileio_sizes(rfm.RunOnlyRegressionTest, FileSystemCheck):
    '''What does a file system give to arrays that are written and read whole, from 1 MB to 1 GB?'''

    source = 'arsc2002, second article, table of file systems'
    program = 'fileio'
    threads = 'one'
    samples = 10
    LASTS = '40m'       # several processes, each as long as is reckoned with; what has become slow has to show
    tags = {'acceptance'}
    file_system = parameter(file_systems.names(), type=str)
    size = parameter(SIZES, type=str)

    @run_after('init')
    def echo_reach_of_nodes(self):
        if self.size == '64MB':
            self.tags |= {'node'}

    def options(self):
        elements, variants = SIZES[self.size]
        if 'fortran' not in self.current_environ.features:
            if self.size == '1GB_sequential':
                self.leave('sequential files are written by Fortran, and this environment has no compiler of it')
            self.skip_metric('all of Fortran', 'this environment has no Fortran compiler', [variant for variant in variants if variant != 'c'])
            variants = ['c']
        if self.size != '1MB':
            self.skip_metric('all of element, row and formatted', 'slow: fileio_modes measures them at 1 MB')
        # A pass of the smallest is too short to be a sample.  Stream files are shared, sequential ones are not.
        once = [] if self.size == '1MB' else ['--passes', 1]
        return [*self.arguments(variants, elements, self.samples, 8 * elements * min(2, len(variants))), *once]

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        for record in self.worth_saying(group):
            found = metrics.bandwidth(record, f"{record['variant']}.{record['options']['operation']}")
            yield found
            if self.size.startswith('1GB'):
                self.estimate(found)
        self.compare_file_systems()

import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model import limits, metrics
from plumbline.rfm import file_systems
from plumbline.rfm.file_systems import FileSystemCheck
from plumbline.rfm.variables import Size

FORTRAN = [f'{granularity}_{form}' for form in ('stream', 'sequential', 'formatted')
           for granularity in ('whole', 'row', 'element')]


@rfm.simple_test
class fileio_modes(rfm.RunOnlyRegressionTest, FileSystemCheck):
    '''What do small statements and text cost of a file system's bandwidth: an array by element, by row and whole, formatted and unformatted?'''

    source = 'arsc2002, second article, table of modes'
    program = 'fileio'
    threads = 'one'
    samples = 12
    tags = {'screen', 'upgrade', 'acceptance'}
    file_system = parameter(file_systems.names(), type=str)
    size = '1MB'
    compared = ('whole_stream', 'whole_sequential', 'element_sequential', 'whole_formatted')

    #: Elements of the array: 1 MB as in the source, because the slow modes take a second for 10 MB.
    length = variable(Size, value=125000, loggable=False)

    def options(self):
        fortran = 'fortran' in self.current_environ.features
        if not fortran:
            self.skip_metric('all of Fortran', 'this environment has no Fortran compiler', FORTRAN)
        # Seven files: 3 x 25 bytes for each element and its line ends, 3 x 8 and markers, 8: 120 at the most.
        return self.arguments(['c', *(FORTRAN if fortran else [])], self.length, 3 * self.samples, 120 * self.length)

    def evaluate(self):
        group, = metrics.groups(self.measurements)
        slowest = {record['options']['operation']: record for record in group if record['variant'] == 'element_formatted'}
        for record in self.worth_saying(group):
            subject = f"{record['variant']}.{record['options']['operation']}"
            found = metrics.bandwidth(record, subject)
            yield found
            if record['variant'] in (*self.compared, 'element_formatted') and record['options']['operation'] == 'write':
                self.estimate(found)
            if record['variant'] in self.compared:
                ratio = limits.paired_ratio(record, slowest[record['options']['operation']], 'bytes')
                yield metrics.Metric('speedup', subject, ratio)

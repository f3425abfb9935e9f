import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.named import fio as text
from plumbline.named.check import NamedCheck, OnFileSystem, on_devices
from plumbline.rfm.variables import Whole


@rfm.simple_test
class fio(rfm.RunOnlyRegressionTest, OnFileSystem, NamedCheck):
    '''What does fio say of a file system past the page cache: bandwidth one after the other, operations per second at random?'''

    source = 'Axboe, fio'
    product, threads, repeat, LASTS = 'fio', 'one', 5, '30m'
    file_system = parameter(on_devices(), type=str)

    #: Bytes of the file.
    size = variable(Whole, value=2**30, loggable=False)

    def options(self):
        self.keep('plumbline.fio', text.job_file(self.size, 30))
        return ['--output-format=json', f'{self.stagedir}/plumbline.fio']

    def figures(self, output, source):
        return text.figures(output, source, size=self.size)

import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model.quantity import short_size
from plumbline.named import fio as text
from plumbline.named.check import NamedCheck, OnFileSystem, on_devices
from plumbline.rfm.variables import Whole

#: Bytes of the file, where nothing else is asked for.
USUAL = 2**30


@rfm.simple_test
class fio(rfm.RunOnlyRegressionTest, OnFileSystem, NamedCheck):
    '''What does fio say of a file system past the page cache: bandwidth one after the other, operations per second at random?'''

    source = 'Axboe, fio'
    product, threads, repeat, LASTS = 'fio', 'one', 5, '30m'
    file_system = parameter(on_devices(), type=str)

    #: Bytes of the file.
    size = variable(Whole, value=USUAL, loggable=False)

    def options(self):
        self.given = short_size(self.size) if self.size != USUAL else ''
        self.keep('plumbline.fio', text.job_file(self.size))
        return ['--output-format=json', f'{self.stagedir}/plumbline.fio']

    def figures(self, output, source):
        return text.figures(output, source, size=self.size)

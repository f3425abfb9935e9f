import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.named import ior as text
from plumbline.named.check import NamedMpiCheck, OnFileSystem, on_devices
from plumbline.rfm.variables import Whole


@rfm.simple_test
class ior(rfm.RunOnlyRegressionTest, OnFileSystem, NamedMpiCheck):
    '''What bandwidth of a file system does IOR find, past the page cache, a file for each process of a node?'''

    source = 'IOR'
    product, repeat, LASTS = 'ior', 5, '30m'
    file_system = parameter(on_devices(), type=str)

    #: Bytes that each process writes and reads, in transfers of 1 MiB.
    block = variable(Whole, value=2**28, loggable=False)

    def options(self):
        return ['-a', 'POSIX', '--posix.odirect', '-w', '-r', '-e', '-F', '-b', self.block, '-t', 2**20, '-o', '$folder/data',
                '-O', 'summaryFormat=JSON']

    def figures(self, output, source):
        return text.figures(output, source, processes=len(self.cpus), block=self.block, transfer=2**20)


@rfm.simple_test
class mdtest(rfm.RunOnlyRegressionTest, OnFileSystem, NamedMpiCheck):
    '''How many files a second does mdtest create, look at, open and remove, each process of a node in a folder of its own?'''

    source = 'mdtest'
    product, repeat, LASTS = 'mdtest', 5, '30m'
    file_system = parameter(on_devices(), type=str)

    #: Files of each process.
    files = variable(Whole, value=10000, loggable=False)

    def options(self):
        return ['-n', self.files, '-u', '-F', '-d', '$folder/files']

    def figures(self, output, source):
        return text.of_files(output, source, processes=len(self.cpus), files=self.files)

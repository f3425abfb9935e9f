import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.model.quantity import short_size
from plumbline.named import ior as text
from plumbline.named.check import NamedMpiCheck, OnFileSystem, on_devices
from plumbline.rfm.variables import Whole

#: Bytes, and files, of each process, where nothing else is asked for; of all processes together no more files than so many.
USUAL_BLOCK, USUAL_FILES, MOST_FILES = 2**28, 10000, 10**6

#: Files that are created, looked at, opened, or removed in a second, at least.
LEAST_RATE = 2000


@rfm.simple_test
class ior(rfm.RunOnlyRegressionTest, OnFileSystem, NamedMpiCheck):
    '''What bandwidth of a file system does IOR find, past the page cache, a file for each process of a node?'''

    source = 'IOR'
    product, repeat, LASTS = 'ior', 5, '1h'
    file_system = parameter(on_devices(), type=str)

    #: Bytes that each process writes and reads, in transfers of 1 MiB.
    block = variable(Whole, value=USUAL_BLOCK, loggable=False)

    def options(self):
        self.given = short_size(self.block) if self.block != USUAL_BLOCK else ''
        return ['-a', 'POSIX', '--posix.odirect', '-w', '-r', '-e', '-F', '-b', self.block, '-t', 2**20, '-o', '$folder/data',
                '-O', 'summaryFormat=JSON']

    def figures(self, output, source):
        return text.figures(output, source, processes=len(self.cpus), block=self.block, transfer=2**20)


@rfm.simple_test
class mdtest(rfm.RunOnlyRegressionTest, OnFileSystem, NamedMpiCheck):
    '''How many files a second does mdtest create, look at, open and remove, each process of a node in a folder of its own?'''

    source = 'mdtest'
    product, repeat, LASTS = 'mdtest', 5, '1h'
    file_system = parameter(on_devices(), type=str)

    #: Files of each process; 0: 10000, or as many as make a million of all.
    files = variable(Whole, value=0, loggable=False)

    def options(self):
        self.each = self.files or min(USUAL_FILES, MOST_FILES // len(self.cpus))
        self.given = f'files{self.each}' if self.each != USUAL_FILES else ''
        return ['-n', self.each, '-u', '-F', '-d', '$folder/files']

    def takes(self):
        return round(self.repeat * 4 * self.each * len(self.cpus) / LEAST_RATE)

    def figures(self, output, source):
        return text.of_files(output, source, processes=len(self.cpus), files=self.each)

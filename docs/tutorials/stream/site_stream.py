import reframe as rfm

from plumbline.judged import Judged


@rfm.simple_test
class site_stream(rfm.RunOnlyRegressionTest, Judged):
    '''Does STREAM reach what it reached before?'''

    modules = ['stream']
    executable = 'stream'
    repeat, threads = 10, 'all'

    def evaluate(self):
        yield self.extracted('bandwidth', 'triad', r'Triad:\s+(\S+)', 'MB/s')

import json
import os

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.model import metrics, spatter
from plumbline.model.quantity import percent
from plumbline.rfm.limited import LimitedCheck
from plumbline.rfm.variables import Words

#: What is measured without a file; the counts are such that the rows fill the memory's working set.
PATTERNS = [
    {'name': 'stride1', 'kernel': 'Gather', 'pattern': 'UNIFORM:8:1:NR'},
    {'name': 'stride8', 'kernel': 'Gather', 'pattern': 'UNIFORM:8:8:NR'},
    {'name': 'ms1', 'kernel': 'Gather', 'pattern': 'MS1:16:8:40', 'delta': 64},
    {'name': 'stencil', 'kernel': 'Gather', 'pattern': 'LAPLACIAN:2:1:1000'},
    {'name': 'scatter8', 'kernel': 'Scatter', 'pattern': 'UNIFORM:8:8:NR'},
    {'name': 'copy', 'kernel': 'GS', 'pattern-gather': 'UNIFORM:8:1:NR', 'pattern-scatter': 'UNIFORM:8:1:NR'},
]

#: Traffic of a level over the bytes that the core moves, below which the level's limit says nothing of a pattern.
ELSEWHERE = 0.05


@rfm.simple_test
class gather_patterns(rfm.RunOnlyRegressionTest, LimitedCheck):
    '''How fast are the gathers and scatters of an application, given as a pattern file of Spatter's?'''

    source = 'Spatter (github.com/hpcgarage/spatter): kernels, patterns and bandwidth as it defines them'
    subsystem = 'memory'
    samples = 20
    program = 'gather_patterns'
    threads = parameter(['one', 'all'], type=str)
    tags = {'acceptance'}
    OF_A_GIB = 400      # in each of six patterns

    #: A pattern file of Spatter's (JSON); a small set of our own by default.
    pattern_file = variable(Words, value='', loggable=False)

    @run_after('init')
    def resolve_path(self):
        self.given = os.path.abspath(self.pattern_file)     # later the working folder is another

    def default_patterns(self):
        rows = self.elements('memory', 8)
        for config in spatter.parse(json.dumps(PATTERNS)):
            deltas = [value for key, value in config.numbers.items() if key.startswith('delta')]
            config.numbers['count'] = rows // sum(deltas)
            yield config

    def options(self):
        if self.pattern_file:
            configs = spatter.read(self.given, self.memory, len(self.cpus))
            self.note(f'patterns of {self.given}')
        else:
            configs = list(self.default_patterns())
        self.write_file('patterns.txt', spatter.lines(configs))
        return ['--variants', 'plain,unroll,prefetch,columns', '--pattern', 'patterns.txt',
                '--config', ','.join(str(i + 1) for i in range(len(configs))),
                '--threads', len(self.cpus), '--limit', '--min-time', '0.005']

    def evaluate(self):
        for group in metrics.groups(self.measurements):
            for metric in self.limited(group, lambda record: f"{record['options']['name']}.{record['variant']}"):
                share = metric.record['traffic'] / metric.record['bytes']
                if metric.metric == 'of_limit' and share < ELSEWHERE:
                    level = metric.record['level']
                    self.skip_metric(metric.name, f'of the bytes that the pattern moves {percent(share)} come from {level}: it lives nearer, '
                                                  f'and the limit of {level} says nothing of it')
                else:
                    yield metric

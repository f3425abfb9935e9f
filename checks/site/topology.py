import sys

import numpy as np
import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.runtime import runtime

from plumbline import settings
from plumbline.errors import in_one_line
from plumbline.model import metrics, result
from plumbline.references import Reference
from plumbline.rfm import evaluation
from plumbline.rfm.job import Job
from plumbline.rfm.variables import TheResult, YesNo
from plumbline.system import topology_file


@rfm.simple_test
class topology(rfm.RunOnlyRegressionTest, Job):
    '''Which CPUs, caches and memory has a node of the partition, what of it may a job use, and is that as it was?'''

    tags = {'topology'}
    sourcesdir = None
    LASTS = '5m'
    executable = sys.executable
    executable_opts = ['-I', '-m', 'plumbline.detect.node']
    partition = parameter((partition.name for partition in runtime().system.partitions), type=str)

    #: Write the topology anew where it is not as it was, instead of failing.
    replace = variable(YesNo, value=False, loggable=False)

    #: The result, as of all checks (``schemas/result.json``).
    plumbline: result.Result = variable(TheResult, value=result.Result(), loggable=True)

    @run_after('init')
    def choose_partition(self):
        '''In one environment, whichever.  Of the node that ReFrame runs on it knows the topology itself.'''
        partition, = (one for one in runtime().system.partitions if one.name == self.partition)
        self.valid_systems = [] if partition.scheduler.registered_name == 'local' else [partition.fullname]
        self.valid_prog_environs = [environment.name for environment in partition.environs[:1]]

    @run_after('setup')
    def ask_for_all_cpus(self):
        '''Slurm gives them with the node; other schedulers give those that are asked for.'''
        self.num_cpus_per_task = self.current_partition.extras.get('cpus')

    @run_before('run')
    def run_without_launcher(self):
        '''A launcher may give its program a part of the job only.'''
        self.job.launcher = getlauncher('local')()

    @sanity_function
    def is_as_it_was(self):
        said = [line for line in self.output().splitlines() if line.startswith(topology_file.MARK)]
        if len(said) != 1:
            raise SanityError('the job did not print the topology of its node; see its output')
        file = topology_file.path(settings.TOPOLOGIES, self.current_system.name, self.partition)
        with in_one_line():
            node = topology_file.parse(said[0].removeprefix(topology_file.MARK), 'output of the job')
            before = None if self.replace else topology_file.read(file)
            changed = topology_file.differences(before, node) if before else []
            if changed:
                if topology_file.memory_differs(before, node):
                    self.plumbline.symptom = 'memory_changed'
                raise SanityError(f"node {node['node']} is not as {before['node']} was: {'; '.join(changed)}; if that "
                                  f'is right, run with -S topology.replace=yes, which writes {file}')
            if not before:
                topology_file.write(file, node)
        self.leave_result(node, before, file)
        return True

    def leave_result(self, node, before, file):
        '''Some of it as metrics: a test without any would have measured nothing.'''
        found, known = (topology_file.figures(one) if one else {} for one in (node, before))
        source = str(file) if known else None
        self.plumbline.metrics = [evaluation.judged(evaluation.Case(
                metrics.Metric(name, None, np.array([float(value)])), reference_from=source,
                reference=Reference((known[name][0], -tolerance, tolerance)) if known else None))
            for name, (value, tolerance) in found.items()]
        self.plumbline.schema, self.plumbline.question = result.SCHEMA_VERSION, self.question()
        self.plumbline.machine = {'hostname': node['node']}

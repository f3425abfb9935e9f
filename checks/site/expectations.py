import json
import sys

import numpy as np
import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.runtime import runtime

from plumbline.errors import in_one_line
from plumbline.gate import files, pack
from plumbline.gate.packed import compare, main as gate
from plumbline.model import metrics, quantity, result
from plumbline.references import Reference
from plumbline.rfm import evaluation
from plumbline.rfm.job import Job, measured_partitions
from plumbline.rfm.variables import TheResult

#: Differences that a message names.
MOST_NAMED = 8


@rfm.simple_test
class expectations(rfm.RunOnlyRegressionTest, Job):
    '''Has the node what a node of its kind must have: memory, mounts, links, services, kernel and settings?

    It reads what the gate reads, with the gate itself, and sees no loss of speed.
    '''

    tags = {'node', 'health', 'acceptance'}
    sourcesdir = None
    measures = False
    LASTS = '2m'
    executable = sys.executable
    partition = parameter((partition.name for partition in runtime().system.partitions), type=str)

    #: The result, as of all checks (``schemas/result.json``).
    plumbline: result.Result = variable(TheResult, value=result.Result(), loggable=True)

    @run_after('init')
    def choose_partition(self):
        '''In one environment, whichever.'''
        partition, = (one for one in runtime().system.partitions if one.name == self.partition)
        self.valid_systems = [partition.fullname] if {'*', partition.fullname} & set(measured_partitions()) else []
        self.valid_prog_environs = [environment.name for environment in partition.environs[:1]]

    @run_after('setup')
    def find_expectations(self):
        with in_one_line():
            self.file, self.expected = files.of_partition(self.current_system.name, self.current_partition)
        if self.expected is None:
            reason, wanted = f'{self.file} is not there; ', {}
            if 'expectations' in self.current_partition.extras:     # by the site: without them nothing is well
                reason += "the extra 'expectations' names a kind of node, neither a path nor with .yaml; mend it, or "
                wanted = {'recorded': 1}
            reason += f'on a good node: plumbline expectations record {self.file.stem}'
            self.plumbline.skip(result.Skipped('all', reason, **wanted))
            self.skip(reason)

    @run_before('run')
    def write_gate(self):
        '''Its exit code is a verdict, and no failure of the job; a launcher may give its program a part of the job only.'''
        with in_one_line():
            pack.write(f'{self.stagedir}/gate', [self.expected], gate.MOST_SECONDS)
        self.executable_opts = ['-IS', 'gate', '--json', '||', 'true']
        self.job.launcher = getlauncher('local')()

    @sanity_function
    def is_as_expected(self):
        output = self.output()
        begin = output.find('{\n "schema"')
        if begin < 0:
            raise SanityError(f"the gate told nothing: {(output.strip().splitlines() or ['its output is empty'])[-1]}")
        told, _ = json.JSONDecoder().raw_decode(output, begin)
        self.plumbline.schema, self.plumbline.question = result.SCHEMA_VERSION, self.question()
        self.plumbline.machine = {'hostname': told['node']}
        texts = {severity: [one['text'] for one in told['differences'] if one['severity'] == severity] for severity in compare.SEVERITIES}
        if told['exit_code'] == gate.UNKNOWN:
            raise SanityError(f"{self.file.name} cannot be checked on node {told['node']}: {told['line']}")
        wanted = self.expected['expectations']
        needed = [one['text'] for one in told['differences'] if one['unread'] and wanted[one['name']]['severity'] == compare.DRAIN]
        for text in (*texts[compare.WARN], *texts[compare.NOTE]):
            if text not in needed:
                self.plumbline.note(text, 'expectations')
        if needed:
            why = f'{_some(needed)}; run as root, or record what this user can read: plumbline expectations record {self.file.stem}'
            self.plumbline.skip(result.Skipped('what is worth a drain', why, recorded=1))
        if wrong := texts[compare.DRAIN]:
            self.plumbline.symptom = 'not_as_expected'
            raise SanityError(f"node {told['node']} is not as expected: {_some(wrong)} ({self.file.name})")
        # A test without any metric would have measured nothing.
        unjudged = f'{len(needed)} of what is worth a drain could not be read' if needed else None
        self.plumbline.metrics = [evaluation.judged(evaluation.Case(
            metrics.Metric('as_expected', None, np.array([1.0]), unjudged=unjudged), reference=Reference((1.0, 0.0, 0.0)),
            reference_from=self.file.name))]
        return True


def _some(texts):
    return '; '.join(quantity.at_most(texts, MOST_NAMED))

import os

import numpy as np
import reframe as rfm
from reframe.core.builtins import fixture, run_before, sanity_function

from plumbline.errors import PlumblineError, in_one_line
from plumbline.likwid import perfctr
from plumbline.model import metrics
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.job import Job


class likwid_groups(rfm.RunOnlyRegressionTest, Job):
    '''Which groups of hardware counters does LIKWID have for this processor?'''

    valid_systems = ['*']
    valid_prog_environs = ['*']
    sourcesdir = None
    executable = 'sh'
    executable_opts = ['-c', "'likwid-perfctr -i; likwid-perfctr -a; true'"]

    @sanity_function
    def ran(self):
        return True     # what it could not say, the check says with the reason


@rfm.simple_test
class triad_traffic(rfm.RunOnlyRegressionTest, NativeCheck):
    '''Do the counters of the memory controllers see the traffic that the model says?'''

    source = 'hager2004, section 3.1: write-allocate, 5/4 of the application bytes'
    subsystem = 'memory'
    samples = 10
    processes = 1       # a counted run for each group of counters
    program = 'triad'
    threads = 'all'
    tags = {'acceptance'}
    groups = fixture(likwid_groups, scope='partition')
    counted = ()

    def options(self):
        # A fixed number of passes, so that every call of a region does the same work.
        return ['--variants', 'plain,nt|', '--size', self.elements('memory', 32), '--threads', len(self.cpus), '--passes', 4]

    @run_before('run', always_last=True)
    def count_traffic(self):
        '''Once for each group: the counters of one run may not cover all channels.'''
        if 'likwid' not in self.current_partition.features:
            self.not_counted('likwid is not on this partition')
        if self.is_dry_run():
            return
        try:
            self.counted = perfctr.group_for(self.current_partition.processor.arch, perfctr.parse_groups(self.groups.output()))
        except PlumblineError as error:
            self.not_counted(str(error))
        program = ' '.join(self.executable_opts[self.executable_opts.index('-c') + 2:])
        cpus = ','.join(map(str, self.cpus))
        lines = [f'likwid-perfctr -f -C {cpus} -g {group} -m -o {group}.csv {program}' for group in self.counted]
        self.prerun_cmds = [f'{line} > {group}.out' for line, group in zip(lines[:-1], self.counted)]
        self.executable, *self.executable_opts = lines[-1].split()

    def not_counted(self, reason):
        self.skip_test(reason, 'traffic', promise='counters')

    @run_before('sanity')
    def skip_without_counters(self):
        if self.is_dry_run():
            return
        reason = perfctr.unavailable_reason(self.output() + self.output('stderr'))
        if reason:
            self.not_counted(reason)

    def evaluate(self):
        parsed = {}
        for group in self.counted:
            with open(os.path.join(self.measured_by.stagedir, f'{group}.csv')) as file, in_one_line():
                for region, found in perfctr.parse_perfctr_csv(file.read()).items():
                    parsed.setdefault(region, {}).update(found)
        records = {f"triad-{record['variant']}-{record['size']}-{record['threads']}": record for record in metrics.kernels(self.measurements)}
        with in_one_line():
            counted = {region: perfctr.memory_volume_bytes(parsed, region) for region in records}
        if nothing := [region for region, volume in counted.items() if not volume]:
            self.not_counted(f'region {nothing[0]}: no memory traffic was counted; the counters of the memory controllers cannot be read, '
                             'see `likwid-perfctr -V 1`')
        for region, record in records.items():
            calls = max(next(iter(parsed[region].values()))['calls'].values())
            # Write-allocates that a processor may leave out may have been counted, or not.
            most, least = calls * record['traffic'], calls * record.get('traffic_least', record['traffic'])
            yield metrics.Metric('traffic', record['variant'], np.array([max(counted[region] / most, min(1.0, counted[region] / least))]))

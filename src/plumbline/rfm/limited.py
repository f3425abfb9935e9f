'''likwid-bench as the independent cross-check of the limits: once per session and environment.

Of an environment, because likwid-bench runs by turns with our own limit streams, which its compiler has made: on a machine
whose speed changes within minutes only that tells whether our streams are good enough to be the limit.
'''

import shlex

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import fixture, run_before, sanity_function, variable

from plumbline.errors import PlumblineError, in_one_line
from plumbline.likwid import bench, bench_output, pin
from plumbline.model import limits, records, result
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.node import OnNode
from plumbline.rfm.programs import native_programs
from plumbline.rfm.variables import TheResult
from plumbline.system import topology

_NOT_THERE = 'not confirmed by likwid-bench: it is not on this partition'


class likwid_bench(rfm.RunOnlyRegressionTest, OnNode):
    '''What does likwid-bench reach in each level, with one thread and with all?

    It never fails a check that uses it: without it the limits are the harness's own, and the report says that nobody has confirmed them.
    '''

    valid_prog_environs = ['+openmp']
    programs = fixture(native_programs, scope='environment')

    #: ``health`` (three kernels once, and two with non-temporal stores) or ``full`` (all, three times).
    effort = variable(str, value='health')

    #: The levels to measure, e.g. ``L1,memory``; all by default.
    levels = variable(typ.List[str], value=[], loggable=False)

    #: What the archive keeps of it: the time inside its timed loops.
    plumbline: result.Result = variable(TheResult, value=result.Result(), loggable=True)

    @run_before('run')
    def write_script(self):
        self.executable = 'true'
        if 'likwid' not in self.current_partition.features:
            return
        with in_one_line():
            processor, commands = self.current_partition.processor, []
            isa, *_ = bench.isas(processor.arch or '', processor.platform)
            own: dict[tuple[str, int], str] = {}
            for cpus in {tuple(self.all_cpus[:1]), tuple(self.all_cpus)}:
                sizes = {level: size for level, size in self.working_sets(cpus)[0].items() if level in (self.levels or [level])}
                commands += bench.bench_commands(sizes, cpus, isa, self.effort)
                own |= {(level, len(cpus)): self.own_command(size, cpus) for level, size in sizes.items()}
        self.write_file('cross_check.sh', bench.script(commands, own))
        # Neither its failure nor its hanging may fail the checks.
        self.executable, self.executable_opts = 'sh', ['-c', "'timeout 9m sh cross_check.sh || true'"]

    def ours(self):
        return self.programs.ours()

    def own_command(self, size, cpus):
        '''The shell command that runs our limit streams on a working set of ``size`` bytes.'''
        variables = [f'{name}={value}' for name, value in pin.omp_environment(cpus).items()]
        ours = topology.sizes_text(self.ours())
        return shlex.join(['env', *variables, 'taskset', '-c', ','.join(map(str, cpus)), self.programs.path('limits'),
                           '--variants', 'load', '--limit', '--size', str(size // 8), '--threads', str(len(cpus)),
                           '--cpus', ','.join(map(str, cpus)), *(['--capacity', ours] if ours else []), '--samples', '10',
                           '--min-time', '0.005'])

    @sanity_function
    def ran(self):
        samples, _ = self.samples()
        self.plumbline.schema = result.SCHEMA_VERSION
        self.plumbline.timed_seconds = sum(s['seconds'] for s in samples or ())
        return True

    def samples(self):
        '''(samples, reason): what it measured, or None and why not.'''
        if 'likwid' not in self.current_partition.features:
            return None, _NOT_THERE
        try:
            text = self.output()
            samples = bench_output.parse_cross_check(text)
            own = {part[:3]: _best_rate(*part) for part in bench_output.own_parts(text)}
        except PlumblineError as error:
            return None, f'not confirmed by likwid-bench: {error}'
        return [sample | {'own_rate': own.get(tuple(sample[key] for key in ('level', 'threads', 'repeat')))} for sample in samples], None


def _best_rate(level, threads, repeat, output):
    '''The best traffic rate of any sample of our limit streams, MB/s; None where they did not run.'''
    found = records.parse(output, f'limit streams, {level}, {threads} threads').measurements
    there = [record for record in found if (record['level'], record['threads']) == (level, threads)]
    best = limits.best(there, _best_sample)
    return best and _best_sample(best)


def _best_sample(record):
    return float(records.rate(record, 'traffic').max())


class LimitedCheck(NativeCheck):
    '''A check whose program runs the limit streams beside its kernels.'''

    cross_check = fixture(likwid_bench, scope='environment')

    def agreement(self, level, threads):
        if self.plumbline.cross_check is result.UNSET:
            samples, reason = self.cross_check.samples()
            self.plumbline.cross_check, self.plumbline.cross_check_reason = samples, reason
            if reason:
                self.note(reason)
        samples = self.plumbline.cross_check
        best = bench_output.cross_check_best(samples, level, threads)
        found = bench_output.agreement(samples, level, threads)
        if best is None and samples is not None:
            self.note(f'{level}, {threads} threads: not confirmed by likwid-bench, which did not measure there')
        elif best and not found:
            self.note(f'{level}, {threads} threads: not compared with likwid-bench: our limit streams did not run beside it')
        return found

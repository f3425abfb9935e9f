'''What all jobs have in common, whatever runs them: a known end, and nobody else's binding.'''

import os

import reframe.utility.sanity as sn
from reframe.core.builtins import run_before
from reframe.core.exceptions import SanityError
from reframe.core.pipeline import RegressionTestPlugin

#: What the job script writes after the program, with the exit code.  With
#: ``general/trap_job_errors`` it has stopped before, at the first command that failed.
_ENDED = 'plumbline: the job ended with'


class Job(RegressionTestPlugin):
    '''Plugin of every test and fixture that runs a job.'''

    @run_before('run')
    def leave_binding_to_us(self):
        '''likwid-pin, OpenMP or taskset bind, within all CPUs of the task.'''
        if self.current_partition.launcher_type.registered_name == 'srun':
            self.job.launcher.options += ['--cpu-bind=none']

    @run_before('run')
    def tell_the_end(self):
        '''From ``squeue`` ReFrame learns no exit code, and takes that for a failure.'''
        if self.current_partition.scheduler.registered_name == 'squeue':
            self.postrun_cmds += [f'echo {_ENDED} $?']

    @run_before('sanity', always_last=True)
    def exit_code_counts(self):
        '''A job that failed says why in its standard error; ReFrame names the code only.

        Last, so that a check can skip itself because of what its job said.
        '''
        if self.is_dry_run():
            return
        if self.job.exitcode is None:
            self.job._exitcode = 0 if f'{_ENDED} 0' in self.output().splitlines() else 1
        if self.job.exitcode:
            said = [line for line in self.output('stderr').splitlines() if line.strip()]
            ours = [line for line in said if line.startswith('plumbline: ')]
            why = self.cause() or (ours or said or ['its standard error is empty'])[-1].strip()
            raise SanityError(f'the job ended with exit code {self.job.exitcode}: {why}')

    def cause(self):
        '''Why the job failed, where that can be read elsewhere than in the last line of its standard error.'''
        return None

    def output(self, stream='stdout'):
        '''What the job wrote to ``stdout`` or ``stderr``.'''
        path = os.path.join(self.stagedir, sn.evaluate(getattr(self, stream)))
        with open(path, encoding='utf-8', errors='replace') as file:
            return file.read()

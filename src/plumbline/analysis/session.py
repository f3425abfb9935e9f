'''What one session of the archive says, for whoever tells it: the page, the terminal, JUnit, telemetry, the exit code.'''

from functools import cached_property

import polars as pl

from plumbline.analysis import answers, diagnosis, lines, subsystems
from plumbline.model import quantity, verdict


class Session:
    '''
    Each part is worked out once, by the first who asks: of a thousand nodes one takes half a minute.

    :attr rows: the archive's rows of the session; :attr reframe_status: exit code of ReFrame, where that is known.
    '''

    def __init__(self, rows: pl.DataFrame, reframe_status: int = 0):
        self.rows, self.reframe_status = rows, reframe_status

    @cached_property
    def cases(self):
        '''Its :func:`lines.case_runs`.'''
        return lines.case_runs(self.rows)

    @cached_property
    def verdicts(self):
        '''List of :class:`lines.Line`.'''
        return lines.verdict_lines(self.cases)

    @cached_property
    def left_out(self):
        '''List of :class:`lines.NotMeasured`.'''
        return lines.not_measured(self.cases)

    @cached_property
    def judged(self):
        '''Its :class:`subsystems.Judged`.'''
        return subsystems.judge(self.verdicts, self.left_out)

    @cached_property
    def diagnosis(self):
        return diagnosis.diagnose(self.verdicts, self.left_out, self.judged)

    @cached_property
    def answers(self):
        return answers.answers(self.verdicts, self.judged, self.diagnosis)

    @cached_property
    def info(self):
        '''ReFrame's own account of it.'''
        return lines.session_info(self.rows)

    @cached_property
    def counts(self):
        return lines.count(self.verdicts, self.left_out)

    @cached_property
    def unexplained(self):
        '''Whether ReFrame ended with an error, and no verdict says why; of repetitions it counts those that a retry has cleared, too.'''
        said = any(line.verdict in (verdict.FAIL, verdict.UNSTABLE) or line.recorded_states for line in self.verdicts)
        cleared = any(len(runs) > 1 and '.repeat_no=' in runs[0][0]['display_name'] for runs in self.cases.values())
        return bool(self.reframe_status) and not said and not cleared

    def exit_status(self, losses=()):
        '''0: measured, and no FAIL; 1: at least one FAIL, of a metric or of a subsystem, or a loss that has come to stay; 2: nothing was
        measured, or :attr:`unexplained`; 3: a test could not be judged (:func:`plumbline.model.verdict.is_undecided`), which ReFrame is told as
        well, a subsystem that has references could not, or a test was skipped that has recorded ones.

        :arg losses: that have come to stay.
        '''
        if self.unexplained:
            return 2
        rulings = {one.verdict for one in self.judged.subsystems}
        if losses or verdict.FAIL in rulings or any(line.verdict == verdict.FAIL for line in self.verdicts):
            return 1
        if not any(quantity.known(line.value) for line in self.verdicts):       # 0: tests of other suites, which ask nothing that has a number
            passed = self.verdicts and not self.left_out and all(line.verdict == verdict.PASS for line in self.verdicts)
            return 0 if passed else 2
        tests: dict[tuple, list[str]] = {}
        for line in self.verdicts:
            tests.setdefault(line.case, []).append(line.verdict)
        as_a_whole = any(line.verdict == verdict.UNSTABLE and not line.metric for line in self.verdicts)
        undecided = as_a_whole or verdict.UNSTABLE in rulings or any(map(verdict.is_undecided, tests.values()))
        return 3 if undecided or any(one.recorded for one in self.left_out) else 0

'''What one session of the archive says, for whoever tells it: the page, the terminal, JUnit, telemetry, the exit code.'''

import json
from collections import Counter, defaultdict
from functools import cached_property

import polars as pl

from plumbline.analysis import answers, counts, diagnosis, lines, outline, subsystems
from plumbline.model import baselines, grouping, quantity, registry, verdict
from plumbline.store import archive, archive_rows


class Session:
    '''Each part is worked out once, by the first who asks: of a thousand nodes one takes half a minute.

    :attr rows: the archive's rows of the session; :attr reframe_status: exit code of ReFrame, where that is known.
    :attr path: of its file, where their column ``detail`` is read a part at a time, as it is needed: of a thousand nodes it is 4 GB.
    '''

    def __init__(self, rows: pl.DataFrame, reframe_status: int = 0, path=None, seen=lambda rows: rows):
        self.rows, self.reframe_status, self.path, self._seen = seen(rows), reframe_status, path, seen

    @classmethod
    def stored(cls, path, reframe_status=0):
        '''That of a file of the archive.'''
        return cls(archive.load_columns(path, pl.exclude('detail')), reframe_status, path)

    def seen(self, change):
        '''The same with its rows changed by a function.'''
        return Session(self.rows, self.reframe_status, self.path, change)

    def _details(self):
        for first in range(0, self.rows.height, archive.ROWS):
            part = self.rows.slice(first, archive.ROWS) if self.path is None else self._seen(
                archive.load_columns(self.path, 'detail', first, archive.ROWS))
            yield from part['detail']

    def whole(self, cases):
        '''Of some test cases the last run's result, with all that is drawn of it.'''
        named = zip(*(self.rows[name].fill_null('') for name in lines.CASE))
        last = {case: detail for case, detail in zip(named, self._details()) if detail and case in cases}
        return {case: json.loads(detail) for case, detail in last.items()}

    @cached_property
    def cases(self):
        '''Its :func:`lines.case_runs`.'''
        return lines.case_runs(self.rows, (detail and outline.of(json.loads(detail)) for detail in self._details()))

    @cached_property
    def verdicts(self):
        '''List of :class:`lines.Line`.'''
        return lines.verdict_lines(self.cases)

    @cached_property
    def not_measured(self):
        '''List of :class:`lines.NotMeasured`.'''
        return [*lines.not_measured(self.cases), *lines.not_run(self._lacks.get('tests') or {})]

    @cached_property
    def judged(self):
        '''Its :class:`subsystems.Judged`.'''
        return subsystems.judge(self.verdicts, self.not_measured)

    @cached_property
    def diagnosis(self):
        return diagnosis.diagnose(self.verdicts, self.not_measured, self.judged)

    @cached_property
    def answers(self):
        return answers.answers(self.verdicts, self.judged, self.diagnosis)

    @cached_property
    def info(self):
        '''ReFrame's own account of it.'''
        return lines.session_info(self.rows)

    @cached_property
    def _lacks(self):
        return json.loads(next(iter(self.rows['lacks'].drop_nulls()), '{}')) if 'lacks' in self.rows.columns else {}

    @cached_property
    def counts(self):
        '''Its :func:`counts.count`.'''
        return counts.count(self.verdicts)

    @cached_property
    def tallies(self):
        '''Question -> its counts of metrics, and of subsystems where some are judged, for people.'''
        parts: dict[str, Counter] = defaultdict(Counter)
        for one in self.judged.referenced:
            parts[one.question][one.verdict] += 1
        return {question: '; subsystems: '.join(filter(None, (counts.in_words(its), counts.those(parts[question]))))
                for question, its in self.counts.items()}

    @cached_property
    def broken_off(self):
        '''By what it was broken off; '' where it ran to its end, or ReFrame does not say.'''
        ended = self.rows.filter(pl.col('fail_reason').is_not_null()).select('result', 'fail_reason', 'run', 'repetition')
        return next(filter(None, map(archive_rows.broken_off, ended.iter_rows(named=True))), '')

    @cached_property
    def unexplained(self):
        '''Whether ReFrame ended with an error, and no verdict says why; of repetitions it counts those that a retry has cleared, too.'''
        said = any(line.verdict == verdict.FAIL or ((line.verdict == verdict.UNSTABLE or line.recorded_states) and self._failed(line.case))
                   for line in self.verdicts)
        cleared = any(len(runs) > 1 and runs[0][0]['repetition'] is not None for runs in self.cases.values())
        return bool(self.reframe_status) and not said and not cleared and not self.broken_off

    def exit_status(self, losses=()):
        '''0: measured, and no FAIL; 1: at least one FAIL, of a metric or of a subsystem, or a loss that has come to stay; 2: nothing was
        measured, :attr:`broken_off`, or :attr:`unexplained`; 3: something is :attr:`undecided`.

        :arg losses: that have come to stay.
        '''
        if self.unexplained:
            return 2
        rulings = {one.verdict for one in self.judged.subsystems}
        if losses or verdict.FAIL in rulings or any(line.verdict == verdict.FAIL for line in self.verdicts):
            return 1
        if self.broken_off or not self._measured:
            return 2
        return 3 if self.undecided else 0

    @property
    def _measured(self):
        '''Whether there is a number, or nothing that should have one: tests of other suites alone, whose sanity checks passed.'''
        return any(quantity.known(line.value) for line in self.verdicts) or bool(
            self.verdicts and not self.not_measured and all(line.verdict == verdict.PASS for line in self.verdicts))

    @cached_property
    def undecided(self):
        '''What could not be judged, a text each: tests that ReFrame calls failed for no FAIL, or of which nothing passes
        (:func:`plumbline.model.verdict.is_undecided`), subsystems that have references, tests that were skipped, or did not run, and have recorded
        ones, and before them the measurement, where it was disturbed by so much that it may explain a loss, tests whose references are all of
        another processor, and references that are gone.'''
        tests = grouping.by_key((line.case, line) for line in self.verdicts)
        found = [f"the measurement ({one.text.partition(';')[0]})" for one in self.answers
                 if one.question == registry.MEASUREMENT and one.verdict == verdict.UNSTABLE]
        others = {one for its in tests.values() if not any(_is_judged_by_recorded(line) for line in its)
                  for one in its[0].detail.other_processors or ()}
        found += [f"what has references of another processor ({', '.join(sorted(others))}): accept this one's, with --node where a partition "
                  'has both'] if others else []
        gone = self._lacks.get('references')
        found += [f'what {gone[0]} judged in {gone[1]} (no references of the system are found)'] if gone else []
        found += [its[0].label for case, its in tests.items() if verdict.is_undecided((line.verdict, line.sees) for line in its) or (
            self._failed(case) and any(line.verdict == verdict.UNSTABLE or line.recorded_states for line in its))]
        found += [one.name for one in self.judged.subsystems if one.verdict == verdict.UNSTABLE]
        return list(dict.fromkeys([*found, *(f'{one.label}, not measured ({one.reason})' for one in self.not_measured if one.recorded)]))

    def _failed(self, case):
        '''Whether ReFrame calls a test failed.'''
        return self.cases[case][-1][0]['result'] == 'fail'

    def not_judged(self, losses=()):
        '''Why the exit code is 2 or 3, or what broke the session off, a line; '' where neither is so.'''
        if self.broken_off:
            return f'BROKEN OFF by {self.broken_off}: tests are missing, and this is not a pass'
        status = self.exit_status(losses)
        if status == 2:
            return (f'REFRAME FAILED: its exit code is {self.reframe_status}, and no verdict says why: see its output; this is not a pass'
                    if self.unexplained else 'NOTHING WAS MEASURED: this is not a pass')
        return f"NOT JUDGED: {answers.some(self.undecided, by='; ')}" if status == 3 else ''


def _is_judged_by_recorded(line):
    return line.reference is not None and bool(line.expected or line.reference_from not in ('', *baselines.SHIPPED))

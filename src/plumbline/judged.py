'''A program that is not ours: a check of a few lines runs it several times and reads its numbers (``docs/tutorials``).'''

import re

import numpy as np
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from plumbline.errors import PlumblineError, in_one_line
from plumbline.likwid import pin
from plumbline.model import metrics, processor, registry
from plumbline.rfm.judging import Judging
from plumbline.rfm.variables import Whole

#: What is written between the runs of a program, with the number of the run and the seconds since 1970.
_RUN, _END = 'plumbline: run', 'plumbline: end of run'

#: ... and before them, of the node that they are on: lines of ``/proc/cpuinfo`` that tell processors apart, of the first one.
_PROCESSOR = 'plumbline: processor: '
_TELL_PROCESSOR = (rf"sed -nE '/^$/q; s/^(model name|vendor_id|cpu family|model|stepping|CPU implementer|CPU part)\s*:/{_PROCESSOR}&/p' "
                   '/proc/cpuinfo')

#: Unit in the output of a program -> (unit of the registry, factor).
_UNITS = {'B/s': ('MB/s', 1e-6), 'kB/s': ('MB/s', 1e-3), 'GB/s': ('MB/s', 1e3), 'TB/s': ('MB/s', 1e6),
          'KiB/s': ('MB/s', 1024 / 1e6), 'MiB/s': ('MB/s', 1024**2 / 1e6), 'GiB/s': ('MB/s', 1024**3 / 1e6),
          'flop/s': ('Mflop/s', 1e-6), 'Gflop/s': ('Mflop/s', 1e3), 'Tflop/s': ('Mflop/s', 1e6),
          'ns': ('us', 1e-3), 'ms': ('us', 1e3), 'min': ('s', 60.0), 'h': ('s', 3600.0), '%': ('1', 0.01)}


class Judged(Judging):
    '''Plugin of a test of any program: it is run :attr:`repeat` times, and ``evaluate()`` yields what :meth:`extracted` finds in the
    output of a run, or :meth:`elapsed`.

    Each run is a sample, so the interval of a value says what another run would find.  References, verdicts, history, report,
    ``compare`` and the sweep are those of all checks.  The threads of a program of one process are placed on the cores of the
    node, one each (``threads``: ``one``, ``all`` or a number); ranks, their threads and nodes are ReFrame's ``num_tasks``,
    ``num_cpus_per_task``, ``num_tasks_per_node``, started by the partition's launcher.
    '''

    #: How many times the program runs.
    repeat = variable(Whole, value=10, loggable=False)

    threads = 'all'

    #: What it tells of: all that an application uses, or ``memory``, ``L1`` to ``L3``: by it its metrics are pooled and scored.
    subsystem, level = 'levels', 'application'

    def extracted(self, metric, subject, pattern, unit):
        '''A number in the output of a run.

        :arg metric: a name of the registry (``model/registry.py``); ``figure_of_merit`` for what an application calls its own.
        :arg subject: what it is about, or :obj:`None`.
        :arg pattern: regular expression; its first group is the number.  Of several matches the last counts.
        :arg unit: of the number; it is converted to that of the registry.
        :raises PlumblineError: if nothing matches, it is no number, or the unit is not one of the metric.
        '''
        run, = self.measurements
        found = re.findall(pattern, run['text'], re.MULTILINE)
        if not found:
            raise PlumblineError(f"run {run['process'] + 1}: nothing in the output matches {pattern!r}")
        number = found[-1][0] if isinstance(found[-1], tuple) else found[-1]
        try:
            value = float(number)
        except ValueError:
            raise PlumblineError(f"run {run['process'] + 1}: {number!r} is no number, found by {pattern!r}") from None
        return measured(metric, subject, value, unit)

    def elapsed(self, subject=None):
        '''The time of a whole run, its start included.'''
        return metrics.Metric('time', subject, np.array([self.measurements[0]['elapsed']]))

    @property
    def cpus(self):
        '''The CPUs of the threads, in their order.'''
        count = int({'one': 1, 'all': len(self.all_cpus)}.get(self.threads, self.threads))
        if count > len(self.all_cpus):
            raise PlumblineError(f"{type(self).__name__}.threads={count}: give 'one', 'all', or a number of the {len(self.all_cpus)} "
                                 'CPUs that may be used')
        return self.all_cpus[:count]

    @run_after('init', always_last=True)
    def refuse_other_threads(self):
        if self.threads not in ('one', 'all') and not (isinstance(self.threads, int) and self.threads > 0):
            self.refuse('threads', self.threads, "give 'one', 'all', or a number")

    @run_after('init')
    def repeat_program(self):
        self.processes = self.repeat

    @run_before('run')
    def place_processes(self):
        '''Where the threads run, and what the output of each run is.'''
        command = [self.executable, *self.executable_opts]
        if self.num_tasks in (None, 1):
            with in_one_line():
                self.env_vars.update(pin.omp_environment(self.cpus))
            if self.threads == 'all':
                self.plumbline.team = len(self.cpus)
        elif isinstance(self.threads, int):
            self.env_vars['OMP_NUM_THREADS'] = str(self.threads)
        self.plumbline.threads = str(self.threads)
        self.describe(command)

    @run_before('run')
    def tell_processor(self):
        '''A hook of its own, since checks replace the one above.'''
        self.prerun_cmds += [_TELL_PROCESSOR]

    def around_a_run(self):
        # On a line of its own, also where the program does not end its last one.  Beside the clock of the day, which may be set, that since the start
        # of the system.  Both by the shell itself: a process may be started late.
        up, now = 'read -r up _ < /proc/uptime', '"${EPOCHREALTIME:-$(date +%s.%N)}" "$up"'
        return [f"{up}; printf '%s %s %s\\n' '{_RUN}' {now}"], [f"{up}; printf '\\n%s %s %s\\n' '{_END}' {now}"]

    @sanity_function
    def has_run(self):
        return True     # its exit code counts; a check that knows more has a sanity function of its own

    @run_after('sanity')
    def split_into_runs(self):
        if self.is_dry_run():
            return
        found = re.findall(rf'^{_RUN} (\S+) (\S+)\n(.*?)^{_END} (\S+) (\S+)$', self.output() + '\n', re.MULTILINE | re.DOTALL)
        if len(found) != self.repeat:
            raise SanityError(f'{len(found)} of {self.repeat} runs have come to their end; see the output')
        runs = [{'process': number, 'text': text, 'elapsed': _elapsed(number + 1, times), 'state': {}, 'set_aside': 0}
                for number, (*times, text) in enumerate((run[0], run[3], run[1], run[4], run[2]) for run in found)]
        told = processor.of_cpuinfo('\n'.join(re.findall(f'^{_PROCESSOR}(.*)$', self.output(), re.MULTILINE)))
        self.plumbline.machine, self.plumbline.records = told or None, []
        self.plumbline.timed_seconds = sum(run['elapsed'] for run in runs)
        self.measurements = self.pooled(runs)


def _elapsed(run, times):
    '''Seconds of a run.

    :arg times: by the clock of the day at its begin and end, by that since the start of the system (in hundredths) at both.
    :raises SanityError: if the two do not agree.
    '''
    try:
        begin, end, up, down = (float(time.replace(',', '.')) for time in times)      # a shell has the decimal point of its language
    except ValueError:
        raise SanityError(f"run {run}: {' '.join(times)} are no times: the output of the job was changed, or several wrote it at once") from None
    if not abs((end - begin) - (down - up)) <= 0.25 + 0.01 * (down - up):
        raise SanityError(f'the clock was set during run {run}: {end - begin:.2f} s by the clock of the day, {down - up:.2f} s since the start of '
                          'the system; run the test again')
    return end - begin


def measured(metric, subject, value, unit, subsystem=None):
    '''A number in a unit as a metric in that of the registry.

    :arg subsystem: as of :class:`metrics.Metric`.

    :raises PlumblineError: if the unit is not one of the metric.
    '''
    return metrics.Metric(metric, subject, np.array([value * _factor(metric, unit)]), subsystem=subsystem)


def _factor(metric, unit):
    '''What turns a number in ``unit`` into the unit of the metric.'''
    expected = registry.find(metric).unit
    if unit == expected:
        return 1.0
    known, factor = _UNITS.get(unit, ('', 1.0))
    if (known, expected) == ('us', 's'):
        return factor * 1e-6
    if known != expected:
        given = ', '.join(sorted({expected, *(name for name, (to, _) in _UNITS.items() if to == expected)}))
        raise PlumblineError(f'{metric} in {unit}: give one of {given}')
    return factor

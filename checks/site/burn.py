import contextlib
import math
import shlex
from pathlib import Path

import numpy as np
import reframe as rfm
from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.runtime import runtime

from plumbline import settings
from plumbline.errors import PlumblineError, in_one_line
from plumbline.model import baselines, burn as model, contention, metrics, quantity, records
from plumbline.rfm.judging import Judging
from plumbline.rfm.programs import native_programs
from plumbline.rfm.variables import Amount
from plumbline.system import topology

#: The file of the records, in the folder that the job starts in.
SERIES = 'burn.jsonl'

#: Of errors without a whole record of one.
NOT_TOLD = 'no whole record says where: half of one is left, here or in the file that --resume went on with'

#: Minutes that the job may take beyond the burn: memory is touched first.
MARGIN = 15

#: What messages and memory reach changes with where the hypervisor has the cores, and with what its other guests do.
OF_THE_HOST = ('memory', 'message')

#: Phase -> the subsystem that it tells of.
TELLS_OF = {'dgemm': 'core', 'fma': 'core', 'memory': 'memory', 'cache': 'L2', 'message': 'messages, shared memory'}


def _able(partition):
    '''The names of its environments that can build a burn.'''
    return [one.name for one in partition.environs if 'openmp' in one.features]


@rfm.simple_test
class burn(rfm.RunOnlyRegressionTest, Judging):
    '''Do all cores work for hours without a wrong bit, without being throttled, and without becoming slower, and is one of them slower
    than its fellows?

    DGEMM, multiply-adds, memory, cache and messages in turn.  One environment is enough, and the first is taken unless ``-p`` names others.
    '''

    source = 'own kernels, every result compared bit for bit; Theil 1950 for the drift'
    subsystem = 'memory'
    NEEDS = '+openmp'
    threads = 'all'
    tags = {'burn'}
    programs = fixture(native_programs, scope='environment')

    #: How long it burns; the time limit of the job follows.
    minutes = variable(Amount, value=10.0, loggable=False)

    #: Seconds of a phase in a round.
    slice = variable(Amount, value=10.0, loggable=False)

    #: The records of a burn that was broken off, or their folder: it goes on until :attr:`minutes` are done in all.
    resume = variable(str, value='', loggable=False)

    #: Self-test: THREAD:PHASE:ROUND in which a bit is flipped, so that the test must fail.
    flip = variable(str, value='', loggable=False)

    @run_after('init')
    def run_in_one_environment(self):
        if not settings.on_command_line('-p', '--prgenv'):
            able = list(filter(None, map(_able, runtime().system.partitions)))
            self.valid_prog_environs = list(dict.fromkeys(names[0] for names in able)) or [self.NEEDS]

    @run_after('setup')
    def skip_other_environments(self):
        '''Another partition's first.'''
        here = self.current_environ.name
        first = next(iter(_able(self.current_partition)), here)
        self.skip_if(here != first and not settings.on_command_line('-p', '--prgenv'), f'it runs in {first}')

    @run_after('init')
    def set_length_of_job(self):
        self.keep_files = [SERIES]
        if self.time_limit is None:
            self.time_limit = f'{math.ceil(self.minutes) + MARGIN}m'

    @run_after('init')
    def read_former_series(self):
        '''Before ReFrame empties the stage folder, where the file may lie.'''
        self.former = ''
        if self.resume:
            path = Path(self.resume)
            try:
                self.former = (path / SERIES if path.is_dir() else path).read_text(encoding='utf-8', errors='replace')
                model.parse(self.former, str(path))
            except OSError as error:
                self.refuse('resume', self.resume, f'{error.strerror}; give {SERIES} of the burn, or its folder')
            except PlumblineError as error:
                self.refuse('resume', self.resume, str(error))

    @run_before('run')
    def launch_program(self):
        cpus = self.all_cpus
        command = [self.programs.path('burn'), '--minutes', f'{self.minutes:g}', '--slice', f'{self.slice:g}', '--threads', len(cpus),
                   '--cpus', ','.join(map(str, cpus)), '--series', SERIES]
        ours = topology.sizes_text(self.programs.ours())
        command += ['--capacity', ours] if ours else []
        command += ['--memory', self.memory_bytes] if self.memory_bytes else []
        command += ['--flip', self.flip] if self.flip else []
        if self.former:
            self.write_file(SERIES, self.former)
            command.append('--resume')
        self.describe(command)
        self.plumbline.threads = self.threads
        # Wrong results (exit code 1) are judged by the records.  What ends the job tells the burn so, and the burn how far it came.
        told = f"trap '' TERM INT; {shlex.join(map(str, command))}; code=$?; [ $code -eq 1 ] || exit $code"
        self.executable, self.executable_opts = 'sh', ['-c', shlex.quote(told)]

    def written(self):
        '''The text of the records.'''
        path = Path(self.stagedir, SERIES)
        try:
            return path.read_text(encoding='utf-8', errors='replace')
        except OSError as error:
            raise PlumblineError(f'{path}: the records of the burn cannot be read: {error.strerror}') from None

    def cause(self):
        '''Of an exit code: that the burn was ended before its time.'''
        with contextlib.suppress(PlumblineError):
            return self.broken_off(model.parse(self.written(), SERIES))
        return None

    def broken_off(self, found):
        '''How it ended before its time, and how it goes on; None where it did not.'''
        if found.end and found.end['ended'] == 'complete' and found.phases:
            return None
        how = found.end['ended'] if found.end else 'no last record: the program was killed, or its file system never came back'
        return (f'the burn ended after {found.done / 60:.1f} of {self.minutes:g} minutes, with {found.total_errors} wrong results: {how}; '
                f'go on with -S burn.resume={Path(self.stagedir, SERIES)}')

    def wrong_result(self):
        '''Of a burn whose job ran into its limit, or whose node went down; of one that came to its end its errors are judged, with the next one's.'''
        with contextlib.suppress(PlumblineError):
            found = model.parse(self.written(), SERIES)
            if not self.broken_off(found):
                return None
            if found.total_errors:
                return f'{found.total_errors} wrong results of a burn'
        with contextlib.suppress(OSError):      # it may be damaged elsewhere
            if b'"record": "burn_error"' in Path(self.stagedir, SERIES).read_bytes():
                return 'wrong results of a burn'
        return records.told_wrong(self.output())

    @sanity_function
    def has_come_to_its_end(self):
        with in_one_line():
            said = records.parse(self.output(), 'output of burn')
            found = model.parse(self.written(), SERIES)
        self.plumbline.machine, self.plumbline.contention = said.machine, said.contention
        self.plumbline.series = model.thinned(found)
        self.plumbline.timed_seconds = sum(record['seconds'] for record in found.phases)
        for text in contention.notes(said.contention, said.machine):
            self.note(text)
        if early := self.broken_off(found):
            raise SanityError(early)
        self.measurements = self.pooled([{'process': 0, 'state': {}, 'set_aside': 0, 'burn': found}])
        # What was wrong once is not made up for by another run.
        self.burns = [one['burn'] for one in self.measurements]
        return True

    # --- metrics -------------------------------------------------------------------------------

    def evaluate(self):
        found = self.measurements[0]['burn']
        self.tell(found)
        wrong = [error for one in self.burns for error in one.errors]
        count = sum(one.total_errors for one in self.burns)
        hidden = not count and any(one.unaccounted for one in self.burns)
        yield metrics.Metric('burn_errors', None, np.array([float(count)]), remark=model.told(wrong[0]) if wrong else NOT_TOLD if count else None,
                             unjudged='lines of the records are torn, and none behind them in their part counts the errors' if hidden else None)
        for name in model.COUNTS:
            counts = [one.counted(name) for one in self.burns]
            if None in counts:
                self.skip_metric(name, f"not readable: {found.starts[-1]['not_readable'].get(name, 'in one of its parts')}")
            else:
                yield metrics.Metric(name, None, np.array([float(sum(counts))]))
        for phase in model.PHASES:
            if of_phase := found.of(phase):
                yield from self.of_phase(phase, of_phase, found.starts[-1]['cpus'])
            else:
                why = 'one thread has no partner' if len(self.all_cpus) == 1 else 'no round came to it: give more minutes'
                self.skip_metric(f'all of {phase}', why, [phase], subsystem=TELLS_OF[phase])

    def tell(self, found):
        '''What people should know of it.'''
        end = found.end
        if found.unended:
            self.note(f'{found.unended} of its {len(found.starts)} parts have no last record: the program was killed, or the node went down '
                      'under load')
        if any(start['flip'] for start in found.starts):
            self.note('self-test: a bit was flipped on purpose (--flip)')
        for error in found.errors[:5]:
            self.note(model.told(error))
        if found.torn:
            self.note(f"torn lines of {SERIES}, of which what is whole was read: {', '.join(map(str, found.torn))}")
        if end['write_error'] or end['lost_records']:
            self.note(f"the file system did not take the records for a while ({end['write_error'] or 'it hung'}): {end['most_waiting']} waited, "
                      f"{end['lost_records']} were lost")
        for what in ('temperature', 'power'):
            if reason := found.starts[-1]['not_readable'].get(what):
                self.note(f'{what} is not readable: {reason}')
        hottest = max(((degrees, chip) for record in found.phases for chip, degrees in record['temperature'].items()), default=None)
        if hottest:
            self.note(f'at most {hottest[0]:.0f} degrees Celsius ({hottest[1]})')

    def of_phase(self, phase, found, cpus):
        '''The rate of a phase, its clock, whether both hold, and who is slow.'''
        rates, done = [record['rate']['total'] for record in found], [record['done'] for record in found]
        clocks = [record['clock']['median'] for record in found if record['clock']]
        given = contention.too_little(self.measured_by.plumbline.contention or (), contention.ENOUGH)
        part = TELLS_OF[phase]
        moves = baselines.virtual(self.plumbline.of_machine)
        unjudged = f'the threads had the CPUs for {given:.2f} of the time' if given is not None else None
        yield metrics.Metric('flops' if found[0]['unit'] == 'Mflop/s' else 'bandwidth', phase, model.blocks(rates, model.MOST_POINTS),
                             subsystem=part)
        if clocks:
            yield metrics.Metric('clock', phase, model.blocks(clocks, model.MOST_POINTS))
        if len(found) < model.LEAST_ROUNDS:
            for metric in (f'drift.{phase}', f'of_start.{phase}'):
                self.skip_metric(metric, f"{quantity.several(len(found), 'round')}: {model.LEAST_ROUNDS} at least say whether the rate holds",
                                 subsystem=part)
        else:
            why = unjudged or (moves if phase in OF_THE_HOST else None)
            remark = f'of the clock {np.median(model.of_start(clocks)):.3f} is left' if len(clocks) == len(found) else None
            yield metrics.Metric('drift', phase, model.drift(done, rates), unjudged=why, remark=remark, subsystem=part)
            yield metrics.Metric('of_start', phase, model.of_start(rates), unjudged=why, remark=remark, subsystem=part)
        if phase != 'message':      # its threads wait for each other
            slow = model.slowest(found, cpus, self.plumbline.of_machine.get('core_kinds', ()))
            if slow is None:
                self.skip_metric(f'of_median.{phase}', f'{len(cpus)} cores cannot be ranked: {model.LEAST_THREADS} of a kind at least',
                                 subsystem=part)
            else:
                cpu, shares = slow
                yield metrics.Metric('of_median', phase, np.minimum(1.0, model.blocks(shares, model.MOST_POINTS)), unjudged=unjudged or moves,
                                     remark=f'the slowest is CPU {cpu}', subsystem=part)

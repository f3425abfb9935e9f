'''What of the caches is ours, measured once per session and environment: working sets and the levels of records rest on it.'''

import functools
import os
import re

import numpy as np
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError
from reframe.core.pipeline import RegressionTestPlugin

from plumbline import settings
from plumbline.errors import PlumblineError
from plumbline.likwid import pin
from plumbline.model import capacity, contention, records, result, tlb
from plumbline.model.quantity import percent
from plumbline.rfm.node import cores_of
from plumbline.rfm.variables import TheResult, Whole
from plumbline.system import topology

#: Threads that got less of their time had their caches used by others meanwhile.
TIME_GIVEN = 0.75

#: A working set is this share of a cache.  Where less than that may be ours, working sets follow what was measured, or a level's numbers
#: would be those of the next one; elsewhere they follow the topology, and are the same from session to session.
WORKING_SET = 0.5

#: What :data:`settings.CAPACITY` may be besides sizes.
MEASURED, TOPOLOGY = 'measured', 'topology'

_RECORDED = 'capacity.out'


def given(text=None):
    '''The sizes that ``PLUMBLINE_CAPACITY`` gives.

    :returns: level -> bytes; None where the caches are to be measured.
    :raises PlumblineError: if it is nothing of that.
    '''
    text = settings.CAPACITY if text is None else text
    if text in (MEASURED, TOPOLOGY):
        return None if text == MEASURED else {}
    found = {}
    for item in text.split(','):
        if not re.fullmatch(r'L[123]=[1-9]\d{3,}', item):
            raise PlumblineError(f'PLUMBLINE_CAPACITY={text}: give {MEASURED}, {TOPOLOGY}, or bytes of each cache of a level, for example '
                                 'L2=524288,L3=4718592')
        found[item[:2]] = int(item[3:])
    return found


def claims(processor, cpu):
    '''Level -> size of the cache that a CPU is in, by the topology; of the levels that it reaches and records know.'''
    return {level: topology.capacity(processor, level, [cpu]) for level in topology.levels(processor, cpu)[:-1]}


def found(measurements, sizes_of_topology, machine):
    '''What the records of the program ``capacity`` say, and its machine record.

    :returns: dictionary level -> :class:`plumbline.model.capacity.Level`.
    '''
    measurements = sorted(measurements, key=lambda record: record['working_set'])
    latency = [tlb.nanoseconds(record) for record in measurements]
    huge = all(tlb.given(record['huge_page_share']) for record in measurements)
    return capacity.find([record['working_set'] for record in measurements], np.transpose(latency), sizes_of_topology,
                         page=None if huge else measurements[0]['page_size'], virtual=machine.get('virtual'))


def disturbed(found):
    '''Why the contention records say that the latencies are not the caches' alone; empty if they do not.'''
    given = contention.too_little(found, TIME_GIVEN)
    if given is None:
        return ''
    return f'the threads had {percent(given, 0)} of their time: others had the CPUs, and what is ours of the caches is not known'


class MeasuredCaches(RegressionTestPlugin):
    '''Plugin of the fixture that has built the program ``capacity``: how much of each cache is there for us?

    It never fails the fixture: without it the caches are what the topology says.
    '''

    # ReFrame's.
    executable: str
    executable_opts: list[str]

    #: Rounds: each of them has every size once.
    rounds = variable(Whole, value=10)

    #: What the archive keeps of it: the time inside its timed loops.
    plumbline: result.Result = variable(TheResult, value=result.Result(), loggable=True)

    #: Level -> size of its cache by the topology; empty where nothing is measured.  Of a restored session ReFrame knows no topology.
    claimed: dict[str, int] = {}

    #: The program's command line; empty where nothing is measured.
    command: tuple[str, ...] = ()

    @run_after('setup')
    def choose_cpus(self):
        '''What is wrong with the topology each check says of itself.'''
        try:
            self.all_cpus, _, self.memory = cores_of(self.current_partition)
        except PlumblineError:
            self.all_cpus, self.memory = [], None
        self.num_cpus_per_task = len(self.all_cpus) or None

    @run_before('run')
    def measure_caches(self):
        if settings.BUILD_ONLY or not self.all_cpus or 'openmp' not in self.current_environ.features:
            return
        try:
            self.claimed = claims(self.current_partition.processor, self.all_cpus[0]) if given() is None else {}
            sizes = capacity.sizes(self.claimed, self.memory) if self.claimed else []
        except PlumblineError as error:
            raise ReframeError(str(error)) from None
        if not sizes:
            return
        cpus = ','.join(map(str, self.all_cpus))
        command = [self.path('capacity'), '--size', ','.join(str(size // 64) for size in sizes), '--passes', 1,
                   '--samples', self.rounds, '--threads', len(self.all_cpus), '--cpus', cpus]
        if 'likwid' in self.current_partition.features:
            command = pin.pin_command(self.all_cpus, command)
            self.env_vars.update(pin.pin_environment(self.all_cpus))
        else:
            self.env_vars.update(pin.omp_environment(self.all_cpus))
        self.command = tuple(map(str, command))
        # That a program starts is proved first.  Neither the measurement's failure nor its hanging may fail the checks.
        starts = f"{self.executable} {' '.join(self.executable_opts)}"
        self.executable = 'sh'
        self.executable_opts = ['-c', f"'{starts} && {{ timeout 5m {' '.join(self.command)} > {_RECORDED} || true; }}'"]

    @run_after('sanity')
    def report_seconds(self):
        self.plumbline.schema = result.SCHEMA_VERSION
        self.plumbline.timed_seconds = sum(sum(record['seconds']) for record in self.records.measurements)
        del self.records        # read anew when it is asked for: ReFrame writes the fixture for --restore-session, and JSON has no records

    @property
    def recorded(self):
        '''Path of what the program ``capacity`` wrote.'''
        return os.path.join(self.stagedir, _RECORDED)

    @functools.cached_property
    def records(self):
        try:
            with open(self.recorded, encoding='utf-8', errors='replace') as file:
                return records.parse(file.read(), 'output of capacity')
        except (FileNotFoundError, PlumblineError):
            return records.Records()

    @functools.cached_property
    def levels(self):
        '''Dictionary level -> :class:`plumbline.model.capacity.Level`; empty where nothing was measured.'''
        measurements = self.records.measurements
        if not measurements or any(map(records.check_worth_reporting, measurements)) or disturbed(self.records.contention):
            return {}
        return found(measurements, self.claimed, self.records.machine or {})

    def ours(self):
        '''Level -> bytes of each of its caches, where half of what the topology says may be more than is ours; and of a virtual
        machine's beyond L1 always, since what its neighbours leave of them, on the other hardware threads of its cores, too, changes from
        minute to minute: of the last level also more than the topology says, which memory's working sets must outgrow.'''
        known = given()
        if known is not None:
            return known
        virtual = (self.records.machine or {}).get('virtual') == 'yes'
        if virtual and not self.levels:
            return dict([*self.claimed.items()][1:])
        return {level: _in_steps(found.there) for level, found in self.levels.items()
                if (found.ours < found.claim and found.least <= found.claim * WORKING_SET) or (virtual and level != min(self.levels))}


def _in_steps(size):
    '''A size rounded down to 1, 1.5, 2, 3, 4, 6, ... times a power of two: from session to session the same working sets.'''
    power = 2 ** (size.bit_length() - 1)
    return power * 3 // 2 if 2 * size >= 3 * power else power

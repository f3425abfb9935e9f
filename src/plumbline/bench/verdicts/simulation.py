'''Power and false alarms of the verdicts, simulated: sessions on paper, with the noise of bare metal, go the way of measured ones.

They are archived, references are proposed from the first of them and accepted, and the others are judged by these; what seems to be lost is run
again.  The logarithm of a value is what all sessions have, what this one adds (``lasting``: its second run has it, too), what this run adds, and
what its processes scatter by.  Of each a share (``together``) is the same for all metrics of a subsystem; metrics scatter unlike, as in
:mod:`plumbline.bench.sweeps.simulation`, whose metrics these are.  Where now and then a session is off by much more, it is Student's t.

Each verdict says the loss that it would have seen with a probability of 95 %.  So in one session nothing is lost, in the next one metric loses what
its verdict said there, and in another one all rates of one subsystem what that said.
'''

import datetime
import functools
import itertools
import json
import multiprocessing
import os
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from plumbline.analysis.session import Session
from plumbline.bench.sweeps.simulation import METRICS, PARTS, RATIOS, UNLIKE, drawn
from plumbline.bench.verdicts import exchanged
from plumbline.bench.verdicts.session import SYSTEM, Place
from plumbline.bench.verdicts.table import exits, grid, share
from plumbline.model import registry, subsystems, uncertainty, verdict
from plumbline.model.prediction import REPEATED
from plumbline.store import archive

#: Processes of a run, and the share of the variance of its value that they make.  (Measured on virtual machines: 0.3 to 0.5.)
PROCESSES, OF_PROCESSES = 3, 0.3

#: Relative standard deviations of what sessions of bare metal measure.  Shares of it that a subsystem's metrics have together.
DEVIATIONS, TOGETHER = (0.01, 0.02), (0.0, 0.5)

#: References that are drawn, and of each how many times three sessions are judged.
DRAWS, SESSIONS = 10, 10

#: Of what CPUs are given there is no more than all.
_PARTS = tuple(one for one in (*PARTS, *RATIOS) if one[0] != registry.CPU_TIME)


@dataclass(frozen=True)
class Noise:
    '''What sessions differ by, a relative standard deviation, and the share of its variance that a subsystem's metrics have together.'''
    sessions: float
    together: float = 0.5


class Machine:
    '''One on paper.

    :arg draw: :class:`numpy.random.Generator`; :arg tails: degrees of freedom of what sessions and runs add; None: it is normal.
    '''

    def __init__(self, draw, noise, metrics=METRICS, tails=None):
        self._draw, self._noise, self._tails, self._count = draw, noise, tails, 0
        self.unlike = np.exp(UNLIKE * draw.standard_normal((len(_PARTS), metrics, 1, 1)))
        self.metrics = [(part, metric, number) for part, metric, _ in _PARTS for number in range(metrics)]
        self._rows = pl.DataFrame([{
            'system': SYSTEM, 'partition': 'paper', 'environ': 'gnu', 'hostname': 'paper', 'check': check, 'test': check, 'display_name': check,
            'parameters': '{}', 'run': 0, 'result': 'pass', 'fixture': False, 'metric': metric, 'name': f'{metric}.{number}', 'subject': str(number),
            'subsystem': part, 'unit': registry.find(metric).unit, 'n': PROCESSES, 'verdict': verdict.NO_REFERENCE, 'reason': '',
            'processes': json.dumps([{'process': process, 'n': 1, 'record': None} for process in range(PROCESSES)])}
            for part, metric, number in self.metrics for check in [f'{part} {metric}'.replace(' ', '_').replace(',', '')]], schema=archive.SCHEMA)

    def _drawn(self, share_of_all, *shape, tails=None):
        parts, metrics = self.unlike.shape[:2]
        return self._noise.sessions * np.sqrt(share_of_all) * drawn(self._draw, self._noise.together, (parts, metrics, *shape), tails)

    def session(self, lost=None):
        '''The archive's rows of a session's first run, and of its second.

        :arg lost: (numbers of metrics, the share that they have lost).
        '''
        logs = self.unlike * (self._drawn(REPEATED, 1, 1, tails=self._tails) + self._drawn(1 - REPEATED - OF_PROCESSES, 2, 1, tails=self._tails)
                               + self._drawn(PROCESSES * OF_PROCESSES, 2, PROCESSES))
        logs = logs.reshape(len(self.metrics), 2, PROCESSES)
        for number in lost[0] if lost else ():
            better = registry.better(self.metrics[number][1])
            logs[number] += np.log1p(better * -lost[1])
        self._count += 1
        started = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(hours=self._count)
        named = self._rows.with_columns(session=pl.lit(f'{started:%Y%m%dT%H%M%SZ}-paper'), started=pl.lit(started).cast(archive.SCHEMA['started']))
        return tuple(named.with_columns(value=pl.Series(np.exp(own.mean(axis=1))), samples=pl.Series(np.exp(own).tolist()),
                                        spread=pl.Series([uncertainty.spread_between(each) for each in np.exp(own).tolist()]))
                     for own in (logs[:, 0], logs[:, 1]))

    def rates_of(self, part):
        '''The numbers of a subsystem's rates and times.'''
        return [number for number, (its, metric, _) in enumerate(self.metrics) if its == part and registry.is_absolute(metric)]


@dataclass
class Counts:
    '''
    :attr codes: exit codes of sessions that have lost nothing.
    :attr metric, part: of each session in which one metric, or one subsystem, has lost something, (the loss, whether that was a FAIL).
    '''
    codes: Counter = field(default_factory=Counter)
    metric: list[tuple[float, bool]] = field(default_factory=list)
    part: list[tuple[float, bool]] = field(default_factory=list)


def run(noise, size, draws=DRAWS, sessions=SESSIONS, metrics=METRICS, seed=1, tails=None):
    '''The :class:`Counts` of references from so many sessions.  The same seed gives the same.'''
    found = Counts()
    for number in range(draws):
        draw = np.random.default_rng([seed, size, number, round(1e6 * noise.sessions), round(100 * noise.together)])
        machine = Machine(draw, noise, metrics, tails)
        in_force = _references(machine, size)
        for _ in range(sessions if in_force else 0):
            quiet = _judged(machine, in_force)
            found.codes[quiet.exit_status()] += 1
            _lose_metric(found, machine, in_force, quiet, draw)
            _lose_part(found, machine, in_force, quiet, draw)
    return found


def _references(machine, size):
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        place.portable.parent.mkdir()
        place.portable.write_text('{}')
        first = [machine.session()[0] for _ in range(size)]
        for frame in first:
            archive.write(frame, place.archive)
        return exchanged.references_of(place, [frame['session'][0] for frame in first])


def _judged(machine, in_force, lost=None):
    once, second = map(exchanged.Again, machine.session(lost))
    return Session(once.judged(in_force, second))


def _lose_metric(found, machine, in_force, quiet, draw):
    rows = quiet.rows.with_row_index('number').filter(pl.col('sees').is_not_null(), verdict=verdict.PASS)
    if rows.height:
        number, sees = rows.select('number', 'sees').row(int(draw.integers(rows.height)))
        after = _judged(machine, in_force, ([number], sees))
        found.metric.append((sees, after.rows['verdict'][number] == verdict.FAIL))


def _lose_part(found, machine, in_force, quiet, draw):
    parts = [one for one in quiet.judged.subsystems if one.kind == subsystems.RATES and one.verdict == verdict.PASS and one.sees]
    if parts:
        part = parts[int(draw.integers(len(parts)))]
        after = _judged(machine, in_force, (machine.rates_of(part.part), part.sees))
        found.part.append((part.sees, any(one.verdict == verdict.FAIL for one in after.judged.subsystems
                                          if (one.part, one.kind) == (part.part, part.kind))))


def lines(deviations=DEVIATIONS, together=TOGETHER, sizes=exchanged.SIZES, **options):
    '''Lines of the table: one row for each noise and number of sessions that make the references.'''
    rows = [['sessions differ by', 'together', 'references from', 'nothing lost', 'one metric: sees', 'and did', 'a subsystem: sees', 'and did']]
    asked = list(itertools.product(itertools.starmap(Noise, itertools.product(deviations, together)), sizes))
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), multiprocessing.get_context('spawn')) as pool:
        for (noise, size), found in zip(asked, pool.map(functools.partial(run, **options), *zip(*asked))):
            rows.append([f'{100 * noise.sessions:g} %', f'{100 * noise.together:g} %', str(size), exits(found.codes.elements()),
                         *_told(found.metric), *_told(found.part)])
    metrics, parts = options.get('metrics', METRICS) * len(_PARTS), {part for part, *_ in _PARTS}
    return [f'Simulated: {metrics} metrics of {len(parts)} subsystems.', '', *grid(rows)]


def _told(losses):
    if not losses:
        return '-', '-'
    return f'{100 * np.median([loss for loss, _ in losses]):.1f} %', share(sum(did for _, did in losses), len(losses))

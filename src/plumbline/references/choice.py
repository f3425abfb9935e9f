'''Which archived sessions and nodes the references of a system are made of, and what each of its metrics measured there.'''

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import polars as pl

from plumbline.errors import PlumblineError
from plumbline.model import good_state, processor, registry, states
from plumbline.model.prediction import LEAST_DEVIATION
from plumbline.model.quantity import change, percent
from plumbline.nodes import events
from plumbline.references import recording
from plumbline.references.files import lookup
from plumbline.references.peaks import above_own_limit, impossible, possible
from plumbline.store import archive

#: The causes of the diagnosis that are a clock which was held down.
_OF_CLOCK = 'power_saving', 'clock_capped', 'clock_throttled', 'clock_let_down'


@dataclass(frozen=True)
class Candidate:
    '''A metric in one state of the machine.

    :attr place: (test, key path ..., name).
    :attr rows: of the archive, the oldest first.
    :attr series: :class:`good_state.Series`; None where it gives no reference.
    :attr why: why not.
    :attr possible: what any machine gives, :func:`peaks.possible`.
    '''
    place: tuple
    state: dict
    rows: list
    series: good_state.Series | None = None
    why: str | None = None
    possible: tuple = (-math.inf, math.inf)

    @property
    def teams(self) -> list[int]:
        '''Of a test of all threads, or ranks, their numbers, which nodes may differ by.'''
        return sorted({row['team'] for row in self.rows} - {0})

    @property
    def processor(self) -> str | None:
        '''The name of the one that it ran on; None where that is not known.'''
        return _last_processor(self.rows)

    @property
    def spread(self) -> float | None:
        '''What processes of one run differ by, by all of them; None where each run was one.'''
        found = [row['spread'] for row in self.rows if row['processes'] and row['spread'] is not None]
        return max(LEAST_DEVIATION, float(np.sqrt(np.mean(np.square(found))))) if found else None

    @property
    def unit(self) -> str | None:
        '''Of another suite's metric; ours have that of the registry.'''
        last = self.rows[-1]
        return last['unit'] if registry.is_of_other_suite(last['metric']) else None


class Choice:
    '''The sessions that are used, and those that are not.

    :attr used: dictionary name -> rows.
    :attr excluded: list of (name, why).
    '''

    def __init__(self, root, system, tests, files, peaks, trusted, nodes, apart, node=None):
        self.root, self.system, self.files, self.peaks, self.nodes, self.apart = root, system, files, peaks, set(nodes), apart
        self.tests, self.node, self.names = tests, node, events.names(system)
        paths = archive.sessions(root, system)[::-1]
        self.trusted = {_only(name, [path.stem for path in paths], root) for name in trusted}
        paths.sort(key=lambda path: path.stem not in self.trusted)      # the latest first, and before them those named
        kept = {*self.trusted, *(path.stem for path in archive.present(paths))}
        self.further = self._measured([path for path in paths if path.stem in kept])
        self.used, self.excluded = {}, [(path.stem, f'it {archive.AHEAD}') for path in paths if path.stem not in kept]
        self.processors: frozenset[str] = frozenset()

    def _measured(self, paths):
        for path in paths:
            rows = [row for row in recording.rows_of(path, self.tests, self.names) if self.node in (None, row['hostname'])]
            if any(row['metric'] is not None for row in rows):
                yield path.stem, rows

    def take(self, count):
        '''(candidates, ``$index`` of the tests, what is left out, odd nodes) of so many sessions.'''
        named: dict[str, good_state.Odd] = {}      # what all sessions of which are dropped is odd no more
        while True:
            self._use(max(count, len(self.trusted)))
            if not self.trusted <= self.used.keys():
                raise PlumblineError(f'{self.root}: session {min(self.trusted - self.used.keys())} has no metric of these tests')
            if len(self.used) < good_state.LEAST_SESSIONS:
                raise PlumblineError(self._too_few())
            found, index, skipped = self._candidates()
            odd = [one for one in good_state.odd_nodes(usable(found)) if one.name not in self.nodes]
            named |= {one.name: one for one in odd}
            if odd:
                found, index, skipped = self._candidates({one.name for one in odd})
                if self._drop(set(self.used) - {row['session'] for one in found for row in one.rows}, odd):
                    continue
            apart = good_state.odd_session(usable(found), self.trusted)
            if apart is None:
                return found, index, skipped, list(named.values())
            del self.used[apart.name]
            self.excluded.append((apart.name, f"odd: {apart.where} {percent(abs(apart.change), 0)} {'worse' if apart.change < 0 else 'better'}"
                                              f' than in the other sessions, most of all {apart.worst}'))

    def _drop(self, emptied, odd):
        for name in sorted(emptied):
            if name in self.trusted:
                its = [one for one in odd if any(one.name in _nodes(row) for row in self.used[name])]
                if not its:
                    raise PlumblineError(f'{self.root}: session {name} has nothing of the processor and the number of threads, or ranks, that the '
                                         'last one has; leave it out')
                raise PlumblineError(f'{self.root}: session {name} ran on nodes only that differ from the others ('
                                     f"{', '.join(f'{one.name} by {change(one.change, 0)}' for one in its)}); "
                                     f"{' '.join(f'--with-node {one.name}' for one in its)} uses it")
            del self.used[name]
            self.excluded.append((name, 'it ran on nodes only that differ from the others'))
        return emptied

    def _use(self, count):
        while len(self.used) < count:
            name, rows = next(self.further, (None, None))
            if name is None:
                break
            why = None
            if name not in self.trusted:
                why = recording.unfit(rows, self.processors) or self._repeats(rows) or self._lost(name, rows)
                self.processors = self.processors or recording.processors(rows)
            if why:
                self.excluded.append((name, why))
            else:
                self.used[name] = rows

    def _lost(self, name, rows):
        '''What is wrong with a session none of whose metrics FAILed, or None: a subsystem that has lost something, whatever explains that, a clock
        that was held down, a loss that has come to stay.'''
        from plumbline.analysis import diagnosis, history, host_states, session, subsystems  # all that a report needs
        frame = self.names.renamed(archive.load_columns(archive.file_of(self.root, name), pl.all()))
        frame = frame.filter(pl.col('test').is_in({row['test'] for row in rows}), self.node is None or pl.col('hostname') == self.node)
        said = session.Session(frame)
        for one in said.judged.subsystems if frame['expected'].is_not_null().any() else ():
            if one.question != registry.OTHERS and one.lost:
                return f'{one.verdict}: {one.name}, {one.kind}: {one.reason}'
        if min(row['clock'] for row in rows) < host_states.HELD_DOWN:       # in seconds; of hardly any session is it asked
            of_clock = [rule for rule in diagnosis.rules() if rule['name'] in _OF_CLOCK]
            if spoilt := [one for one in diagnosis.diagnose(said.verdicts, (), subsystems.Judged([]), of_clock).findings if one.spoils]:
                return spoilt[0].evidence[0]
        known = history.read(self.root, self.system, until=name, names=self.tests, node=self.node)
        for loss in history.lasting(known, of=name):
            if loss.course.subsystem != registry.OTHER_SUITES:
                return f'{loss.course.title}: {percent(-loss.step.change)} worse since {loss.begin}, a loss that lasts'
        return None

    def _repeats(self, rows):
        '''Why a session says nothing new beside those that are used, or None.'''
        def distance(other):
            return abs((self.used[other][0]['started'] - rows[0]['started']).total_seconds())
        near = min(self.used, key=distance, default=None)
        if near is None or distance(near) >= self.apart:
            return None
        return f'it began {distance(near) / 60:.0f} minutes from {near}, and sessions in a row do not know what sessions differ by'

    def _too_few(self):
        named = [f'{name} ({why})' for name, why in self.excluded[:3]]
        more = [f'{len(self.excluded) - 3} more'] if len(self.excluded) > 3 else []
        out = f"; skipped: {', '.join(named + more)}" if named else ''
        missing = good_state.LEAST_SESSIONS - len(self.used)
        apart = f' that began {self.apart / 60:.0f} minutes apart' if self.apart else ''
        return (f'{self.root}: {len(self.used)} sessions of {self.system} with these tests are of good state, references need '
                f"{good_state.LEAST_SESSIONS}{apart}{out}; run reframe --mode daily and plumbline report (make health) {missing} more "
                f"time{'s' * (missing > 1)}" + (', or take one by its name: --with SESSION' if named else ''))

    def _candidates(self, without=frozenset()):
        rows = [row for name in sorted(self.used) for row in self.used[name] if not without & _nodes(row)]
        places, index, skipped = recording.groups(rows, self.files, self.trusted)
        found = []
        for place, its_rows in sorted(places.items()):
            test, *keys, _ = place
            portable = lookup(self.files[1], test, keys, index[test])
            present = states.of_most(its_rows, 'given')
            if len(present) < len(its_rows):
                skipped.append(('/'.join(place), f'{len(its_rows) - len(present)} values: most have something else given (-S, or a mode)'))
            found += [_candidate(place, state, of_state, portable, self.peaks) for state, of_state in states.grouped(_present(present))]
        return found, index, skipped


def _nodes(row):
    '''What a node may be called that a row is of: it alone, or several together.'''
    return {row['hostname'], *(row['hostname'] or '').split(',')}


def _node(row):
    '''The node that a row is of; '' of several together, which may be others each time.'''
    return '' if ',' in (row['hostname'] or '') else row['hostname']


def _only(name, known, root):
    found = [one for one in known if one.startswith(name)]
    if len(found) != 1:
        raise PlumblineError(f'{root}: {len(found)} sessions are named {name}...; name one of the archive, e.g. {known[0]}')
    return found[0]


def usable(candidates):
    '''The series of those that give a reference.'''
    return [one.series for one in candidates if one.series]


def _last_processor(rows):
    return next((row['processor'] for row in reversed(rows) if row['processor']), None)


def _present(rows):
    '''A metric's rows, in all states, of the processor and the numbers of threads that there are now, without those that must not be judged.'''
    last = _last_processor(rows)
    rows = [row for row in rows if processor.same(row['processor'], last)]
    teams = {_node(row): row['team'] for row in rows if row['team']}       # the last one of each node
    return recording.judgeable([row for row in rows if row['team'] in (0, teams.get(_node(row)))])


def _candidate(place, state, rows, portable, peaks):
    last, record = rows[-1], recording.record_of(rows[-1])
    foreign = registry.is_of_other_suite(last['metric'])
    if foreign:     # its unit may have changed
        rows = [row for row in rows if row['unit'] == last['unit']]
    rows = states.of_most(rows, 'working_set')
    limits = possible(last['metric'], portable.get(last['name']), record)
    why = recording.unusable(rows)
    if why is None and not foreign:
        value = float(np.median([row['value'] for row in rows]))
        why = impossible(last['name'], value, limits, peaks, last['level'], last['threads'])
        own = [row['limit'] for row in rows if row['limit'] is not None]
        if last['metric'] == 'bandwidth' and own:
            of_limit = possible('of_limit', portable.get(f"of_limit.{last['subject']}"), record)
            why = why or above_own_limit(value, float(np.median(own)), of_limit[1], record)
        why = why and f'{why}; the model, the measurement or the peak is wrong'
    if why:
        return Candidate(place, state, rows, why=why)
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        values[row['session']][row['hostname'] or ''].append(row['value'])
    subsystem, noise = registry.of_row(last)
    series = good_state.Series(
        '/'.join(place), last['metric'], noise, subsystem,
        {session: {node: float(np.median(of)) for node, of in nodes.items()} for session, nodes in values.items()})
    return Candidate(place, state, rows, series, possible=limits)

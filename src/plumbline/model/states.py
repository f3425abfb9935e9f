'''The states of a machine that its software does not see: which cores share a cache right now.

A hypervisor moves virtual cores: within one cache complex or across two, onto two cores or onto the two hardware threads of
one.  Bandwidth by two threads then has several true values, and a sample belongs to one of them.  On a machine whose cores
stay where they are there is one state, and nothing changes.

States are clusters with a gap between them in the core-to-core latency that the team measured before and after each
sample (:mod:`plumbline.model.probes`), and in whether two of its threads are on one core.  The clock and the additions per
cycle define none: a core that is slow, or shared with somebody, must show as slow, and not as a state that nobody has a
reference for.  Nor does the latency where no hypervisor is: what changes it there, a slow clock or fabric, is a loss.  Nor where
no line goes from core to core (:func:`_within_cores`): such a sample is the same however far the other cores are.
'''

import functools
import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from plumbline.model import probes
from plumbline.model.grouping import by_key

#: The probes, or how their names begin, whose levels are states.
DEFINED_BY = (probes.CORE_TO_CORE, probes.SHARING)

#: What is known of a state: name of a latency -> seconds, :data:`probes.SHARING` -> a factor; a team: numbers of threads and ranks,
#: and whether core-to-core latency tells its states apart; a choice: team -> number of its state.
State = dict[str, float]
Team = tuple[int, int, bool]
Choice = dict[Team, int]

#: Two states are further apart than this factor: two hardware threads of a core, two cores of a cache, of a socket and of
#: two sockets differ by 1.5 and more; what a core-to-core latency scatters is a few per cent.
GAP = 1.3

#: ... and than this many robust standard deviations of the wider of the two.
SIGMAS = 4

#: Values of a cluster, at least: one or two that stand apart are disturbed.
FEWEST_VALUES = 3

#: Rounds of a state, at least: fewer give no interval of the median.  Of several processes each gives a median only.
FEWEST_ROUNDS, FEWEST_OF_SEVERAL = 6, 3


def clusters(values: ArrayLike) -> tuple[np.ndarray, list[float]]:
    '''Values in clusters with a gap between them.

    :arg values: shape (n,), above 0; NaN where not known.
    :returns: (labels, centres): for each value the number of its cluster, ascending, or -1 for one that is not known or
        stands apart from all; the median of each cluster.
    '''
    logs = np.log(np.asarray(values, dtype=float))
    order = np.argsort(logs, kind='stable')
    order = order[np.isfinite(logs[order])]
    labels = np.full(logs.size, -1)
    centres: list[float] = []
    for part in _parts(logs[order]) if order.size else ():
        if part.stop - part.start >= min(FEWEST_VALUES, order.size):
            labels[order[part]] = len(centres)
            centres.append(float(np.exp(np.median(logs[order[part]]))))
    return labels, centres


def _parts(ordered: np.ndarray, begin: int = 0) -> list[slice]:
    '''Slices of an ascending series, cut at its gaps, the widest first.'''
    steps = np.diff(ordered)
    for cut in np.argsort(-steps, kind='stable') + 1 if ordered.size > 1 else ():
        step = steps[cut - 1]
        if step < math.log(GAP):
            break
        if step >= SIGMAS * max(_scatter(ordered[:cut]), _scatter(ordered[cut:])) or min(cut, ordered.size - cut) < FEWEST_VALUES:
            return _parts(ordered[:cut], begin) + _parts(ordered[cut:], begin + int(cut))
    return [slice(begin, begin + ordered.size)]


def _scatter(x: np.ndarray) -> float:
    '''Robust standard deviation of one cluster among those of a side that may have gaps itself: from the quarter of its
    values that lies closest together, which of a normal distribution is 0.637 standard deviations wide.'''
    if x.size < FEWEST_VALUES:
        return 0.0
    quarter = max(FEWEST_VALUES, math.ceil(x.size / 4))
    return float(np.min(x[quarter - 1:] - x[:x.size - quarter + 1])) / 0.637


def same(a: State | None, b: State | None) -> bool:
    '''Whether two states are one: each latency that both know is the same within half a gap.

    :arg a: a state, dictionary name -> seconds; :obj:`None` or empty: not known, which is the same as any.
    '''
    one, other = a or {}, b or {}
    return all(abs(math.log(one[name] / other[name])) < math.log(GAP) for name in one.keys() & other.keys())


def on_one_core(state: State | None) -> bool:
    '''Whether two of the team's threads were on one core.'''
    return (state or {}).get(probes.SHARING, 1) > probes.ON_ONE_CORE


def is_the_hosts(state: State | None) -> bool:
    '''Whether it tells where a hypervisor has placed the cores: the doing of the host, and no property of the node.'''
    return any(name.startswith(probes.CORE_TO_CORE) for name in state or {})


def text(state: State | None) -> str:
    '''For people: ``core-to-core 110 ns``.'''
    if state is None:
        return 'several, or none for long'
    latencies = [f'{1e9 * seconds:.3g}' for name, seconds in sorted(state.items()) if name.startswith(probes.CORE_TO_CORE)]
    told = [f"core-to-core {' / '.join(latencies)} ns"] if latencies else []
    return ', '.join(told + ['two threads on one core'] * on_one_core(state)) or 'one state'


def texts(met: Iterable[State | None]) -> str:
    '''For people: some states, each once; one of which less is known is the same as many, and told where it is none of these.'''
    found: list[State | None] = []
    for state in sorted(met, key=lambda one: -len(one or {})):
        if not any(same(state, other) for other in found):
            found.append(state)
    return ', '.join(map(text, found))


@dataclass(frozen=True)
class Found:
    '''The states that the cases of one program met.

    :attr measurements: their records.
    :attr labels: for each record, shape (n,): the state of each sample, -1 where it changed within the sample, or is odd.
    :attr teams: for each record, its team.
    :attr centres: team -> list of states, dictionaries name -> seconds; one, empty, for a thread alone.
    '''
    measurements: Sequence[dict]
    labels: list[np.ndarray]
    teams: list[Team]
    centres: dict[Team, list[State]]

    @property
    def several(self) -> bool:
        '''Whether a state can be told apart at all: not where there was one, and no sample changed it.'''
        return any(len(found) > 1 for found in self.centres.values())

    @functools.cached_property
    def _counts(self) -> dict[Team, tuple[np.ndarray, int]]:
        '''Team -> how many of its samples were in each of its states, and in none.'''
        counts = {team: np.zeros(len(centres) + 1, dtype=int) for team, centres in self.centres.items()}
        for team, labels in zip(self.teams, self.labels):
            counts[team] += np.bincount(labels + 1, minlength=len(counts[team]))
        return {team: (count[1:], int(count[0])) for team, count in counts.items()}

    @functools.cached_property
    def _fewest(self) -> int:
        return FEWEST_OF_SEVERAL if len({process for process, _ in self._groups}) > 1 else FEWEST_ROUNDS

    @functools.cached_property
    def _groups(self) -> dict[tuple, list[int]]:
        return by_key(((record.get('process', 0), record['group']), number) for number, record in enumerate(self.measurements))

    @functools.cached_property
    def choices(self) -> list[Choice]:
        '''The states to evaluate in, as dictionaries team -> number: the most frequent first.

        Of the largest team that met several each one; of the others the most frequent, of those that are the same as that, if any is.
        '''
        order = {team: np.argsort(-inside, kind='stable').tolist() for team, (inside, _) in self._counts.items()}
        largest = max((team for team, found in self.centres.items() if len(found) > 1), default=None)
        if largest is None:
            return [{team: numbers[0] for team, numbers in order.items()}]
        chosen = [self.centres[largest][number] for number in order[largest]]
        return [{team: number if team == largest else next((one for one in numbers if same(self.centres[team][one], state)), numbers[0])
                 for team, numbers in order.items()} for number, state in zip(order[largest], chosen)]

    def within(self, choice: Choice) -> list[dict]:
        '''The records with the rounds only in which every case of a group was in the state chosen for its team.

        A group that met too little of it has the state that it was in most; where there is none either, all its rounds count,
        and its state is not known.

        :returns: copies of the records with ``index`` (its place), ``state`` (dictionary, or None: not known) and
            ``set_aside`` (how many samples) and ``rounds`` (the numbers of those that are left).
        '''
        reduced: list[dict] = [{}] * len(self.measurements)
        for numbers in self._groups.values():
            chosen, inside = self._rounds(numbers, choice)
            for number in numbers:
                team = self.teams[number]
                one = len(self.centres[team]) < 2 and not (self.labels[number] < 0).any()
                state = self.centres[team][chosen[team]] if chosen else {} if one else None
                reduced[number] = _reduced(self.measurements[number], number, inside, state)
        return reduced

    def _rounds(self, numbers: list[int], choice: Choice) -> tuple[Choice | None, np.ndarray]:
        '''(the choice, which of its rounds are wholly in it) of a group; (None, all) if no choice has enough of them.'''
        samples = min(self.labels[number].size for number in numbers)
        for chosen in (choice, *self.choices):
            inside = np.all([self.labels[number][:samples] == chosen[self.teams[number]] for number in numbers], axis=0)
            if np.count_nonzero(inside) >= min(self._fewest, samples):
                return chosen, inside
        return None, np.ones(samples, dtype=bool)

    def enough(self, choice: Choice) -> set[int]:
        '''The processes of which each group has rounds enough of a choice: a set of their numbers.'''
        too_few = {process for (process, _), numbers in self._groups.items() if self._rounds(numbers, choice)[0] != choice}
        return {process for process, _ in self._groups} - too_few

    def shares(self) -> tuple[list[tuple[State, int]], int]:
        '''How often a sample was in each state: list of (state, samples), and the number of those in none; of the teams
        that met several.'''
        teams = [team for team, centres in self.centres.items() if len(centres) > 1]
        return ([(state, int(count)) for team in teams for state, count in zip(self.centres[team], self._counts[team][0])],
                sum(self._counts[team][1] for team in teams))


def _within_cores(record: dict, private: Collection[str]) -> bool:
    '''Whether no line goes from core to core: its data are in caches of the cores' own, and no thread writes what another one touches.'''
    return record.get('private_lines', False) and record['level'] in private


def _private_caches(machine: Mapping[str, Any]) -> set[str]:
    '''The levels whose caches each belong to one core: L1, and L2 where it has no more CPUs than that.'''
    cpus = by_key((cache['level'], len(cache['shared_cpus'])) for cache in machine.get('caches') or () if cache['shared_cpus'])
    return {'L1'} | ({'L2'} if 1 in cpus and 2 in cpus and max(cpus[2]) <= max(cpus[1]) else set())


def _reduced(record: dict, number: int, inside: np.ndarray, state: State | None) -> dict:
    kept = {'index': number, 'state': state, 'set_aside': int(np.count_nonzero(~inside)), 'rounds': np.flatnonzero(inside).tolist()}
    for key in ('seconds', 'communication'):
        if key in record and len(record[key]) == inside.size:
            kept[key] = list(itertools.compress(record[key], inside))
    if 'probes' in record:
        kept['probes'] = {name: {side: list(itertools.compress(values, inside)) for side, values in probe.items()}
                          for name, probe in record['probes'].items() if isinstance(probe, dict)}
    return {**record, **kept}


def find(measurements: Sequence[dict], machine: Mapping[str, Any] | None = None) -> Found:
    '''The states that the samples of one program were taken in.'''
    machine = machine or {}
    moved, private = machine.get('virtual') != 'no', _private_caches(machine)
    teams = [(record['threads'], record['ranks'], moved and not _within_cores(record, private)) for record in measurements]
    labels: list[np.ndarray] = [np.array([], dtype=int)] * len(measurements)
    centres: dict[Team, list[State]] = {}
    for team, numbers in by_key(zip(teams, range(len(teams)))).items():
        defined_by = DEFINED_BY if team[-1] else (probes.SHARING,)
        cases = [(number, {name: values for name, values in probes.features(measurements[number]).items() if name.startswith(defined_by)})
                 for number in numbers]
        centres[team] = _label(cases, [len(measurements[number]['seconds']) for number, _ in cases], labels)
    return Found(measurements, labels, teams, centres)


def _label(cases: list[tuple[int, dict]], sizes: list[int], labels: list[np.ndarray]) -> list[State]:
    '''Fill in the labels of one team's cases; the states of the team.'''
    names = sorted(set().union(*(latencies for _, latencies in cases)))
    combined = [np.zeros((size, 2, 0), dtype=int) for size in sizes]
    levels = []
    for name in names:
        values = [latencies.get(name, np.full((size, 2), np.nan)) for (_, latencies), size in zip(cases, sizes)]
        flat, centres = clusters(np.concatenate(values).ravel())
        if len(centres) < 2:
            flat = np.zeros_like(flat)          # one cluster: what is not known is in it, too
        levels.append(centres or [math.nan])
        ends = np.cumsum([2 * size for size in sizes])[:-1]
        combined = [np.concatenate([before, part.reshape(-1, 2, 1)], axis=2)
                    for before, part in zip(combined, np.split(flat, ends))]
    steady = [(case[:, 0] == case[:, 1]).all(axis=1) & (case >= 0).all(axis=(1, 2)) for case in combined]
    met = np.concatenate([case[same, 0] for case, same in zip(combined, steady)])
    found, numbers = np.zeros((1, len(names)), dtype=int), np.zeros(0, dtype=int)
    if len(met):
        found, numbers = np.unique(met, axis=0, return_inverse=True)
    ends = np.cumsum([np.count_nonzero(same) for same in steady])[:-1]
    for (number, _), same, own in zip(cases, steady, np.split(np.ravel(numbers), ends)):
        labels[number] = np.full(same.size, -1)
        labels[number][same] = own
    return [{name: centres[level] for name, centres, level in zip(names, levels, state) if not math.isnan(centres[level])}
            for state in found.tolist()]


# --- in the archive ---------------------------------------------------------------------------------------------------

def of_row(row: dict) -> list[dict]:
    '''A metric's row of the archive in each state that its session met, the one that was judged first.

    :returns: list of rows with ``state`` a dictionary, ``{}`` where nothing is known of it.
    '''
    further = [{**row, **{key: one[key] for key in ('state', 'value', 'n', 'spread')}, 'states': None,
                'processes': json.dumps(one['processes']) if one.get('processes') else None,
                'interval_low': one['interval'][0], 'interval_high': one['interval'][1]}
               for one in _read(row.get('states') or '[]')]
    return [{**row, 'state': _read(row.get('state') or '{}') or {}}, *({**one, 'state': one['state'] or {}} for one in further)]


@functools.lru_cache(maxsize=1024)
def _read(text: str) -> Any:
    '''A column's JSON; of thousands of rows most are the same, and nobody changes what is returned.'''
    return json.loads(text)


def of_set(rows: Iterable[dict], size: int | None) -> list[dict]:
    '''Rows of one metric with a working set of caches (:func:`records.sets_in_caches`: with another one it is another metric), or an unknown one.'''
    return [row for row in rows if size is None or row['working_set'] in (None, size)]


def of_most(rows: Sequence[dict], column: str) -> list[dict]:
    '''Those with the value of a column (``working_set``, ``given``) that most rows have, of as many the later one.'''
    (usual, _), = Counter(row[column] for row in reversed(rows)).most_common(1)
    return [row for row in rows if row[column] == usual]


def one(texts: Iterable[str]) -> bool:
    '''Whether states, as the archive has them, are all the same (:func:`same`, of each two).'''
    latencies = by_key(one for text in set(texts) for one in (json.loads(text) or {}).items())
    return all(math.log(max(values) / min(values)) < math.log(GAP) for values in latencies.values())


def grouped(rows: Iterable[dict]) -> list[tuple[State, list[dict]]]:
    '''Rows of one metric by the state that they were measured in.

    :returns: list of (state, rows), the state that most rows have first; a row counts once in a state, as it was judged if it was there;
        rows of which no state is known are left out where others have one.
    '''
    found: list[tuple[dict, list[dict]]] = []
    for own in map(of_row, rows):
        for row in own:     # a state may be there twice: two choices may differ in that of another team
            group = next((group for group in found if bool(group[0]) == bool(row['state']) and same(group[0], row['state'])), None)
            if group is None:
                found.append((row['state'], [row]))
            elif not any(group[1][-1] is one for one in own):
                group[1].append(row)
    known = [group for group in found if group[0]] or found
    return sorted(known, key=lambda group: -len(group[1]))

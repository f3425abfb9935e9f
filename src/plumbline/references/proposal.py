'''``references propose`` and ``accept``: what the last sessions of good state say of the next one becomes a site's references.'''

import datetime
import itertools
import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.model import good_state, grouping, registry, verdict
from plumbline.model.baselines import PORTABLE
from plumbline.model.result import Skipped
from plumbline.model.subsystems import SUSPECTS_RATE
from plumbline.references import bounds, editing, recording
from plumbline.references.choice import Choice, usable
from plumbline.references.files import leaves, load, lookup, origin_of, portable_beside

_MACHINE = ('kernel', 'microcode', 'governor', 'huge_pages')


@dataclass
class Proposal:
    '''What would be written.

    :attr path: the site's file.
    :attr sessions: names of those used, the oldest first.
    :attr excluded: list of (session, why).
    :attr nodes: list of :class:`good_state.Odd`, whose values are left out.
    :attr skipped: list of (what gets no reference, why).
    :attr index: test -> its ``$index``.
    :attr written: place -> (leaf, provenance without ``accepted``).
    :attr before: place -> the leaf that stands in the file, or None, of all that is written or vanishes.
    :attr staying: places that stand in the file, and whose metrics were skipped.
    :attr accepted: the entry of ``$accepted``.
    :attr known: :class:`good_state.Known`.
    :attr noise: place -> its class of noise.
    :attr failing: session -> list of (place, value, leaf): what it would FAIL by.
    :attr seconds: between the start of the first session and that of the last.
    :attr in_sample: whether a session is part of the references that it would have FAILed by.
    '''
    path: Path
    sessions: list
    excluded: list
    nodes: list
    skipped: list = field(default_factory=list)
    index: dict = field(default_factory=dict)
    written: dict = field(default_factory=dict)
    before: dict = field(default_factory=dict)
    staying: list = field(default_factory=list)
    accepted: dict = field(default_factory=dict)
    known: good_state.Known | None = None
    noise: dict = field(default_factory=dict)
    failing: dict = field(default_factory=dict)
    seconds: float = 0.0
    in_sample: bool = False

    @property
    def new(self):
        return [place for place in self.written if self.before[place] is None]

    @property
    def changed(self):
        '''Places whose leaf would change, the largest loss first.'''
        def gain(place):
            ratio = math.log(self.written[place][0][0] / self.before[place][0]) if self.before[place][0] > 0 else 0.0
            better = registry.better(self.written[place][1].get('metric') or place[-1].partition('.')[0])
            return better * ratio if better else -abs(ratio)
        return sorted((place for place, (leaf, _) in self.written.items() if self.before[place] not in (None, leaf)), key=gain)

    @property
    def unchanged(self):
        return [place for place, (leaf, _) in self.written.items() if self.before[place] == leaf]

    @property
    def vanishing(self):
        return [place for place in self.before if place not in self.written]


def propose(root, system, out_path, count=None, tests='', peaks=None, sessions=(), nodes=(), apart=good_state.LEAST_APART, node=None):
    '''What the last sessions of good state would have a site's references be, a :class:`Proposal`; writes nothing.

    :arg out_path: the site's file, e.g. ``config/references/SYSTEM.yaml``; ``portable.yaml`` beside it, or else that of the
        references in force, is consulted for ``$index`` and for what is possible.
    :arg count: how many sessions; by default as many as there are, :data:`good_state.MOST_SESSIONS` at most.
    :arg tests: regular expression on the display names, as ReFrame's ``-n``; all by default.
    :arg peaks: see :func:`plumbline.references.peaks.check`.
    :arg sessions: names of sessions that are taken whatever is wrong with them.
    :arg nodes: names of nodes that are taken though they differ.
    :arg apart: seconds: sessions that began nearer to each other count once.
    :arg node: the sessions of this node alone.
    :raises PlumblineError: if there are fewer than :data:`good_state.LEAST_SESSIONS`, nothing is usable, or the file is malformed.
    '''
    path = Path(out_path)
    if path.name == PORTABLE:
        raise PlumblineError(f"{path}: {PORTABLE} is written by hand; references are recorded into the site's own file")
    files = (load(path) if path.exists() else {}, portable_beside(path))
    chosen = Choice(root, system, tests, files, peaks, sessions, nodes, apart, node)
    candidates, index, skipped, odd = chosen.take(count or good_state.MOST_SESSIONS)
    found = Proposal(path, sorted(chosen.used), chosen.excluded, odd, skipped, index)
    started = [rows[0]['started'] for rows in chosen.used.values()]
    found.seconds = (max(started) - min(started)).total_seconds()
    _fill(found, candidates, files[0], chosen.used)
    return found


def _fill(found, candidates, site, used):
    '''Fill in what a :class:`Proposal` says of metrics.'''
    by_place = grouping.by_key((one.place, one) for one in candidates)
    why = {place: _ticket(site, place) or its[0].why or _too_seldom(its, found.sessions) for place, its in by_place.items()}
    recorded = {place: leaf for place, leaf in leaves(site) if origin_of(site, place)}      # not written by hand
    measured = {place[:-1] for place in by_place}
    there, not_measured = by_place.keys() | _places(candidates, used, found.index), _not_measured(used)
    vanishing = [place for place in recorded if place[:-1] in measured and place not in there and not _ticket(site, place)
                 and not any(recording.fit(known, dict(zip(found.index[place[0]], place[1:-1]))) and one.means(place[-1])
                             for known, one in not_measured[place[0]])]
    metrics = (sum(max(map(len, its[0].series.values.values())) for place, its in by_place.items() if not why[place])
               + sum(place not in vanishing and bool(why.get(place, True)) for place in recorded))
    rate = SUSPECTS_RATE / max(1, metrics)
    found.known, judged = good_state.known(usable(candidates)), []
    machine = _machine(used[found.sessions[-1]], used.values())
    for place, its in by_place.items():
        its = [_Reference(one, found, rate) for one in its if not one.why]    # one session of a state has a bound as wide as it must be
        reason = why[place] or its[0].too_wide
        if reason:
            found.skipped.append(('/'.join(place), reason))
        else:
            its = [one for one in its if not one.too_wide]
            found.written[place] = its[0].leaf, _provenance(its, found.sessions, len(machine['processors']) > 1)
            found.noise[place] = its[0].candidate.series.noise
            judged += its
    if not found.written:
        raise PlumblineError(f'{found.path}: nothing to record, all {len(found.skipped)} metrics were skipped, the first '
                             f'because: {found.skipped[0][1]}')
    found.accepted = {'sessions': found.sessions, 'false_alarms': SUSPECTS_RATE, 'metrics': metrics, 'machine': machine}
    found.before = {place: lookup(site, place[0], place[1:-1]).get(place[-1]) for place in found.written}
    found.before.update({place: recorded[place] for place in vanishing})
    found.staying = [place for place in recorded if place[:-1] in measured and place not in found.before]
    _fare(found, [one.candidate for one in judged], rate)


class _Reference:
    '''What is expected of a metric in one state.

    :attr too_wide: why it is no reference, or None.
    :attr leaf: [reference, lower, upper, unit].
    '''

    def __init__(self, candidate, found, rate):
        series, self.candidate = candidate.series, candidate
        self.expected = series.expected(found.known)
        self.too_wide = bounds.too_wide(series.metric, self.expected, rate)
        self.leaf = bounds.leaf(series.metric, self.expected, rate, candidate.possible, candidate.unit)
        self.sees = bounds.sees(series.metric, self.expected, rate)

    def numbers(self, sessions):
        measured, size, spread = self.candidate.series.measured, self.candidate.rows[-1]['working_set'], self.candidate.spread
        known = {'threads': self.candidate.teams, 'working_set': size, 'given': json.loads(self.candidate.rows[-1]['given'] or '{}')}
        return {**{key: value for key, value in known.items() if value}, 'n': sum(row['n'] for row in self.candidate.rows),
                'deviation': _digits(self.expected.deviation, 3), 'freedom': _digits(self.expected.freedom, 3),
                **({} if spread is None else {'spread': _digits(spread, 3)}), 'sees': _digits(self.sees, 2),
                'measured': [_digits(measured[session], 5) if session in measured else None for session in sessions]}


def _too_seldom(candidates, sessions):
    has = len(set().union(*(one.series.values for one in candidates if one.series)))
    return f'{has} of {len(sessions)} sessions have it, {recording.LEAST_VALUES} are needed' if has < recording.LEAST_VALUES else None


def _ticket(site, place):
    '''Why a known issue gets no reference; None of what is none.'''
    ticket = lookup(site.get('$known_issues', {}), place[0], place[1:-1]).get(place[-1])
    return ticket and f'a known issue ({ticket}): take its $xfail out of the file to record it again'


def _places(candidates, used, index):
    '''The places of all that these tests measured, also of what gives no reference: a KNOWN ISSUE, say.'''
    foreign = {one.place[0]: one.rows[-1]['foreign'] for one in candidates}
    rows = [row for its in used.values() for row in its if row['check'] in foreign and row['foreign'] == foreign[row['check']]]
    return {(row['check'], *recording.keys_of(index[row['check']], row), row['name']) for row in rows if row['metric'] is not None}


def _not_measured(used):
    '''Test -> what it said in some session that it could not measure: list of (:func:`recording.known_keys`, :class:`Skipped`).'''
    found: dict[str, list[tuple[dict, Skipped]]] = defaultdict(list)
    for row in (row for its in used.values() for row in its if row['skipped']):
        known = recording.known_keys(row)
        found[row['check']] += ((known, Skipped.of_json(one)) for one in row['skipped'])
    return found


def _digits(value, digits):
    return float(f'{value:.{digits}g}')


def _provenance(references, sessions, several):
    '''Where a reference comes from; the compiler is that of the latest session, and so is the width of the code.

    :arg several: whether the sessions ran on more than one processor.
    '''
    usual, *others = references
    last = usual.candidate.rows[-1]
    record: dict = recording.record_of(last) or next(iter(last['records']), {})
    provenance = {'compiler': record.get('compiler'), **usual.numbers(sessions)}
    if registry.is_of_other_suite(metric := usual.candidate.series.metric):
        provenance['metric'] = metric
    if width := last['simd_width'].get(record.get('variant')):
        provenance['simd_width'] = width
    if several and usual.candidate.processor:
        provenance['processor'] = usual.candidate.processor
    if usual.candidate.state:
        provenance['state'] = usual.candidate.state
        provenance['states'] = [{'state': one.candidate.state, 'reference': one.leaf, **one.numbers(sessions)} for one in others]
    return provenance


def _machine(rows, sessions):
    '''All processors, and what of the machine's state changes its speed; of ``huge_pages`` the choice in force.'''
    told: dict = next((row['machine'] for row in rows if row['machine'].get('kernel')), {})       # of others there is a name only
    short = {'processors': sorted(set().union(*map(recording.processors, sessions))), **{key: told.get(key) for key in _MACHINE}}
    chosen = re.search(r'\[(\w+)\]', told.get('huge_pages') or '')
    return {**short, 'huge_pages': chosen[1]} if chosen else short


def _fare(found, candidates, rate):
    '''How each session would have fared: by references that it is no part of, where the others are enough.'''
    found.in_sample = len(found.sessions) - 1 < good_state.LEAST_SESSIONS
    for session in found.sessions:
        its = [one for one in candidates if session in one.series.values]
        series = [one.series if found.in_sample else one.series.without(session) for one in its]
        known = [one for one, others in zip(its, series) if others.values]
        expected = good_state.expectations([others for others in series if others.values])
        found.failing[session] = []
        for one, prediction in zip(known, expected):
            leaf = bounds.leaf(one.series.metric, prediction, rate, one.possible)
            low, high = verdict.bounds(leaf[:3])
            found.failing[session] += [(one.place, value, leaf) for value in one.series.values[session].values()
                                       if not low <= value <= high]


def accept(found):
    '''Write a :class:`Proposal`; comments, entries of other tests, and what was written by hand of metrics that the sessions lack, stay.

    :returns: whether anything was written: not where the same sessions say the same.
    :raises PlumblineError: if the file is malformed or cannot be written.
    '''
    site = load(found.path) if found.path.exists() else {}
    fresh = [place for place, (leaf, provenance) in found.written.items()
             if found.before[place] != leaf or not _same(site, place, provenance, found.sessions)]
    if not fresh and not found.vanishing:
        return False
    editing.edit_file(found.path, lambda content: _enter(content, found, fresh))
    return True


def _same(site, place, provenance, sessions):
    origin = dict(origin_of(site, place))
    by = site.get('$accepted', {}).get(origin.pop('accepted', None), {})
    return origin == provenance and by.get('sessions') == sessions


def _enter(content, found, fresh):
    '''Put the leaves and their provenance into the content of a file, and take those that vanish out of it.'''
    accepted = editing.child_of(content, '$accepted')
    now = datetime.datetime.now(datetime.timezone.utc)
    when = next(text for seconds in itertools.count()
                if (text := f'{now + datetime.timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}') not in accepted)
    editing.put(accepted, when, editing.flow(found.accepted))
    for place in fresh:
        (test, *keys, name), (leaf, provenance) = place, found.written[place]
        entry = editing.child_of(content, test)
        if '$index' not in entry:
            editing.put(entry, '$index', editing.flow(found.index[test]))
        origin = editing.child_of(editing.child_of(content, '$provenance'), test)
        for key in keys:
            entry = editing.child_of(entry, key)
            origin = editing.child_of(origin, key)
        editing.put(entry, name, editing.flow(leaf))
        editing.put(origin, name, editing.flow({'accepted': when, **provenance}))
    for place in found.vanishing:
        editing.remove(content, place)
        editing.remove(content['$provenance'], place)

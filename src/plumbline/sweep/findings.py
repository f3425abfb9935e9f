'''What a sweep says of its nodes, for their journal: what they measured, which of them were outliers and by what evidence.'''

import math
import statistics

import polars as pl

from plumbline.model import prediction, quantity, verdict
from plumbline.model.parameters import as_words
from plumbline.nodes import events, history
from plumbline.sweep import outliers, ranking, remeasure
from plumbline.sweep.state import OVER

#: Rows of evidence that people are told of a node, and metrics of each of its subsystems.
MOST = 3

#: Columns of a row of evidence.
_KEPT = ('check', 'name', 'environ', 'value', 'unit', 'median', 'off', 'bad', 'scale', 'better', 'rank', 'peers', 'again', 'confirmed',
         'usual', 'members')

#: What a row must have to be compared with a later measurement.
_NEEDED = {'check': str, 'name': str, 'environ': str, 'unit': str, 'value': float, 'median': float, 'bad': float, 'scale': float, 'better': int}

#: States of a node that tell of the node, not of the sweep.
_OF_NODE = {'failed', 'timed out'}


def is_lost(node):
    '''Whether the job of a node came to nothing, or there was none, for what tells of the node.'''
    return node.phase == OVER and node.state in {*_OF_NODE, *events.OUT_OF_SERVICE}


def system_of(work):
    return work.plan['partition'].partition(':')[0]


def evidence(found, node):
    '''By what a node is an outlier.

    :arg found: :class:`plumbline.sweep.outliers.Findings`.
    :returns: dictionary: ``rows``, the worst first (``what`` is a subsystem or a metric; columns of the ranking; of a subsystem
        ``members``, how many metrics it has, and all of them as ``metrics``, the worst first), and ``causes``.
    '''
    rows = [_row(row) for row in found.worst(node).iter_rows(named=True)]
    for row in rows:
        if row['name'] == 'score':
            members = found.ranked.rows.filter(node=node, score=row['check'], environ=row['environ'])
            row['metrics'] = [_row(one) for one in members.sort('bad', descending=True).iter_rows(named=True)]
    return {'rows': rows, 'causes': found.causes.get(node, [])}


def _row(row):
    kept = {key: row[key] for key in _KEPT if row.get(key) is not None}
    kept['what'] = row['check'] if row['name'] == 'score' else row['name']
    return {key: value for key, value in kept.items() if not isinstance(value, float) or math.isfinite(value)}


def _lacks(found, node):
    '''What peers of a node have and it has not, in words; empty if there is nothing.'''
    less = [f'less than its peers: {found.having_less[node]}'] if node in found.having_less else []
    lacks = [f"{'nothing' if lack.whole else 'not all'} of {as_words(test)}: {lack.why}"
             for test, lack in found.lacking.get(node, {}).items() if lack.counts]
    return '; '.join([*less, *lacks])


def not_in_order(folder):
    '''The nodes of a sweep that are not in order among their peers, and those that it has not measured or not judged: list of (verdict, node, why).

    :raises PlumblineError: as :func:`outliers.look`.
    '''
    found = outliers.look(folder)
    worst = {node: [f"{row['what']} {quantity.change(row['off'], 0)} against its peers" for row in found.worst(node).head(1).iter_rows(named=True)]
             for node in found.named}
    odd = dict.fromkeys([*found.named, *found.without, *found.having_less])
    told = [(verdict.FAIL, node, '; '.join([*worst.get(node, []), *filter(None, [_lacks(found, node)])])) for node in odd]
    told += [(verdict.FAIL, 'nodes of two sorts', why) for why in found.two_sorts]
    told += [(verdict.NO_REFERENCE, node, f"{outliers.NO_PEERS}: {', '.join(scores)}") for node, scores in found.unjudged.items()]
    told += [(verdict.FAIL, node.name, f'its own report, measured again: {node.told}') for node in found.again.values() if node.status == 1]
    missing = [*((node, 'not measured') for node in found.unmeasured),
               *((node, 'not measured again') for node in found.again.values() if is_lost(node))]
    return told + [(verdict.FAIL if node.state in _OF_NODE else verdict.NO_REFERENCE, node.name, f'{what}: {node.missing}') for node, what in missing]


def _in_order(found):
    '''The nodes that were ranked in all that they have metrics of, less those of two sorts, and suspects that nobody has cleared.'''
    rows = found.ranked.rows
    of_two_sorts = rows.join(found.ranked.divided, on=ranking.METRIC, how='semi', nulls_equal=True)
    return set(rows['node']) - set(of_two_sorts['node']) - found.unjudged.keys() - set(found.unconfirmed)


def record(work, found=None):
    '''Write what a sweep found into the journal of its nodes; what is there already is not written twice.

    :arg work: :class:`plumbline.sweep.state.Sweep`.
    :arg found: :class:`plumbline.sweep.outliers.Findings`; None where nothing was measured.
    :raises PlumblineError: if the journal cannot be read or written.
    '''
    system, partition, sweep = system_of(work), work.plan['partition'], work.name
    said, _ = events.read(system)
    mine = [event for event in said if event.get('sweep') == sweep]
    known = {(event['node'], event['at']): event for event in mine if event['event'] in (events.MEASURED, events.FAILED)}
    latest = {event['node']: event for event in said}
    before = {event['node']: event.get('evidence') for event in mine if event['event'] in (events.FOUND, events.CLEARED)}
    named = found.named if found else []
    ranked = _in_order(found) if found else set()
    sweeps = [work, *remeasure.measured_again(work.folder)]
    new: list[dict] = []
    told: dict[str, list[str]] = {node: [] for node in named}
    again = found.again if found else {}

    def say(event, anew=False):
        if differs := anew or known.get((event['node'], event['at'])) != event:
            new.append(event)
        return differs
    for node in work.nodes.values():
        about = {'node': node.name, 'partition': partition, 'sweep': sweep}
        times = [one.nodes[node.name] for one in sweeps if node.name in one.nodes]
        hours, anew = round(sum(one.seconds for one in times) / 3600, 5), False
        if node.measured:
            rank = events.OUTLIER if node.name in named else events.IN_ORDER if node.name in ranked else None
            ruling = history.worst({verdict.FAIL if one.status == 1 else ruling for one in times for ruling in one.verdicts})
            lacks = _lacks(found, node.name) if found else ''
            anew = say({**about, 'at': node.at, 'event': events.MEASURED, 'session': node.session, 'verdict': ruling, 'rank': rank, 'lacks': lacks,
                        'again': sorted(one.session for one in times[1:] if one.session), 'hours': hours})
            if found and (ruling == verdict.FAIL or lacks):
                told[node.name] = [*(f'its own report: {one.told}' for one in times if one.status == 1), *filter(None, [lacks])]
        if is_lost(last := again.get(node.name, node)):
            out, earlier = last.state in events.OUT_OF_SERVICE, latest.get(node.name, {}) if last is node else {}
            event = {**about, 'at': last.since if out else last.at, 'event': events.FAILED, 'state': last.state, 'reason': last.reason,
                     'hours': hours}
            if not out or any(earlier.get(key) != event[key] for key in ('event', 'state', 'reason')):     # else as an earlier sweep met it
                say(event, anew)        # what it measured takes back what it said before
    for node, texts in told.items():
        if before.get(node) != (its := {**evidence(found, node), 'told': texts}):
            new.append({'node': node, 'event': events.FOUND, 'partition': partition, 'sweep': sweep, 'evidence': its,
                        'page': str(work.folder / 'index.html')})
    new += [{'node': node, 'event': events.CLEARED, 'sweep': sweep} for node, its in before.items() if found and its is not None and node not in told]
    events.append(system, new)


def changed_since(evidence_of_node, frame, node):
    '''What became of that by which a node was an outlier, when it was measured again later, alone perhaps.

    A metric or a subsystem is still off as a second measurement would confirm it (:func:`plumbline.sweep.confirm.confirm`), against the median of
    the peers of then.

    :arg evidence_of_node: of :func:`evidence`.
    :arg frame: of :func:`plumbline.sweep.results.frame`.
    :returns: (texts of those that are within bounds again, of those that are still off, of those that were not measured).
    '''
    its = frame.filter(pl.col('value').is_finite(), node=node).select('check', 'environ', 'name', 'value')
    now = {tuple(key): value for *key, value in its.iter_rows()}
    back: list[str] = []
    off: list[str] = []
    missing: list[str] = []
    for row in sorted(_rows(evidence_of_node), key=lambda row: row['name'] == 'score'):
        if row['name'] == 'score':
            about, (value, gone) = row['check'], _score(row, now)
        else:
            about, value, gone = f"{row['check']} {row['name']}", now.get(_key(row)), []
        if value is None:
            missing += gone or [about]
            continue
        still = -row['better'] * _log(row, value) >= row['scale'] * min(ranking.CERTAIN, max(ranking.CONFIRMED, ranking.AS_FAR * row['bad']))
        after, was, peers = (quantity.amount(each, row['unit'], row['median']) for each in (value, row['value'], row['median']))
        (off if still else back).append(f'{about} {after} (was {was}, its peers {peers})')
    return back, off, list(dict.fromkeys(missing))


def _rows(evidence_of_node):
    '''Rows of evidence; of a subsystem of which the journal has no score of then (before 30 November 2026) its metrics.'''
    for row in _sound(evidence_of_node.get('rows')):
        scored = row['name'] != 'score' or _sound(row.get('metrics'), usual=float)
        yield from [row] if scored else _sound(row.get('metrics'))


def _score(row, now):
    '''(A subsystem's score, that of then and the weighted mean of what its metrics have changed by, or None; the tests that it lacks for that).

    Of a test that was measured noise may decide which metrics it has, but not of those that were far out.

    :arg now: (check, environment, name) of a metric -> its value.
    '''
    members = _sound(row.get('metrics'), usual=float)
    met = [one for one in members if _key(one) in now]
    tests = {key[:2] for key in now}
    gone = [one['check'] for one in members if _key(one) not in now and (_key(one)[:2] not in tests or one['bad'] >= ranking.CONFIRMED)]
    if gone or not met:
        return None, gone
    weights = [max(one['usual'], prediction.LEAST_DEVIATION)**-2 for one in met]
    most = statistics.median(weights)
    moved = [(min(weight, most), one['better'] * (_log(one, now[_key(one)]) - _log(one, one['value']))) for weight, one in zip(weights, met)]
    return row['value'] * math.exp(sum(weight * change for weight, change in moved) / sum(weight for weight, _ in moved)), []


def _key(row):
    return row['check'], row['environ'], row['name']


def _log(row, value):
    '''Logarithm of a value over the median of the peers; one that is nothing beside them has one, too.'''
    return math.log(max(value / row['median'], ranking.NOTHING))


def whole(rows, needed):
    '''Those rows of evidence that have what is needed, key -> type; a journal may hold anything.'''
    return [row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict)
            and all(isinstance(row.get(key), kind) for key, kind in needed.items())]


def _sound(rows, **more):
    return [row for row in whole(rows, _NEEDED | more) if row['median'] > 0]

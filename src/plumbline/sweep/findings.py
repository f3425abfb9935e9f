'''What a sweep says of its nodes, for their journal: what they measured, which of them were outliers and by what evidence.'''

import math

import polars as pl

from plumbline.model import quantity, verdict
from plumbline.model.parameters import as_words
from plumbline.nodes import events, history
from plumbline.sweep import outliers, ranking, remeasure
from plumbline.sweep.state import OVER

#: Rows of evidence that are kept of a node, and metrics of each of its subsystems.
MOST = 3

#: Columns of a row of evidence.
_KEPT = ('check', 'name', 'environ', 'value', 'unit', 'median', 'off', 'bad', 'scale', 'better', 'rank', 'peers', 'again', 'confirmed')

#: States of a node that tell of the node, not of the sweep.
_OF_NODE = {'failed', 'timed out'}


def system_of(work):
    return work.plan['partition'].partition(':')[0]


def evidence(found, node):
    '''By what a node is an outlier.

    :arg found: :class:`plumbline.sweep.outliers.Findings`.
    :returns: dictionary: ``rows``, the worst first (``what`` is a subsystem or a metric; columns of the ranking; of a subsystem
        ``members``, how many metrics it has, and the worst of them as ``metrics``), ``left``, how many more rows there are, and ``causes``.
    '''
    worst = found.worst(node)
    rows = [_row(row) for row in worst.head(MOST).iter_rows(named=True)]
    for row in rows:
        if row['name'] == 'score':
            members = found.ranked.rows.filter(node=node, score=row['check'], environ=row['environ'])
            row['metrics'] = [_row(one) for one in members.sort('bad', descending=True).head(MOST).iter_rows(named=True)]
    return {'rows': rows, 'left': max(0, worst.height - MOST), 'causes': found.causes.get(node, [])}


def _row(row):
    kept = {key: row[key] for key in (*_KEPT, 'members') if row.get(key) is not None}
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
    return told + [(verdict.FAIL if node.state in _OF_NODE else verdict.NO_REFERENCE, node.name, f'not measured: {node.missing}')
                   for node in found.unmeasured]


def _in_order(found):
    '''The nodes that were ranked in all that they have metrics of, less those of two sorts.'''
    rows = found.ranked.rows
    of_two_sorts = rows.join(found.ranked.divided, on=ranking.METRIC, how='semi', nulls_equal=True)
    return set(rows['node']) - set(of_two_sorts['node']) - found.unjudged.keys()


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
    for node in work.nodes.values():
        about = {'at': node.at, 'node': node.name, 'partition': partition, 'sweep': sweep}
        times = [one.nodes[node.name] for one in sweeps if node.name in one.nodes]
        hours = round(sum(one.seconds for one in times) / 3600, 5)
        if node.measured:
            rank = events.OUTLIER if node.name in named else events.IN_ORDER if node.name in ranked else None
            event = {**about, 'event': events.MEASURED, 'session': node.session, 'again': sorted(one.session for one in times[1:] if one.session),
                     'verdict': history.worst({verdict.FAIL if one.status == 1 else ruling for one in times for ruling in one.verdicts}),
                     'rank': rank, 'lacks': _lacks(found, node.name) if found else '', 'hours': hours}
            if found and (event['verdict'] == verdict.FAIL or event['lacks']):
                own = [f'its own report: {one.told}' for one in times if one.status == 1 or verdict.FAIL in one.verdicts]
                told[node.name] = [*own, *filter(None, [event['lacks']])]
        elif node.phase == OVER and node.state in _OF_NODE:
            event = {**about, 'event': events.FAILED, 'state': node.state, 'reason': node.reason, 'hours': hours}
        elif node.phase == OVER and node.state in events.OUT_OF_SERVICE:
            event = {**about, 'at': node.since, 'event': events.FAILED, 'state': node.state, 'reason': node.reason, 'hours': hours}
            last = latest.get(node.name, {})
            if all(last.get(key) == event[key] for key in ('event', 'state', 'reason')):
                continue        # as an earlier sweep met it
        else:
            continue
        if known.get((node.name, event['at'])) != event:
            new.append(event)
    for node, texts in told.items():
        if before.get(node) != (its := {**evidence(found, node), 'told': texts}):
            new.append({'node': node, 'event': events.FOUND, 'partition': partition, 'sweep': sweep, 'evidence': its,
                        'page': str(work.folder / 'index.html')})
    new += [{'node': node, 'event': events.CLEARED, 'sweep': sweep} for node, its in before.items() if found and its is not None and node not in told]
    events.append(system, new)


def changed_since(evidence_of_node, frame, node):
    '''What became of the metrics by which a node was an outlier, when it was measured again later, alone perhaps.

    One is still off as a second measurement would confirm it (:func:`plumbline.sweep.confirm.confirm`), against the median of the peers of then.

    :arg evidence_of_node: of :func:`evidence`.
    :arg frame: of :func:`plumbline.sweep.results.frame`.
    :returns: (texts of those that are within bounds again, of those that are still off, of those that were not measured).
    '''
    back: list[str] = []
    off: list[str] = []
    missing: list[str] = []
    for row in _metrics(evidence_of_node):
        measured = frame.filter(pl.col('value').is_finite(), node=node, check=row['check'], name=row['name'], environ=row['environ'])['value']
        about = f"{row['check']} {row['name']}"
        if measured.is_empty():
            missing.append(about)
            continue
        far = -row['better'] * (math.log(measured[-1] / row['median']) if measured[-1] > 0 else -math.inf)     # a rate of 0 is measured, too
        still = far >= row['scale'] * min(ranking.CERTAIN, max(ranking.CONFIRMED, ranking.AS_FAR * row['bad']))
        now, was, peers = (quantity.amount(value, row['unit'], row['median']) for value in (measured[-1], row['value'], row['median']))
        (off if still else back).append(f'{about} {now} (was {was}, its peers {peers})')
    return back, off, missing


def whole(rows, needed):
    '''Those rows of evidence that have what is needed, key -> type; a journal may hold anything.'''
    return [row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict)
            and all(isinstance(row.get(key), kind) for key, kind in needed.items())]


def _metrics(evidence_of_node):
    '''The rows of evidence about one metric.'''
    needed = {'check': str, 'name': str, 'environ': str, 'unit': str, 'value': float, 'median': float, 'bad': float, 'scale': float, 'better': int}
    inner = [one for row in whole(evidence_of_node.get('rows'), {})
             for one in whole(row.get('metrics') if row.get('name') == 'score' else [row], needed)]
    return list({(one['check'], one['name'], one['environ']): one for one in inner if one['median'] > 0}.values())

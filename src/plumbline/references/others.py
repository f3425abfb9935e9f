'''Tests of other suites: judged by the references that were accepted of them, beside what ReFrame says of them.

ReFrame reads no file of ours for such a test, so its metrics are judged when its run is archived, by the same prediction as ours.  A single
number has no interval; what such numbers scatter by from session to session is in the bounds.
'''

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from plumbline.errors import PlumblineError
from plumbline.model import parameters, registry, verdict
from plumbline.model.uncertainty import Summary
from plumbline.references import bounds, directory, file_of, not_run
from plumbline.references.files import leaves, load, lookup, of_processor, origin_of, recorded, refuse_patterns
from plumbline.references.recording import keys_of
from plumbline.store import archive, run_reports
from plumbline.store.archive_rows import BY_REFRAME

_CASE = ('system', 'partition', 'environ', 'test', 'run')

#: Columns that are the test case's, and not a metric's.
_OF_CASE = archive.SCHEMA.names()[:archive.SCHEMA.names().index('metric')]


def archived(*run_reports: str | Path, root: str | Path, largest: int = run_reports.LARGEST_REPORT) -> Path:
    '''Archive a run of ReFrame, its tests of other suites judged, too, and what it lacks said; the file.'''
    frame = judged(archive.read(*run_reports, largest=largest))
    return archive.write(not_run.told(frame, not_run.Earlier(root, frame['system'][0])), root)


def judged(frame: pl.DataFrame) -> pl.DataFrame:
    '''The rows of one session (:data:`archive.SCHEMA`), those of other suites' tests judged by what was accepted of them.

    :raises PlumblineError: if a file of references is wrong, or its folder is missing.
    '''
    if not frame['foreign'].any():
        return frame
    rows = frame.to_dicts()
    models = {row['hostname']: row['processor'] for row in rows if row['processor']}
    present, found = next(iter(models.values()), None), []
    for _, of_case in itertools.groupby(rows, key=lambda row: [row[name] for name in _CASE]):
        case = list(of_case)
        if case[0]['foreign']:
            case = _case(case, models.get(case[0]['hostname'], present))
        found += case
    return pl.DataFrame(found, schema=archive.SCHEMA)


def _case(rows: list[dict], model: str | None) -> list[dict]:
    '''The rows of a test case, judged.'''
    host = rows[0]['hostname']
    nodes = [None] if not host or ',' in host else [None, host]
    known: dict[str, dict] = {}
    try:
        for node in nodes:
            known |= dict(_accepted(rows[0], file_of(rows[0]['system'], node), model))
    except PlumblineError as error:
        return _with_end(rows, str(error))
    rows = [_judged(row, known[row['name']]) if row['name'] in known else row for row in rows]
    gone = sorted(known.keys() - {row['name'] for row in rows})
    if not gone or rows[0]['result'] != 'pass':
        return rows
    return _with_end(rows, f"not measured: {', '.join(gone)} of {known[gone[0]]['file']}: ReFrame only warns of what it cannot evaluate")


def _accepted(row: dict, name: str, model: str | None) -> Iterator[tuple[str, dict]]:
    '''What a file has of the test case of a row: (name of the metric, ``leaf``, ``file``, ``expected``, ``metric``, ``ticket``).'''
    path, test = Path(directory()) / name, row['check']
    site, _ = of_processor(load(path) if path.exists() else {}, test, model)
    own = {place for place, _ in leaves({test: site.get(test, {})}) if registry.is_of_other_suite(origin_of(site, place).get('metric'))}
    if not own or parameters.varied(parameters.of_row(row)):     # one of ours may have the same name
        return
    refuse_patterns(test, site[test])
    keys = keys_of(site[test]['$index'], row)
    known = lookup({test: recorded(site, test) or {}}, test, keys)
    for place in sorted(own):
        if place[1:-1] == keys:
            metric = place[-1]
            yield metric, {'leaf': lookup(site, test, keys)[metric], 'file': name, 'expected': known[metric][0]['expected'],
                           'metric': origin_of(site, place)['metric'],
                           'ticket': lookup(site.get('$known_issues', {}), test, keys).get(metric)}


def _judged(row: dict, known: dict) -> dict:
    '''A metric's row.  What ReFrame says counts as well: the worse of the two is the verdict.'''
    if row['verdict'] == verdict.KNOWN_ISSUE:
        return row
    *leaf, unit = known['leaf']
    if row['unit'] != unit:
        return {**row, 'verdict': verdict.FAIL,
                'reason': f"is in {row['unit']}, and its reference in {known['file']} in {unit}: accept references again"}
    leaf = bounds.of_one_run(leaf, known['metric'], known['expected'])
    summary = Summary(row['value'], 1, 0.0, (row['value'],) * 2)
    ruling, reason = verdict.judge_expected(summary, leaf, unit)
    sees = None
    if ruling == verdict.PASS:
        rises = registry.better(known['metric']) == registry.LESS
        sees = verdict.seen_of_expected(summary, leaf, known['expected'], rises)
    if row['reference_from'] == BY_REFRAME or row['verdict'] == verdict.FAIL:
        reason = f"{row['reason']}; {reason}"
    if row['verdict'] == verdict.FAIL:
        ruling, sees = verdict.FAIL, None
    elif ruling != verdict.PASS and known['ticket']:
        ruling, reason = verdict.KNOWN_ISSUE, f"{known['ticket']}: {reason}"
    return {**row, 'verdict': ruling, 'reason': f"{reason}, by {known['file']}", 'sees': sees, 'reference': leaf[0], 'lower': leaf[1],
            'upper': leaf[2], 'reference_from': known['file'], 'expected': json.dumps(known['expected'])}


def _with_end(rows: list[dict], reason: str) -> list[dict]:
    '''The test case with a FAIL of its own, which takes the place of a pass without a metric.'''
    end = {'verdict': verdict.FAIL, 'reason': reason}
    *others, last = rows
    if last['metric'] is None and last['verdict'] in (None, verdict.PASS):
        return [*others, {**last, **end}]
    return [*rows, {**{name: last[name] for name in _OF_CASE}, **end}]

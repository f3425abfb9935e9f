'''The samples of every metric from the archive, with what the probes read beside them; one session in memory at a time.'''

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from plumbline.analysis.variance import Measured
from plumbline.errors import PlumblineError
from plumbline.model import probes
from plumbline.nodes import events
from plumbline.store import archive

_COLUMNS = ['session', 'partition', 'environ', 'hostname', 'test', 'display_name', 'run', 'name', 'subject', 'samples', 'record',
            'rounds', 'processes', 'set_aside', 'states', 'given', 'working_set', 'detail']
_CASE = ['test', 'partition', 'environ', 'hostname', 'run']


@dataclass(frozen=True, order=True)
class Key:
    '''What names a metric from session to session.'''
    partition: str
    environ: str
    case: str
    metric: str


@dataclass
class Samples:
    '''All that was asked for of an archive.

    :attr system: ReFrame's name.
    :attr sessions: their names, oldest first; :attr nodes: what they are called now, sorted.
    :attr metrics: :class:`Key` -> :class:`plumbline.analysis.variance.Measured`.
    :attr unknown: keys that have no probes although their sessions have: which record they were made from is not known.
    :attr narrowed: keys whose samples in other states were set aside, and are not in the archive.
    :attr unfit: keys with values that have no logarithm.
    :attr of_other_sets: keys of which samples with another working set of a cache than the last one are left out.
    '''
    system: str
    sessions: list[str]
    nodes: list[str] = field(default_factory=list)
    metrics: dict = field(default_factory=dict)
    unknown: list = field(default_factory=list)
    narrowed: list = field(default_factory=list)
    unfit: list = field(default_factory=list)
    of_other_sets: list = field(default_factory=list)


def record_of(row, records, rounds=None):
    '''The measurement record that a metric's samples were made from.

    By the row's index, else the only kernel whose variant is the metric's subject.

    :arg row: of the archive; :arg records: those of its test case; :arg rounds: of its samples, None: all.
    :returns: the record, or :obj:`None` where it is not known.
    '''
    if row['record'] is not None:
        found = records[row['record']:row['record'] + 1]
    else:
        found = [record for record in records if record.get('role') == 'kernel' and record.get('variant') == row['subject']]
    if len(found) != 1:
        return None
    count = len(found[0].get('seconds') or ())
    fits = count == len(row['samples']) if rounds is None else max(rounds) < count
    return found[0] if fits else None


def of_processes(row):
    '''The samples of a row of the archive in each process that took some: those it is judged by, and those in the other states.

    :returns: list of (index of the record or None, samples, rounds): shape (n,), and the round of each, ascending; the rounds
        are None where the samples are of all.
    '''
    whole = {'samples': row['samples'], 'rounds': row['rounds'], 'processes': json.loads(row['processes'] or '[]')}
    pieces = defaultdict(list)
    for part in (whole, *json.loads(row['states'] or '[]')):
        begin = 0
        for own in part.get('processes') or [{'process': 0, 'n': len(part.get('samples') or ()), 'record': row['record']}]:
            piece = {key: part[key][begin:begin + own['n']] if part.get(key) else None for key in ('samples', 'rounds')}
            pieces[own['process']].append((own['record'], piece))
            begin += own['n']
    return [(own[0][0], *_every_state([piece for _, piece in own])) for _, own in sorted(pieces.items()) if own[0][1]['samples']]


def _every_state(pieces):
    parts = [part for part in pieces if part['rounds'] and part['samples']]
    if not parts or len(parts[0]['rounds']) != len(pieces[0]['samples']):
        return np.array(pieces[0]['samples'], dtype=float), None
    # A group that met too little of a state was judged in another: the same rounds twice.
    rounds, first = np.unique(np.concatenate([part['rounds'] for part in parts]), return_index=True)
    return np.concatenate([part['samples'] for part in parts]).astype(float)[first], rounds


def _rows(path, names, metrics, nodes):
    '''(row, samples, probes) of each metric that has samples; probes are {} without any, None where they are not known.'''
    last, records = None, None
    left: str | None = None
    rows = nodes.renamed(archive.load_columns(path, _COLUMNS)).with_columns(
        pl.col('partition', 'environ').fill_null(''), case=archive.CASE)
    # The last run of a test that was repeated has the processes of all.
    of_all = rows.filter(pl.col('processes').is_not_null()).group_by(_CASE[:-1]).agg(of_all=pl.col('run').max())
    rows = rows.join(of_all, on=_CASE[:-1], how='left', nulls_equal=True, maintain_order='left')
    for row in rows.filter(pl.col('run') >= pl.col('of_all').fill_null(0)).iter_rows(named=True):
        case, text = [row[name] for name in _CASE], row.pop('detail')
        if case != last:        # its first row has the detail
            last, left, records = case, text if text and '"probes"' in text else None, None
        if row['samples'] and names.search(row['display_name']) and metrics.search(row['name']):
            if left is not None:
                records, left = json.loads(left).get('records'), None
            for number, samples, rounds in of_processes(row):
                own = {**row, 'samples': samples, 'record': number}
                record = record_of(own, records, rounds) if records else {}
                read = None if record is None else probes.features(record)
                yield own, samples, read if not read or rounds is None else {name: both[rounds] for name, both in read.items()}


def pattern(text, option):
    '''A regular expression from the command line.'''
    try:
        return re.compile(text)
    except re.error as error:
        raise PlumblineError(f'{option} {text}: not a regular expression: {error}') from None


def read(root, system=None, last=None, names='', metrics=''):
    '''Read the archive, session by session.

    Of a test case that ReFrame repeated every run counts; of one with several processes the last, which has them all.

    :arg system: ReFrame's name; by default that of the last session.
    :arg last: only so many of the last sessions.
    :arg names: regular expression that is found in the display name of a test; :arg metrics: in the name of a metric.
    :raises PlumblineError: if the archive is empty, damaged, or nothing in it is selected; if the journal of nodes cannot be read.
    '''
    names, metrics = pattern(names, '-n'), pattern(metrics, '--metric')
    files = archive.sessions(root, system)
    files = files[-last:] if last else files
    found = Samples(archive.system_of(files[-1]), [path.stem for path in files])
    nodes: dict[str, int] = {}
    gathered, without, narrowed = defaultdict(list), set(), set()
    called = events.names(found.system)
    for number, path in enumerate(files):
        for row, samples, features in _rows(path, names, metrics, called):
            key = Key(row['partition'], row['environ'], row['case'], row['name'])
            node = nodes.setdefault(row['hostname'] or 'unknown', len(nodes))
            if features is None:
                without.add(key)
            if row['set_aside'] and not (row['rounds'] and row['states']):
                narrowed.add(key)
            gathered[key].append((row['working_set'], number, node, samples, features or {}))
    if not gathered:
        raise PlumblineError(f'{root}: no samples in {len(files)} sessions of {found.system}; '
                             'see the names with plumbline report, and check -n and --metric')
    found.nodes, found.narrowed = sorted(nodes), sorted(narrowed)
    for key in sorted(gathered):
        size = next((size for size, *_ in reversed(gathered[key]) if size), None)
        own = [process for of, *process in gathered[key] if of in (size, None)]
        if len(own) < len(gathered[key]):
            found.of_other_sets.append(key)
        measured = _joined(own)
        if not (np.isfinite(measured.values) & (measured.values > 0)).all():
            found.unfit.append(key)
            continue
        found.metrics[key] = measured
        if key in without and not measured.probes:
            found.unknown.append(key)
    return found


def _joined(processes):
    '''One metric of several processes, each (session, node, samples, features).'''
    sessions, nodes, samples, features = zip(*processes)
    sizes = [len(part) for part in samples]
    names = dict.fromkeys(name for each in features for name in each)
    readings = {name: np.concatenate([each.get(name, np.full((size, 2), np.nan)).astype(np.float32)
                                      for each, size in zip(features, sizes)]) for name in names}
    return Measured(np.concatenate(samples), np.repeat(np.arange(len(sizes)), sizes), np.array(sessions), np.array(nodes), readings)

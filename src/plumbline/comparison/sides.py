'''The sides of a comparison: sessions, loaded and laid beside each other, metric by metric, and what of machine and software differs.'''

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import polars as pl

from plumbline.analysis import lines, machine_state
from plumbline.errors import PlumblineError
from plumbline.model import grouping, parameters, processor, quantity, repetitions, states
from plumbline.model.result import as_given
from plumbline.references import not_run, others
from plumbline.store import archive


def reports(source):
    '''The run reports that a path stands for; of a folder, those of a sweep's nodes.'''
    if not source.is_dir():
        return [source]
    from plumbline.sweep import state as sweeps  # with what knows of schedulers, which a session needs nothing of
    from plumbline.sweep.node import REPORT
    sweep = sweeps.load(source)
    found = [sweep.of(node) / REPORT for node in sweep.nodes.values() if node.measured]
    if not found:
        raise PlumblineError(f'{source}: no node of this sweep is measured; run plumbline sweep --resume')
    return found


def load(source, archive_root):
    '''One side's rows.

    :arg source: a session of the archive, ReFrame's run report, or a folder of a sweep.
    :returns: ``polars.DataFrame`` with the archive's columns.
    :raises PlumblineError: if it is none of these.
    '''
    if Path(source).exists():
        frames = [others.judged(archive.read(path)) for path in reports(Path(source))]
        earlier = not_run.Earlier(archive_root, frames[0]['system'][0])
        return pl.concat(not_run.told(frame, earlier) for frame in frames)
    return archive.load_session(archive_root, str(source))


def by_system(sources, archive_root):
    '''System -> the rows of its sessions.

    :arg sources: each as of :func:`load`, perhaps with the name that the system is to have before it: ``NAME=SOURCE``.
    :raises PlumblineError: also where two sessions without a name are of systems that ReFrame calls the same on other processors.
    '''
    found: dict[str, list[pl.DataFrame]] = defaultdict(list)
    unnamed: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        name, equals, path = str(source).partition('=')
        named = equals and not Path(source).exists()
        frame = load(path if named else source, archive_root)
        if not named:
            name = one_system([frame])
            unnamed[name] |= set(frame['processor'].drop_nulls())
        found[name].append(frame)
    for name, processors in unnamed.items():
        if not all(map(processor.same, sorted(processors), sorted(processors)[1:])):
            raise PlumblineError(f"{name} has several processors ({', '.join(sorted(processors))}): tell its systems apart, for example "
                                 f'old={sources[0]}')
    return dict(found)


def one_system(frames):
    '''The name of the system that all sides are of.

    :raises PlumblineError: if they are of several.
    '''
    systems = {system for frame in frames for system in frame['system'].unique()}
    if len(systems) != 1:
        raise PlumblineError(f"sessions of several systems: {', '.join(sorted(systems))}; name those of one")
    return systems.pop()


def last(archive_root, count, system=None):
    '''The names of the last sessions of a system, the latest last, without those that began in the future.

    :arg system: ReFrame's name; by default that of the archive's last session.
    :raises PlumblineError: if there are not as many.
    '''
    found = archive.present(archive.sessions(archive_root, system), say=True)
    if len(found) < count:
        system = archive.system_of(found[-1])
        raise PlumblineError(f'{archive_root}: {len(found)} sessions of {system}, {count} asked for; '
                             'plumbline report archives a run')
    return [path.stem for path in found[-count:]]


def cases(side, frame):
    '''The rows of a session's last runs, without fixtures that went well.

    :arg side: the session's number, which stands in each row.
    :arg frame: as of :func:`load`.
    :returns: list of dicts: the archive's columns, ``side``, and ``case``: the test's name.
    '''
    kept = archive.final_rows(frame).filter(pl.col('metric').is_not_null() | pl.col('verdict').is_not_null()
                                            | (pl.col('result') == 'skip'))
    return [{**row, 'side': side, 'hostname': row['hostname'] or '', 'case': row['display_name'], 'reason': lines.one_line(row['reason'])}
            for row in kept.iter_rows(named=True)]


def keyed(sessions):
    '''(key -> row) of each session, a key for each metric: (partition, environ, case, node, name).

    The node is None but for tests that ran on several at once; the name is empty where a test has no metric.  Repetitions
    (``--repeat``) are one row.

    :arg sessions: the :func:`cases` of each.
    '''
    nodes = defaultdict(set)
    for number, rows in enumerate(sessions):
        for row in rows:
            repetition = row['repetition'], parameters.of_row(row).get('.repeat_no')        # which may be on any node
            nodes[number, repetition, row['partition'], row['environ'], row['case']].add(row['hostname'])
    several = {case[2:] for case, names in nodes.items() if len(names - {''}) > 1}

    def key(row):
        case = row['partition'], row['environ'], row['case']
        return (*case, row['hostname'] if case in several else None, row['name'] or '')
    return [{place: repetitions.one(alike) for place, alike in grouping.by_key((key(row), row) for row in rows).items()} for rows in sessions]


def of_the_same(before, after):
    '''The rows before of the metric that the row after is of: in its unit, of what was given (``-S``, a mode), of its working set of caches.

    :returns: (rows, '') or (rows that are of the same but for one of these, what was another one).
    '''
    of_unit = [row for row in before if row['unit'] == after['unit']]
    if not of_unit:
        return [], f"another unit than before: {after['unit']}, and {before[-1]['unit']} before"
    alike = [row for row in of_unit if row['given'] == after['given']]
    if not alike:
        now, was = (row['given'] or as_given({}) for row in (after, of_unit[-1]))
        return of_unit, f'not the same as before: {now}, and {was} before'
    of_set = states.of_set(alike, after['working_set'])
    if not of_set:
        now, was = (quantity.size(row['working_set']) for row in (after, alike[-1]))
        return alike, f'another working set than before: {now}, and {was} before'
    return of_set, ''


def in_one_state(before, after):
    '''Both sides in one state of the machine (:mod:`plumbline.model.states`): that of the row after, or another that it met.

    :returns: (rows before, row after); no rows if the two sides met no state in common.
    '''
    sessions = [states.of_row(row) for row in before]
    for row in states.of_row(after):
        alike = [next((one for one in session if states.same(one['state'], row['state'])), None) for session in sessions]
        if any(alike):
            return list(filter(None, alike)), row
    return [], after


def by_each_other(pairs):
    '''Pairs of rows before and after with the intervals of all by what processes differ by there (:func:`repetitions.by_each_other`).'''
    rows = iter(repetitions.by_each_other([row for pair in pairs for row in (*pair.before, pair.after)]))
    return [replace(pair, before=[next(rows) for _ in pair.before], after=next(rows)) for pair in pairs]


def _told(sessions, tests):
    '''What state and software a side tells by some of its tests: label -> text -> the nodes that it was told of.'''
    told: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    measured = {machine_state.MACHINE[key] for key in machine_state.MEASURED}
    for session in sessions:
        runs = [runs[-1] for runs in session.cases.values() if runs[-1][0]['display_name'] in tests]
        details = [lines.detail_of(run).as_json() | {key: run[0][key] for key in ('hostname', 'environ')} for run in runs]
        nodes = {detail['hostname'] for detail in details if detail['hostname']}
        for label, values in [*machine_state.machine_rows(details), *machine_state.software_rows(details, session.info)]:
            for text, _ in values if label not in measured else ():
                told[label][text] |= nodes
    return told


def _tests(sessions):
    return {runs[-1][0]['display_name'] for session in sessions for runs in session.cases.values() if lines.detail_of(runs[-1])}


def state_changes(before, after):
    '''What of machine and software is not the same: list of (label, only before, only after).

    :arg before, after: list of :class:`plumbline.analysis.session.Session`: the last before, those after; of a sweep one of each node.
    '''
    common = _tests(before) & _tests(after)     # what only one of them asked is no change
    old, new = (_told(side, common or _tests(side)) for side in (before, after))

    def only(label, one, other):
        everywhere = set().union(*one[label].values())
        return [text if nodes == everywhere else f"{text} ({', '.join(sorted(nodes))})"
                for text, nodes in one[label].items() if text not in other[label]]
    differing = [(label, only(label, old, new), only(label, new, old)) for label in dict.fromkeys([*old, *new])]
    return [entry for entry in differing if entry[1] or entry[2]]

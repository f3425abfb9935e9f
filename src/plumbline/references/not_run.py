'''What a session lacks beside the references: tests that have some and did not run, or the references themselves.

Where MPI went from ``PATH``, or a partition has another name, ReFrame generates fewer tests and passes; where the file of references is not
found, all of them pass.  What a command runs is known from the sessions that the references are from.
'''

import argparse
import json
import shlex

import polars as pl

from plumbline.errors import PlumblineError
from plumbline.references import directory, file_of
from plumbline.references.files import leaves, load, of_processor, origin_of, tests
from plumbline.references.recording import known_keys
from plumbline.store import archive

#: ReFrame's options that choose the tests (4.10): with a value, and without.
_CHOOSING = ('-c/--checkpath', '-n/--name', '-x/--exclude', '-t/--tag', '-T/--exclude-tag', '-p/--prgenv', '-E/--filter-expr', '--system', '--mode')
_SWITCHES = '--cpu-only', '--gpu-only', '--failed', '-r/--run', '-R/--recursive', '-v/--verbose'


class _Options(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


def selection(command: str) -> dict | None:
    '''What of ReFrame's command line chooses the tests; None where it cannot be read.'''
    options = _Options(add_help=False)
    for names in _CHOOSING:
        options.add_argument(*names.split('/'), action='append', default=[])
    for names in _SWITCHES:
        options.add_argument(*names.split('/'), action='store_true')
    try:
        if not (words := shlex.split(command)):
            return None
        found = vars(options.parse_known_args(words[1:])[0])
    except ValueError:
        return None
    return {name: sorted(value) if isinstance(value, list) else value for name, value in found.items() if name not in ('run', 'verbose')}


def _chosen(session_info):
    '''The :func:`selection` of a session, by ReFrame's account of it (JSON).'''
    return selection(json.loads(session_info or '{}').get('cmdline') or '')


def told(frame: pl.DataFrame, root) -> pl.DataFrame:
    '''The rows of a session, with what it lacks in their column ``lacks``.

    ``tests``: dictionary of those that have references and did not run, as they stand in the file (``pingpong/SYSTEM:PARTITION/ENVIRONMENT``),
    to [number of references, session in which the same command ran them]; ``references``: [file, session], where the system has none
    now, and the same command was judged by that file before.

    :arg frame: of :data:`archive.SCHEMA`; :arg root: of the archive that it goes into.
    :raises PlumblineError: if a file of references is wrong, or its folder is missing.
    '''
    chosen = _chosen(frame['session_info'][0])
    if not chosen:
        return frame
    system, name = frame['system'][0], file_of(frame['system'][0])
    path = directory() / name
    before = _Before(root, system, frame['session'][0], chosen)
    site = load(path) if path.exists() else {}
    lacks = {'tests': _tests(site, frame, before), 'references': None if tests(site) else before.judged_by(name, _processors(frame))}
    text = json.dumps(lacks) if any(lacks.values()) else None
    return frame.with_columns(lacks=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(text, pl.String)))


class _Before:
    '''The archive's sessions of a system that the same command ran, as far as they can be read.'''

    def __init__(self, root, system, session, chosen):
        self._files = {path.stem: path for path in archive.all_files(root, system) if path.stem < session}
        self._chosen, self._alike = chosen, {}

    def is_alike(self, session):
        if session not in self._alike:
            self._alike[session] = session in self._files and self._is_alike(self._files[session])
        return self._alike[session]

    def _is_alike(self, path):
        try:
            text = archive.load_columns(path, 'session_info', 0, 1).item()
        except PlumblineError:
            return False
        return _chosen(text) == self._chosen

    def judged_by(self, name, processors):
        '''[file, the last of the sessions that it judged on such a processor]; None where there is none.'''
        def judged(files):
            by_it, ran_on = (pl.col('reference_from') == name).any(), pl.col('processor').is_in(processors.implode()).any()
            return archive.scan_files(files).group_by('session').agg(by_it & ran_on).filter('reference_from').collect()['session']

        sessions, _ = archive.of_readable(list(self._files.values()), judged)
        session = next(filter(self.is_alike, sorted(sessions, reverse=True)), None)
        return session and [name, session]


def _processors(frame):
    return frame['processor'].drop_nulls().unique()


def _tests(site, frame, before):
    ran_on = {f'{system}:{partition}': _processors(its) for (system, partition), its in frame.group_by('system', 'partition')}
    ran: dict[str, list] = {}
    for row in frame.select('check', 'system', 'partition', 'environ', 'parameters', 'level', 'threads').unique().iter_rows(named=True):
        ran.setdefault(row['check'], []).append(known_keys(row))
    found: dict[str, list] = {}
    for test in tests(site):
        for place in sorted(_own_places(site, test, ran_on)):
            keys = dict(zip(site[test]['$index'], place[1:-1]))
            if any(all(known.get(key, text) == text for key, text in keys.items()) for known in ran.get(test, ())):
                continue
            if session := _last(site, place, before):
                entry = found.setdefault('/'.join(place[:-1][:3]), [0, session])
                entry[:] = entry[0] + 1, max(entry[1], session)
    return found


def _own_places(site, test, ran_on):
    '''(test, key path ..., metric) of each reference of a test, but those that were recorded on other processors than their partition has now.

    :arg ran_on: partition -> names of the processors, where it ran at all.
    '''
    def places(file):
        return {place for place, _ in leaves({test: file[test]} if test in file else {})}

    of_model = {model: places(of_processor(site, test, model)[0]) for models in ran_on.values() for model in models}
    number = site[test]['$index'].index('$partition') + 1 if '$partition' in site[test]['$index'] else 0
    for place in places(site):
        models = ran_on.get(place[number], ())
        if not len(models) or any(place in of_model[model] for model in models):
            yield place


def _last(site, place, before):
    '''The last of the sessions that a reference is from which the same command ran, and measured it; '' if none.'''
    origin = origin_of(site, place)
    accepted = site['$accepted'][origin['accepted']]['sessions'] if 'accepted' in origin else ()
    origins = (origin, *origin.get('states', ()))
    measured = [session for number, session in enumerate(accepted) if any(one['measured'][number] is not None for one in origins)]
    return max(filter(before.is_alike, measured), default='')

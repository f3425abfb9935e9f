'''What a session lacks beside the references: tests that have some and did not run, or were skipped by whoever knows of none, or the
references themselves.

Where MPI went from ``PATH``, or a partition has another name, ReFrame generates fewer tests and passes; where the file of references is not
found, all of them pass.  What a command runs is known from the sessions that it ran before.
'''

import argparse
import functools
import json
import shlex
from pathlib import Path

import polars as pl

from plumbline.model.grouping import by_key
from plumbline.references import NODE, directory, file_of
from plumbline.references.files import leaves, load, of_processor, tests
from plumbline.references.recording import fit, known_keys
from plumbline.settings import ROOT
from plumbline.store import archive

#: ReFrame's options that choose the tests (4.10): with a value, and without.
_CHOOSING = ('-c/--checkpath', '-n/--name', '-x/--exclude', '-t/--tag', '-T/--exclude-tag', '-p/--prgenv', '-E/--filter-expr', '--system', '--mode',
             '-P/--parameterize', '--maintainer')
_SWITCHES = '--cpu-only', '--gpu-only', '--failed', '-r/--run', '-R/--recursive', '-v/--verbose'

#: The columns of the archive that tell what ``$index`` may name, and all that :func:`told` asks for.
_KEYS = 'check', 'system', 'partition', 'environ', 'parameters', 'level', 'threads'
COLUMNS = [*_KEYS, 'session', 'session_info', 'hostname', 'processor', 'result', 'detail', 'lacks']

#: A test that was skipped, and did not say itself how many references it has: another suite's, say.
_SKIPPED = (pl.col('result') == 'skip') & ~pl.col('detail').fill_null('').str.contains('"recorded"', literal=True)


class _Options(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


def selection(command: str, folder: str | None = None) -> dict | None:
    '''What of ReFrame's command line chooses the tests; None where it cannot be read.

    :arg folder: where ReFrame was called.
    '''
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
    found['checkpath'] = [one for one in found['checkpath'] if Path(folder or ROOT, one).resolve() != ROOT / 'checks']
    found['recursive'] = bool(found['recursive'] and found['checkpath'])       # of Plumbline's own checks the settings say so
    return {name: sorted(value) if isinstance(value, list) else value for name, value in found.items() if name not in ('run', 'verbose')}


def _command(session_info):
    '''The :func:`selection` of a session, by ReFrame's account of it (JSON), and the configuration files.'''
    info = json.loads(session_info or '{}')
    return selection(info.get('cmdline') or '', info.get('workdir')), info.get('config_files')


def told(frame: pl.DataFrame, earlier: 'Earlier') -> pl.DataFrame:
    '''The rows of a session, with what it lacks in their column ``lacks``.

    ``tests``: dictionary of those that have references and did not run, as they stand in the file (``pingpong/SYSTEM:PARTITION/ENVIRONMENT``),
    to [number of references, session in which the same command ran them, whether they were skipped]; ``references``: [file,
    session], where the system has none now, and the same command was judged by that file before.

    :arg frame: :data:`COLUMNS` of :data:`archive.SCHEMA` at least; :arg earlier: of its system.
    :raises PlumblineError: if a file of references is wrong, or its folder is missing.
    '''
    chosen, files = _command(frame['session_info'][0])
    if not chosen:
        return frame
    system, session = frame['system'][0], frame['session'][0]
    nodes = frame['hostname'].drop_nulls().unique().to_list()
    own = nodes if len(nodes) == 1 and NODE.fullmatch(nodes[0]) else []     # of several the scheduler may have chosen others
    contents = [_content(system, node) for node in (None, *own)]
    lacks = {'tests': dict(one for content in contents for one in _tests(content, frame, earlier, chosen, files).items()),
             'references': None if any(map(tests, contents)) else earlier.judged(session, chosen, _processors(frame))}
    text = json.dumps(lacks) if any(lacks.values()) else None
    return frame.with_columns(lacks=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(text, pl.String)))


def _content(system, node):
    path = directory() / file_of(system, node)
    return load(path) if path.exists() else {}


class Earlier:
    '''The sessions of a system in an archive, as far as they can be read; what is asked of all files is asked once.'''

    def __init__(self, root, system):
        self._files, self._file, self._measured = archive.all_files(root, system), file_of(system), {}

    def _ask(self, question, files=None):
        return archive.of_readable(self._files if files is None else files, lambda good: question(archive.scan_files(good)).collect())[0]

    @functools.cached_property
    def _commands(self):
        found = self._ask(lambda rows: rows.group_by('session').agg(pl.col('session_info').drop_nulls().first()))
        return {session: _command(text) for session, text in found.iter_rows()}

    def _alike(self, session, chosen):
        return self._commands.get(session, (None,))[0] == chosen

    @functools.cached_property
    def _judged(self):
        by_it, ran_on = (pl.col('reference_from') == self._file).any(), pl.col('processor').drop_nulls().unique()
        found = self._ask(lambda rows: rows.group_by('session').agg(by_it, ran_on).filter('reference_from'))
        return dict(found.select('session', 'processor').iter_rows())

    def judged(self, session, chosen, processors):
        '''[file of references, the last session before this one that it judged on such a processor, of the same command]; None without one.'''
        found = (one for one, ran_on in self._judged.items() if one < session and not processors.isdisjoint(ran_on))
        last = max((one for one in found if self._alike(one, chosen)), default=None)
        return last and [self._file, last]

    def measured(self, test, session, chosen, files, partitions):
        '''What the same command has measured of a test before this session: (session, what ``$index`` may name) of each case, the last first.

        With other configuration ``files`` in these ``partitions`` only: each may be of partitions of its own.
        '''
        key = test, json.dumps(chosen)
        if key not in self._measured:
            alike = [path for path in self._files if self._alike(path.stem, chosen)]
            measured = pl.col('check') == test, pl.col('metric').is_not_null()
            cases = self._ask(lambda rows: rows.filter(*measured).select('session', *_KEYS).unique(), alike)
            self._measured[key] = [(row['session'], known_keys(row)) for row in cases.sort('session', descending=True).iter_rows(named=True)]
        return ((one, known) for one, known in self._measured[key]
                if one < session and (known['$partition'] in partitions or self._commands[one][1] == files))


def _processors(frame):
    return set(frame['processor'].drop_nulls())


def _tests(site, frame, earlier, chosen, files):
    ran_on = {f'{system}:{partition}': _processors(its) for (system, partition), its in frame.group_by('system', 'partition')}
    ran, skipped = (by_key((row['check'], known_keys(row)) for row in frame.filter(rows).select(_KEYS).unique().iter_rows(named=True))
                    for rows in (~_SKIPPED, _SKIPPED))
    found: dict[str, list] = {}
    for test in tests(site):
        for place in sorted(_own_places(site, test, ran_on)):
            keys = dict(zip(site[test]['$index'], place[1:-1]))
            if any(fit(known, keys) for known in ran.get(test, ())):
                continue
            measured = earlier.measured(test, frame['session'][0], chosen, files, ran_on)
            if session := next((session for session, known in measured if fit(known, keys)), None):
                entry = found.setdefault('/'.join(place[:-1][:3]), [0, session, False])
                entry[:] = entry[0] + 1, max(entry[1], session), entry[2] or any(fit(known, keys) for known in skipped.get(test, ()))
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

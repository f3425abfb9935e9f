'''ReFrame settings that all of our sites share: a site file adds its systems and environments.

::

    from plumbline import settings
    site_configuration = settings.site(systems=[...], environments=[...])
'''

import argparse
import atexit
import contextlib
import functools
import logging as logs
import os
import re
import shlex
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.errors import PlumblineError, in_one_line
from plumbline.system import topology_file, trust

_CLONE = Path(__file__).resolve().parents[2]

#: What Plumbline brings: ``checks``, ``config`` and ``src`` lie below it, in a clone, or where pip has put them (setup.py).
ROOT = _CLONE if (_CLONE / 'checks').is_dir() else Path(__file__).resolve().with_name('share')

#: Where a site's own ``config`` and ``reports`` are: ``PLUMBLINE_HOME``, else the clone, else ``plumbline`` in the home directory.
HOME = Path(os.environ.get('PLUMBLINE_HOME') or (ROOT if ROOT == _CLONE else Path.home() / 'plumbline')).absolute()

#: Folders with all that a run executes.
CODE = (ROOT / 'src', ROOT / 'checks', ROOT / 'config', HOME / 'config', Path(sys.prefix))

#: Where results land; ``PLUMBLINE_REPORTS`` says another folder, for a clone that is shared.
REPORTS = Path(os.environ.get('PLUMBLINE_REPORTS') or HOME / 'reports').absolute()

#: Topologies that jobs have found (``system/topology_file.py``); ``PLUMBLINE_TOPOLOGIES`` says another folder, likewise.
TOPOLOGIES = Path(os.environ.get('PLUMBLINE_TOPOLOGIES') or HOME / 'config/topologies').absolute()

#: ``SYSTEM:PARTITION``: ReFrame itself runs on a node of this partition (``plumbline sweep``), which is then a local one.
ON_NODE = os.environ.get('PLUMBLINE_ON_NODE')

#: Build the programs of the tests that are chosen, and skip the tests.
BUILD_ONLY = os.environ.get('PLUMBLINE_BUILD_ONLY')

#: Folder of the build cache, which nodes share (``rfm/build_cache.py``).
BUILDS = os.environ.get('PLUMBLINE_BUILDS')

#: What is ours of the caches: ``measured``, ``topology`` (all that it says), or for example ``L2=524288,L3=4718592`` (bytes).
CAPACITY = os.environ.get('PLUMBLINE_CAPACITY') or 'measured'

#: Variables of ours and of ReFrame's that a script may hold for later: paths and names.  A URL of ReFrame's may hold a token.
HANDED_ON = ('PLUMBLINE_HOME', 'PLUMBLINE_REPORTS', 'PLUMBLINE_REFERENCES', 'PLUMBLINE_TOPOLOGIES', 'PLUMBLINE_CAPACITY', 'PLUMBLINE_BUILDS',
             'PLUMBLINE_LOG_LEVEL', 'RFM_SYSTEM', 'RFM_CONFIG_FILES', 'RFM_CONFIG_PATH', 'RFM_PREFIX', 'RFM_STAGE_DIR', 'RFM_OUTPUT_DIR',
             'RFM_PERFLOG_DIR')

#: All variables that a script may hold for later: with what finds commands, schedulers and modules.
KEPT = ('PATH', 'SLURM_CONF', 'PBS_CONF_FILE', 'FLUX_URI', 'MODULEPATH', 'MODULESHOME', 'LMOD_CMD', 'LMOD_DIR', 'LMOD_PKG', 'LMOD_ROOT',
        'I_MPI_ROOT', 'SPACK_ROOT', *HANDED_ON)

#: What the scheduler calls this node; its host name may be another one.
NODE = os.environ.get('SLURMD_NODENAME') or socket.gethostname()

#: A failure is only final after it was measured again.  (Once: in a second retry ReFrame 4.10.4 no longer finds the fixtures that passed, and skips
#: the test.)  Warnings stop the run: of a check file that cannot be loaded ReFrame only warns, and passes with what is left.  (It warns of ``-S
#: samples=10`` as well, which the fixtures do not have: write ``-S triad_memory.samples=10``.)
MEASURE = ['--max-retries=1', '--warn-as-error']

#: One test after the other.  Slurm gives each job nodes of its own, and lets those wait that share something else
#: (``Job.shares``), so ReFrame may have many in its queue; what shares the machine that ReFrame runs on must not overlap.
ONE_BY_ONE = ['--exec-policy=serial']
_KEEPS_APART = ('slurm', 'squeue')


@dataclass(frozen=True)
class Mode:
    '''An occasion of a site: one flag, ``reframe --mode daily``.

    :attr about: what it is for.
    :attr minutes: about how long it takes on four cores that nobody else uses, builds and a repeated failure included.
    :attr options: ReFrame's options that choose the checks.
    :attr every_environment: whether to run in all environments, or in those that :func:`representative` names.
    '''
    about: str
    minutes: int
    options: tuple[str, ...]
    every_environment: bool = False


MODES = {
    'node': Mode('vet one node before it returns to service', 3,
                 ('-t ^node$', '-S likwid_bench.levels=L1')),
    'screen': Mode('vet one node thoroughly, when in doubt', 15, ('-t ^(node|health|screen)$', '-S triad_curve.points=15')),
    # The lengths between the levels are for the picture alone, those in memory half a minute of it: triad_memory judges memory.
    'daily': Mode('what got slower since last night', 8, ('-t ^health$', '-S triad_curve.points=15', '-S triad_curve.into_memory=no')),
    'upgrade': Mode('before and after a new kernel, BIOS, MPI or compiler', 25, ('-t ^(health|upgrade)$',), True),
    'acceptance': Mode('hardware that nobody has measured yet', 75,
                       ('-t ^acceptance$', '-S likwid_bench.effort=full'), True),
}

#: How long a job may wait for its start, in ReFrame's form (``max_pending_time``): a nightly run is over before the next one.
#: ``-S max_pending_time=3d`` says otherwise.
MAX_PENDING_TIME = '12h'

#: Feature of a partition without a scheduler that is measured although there are others; else it is taken for a login node.
TO_BE_MEASURED = 'measured'

#: For these reasons Slurm lets a job wait until somebody fixes something: it is cancelled, and the reason is told.
_WAITS_IN_VAIN = [
    'AccountNotAllowed', 'BadConstraints', 'DependencyNeverSatisfied', 'InvalidAccount', 'InvalidQOS', "Job's account not known",
    'JobHeldAdmin', 'NodeDown', 'PartitionDown', 'PartitionInactive',
    'PartitionNodeLimit', 'PartitionTimeLimit', 'QOSNotAllowed', 'ReqNodeNotAvail', 'ReservationDeleted']

GENERAL = {
    'check_search_path': [str(ROOT / 'checks')],
    'check_search_recursive': True,
    # A program's exit code counts.  Without this ReFrame ignores it.
    'trap_job_errors': True,
    'report_file': str(REPORTS / 'reframe' / 'run-report-{sessionid}.json'),
}

#: Variables of ReFrame's own that are times.
_DURATIONS = ('time_limit', 'build_time_limit', 'max_pending_time')

#: How often ReFrame looks for the ends of jobs, times a second, from the first to the last.  Local ones: always ten, by default it
#: looks less and less often and a test of 20 s is noticed seconds after its end.  A batch system is asked by others as well.
_LOOK_LOCAL = {'poll_rate_max': 10, 'poll_rate_min': 10}
_LOOK_BATCH = {'poll_rate_max': 1, 'poll_rate_min': 0.2}

#: The schedulers that tell ReFrame how each job ended.  From another it may learn no exit code, and where that is to count every test of another
#: suite fails; ours count it themselves.
TELL_EXIT_CODE = ('local', 'ssh', 'slurm', 'pbspro')
_NO_EXIT_CODE = {'trap_job_errors': False}

LOGGING: dict[str, Any] = {
    # For each message below this level that a test might log ReFrame first evaluates all of the test's attributes, 15 ms long, even if no
    # handler takes it: three at every look for the end of a job, ten looks a second, were a sixth to a third of a CPU beside everything
    # that was measured, and on two CPUs stopped one thread of the team for a tenth of its time.
    'level': os.environ.get('PLUMBLINE_LOG_LEVEL', 'verbose'),
    # One metric per line: with all metrics in one line ReFrame writes the header once per process,
    # and values of tests with other metrics end up below the wrong columns.
    'perflog_multiline': True,
    'handlers': [
        {'type': 'stream', 'name': 'stdout', 'level': 'info', 'format': '%(message)s'},
        {'type': 'file', 'name': str(REPORTS / 'reframe' / 'reframe.log'), 'level': 'debug2',
         'format': '[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s', 'append': False},
    ],
    'handlers_perflog': [
        {'type': 'filelog', 'prefix': '%(check_system)s/%(check_partition)s', 'level': 'info',
         'basedir': str(REPORTS / 'perflogs'), 'append': True,
         'format': '|'.join(f'%({name})s' for name in (
             'check_job_completion_time', 'version', 'check_display_name', 'check_system', 'check_partition', 'check_environ', 'check_jobid',
             'check_job_nodelist', 'check_num_tasks', 'check_result', 'check_verdict', 'check_perf_var', 'check_perf_value', 'check_perf_unit',
             'check_perf_ref', 'check_perf_lower_thres', 'check_perf_upper_thres', 'check_perf_result'))},
    ],
}


def _by_itself(partition):
    '''A partition whose local jobs do not overlap, and whose Slurm jobs do not wait in vain.'''
    if partition.get('scheduler') == 'local':
        return {'max_jobs': 1, **partition}
    return {**partition, 'sched_options': {'slurm_job_cancel_reasons': _WAITS_IN_VAIN, **partition.get('sched_options', {})}}


def _with_datasheet(partition):
    '''A partition whose machine file is found wherever a job runs.'''
    extras = partition.get('extras', {})
    return {**partition, 'extras': {**extras, 'machine': str(HOME / extras['machine'])}} if isinstance(extras.get('machine'), str) else partition


def _with_topology(system, partition):
    '''A partition with what a job has found on a node of it, unless the site file says.'''
    if 'processor' in partition or partition.get('scheduler') == 'local':
        return partition
    try:
        node = topology_file.read(topology_file.path(TOPOLOGIES, system['name'], partition['name']))
    except PlumblineError as error:
        sys.exit(f'plumbline: {error}')
    if node is None:
        return partition
    known = {key: node[key] for key in ('allowed_cpus', 'cpu_quota', 'memory')}
    return {**partition, 'processor': node['processor'], 'extras': {'node': known, **partition.get('extras', {})}}


def _on_this_node(place, systems):
    '''Of all partitions the one of :data:`ON_NODE` (``place``), without a scheduler, and with folders of this node's own.'''
    name, _, part = place.partition(':')
    found = [(system, partition) for system in systems for partition in system['partitions'] if (system['name'], partition['name']) == (name, part)]
    if not found:
        sys.exit(f'plumbline: PLUMBLINE_ON_NODE={place}: this configuration has no such partition')
    from reframe.utility.cpuinfo import cpuinfo  # slow, and needed nowhere else
    system, partition = found[0]
    # Kept in the configuration, not by ReFrame, which would write one file in the home directory for all nodes.
    partition = {'processor': cpuinfo(), **partition, 'scheduler': 'local', 'launcher': 'local', 'max_jobs': 1, 'access': [], 'resources': []}
    folders = {key: f'{system[key]}/{NODE}' for key in ('prefix', 'stagedir', 'outputdir') if key in system}
    return [{**system, **folders, 'partitions': [partition]}]


def on_command_line(*names):
    '''The values of an option of ReFrame's in the command line: a list.'''
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(*names, action='append', default=[], dest='given')
    return parser.parse_known_args()[0].given


def _refuse_durations():
    '''Of ``-S time_limit=abc`` ReFrame prints a stack trace.'''
    from reframe.utility.typecheck import Duration
    for given in on_command_line('-S', '--setvar'):
        name, _, text = given.partition('=')
        try:
            if name.rpartition('.')[2] in _DURATIONS:
                Duration.__rfm_cast_str__(text)
        except ValueError:
            sys.exit(f'plumbline: -S {given}: no time: write seconds, or such as 1h30m')


def representative(system, environments):
    '''Names of environments that have, between them, every feature there is on a system: in each partition, an environment counts
    that has a feature which none listed before it has.  With gcc before clang, that is gcc, and gcc with each MPI.  So does one that
    only another file of a chain may know.
    '''
    named: dict[str, None] = {}
    for partition in system['partitions']:
        # As ReFrame looks: the last one of the narrowest scope.
        scopes = '*', system['name'], f"{system['name']}:{partition['name']}"
        features = {environment['name']: set(environment.get('features', ())) for scope in scopes for environment in environments
                    if scope in environment.get('target_systems', ['*'])}
        seen: set[str] = set()
        for name in partition['environs']:
            if name not in features or features[name] - seen:
                named[name] = None
            seen |= features.get(name, set())
    return list(named)


def _keeps_apart(system):
    '''Whether no two jobs of its tests share a node.'''
    measured = [part for part in system['partitions'] if part['scheduler'] != 'local' or TO_BE_MEASURED in part.get('features', ())]
    return bool(measured) and all(part['scheduler'] in _KEEPS_APART and part.get('extras', {}).get('exclusive', True) for part in measured)


def _modes(system, environments):
    ''':data:`MODES` of a system, as ReFrame takes them.'''
    # ReFrame adds environments that the command line names to those of a mode, or to all where the mode names none: who names
    # some wants these, so the mode names them too.
    named = on_command_line('-p', '--prgenv')
    one_of_each = [f"^({'|'.join(map(re.escape, representative(system, environments)))})$"]
    further = [*MEASURE, *([] if _keeps_apart(system) else ONE_BY_ONE)]

    def of(mode):
        patterns = named or ([] if mode.every_environment else one_of_each)
        return [*mode.options, *(f'-p {shlex.quote(pattern)}' for pattern in patterns), *further]
    return [{'name': name, 'options': of(mode), 'target_systems': [system['name']]} for name, mode in MODES.items()]


def site(systems, environments, logging=(), modes=(), general=(), **further):
    '''The ``site_configuration`` of a site file.

    :arg systems: as in ReFrame's configuration.  Stage, output and logs go below ``reports/reframe`` unless a system says otherwise.  Partitions
        without a scheduler run one job at a time: ReFrame would run eight at once, and they would measure each other.  Slurm's jobs are cancelled
        where they would wait in vain.  The topology of the others comes from :data:`TOPOLOGIES`, unless it is given.
    :arg environments: as in ReFrame's configuration.  They are those of these systems alone, as are modes, unless ``target_systems`` says otherwise:
        of two files in a chain each may have a ``gnu``.
    :arg logging, modes, general: lists as in ReFrame's configuration.  Of the first logging for all systems the handlers are added to ours and all
        else goes before ours, as do the values of ``general``; a mode of one of our names takes its place.
    :arg further: other sections (``storage``, ``autodetect_methods``, ...), as they are.
    '''
    _refuse_durations()
    with in_one_line():
        trust.refuse_environment()
    import plumbline.private  # noqa: F401 - what it fixes in ReFrame is for other suites' tests as well
    if os.geteuid() == 0:       # what root can read of a machine is in results
        os.umask(os.umask(0o027) | 0o027)
    logs.Handler.handleError = _tell_of_log     # type: ignore[method-assign]
    _close_quietly()
    REPORTS.joinpath('reframe').mkdir(parents=True, exist_ok=True)
    if ON_NODE:
        systems = _on_this_node(ON_NODE, systems)
    systems = [{'prefix': str(REPORTS / 'reframe'), 'max_local_jobs': 1, **system,
                'partitions': [_with_topology(system, _by_itself(_with_datasheet(part))) for part in system['partitions']]}
               for system in systems]
    batch = [system['name'] for system in systems if any(part.get('scheduler') != 'local' for part in system['partitions'])]
    of_all = {key: value for entry in general if 'target_systems' not in entry for key, value in entry.items()}
    own = [entry for entry in general if 'target_systems' in entry]
    blind = {system['name'] for system in systems if any(part.get('scheduler') not in TELL_EXIT_CODE for part in system['partitions'])}
    general = [{**GENERAL, **_LOOK_LOCAL, **of_all}, *({**GENERAL, **_LOOK_BATCH, **(_NO_EXIT_CODE if name in blind else {}), **of_all,
                                                        'target_systems': [name]} for name in batch), *own]
    scope = {'target_systems': [system['name'] for system in systems]} if systems else {}
    environments, modes = ([{**scope, **entry} for entry in entries] for entries in (environments, modes))
    named = {mode['name'] for mode in modes}
    ours = [mode for system in systems for mode in _modes(system, environments) if mode['name'] not in named]
    return {'systems': systems, 'environments': environments, 'general': general, 'logging': _logging(logging),
            'modes': [*ours, *modes], **further}


@functools.cache
def _told(log, why):
    print(f'plumbline: {log}: {why}: lines of it are missing', file=sys.stderr)


def _tell_of_log(handler, _):
    '''A line for a log that takes none (the disk is full), where Python has a stack trace for each line.'''
    if not isinstance(error := sys.exc_info()[1], BrokenPipeError):
        _told(getattr(handler, 'baseFilename', handler), getattr(error, 'strerror', error))


def _close_quietly():
    '''The same when ReFrame ends.'''
    from reframe.core.logging import shutdown  # slow

    def close():
        with contextlib.suppress(OSError):
            shutdown()
    atexit.unregister(shutdown)
    atexit.register(close)


def _logging(given):
    '''Ours with what a site adds to it.'''
    ours, others = dict(LOGGING), []
    for entry in given:
        if 'target_systems' in entry:
            others.append({**LOGGING, **entry})
            continue
        added = {key: [*LOGGING[key], *entry.get(key, ())] for key in ('handlers', 'handlers_perflog')}
        ours = {**ours, **entry, **added}
    return [ours, *others]

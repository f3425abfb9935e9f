'''ReFrame settings that all of our sites share: a site file adds its systems and environments.

::

    from plumbline import settings
    site_configuration = settings.site(systems=[...], environments=[...])
'''

import os
import re
import socket
import sys
from pathlib import Path

#: The checkout: checks, config and reports lie below it.
ROOT = Path(__file__).resolve().parents[2]

#: Where results land; ``PLUMBLINE_REPORTS`` says another folder, for a checkout that is shared.
REPORTS = Path(os.environ.get('PLUMBLINE_REPORTS') or ROOT / 'reports').absolute()

#: An occasion is one flag: ``reframe --mode health``.  Measurements never overlap, and a failure is
#: only final after it was measured again.  (Once: in a second retry ReFrame 4.10.4 no longer finds
#: the fixtures that passed, and skips the test.)  Warnings stop the run: of a check file that
#: cannot be loaded ReFrame only warns, and passes with what is left.  (It warns of ``-S samples=10``
#: as well, which the fixtures do not have: write ``-S triad_memory.samples=10``.)
_MEASURE = ['--exec-policy=serial', '--max-retries=1', '--warn-as-error']

MODES = [
    {'name': 'health', 'options': ['-t health', *_MEASURE]},
    {'name': 'acceptance', 'options': ['-t acceptance', '-S likwid_bench.effort=full', *_MEASURE]},
]

GENERAL = {
    'check_search_path': [str(ROOT / 'checks')],
    'check_search_recursive': True,
    # A program's exit code counts.  Without this ReFrame ignores it.
    'trap_job_errors': True,
    'report_file': str(REPORTS / 'reframe' / 'run-report-{sessionid}.json'),
    # Ten times a second, always: by default ReFrame looks less and less often and a local test of
    # 20 s is noticed seconds after its end.
    'poll_rate_min': 10,
    'poll_rate_max': 10,
}

LOGGING = {
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
         'format': '%(check_job_completion_time)s|reframe %(version)s|%(check_display_name)s|'
                   '%(check_job_nodelist)s|%(check_environ)s|%(check_perf_var)s=%(check_perf_value)s '
                   '%(check_perf_unit)s (ref=%(check_perf_ref)s, l=%(check_perf_lower_thres)s, '
                   'u=%(check_perf_upper_thres)s)|%(check_result)s'},
    ],
}


def _one_at_a_time(partition):
    return {'max_jobs': 1, **partition} if partition.get('scheduler') == 'local' else partition


def _refuse_other_hosts(systems):
    '''ReFrame falls back on a generic system of its own, on which nothing runs, and passes.'''
    named = 'RFM_SYSTEM' in os.environ or any(
        re.match('--(system|detect-host-topology)(=|$)', word) for word in sys.argv)
    hosts = {socket.gethostname(), socket.getfqdn()}
    patterns = [pattern for system in systems for pattern in system['hostnames']]
    if not named and not any(re.match(pattern, host) for pattern in patterns for host in hosts):
        sys.exit(f"plumbline: no system of this configuration matches the host {min(hosts, key=len)} "
                 f"(it has {', '.join(system['name'] for system in systems)}): give --system, or mend "
                 "the system's hostnames")


def site(systems, environments):
    '''The ``site_configuration`` of a site file.

    :arg systems: as in ReFrame's configuration.  Stage, output and logs go below
        ``reports/reframe`` unless a system says otherwise.  Partitions without a scheduler run one
        job at a time: ReFrame would run eight at once, and they would measure each other.
    :arg environments: as in ReFrame's configuration.
    '''
    _refuse_other_hosts(systems)
    REPORTS.joinpath('reframe').mkdir(parents=True, exist_ok=True)
    systems = [{'prefix': str(REPORTS / 'reframe'), 'max_local_jobs': 1, **system,
                'partitions': [_one_at_a_time(part) for part in system['partitions']]}
               for system in systems]
    return {'systems': systems, 'environments': environments, 'general': [GENERAL],
            'logging': [LOGGING], 'modes': MODES}

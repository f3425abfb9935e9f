'''The simulated program: its build with SimGrid's compiler, and one run of it.'''

import concurrent.futures
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.settings import REPORTS, ROOT
from plumbline.simulation import platform_file

#: Where the command line builds the program, and what it gives to SimGrid lies until that has ended.
FOLDER = REPORTS / 'simulation'

#: What can be simulated.
APPLICATIONS = ('cg', 'cg-doubling', 'sp')

_QUIET = ('--log=root.thresh:error',)


@dataclass(frozen=True)
class Outcome:
    '''What one simulated run was, and what came of it; times are simulated.

    :attr latency: us of a message, with the delay before it.
    :attr seconds: of the slowest process.
    :attr communication: seconds in communication routines, mean over the processes.
    :attr printed: all that the program printed (``app_print`` in ``src/mpi/apps``).
    '''
    application: str
    size: str
    processes: int
    latency: float
    seconds: float
    communication: float
    printed: dict

    @property
    def percent(self):
        '''Per cent of the time in communication routines.'''
        return 100 * self.communication / self.seconds


def missing():
    '''Why nothing can be simulated here, one line; :obj:`None` where SimGrid is there.'''
    lacking = [tool for tool in ('smpirun', 'smpicc') if not shutil.which(tool)]
    return f"{' and '.join(lacking)} of SimGrid: not found; install SimGrid with its development files" if lacking else None


def _must_run(command, what):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        named = next((line for line in said if 'error' in line.lower() or 'plumbline:' in line), said[-1] if said else '')
        raise PlumblineError(f'{what} failed: {" ".join(named.split())}')


def build(folder=FOLDER / 'build'):
    '''Build the program with smpicc; a second time only what has changed.

    :returns: its path.
    :raises PlumblineError: where SimGrid is not there, or the build fails.
    '''
    if reason := missing():
        raise PlumblineError(reason)
    source = ROOT / 'src' / 'mpi' / 'simulation'
    with atomic.alone(f'{folder}.lock'):
        _must_run(['cmake', '-S', str(source), '-B', str(folder), f'-DCMAKE_C_COMPILER={shutil.which("smpicc")}'], f'configuring {source}')
        _must_run(['cmake', '--build', str(folder), '--parallel', str(workers())], f'building {source}')
    return Path(folder) / 'bin' / 'simulated'


def workers():
    '''How many simulations may run side by side: they are serial programs.'''
    return len(os.sched_getaffinity(0))


def _complaint(done):
    '''The one line that says what went wrong; SimGrid adds a page.'''
    lines = (done.stderr + '\n' + done.stdout).splitlines()
    ours = [line.removeprefix('plumbline: ') for line in lines if line.startswith('plumbline: ')]
    theirs = [line for line in lines if 'CRITICAL' in line or 'rror' in line]
    return (ours or theirs or [f'exit code {done.returncode}'])[0].strip()


def run(program, network, application, processes, folder, size='A', iterations=None, time_limit=1800):
    '''Simulate one run.

    :arg program: what :func:`build` returned.
    :arg folder: where platform and host file are written, one folder for each run.
    :arg iterations: of the application; by default one: all are alike, and per cent of time does not depend on their number.
    :arg time_limit: s, real ones.
    :returns: :class:`Outcome`.
    :raises PlumblineError: where the network has too few nodes, the application refuses, its result is wrong, or the run does not end in time.
    '''
    what = f'{application} of size {size} on {processes} simulated processes'
    found = printed(what, network, processes, network.rate_of(application), Path(folder), [
        program, application, size, str(iterations or 1),
        *(f'{us * 1e-6:.17g}' for us in (network.delay, network.sum_delay, 1 / network.copy_rate))], time_limit)
    if not found['valid']:
        raise PlumblineError(f"{what}: its result is wrong: error {found['error']}, tolerance {found['tolerance']}; the simulation proves nothing")
    return Outcome(application, size, processes, network.latency + network.delay, found['seconds'], found['communication'], found)


def printed(what, network, processes, rate, folder, words, time_limit=1800):
    '''The line of JSON that a simulated program prints.

    :arg what: it is, for messages.
    :arg rate: Mflop/s of a process.
    :arg folder: where platform and host file are written, a path.
    :arg words: the program and its arguments.
    :raises PlumblineError: as of :func:`run`; a result that is wrong is the caller's to find.
    '''
    xml = platform_file.platform_xml(network, -(-processes // network.processes_per_node), rate)
    with saying_why(folder, '; choose a folder that you may write'):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'platform.xml').write_text(xml, encoding='utf-8')
        (folder / 'hosts.txt').write_text(platform_file.host_file(network, processes), encoding='utf-8')
    command = ['smpirun', '-no-privatize', '-np', str(processes), '-platform', str(folder / 'platform.xml'),
               '-hostfile', str(folder / 'hosts.txt'), *platform_file.settings(network), *_QUIET, *map(str, words)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=time_limit)
    except OSError as error:
        raise PlumblineError(f'smpirun: {error.strerror}; install SimGrid') from None
    except subprocess.TimeoutExpired:
        raise PlumblineError(f'{what}: not at its end after {time_limit} s; give fewer processes or a smaller size') from None
    found = next((json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"application"')), None)
    if found is None or (done.returncode and found.get('valid', True) and not found.get('wrong')):
        raise PlumblineError(f'{what}: {_complaint(done)}')
    return found


def run_all(program, cases, folder, size='A', iterations=None):
    '''Simulate several runs side by side.

    :arg cases: list of (network, application, processes).
    :returns: list of :class:`Outcome`, in the order of the cases.
    :raises PlumblineError: as :func:`run`, of the first case that cannot be.
    '''
    def simulated(number):
        network, application, processes = cases[number]
        return run(program, network, application, processes, Path(folder) / f'run-{number}', size, iterations)

    with concurrent.futures.ThreadPoolExecutor(workers()) as pool:
        return list(pool.map(simulated, range(len(cases))))     # which begins no more after one that cannot be

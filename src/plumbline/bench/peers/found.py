'''Where the peers are: programs in ``PLUMBLINE_PEERS`` or PATH, libraries in a Python of their own.  Nothing is shipped.'''

import os
import sys
from pathlib import Path

from plumbline.bench.common import HUGE_PAGES, output_of
from plumbline.errors import PlumblineError
from plumbline.likwid import pin

#: Programs that exist as source only -> how to get them.  ``NAME-*`` are other builds of the same.
SOURCES = {
    'bwbench': 'build TheBandwidthBenchmark (github.com/RRZE-HPC/TheBandwidthBenchmark) with OpenMP',
    'hptt_driver': 'build a program around HPTT (github.com/springer13/hptt): arguments size, threads, seconds; prints seconds '
                   'per transposition, a sample a line',
    'mdbench': 'build MD-Bench (github.com/RRZE-HPC/MD-Bench) with OpenMP, without MPI: its verletlist, its clusterpair as mdbench-cp',
    'multichase': 'build multichase (github.com/google/multichase)',
    'spatter': 'build Spatter (github.com/hpcgarage/spatter) with OpenMP',
}

#: Libraries that have packages -> what to install.
PACKAGES = {'lbmpy': ('lbmpy==2.0', 'py-cpuinfo', 'numpy'), 'mkl': ('mkl', 'numpy'), 'pystencils': ('pystencils==2.0', 'py-cpuinfo', 'numpy')}


def programs(name):
    '''Paths of the builds of a peer, sorted: all of the first folder that has any.

    :raises PlumblineError: with how to get it.
    '''
    for folder in filter(None, [os.environ.get('PLUMBLINE_PEERS'), *os.get_exec_path()]):
        found = [path for path in sorted({*Path(folder).glob(name), *Path(folder).glob(f'{name}-*')}) if path.is_file() and os.access(path, os.X_OK)]
        if found:
            return found
    raise PlumblineError(f'{name} is not in PLUMBLINE_PEERS nor in PATH: {SOURCES[name]}')


def python(machine, library):
    '''The Python that has a library: ``PLUMBLINE_PEERS/LIBRARY/bin/python``, else one that is made in the benchmark's own temporary folder, by pip.

    :raises PlumblineError: where that fails.
    '''
    kept = Path(os.environ.get('PLUMBLINE_PEERS', machine.place)) / library / 'bin/python'
    if kept.exists():
        return kept
    folder = Path(machine.place) / 'peers' / library
    path = folder / 'bin/python'
    made = folder / 'complete'
    if not made.exists():
        for command in ([sys.executable, '-m', 'venv', '--without-pip', folder],
                        [sys.executable, '-m', 'pip', '--python', path, 'install', '-q', '--disable-pip-version-check', '--only-binary', ':all:',
                         *PACKAGES[library]]):
            try:
                output_of(command)
            except PlumblineError as error:
                raise PlumblineError(f'{library} could not be installed: {error}; install {" ".join(PACKAGES[library])} in '
                                     f'a virtual environment PLUMBLINE_PEERS/{library}') from None
        made.touch()
    return path


def driver(machine, library, name, cpus, *arguments):
    '''What a driver (:mod:`plumbline.bench.peers.drivers`) prints, run by the Python that has its library.'''
    return run([python(machine, library), '-m', f'drivers.{name}', *arguments], cpus, cwd=Path(__file__).parent)


def run(command, cpus, cwd=None):
    '''Standard output of a peer whose threads run on these CPUs, one each, and whose large arrays are in huge pages, as ours.

    :raises PlumblineError: if it fails.
    '''
    return output_of(['taskset', '-c', ','.join(map(str, cpus)), *command], cwd=cwd, env={**os.environ, **pin.omp_environment(cpus), **HUGE_PAGES})


def seconds(text, what):
    '''The samples that a driver printed, a number a line; other lines are its remarks.'''
    found = [float(line) for line in text.splitlines() if line[:1].isdigit()]
    if not found or min(found) <= 0:
        raise PlumblineError(f'{what} printed no samples, seconds a line: {text.strip()[:80]!r}')
    return found

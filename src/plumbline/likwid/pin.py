'''Placing the threads of a program: by likwid-pin, or by OpenMP's own binding.

What was found out with LIKWID 5.2.2, libgomp 12 and LLVM's libomp 16:

- No skip mask is needed for either runtime, with one thread or with several: neither starts a helper thread.  (libomp's former monitor thread
  likwid-pin finds by its name.)
- With several CPUs the first thread is bound when the second is created; until then it may run on any CPU of the list.  With one CPU it is bound from
  the start.
- Inside a cpuset likwid-pin takes the numbers of ``-c`` for positions in that cpuset, modulo its size, and with ``-q`` says nothing: ``taskset -c 1
  likwid-pin -q -c 0`` pins to CPU 1.  ``LIKWID_IGNORE_CPUSET`` makes them CPU numbers again (:func:`pin_environment`).
- A smaller ``OMP_NUM_THREADS`` shortens the list; a larger one puts two threads on one CPU.
- The program's arguments are joined and split again at blanks.
- Without ``-q`` it writes between the lines of the program's standard output.
- Starting costs a second (the same calibration as likwid-bench's), OpenMP's own binding nothing.
'''

import shutil
import subprocess

from plumbline.errors import PlumblineError


def found():
    '''likwid-pin here: (its path or None, why what is there does not run or ''): a script, whose interpreter may be missing.'''
    path = shutil.which('likwid-pin')
    try:
        done = path and subprocess.run([path, '-v'], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, text=True, errors='replace')
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{path} does not run: {getattr(error, 'strerror', None) or error}"
    if done and done.returncode:
        return None, f"{path} does not run: {(done.stderr.strip() or f'exit code {done.returncode}').splitlines()[-1]}"
    return path, ''


def _checked(cpus):
    cpus = list(cpus)
    if not cpus or len(set(cpus)) != len(cpus):
        raise PlumblineError(f'cannot pin threads to CPUs {cpus}: give at least one, none twice')
    return cpus


def pin_command(cpus, program=()):
    '''The command line that starts a program with thread i on ``cpus[i]``.

    It needs :func:`pin_environment`, and stands between the launcher and the program: before the launcher it would pin the launcher.

    :arg program: the program and its arguments; empty to get likwid-pin and its options only.
    :raises PlumblineError: if there is no CPU, one is there twice, or an argument of the program holds a blank, at which likwid-pin would split it.
    '''
    program = [str(argument) for argument in program]
    for argument in program:
        if argument.split() != [argument]:
            raise PlumblineError(f'likwid-pin would split or drop the argument {argument!r}; write it without blanks, or bind with omp_environment()')
    return ['likwid-pin', '-q', '-c', ','.join(map(str, _checked(cpus))), *program]


def pin_environment(cpus):
    '''The environment that :func:`pin_command` needs.

    ``LIKWID_IGNORE_CPUSET`` keeps CPU numbers CPU numbers in a job that has some of them only.
    Do not set it for likwid-bench, whose placement relies on the cpuset.
    '''
    return {'OMP_NUM_THREADS': str(len(_checked(cpus))), 'LIKWID_IGNORE_CPUSET': '1'}


def omp_environment(cpus):
    '''The environment that makes OpenMP put thread i on ``cpus[i]`` without likwid-pin.

    Holds for libgomp, libomp and Intel's runtime; not together with :func:`pin_command`.

    :raises PlumblineError: if there is no CPU, or one is there twice.
    '''
    cpus = _checked(cpus)
    return {'OMP_NUM_THREADS': str(len(cpus)), 'OMP_PROC_BIND': 'close', 'OMP_PLACES': ','.join(f'{{{cpu}}}' for cpu in cpus)}

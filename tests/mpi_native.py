'''Building and starting the MPI programs, for the tests.'''

import functools
import re
import shutil
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import rfm
from native import SOURCE, Outcome, alone_in, configure_and_make, copied, environment, needs, output_of
from plumbline.mpi import environments
from plumbline.mpi.families import families

#: Environments of ReFrame's configuration, by family: the MPIs that this machine has.
MPIS = {entry['features'][1]: entry for entry in environments.found(as_root=True)}

#: Every family, so that one that is not there is skipped by name.
every_mpi = pytest.mark.parametrize('mpi', sorted(families()))


def needs_mpi(mpi):
    if mpi not in MPIS:
        pytest.skip(f'{families()[mpi].title} is not there')


def any_mpi():
    '''One that is there.'''
    if not MPIS:
        pytest.skip('no MPI is there')
    return next(iter(MPIS))


def run_check(place, mpi, file, name, *options, **environment):
    '''``reframe -r`` of a shipped check with one MPI, by one process; the cases of its run report.

    :arg file: below ``checks/mpi``.
    :arg name: as for ``-n``.
    '''
    done = place.reframe('-r', '-p', f'gnu-{mpi}', '--exec-policy=serial', '-n', name, '-S', 'processes=1', '-S', 'samples=10', *options,
                         checks=rfm.REPOSITORY / 'checks/mpi' / file, **environment)
    assert done.report, done.out
    return list(done.cases().values())


def variables(mpi, **more):
    '''The environment of a process of this MPI.'''
    return {**environments.expanded(MPIS[mpi]['env_vars'], environment()), **{name: str(value) for name, value in more.items()}}


_ONE_BUILDS = threading.Lock()


@functools.cache
def _idle():
    '''A folder that lasts as long as these tests, and ``interpose/idle.c`` built in it.'''
    folder = tempfile.TemporaryDirectory(prefix='plumbline-')
    output_of('cc', '-O2', '-Wall', '-Werror', '-shared', '-fPIC', SOURCE.parent / 'tests/interpose/idle.c', '-ldl', '-o', f'{folder.name}/idle.so')
    return folder, f'{folder.name}/idle.so'


def patient(mpi, library=None):
    '''Value of LD_PRELOAD by which whoever waits sleeps: without that four ranks of MPICH take 90 s for what takes 1 s.  Intel MPI has a variable.

    :arg library: what else is loaded.
    '''
    with _ONE_BUILDS:
        idle = mpi != 'impi' and _idle()[1]
    return ':'.join(str(path) for path in (idle, library) if path)


def mpirun(mpi, ranks, command, timeout=300, options=(), cpus=(), **more):
    '''Start ``ranks`` processes; :class:`native.Outcome`.  Without ``cpus`` they are not bound, and may be more than CPUs: whoever waits
    leaves its CPU to others.'''
    with tempfile.TemporaryDirectory() as folder:
        return _mpirun(mpi, ranks, command, timeout, options, cpus, folder, more)


def _mpirun(mpi, ranks, command, timeout, options, cpus, folder, more):
    family = families()[mpi]
    words = [*MPIS[mpi]['extras']['launcher'], '-np', str(ranks), *options]
    if cpus:
        bind = family.bind.filled(cpus=','.join(map(str, cpus)))
        words += bind.options
        more |= bind.env
        subprocess.run(['sh', '-c', '\n'.join(family.bind_commands(cpus))], check=True, cwd=folder)
    elif mpi == 'openmpi':
        # To look for networks takes it longer than all else of its start.
        words += [*family.shared.options, *(() if options else family.transports['shm'].options), '--mca', 'odls_base_sigkill_timeout', '0']
    elif mpi == 'impi':
        more |= {'I_MPI_PIN': '0', 'I_MPI_THREAD_YIELD': '3'}
    if not cpus:        # the sanitizers' runtime asks to come first; it still comes before what it replaces
        more |= {'LD_PRELOAD': patient(mpi, more.get('LD_PRELOAD')), 'ASAN_OPTIONS': f"{more.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"}
    done = subprocess.run([*words, *map(str, command)], capture_output=True, text=True, timeout=timeout, cwd=folder, env=variables(mpi, **more))
    return Outcome(done.returncode, done.stdout, done.stderr)


class MpiBuild:
    '''A build folder of ``src/mpi``, or of a copy of ``src``, with one MPI.'''

    def __init__(self, folder, mpi, *options, targets=(), source=SOURCE):
        needs('cmake', 'gcc')
        needs_mpi(mpi)
        self.folder, self.mpi = folder, mpi
        configure_and_make(folder, f"-DCMAKE_C_COMPILER={MPIS[mpi]['cc']}", *options, '-S', source / 'mpi', targets=targets, env=variables(mpi))

    def path(self, program):
        return self.folder / 'bin' / program

    def library(self, name):
        return self.folder / 'lib' / f'libplumbline_{name}.so'

    def run(self, ranks, program, *arguments, **options):
        '''Start a program by the MPI's launcher.'''
        return mpirun(self.mpi, ranks, [self.path(program), *arguments], **options)

    def measured(self, ranks, program, *arguments, **options):
        '''A run that must end well; its outcome.'''
        found = self.run(ranks, program, *arguments, **options)
        assert found.code == 0, found.text + found.errors
        assert found.measurements
        return found


def ours(done):
    '''What our programs and libraries complain of.'''
    return [line for line in done.errors.splitlines() if line.startswith('plumbline: ')]


def refused(build, program, *cases):
    '''Each case, ``(ranks, options, part...)``, ends with one line that has these parts.  Several at once: who complains waits for other ranks.'''
    with ThreadPoolExecutor(3) as pool:
        for case, done in zip(cases, pool.map(lambda case: build.run(case[0], program, *case[1].split(), timeout=60), cases)):
            said = {*ours(done)}
            assert done.code and not done.measurements and len(said) == 1, (case, done.errors)
            assert all(part in min(said) for part in case[2:]), (case, said)


#: Program, or one more of a name that begins so -> what is broken in it: file, function, what stands there, what comes instead, and the
#: variants that are then wrong (None: all).
BROKEN = {
    'datatype': [
        ('loops.c', 'pack_plain', 'j * n + i] = from[i * n + j]', 'j * n + i] = from[j * n + i]', {'packed', 'pack_hand'}),
        ('loops.c', 'pack_blocked', 'i < pl_least', 'i + 1 < pl_least', {'blocked', 'pack_blocked'}),
        ('loops.c', 'unpack_plain', 'j < n;', 'j + 1 < n;', {'unpack_hand'}),
        ('loops.c', 'unpack_blocked', 'to[i * n + j] =', 'to[i * n + j + (i + 1 == n && j + 1 == n)] =', {'unpack_blocked'}),
        ('packing.c', 'send_matrix', 'e->matrix)', 'e->packed)', {'contiguous'}),
        ('packing.c', 'datatype_copy', 'bytes_of(e))', 'bytes_of(e) - 8)', {'copy'})],
    'cg': [('cg.c', 'solve', 'step < CG_STEPS', 'step < CG_STEPS - 1', None)],
    'pairs': [('rounds.c', 'one_way', 'MPI_Send(e->out', 'MPI_Send(e->in', None)],
    'pairs-once': [('rounds.c', 'one_way', 'message < messages', 'message < 1', None)],
    'patterns': [('traffic.c', 'exchange', 'MPI_Isend(e->out', 'MPI_Isend(e->in', None)],
    'patterns-once': [('traffic.c', 'traffic_round', 'repeat < repeats', 'repeat < 1', None)],
    'rma': [
        ('transfers.c', 'rma_get', 'i < first + count', 'i + 1 < first + count', {'get', 'get_busy', 'get_rewritten'}),     # the last one is left out
        ('transfers.c', 'start_gets', 'remote_of(e, first + i)', 'remote_of(e, first)', {'rget', 'rolling'}),       # from another's place
        ('transfers.c', 'rma_put', 'remote_of(e, i)', 'remote_of(e, i) + 1', {'put', 'put_busy'}),                  # one byte beyond
        ('transfers.c', 'rma_rput', 'local_of(e, first + i)', 'local_of(e, i)', {'rput'}),                          # the first batch again
        ('transfers.c', 'rma_send', '(first + i) * e->bytes', '(first + count - 1 - i) * e->bytes', {'send'})],     # in reverse order
    'rma-stale': [      # gets come before the target has rewritten what is fetched
        ('transfers.c', 'rma_get_rewritten', 'rewrite(e);', '', {'get_rewritten'}),
        ('transfers.c', 'rma_get_rewritten', 'FETCHED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);',
         'FETCHED, MPI_COMM_WORLD, MPI_STATUS_IGNORE); rewrite(e);', {'get_rewritten'})],
    'rma-unflushed': [('transfers.c', 'rma_put', 'MPI_Win_flush(e->partner, e->window);', '', {'put', 'put_busy'}),
                      ('transfers.c', 'rma_rput', 'MPI_Win_flush(e->partner, e->window);', '', {'rput'})],
}


def wrong_variants(program):
    return set.union(*(variants for *_, variants in BROKEN[program]))


def broken(folder):
    '''A build, with any MPI, of a copy in which each function of BROKEN is broken.  Whoever comes second finds it.'''
    source, mpi = folder / 'src', any_mpi()
    with alone_in(source):
        if not source.exists():
            copied(source, 'mpi/runtime', 'mpi/apps', 'mpi/pingpong')
            shutil.copy(SOURCE / 'mpi/CMakeLists.txt', source / 'mpi')
            for program, changes in BROKEN.items():
                kernel, place = program.split('-')[0], source / 'mpi' / program
                shutil.copytree(SOURCE / 'mpi' / kernel, place)
                build = place / 'CMakeLists.txt'
                build.write_text(re.sub(rf'(?<=\(){kernel}(?=[ -])', program, build.read_text()))
                for file, function, right, wrong, _ in changes:
                    text = (place / file).read_text()
                    at = text.index(right, text.index(f' {function}('))
                    (place / file).write_text(text[:at] + wrong + text[at + len(right):])
    return MpiBuild(folder / 'build', mpi, source=source, targets=list(BROKEN))

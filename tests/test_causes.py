'''What is wrong is named: real sessions of ReFrame in which a fault is provoked, each against one without it.'''

import contextlib
import os
import shutil
import subprocess
from types import SimpleNamespace

import polars as pl
import pytest

import rfm
from mpi_native import any_mpi
from native import QUICK, two_cpus
from plumbline.analysis import diagnosis
from plumbline.bench.verdicts import faults, session, table
from plumbline.bench.verdicts.faults import FAULTS, Launch, NotHere
from plumbline.model import registry
from plumbline.mpi.families import Settings
from test_bench_verdicts import groups, output_of, provoked

pytestmark = [two_cpus, pytest.mark.alone]

MESSAGES, FILES, ONE, BLAS = '^pingpong%transport=shm', '^fileio_modes%file_system=stage', '^node_speed%threads=one', '^peak_flops'

#: Of the array of files: more than what a throttled device gives in one burst.
ELEMENTS = 4_000_000

#: As little of each as carries a verdict.
LITTLE = {'likwid_bench.levels': 'none', 'pingpong.largest': 2**21, 'fileio_modes.length': ELEMENTS, 'node_speed.min_time': 0.02,
          'node_speed.memory_bytes': 2 * rfm.LAST_LEVEL + 2**20}
LITTLE |= {f'{check}.{name}': value for check in ('pingpong', 'fileio_modes', 'node_speed', 'peak_flops')
           for name, value in (('samples', 10), ('processes', 1))}
SHORT = {'pingpong.largest': 4096}

#: Others may be busy here at any time, and what is certain of them comes first.
OF_OTHERS = {'noisy_neighbour', 'hypervisor', 'one_core', 'shared_core'}


class Forked(Launch):
    '''Of a process that needs nothing but variables: it is forked from one that has loaded the libraries, in half of a session's time.'''

    def start(self, command, environment=None, stdout=None, cwd=None, **_):
        done = rfm.ended(command, cwd, {**environment, **self.environment})
        stdout.write(done.stdout + done.stderr)
        return SimpleNamespace(poll=lambda: done.returncode, wait=lambda: done.returncode)


class Place(session.Place):
    '''Its references are of one session without a fault.'''

    def measure(self, kind, number, launch=Launch(), checks=MESSAGES):
        return super().measure(kind, number, launch if launch.enter or launch.before else Forked(launch.environment), checks)

    def _plumbline(self, *words):
        done = rfm.ended([*rfm.PLUMBLINE, *words], environment=self.environment)
        return subprocess.CompletedProcess(words, done.returncode, done.stdout + done.stderr)

    @property
    def environment(self):
        return {**super().environment, 'PLUMBLINE_CAPACITY': rfm.capacity()}

    def refer(self, checks=f'{MESSAGES}|{FILES}'):
        ended = self.measure(table.REFERENCE, 1, checks=checks)
        path, = self.archive.glob(f'*/*/{ended.name}.parquet')
        done = self._plumbline('references', 'accept', session.SYSTEM, *rfm.five_times(path), '--archive', self.archive, '--output',
                               self._references / f'{session.SYSTEM}.yaml')
        assert done.returncode == 0, done.stdout


@pytest.fixture(scope='module')
def place(handed_out, commands, measuring_mpi, tmp_path_factory):
    '''Without Fortran, whose files take their time; a FAIL is not measured again.'''
    folder = tmp_path_factory.mktemp('real')
    shutil.copytree(commands, folder / 'path', symlinks=True)
    for fortran in folder.glob('path/*gfortran*'):
        fortran.unlink()
    canned = measuring_mpi(folder / 'canned', any_mpi(), CANNED_PROGRAMS=handed_out, PATH=folder / 'path')
    (folder / 'root/checks').mkdir(parents=True)
    (folder / 'root/config').symlink_to(rfm.REPOSITORY / 'config')
    for check in ('mpi/pingpong.py', 'io/fileio_modes.py', 'memory/node_speed.py', 'compute/peak_flops.py'):    # each ReFrame loads them all
        (folder / 'root/checks' / os.path.basename(check)).symlink_to(rfm.REPOSITORY / 'checks' / check)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in canned.environment.items():
            patch.setenv(name, value)
        patch.setattr(session, 'ROOT', folder / 'root')
        patch.setattr(session, 'SETTINGS', LITTLE)
        patch.setattr(session, 'MEASURE', [])
        faults.mpi.cache_clear()
        made = Place(folder / 'bench')
        made.refer()
        yield made
    faults.mpi.cache_clear()


# --- faults that the benchmark of the verdicts does not provoke -------------------------------------------------------

def both_on_one_cpu(folder):
    '''The ranks take turns on the first CPU.'''
    def settings(family):
        first, second = faults.our_cpus()[:2]
        asked, given = (family.bind.filled(cpus=f'{first},{other}') for other in (second, first))
        (folder / 'ranks').write_text(''.join(f'{line}\n' for line in family.rank_lines([first, first])))
        swapped = {old: new for old, new in zip(asked.options, given.options) if old != new}
        return Settings(env=given.env | {'OMPI_MCA_mpi_yield_when_idle': '1'}), {'ranks.txt': str(folder / 'ranks'), **swapped}
    return faults.messages(folder, 'one_cpu', settings)


def copied_twice(folder):
    def settings(family):
        if isinstance(family.single_copy, str):
            raise NotHere(f'{family.title}: {family.single_copy}')
        return family.single_copy['never'], {}
    return faults.messages(folder, 'copied_twice', settings)


@contextlib.contextmanager
def small_cache(folder):
    '''The program of files has a cgroup with room for its arrays, and for half of its file.'''
    limit, canned = str(round(3.1 * 8 * ELEMENTS)), os.environ['CANNED_PROGRAMS']
    with faults.cgroup(('memory', {'memory.limit_in_bytes': limit}), ('memory', {'memory.max': limit})):
        group, = groups(os.getpid())
        shutil.copytree(canned, folder / 'small', dirs_exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (folder / 'small.asm').symlink_to(f'{canned}.asm')      # disassembled already
        (folder / 'small/fileio').write_text(f'#!/bin/sh\necho 0 > {group}/cgroup.procs && exec {canned}/fileio "$@"\n')
        yield Launch({'CANNED_PROGRAMS': str(folder / 'small'), 'PLUMBLINE_BUILDS': str(folder / 'builds of small')})


@contextlib.contextmanager
def older_blas(folder):
    launch, program = Launch({'OPENBLAS_CORETYPE': 'Prescott'}), f"{os.environ['CANNED_PROGRAMS']}/flops"
    if 'Prescott' not in output_of(launch, program, '--variants', 'dgemm', '--size', 10, *QUICK):
        raise NotHere('no OpenBLAS that could be told to take this processor for another one')
    yield launch


#: Fault -> (the rule that names it, what provokes it, tests, settings of theirs).
REAL = {
    'one CPU for all': ('pinning', FAULTS['affinity'].provoke, f'{MESSAGES}|{ONE}', {}),
    'ranks on one CPU': ('pinning', both_on_one_cpu, MESSAGES, SHORT),
    'messages by TCP': ('transport', FAULTS['tcp'].provoke, MESSAGES, {'pingpong.largest': 2**23}),
    'few messages by TCP': ('other_transport', FAULTS['tcp'].provoke, MESSAGES, SHORT),     # too few to be proved by the loopback
    'eager limit': ('eager_moved', FAULTS['eager'].provoke, MESSAGES, {}),
    'no single copy': ('single_copy_moved', copied_twice, MESSAGES, {}),
    'slow device': ('file_device', FAULTS['files'].provoke, FILES, {}),
    'small page cache': ('file_cache', small_cache, FILES, {}),
    'older BLAS': ('blas_of_another_processor', older_blas, BLAS, {}),
}


def within_sight(rows):
    '''Whether a metric has lost as much as the session says that it sees: of what it does not see, it cannot name the cause.'''
    # A floor of any machine is no reference that something was lost against.
    judged = rows.filter(pl.col('reference') > 0, pl.col('value') > 0).drop_nulls(['sees', 'expected'])
    return any(1 - (value / reference)**registry.better(metric) >= sees
               for metric, value, reference, sees in judged.select('metric', 'value', 'reference', 'sees').iter_rows())


@pytest.mark.parametrize('fault', REAL)
def test_the_cause_of_a_real_fault_is_named_first(fault, place, monkeypatch):
    '''What is inferred from losses needs a quiet moment: one of three tries has it, or the sessions say who was busy, or that the machine moved.'''
    rule, provoke, checks, settings = REAL[fault]
    for name, value in settings.items():
        monkeypatch.setitem(LITTLE, name, value)
    found, moved, certain = [], 0, rule in {one['name'] for one in diagnosis.rules() if one['confidence'] == diagnosis.CERTAIN}
    while rule not in found[-1:] and len(found) < 3 + min(moved, 3):
        if found and checks != BLAS:        # that has no reference
            place.refer(FILES if checks == FILES else MESSAGES)
        with provoked(provoke, place.folder) as launch:
            ended = place.measure(fault.replace(' ', '-'), 1, launch, checks)
        named, rows = table.look(place, ended).causes, place.rows(ended)
        found.append(next((name for name in named if name not in OF_OTHERS), named))
        in_another_state = rows['recorded_states'].is_not_null().any()      # a virtual machine's cores were moved since its reference
        moved += in_another_state
    if not certain and rule not in found and (not OF_OTHERS.isdisjoint(named) or in_another_state or 'UNSTABLE' in rows['verdict'].to_list()):
        pytest.skip(f'nothing can be inferred beside others who work here: {found}')
    if not certain and rule not in found and set(rows['verdict'].drop_nulls()) <= {'PASS', 'NO REFERENCE'} and not within_sight(rows):
        pytest.skip('no metric has lost as much as can be seen beside what else runs here')
    assert found[-1] == rule, (found, ended.said)

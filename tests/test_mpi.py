'''MPI programs through the real launchers: placement, transports, deaths, refused input; what differs between MPIs.'''

import json
import os
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

import rfm
from mpi_native import MPIS, any_mpi, every_mpi, mpirun, needs_mpi, ours, refused, variables
from native import CPUS, QUICK, SAMPLES, circles, output_of, two_cpus
from plumbline.errors import PlumblineError
from plumbline.model import records
from plumbline.mpi import environments, families, loopback
from plumbline.mpi.check import MpiCheck
from plumbline.mpi.families import Settings

FEW = ('--size', '0,1000', *QUICK)


# --- families and environments ------------------------------------------------------------------------------------

def test_settings_are_filled_and_added_by_every_family():
    bind = Settings(['--cpu-list', '{cpus}'], {'PIN': '{cpus}'}).filled(cpus='0,2')
    assert bind == Settings(['--cpu-list', '0,2'], {'PIN': '0,2'})
    assert bind + Settings(['-v'], {'X': '1'}) == Settings(['--cpu-list', '0,2', '-v'], {'PIN': '0,2', 'X': '1'})
    for family in families.families().values():
        assert '{ranks}' in ' '.join(family.start.options)
        bound = ' '.join([*family.bind.options, *family.bind.env.values()])
        assert '{cpus}' in bound or family.rank_file['name'] in bound
        assert set(family.transports) == {'shm', 'tcp'}
        assert '{value}' in ' '.join([*family.eager.options, *family.eager.env.values()])
        if isinstance(family.single_copy, dict):
            assert '{value}' in ' '.join([*family.single_copy['from'].options, *family.single_copy['from'].env.values()])
            assert family.single_copy['never'] != families.Settings()


class Environment:
    name = 'gnu-x'

    def __init__(self, *features, **extras):
        self.features, self.extras = features, extras


def test_an_environment_names_its_mpi_and_a_relative_says_what_differs():
    assert families.family_of(Environment('mpi', 'mpich')).title == 'MPICH'
    for features in (['mpi'], ['mpi', 'mpich', 'openmpi']):
        with pytest.raises(PlumblineError, match='gnu-x has the feature .* exactly one of openmpi, mpich, impi'):
            families.family_of(Environment(*features))
    found = families.family_of(Environment('mpi', 'mpich', mpi={
        'title': 'Cray MPICH', 'transports': {'tcp': {'env': {'MPICH_NO_LOCAL': '1'}}}, 'bind': {'options': ['--cpus', '{cpus}']}}))
    mpich = families.families()['mpich']
    assert (found.name, found.title, found.start) == ('mpich', 'Cray MPICH', mpich.start)
    assert found.transports == {'shm': mpich.transports['shm'], 'tcp': Settings([], {'MPICH_NO_LOCAL': '1'})}
    assert found.bind.filled(cpus='0,1').options == ['--cpus', '0,1']
    assert set(families.family_of(Environment('mpi', 'mpich', mpi={'transports': {'tcp': None}})).transports) == {'shm'}
    assert families.families()['mpich'] == mpich


@pytest.mark.parametrize('own, told', [
    ({'transport': {}}, "has 'transport': it says what differs from mpich, by the keys"), ('cray', "has 'cray': it says"),
    ({'transports': {'shm': {'environ': {}}}}, 'cannot be read'), ({'transports': 'tcp'}, 'cannot be read'), ({'eager': {}}, 'cannot be read'),
    ({'single_copy': {'never': {}}}, 'cannot be read')])
def test_a_relative_that_is_wrongly_described_is_one_line(own, told):
    with pytest.raises(PlumblineError, match=f"the extra 'mpi' of the environment gnu-x .*{told}") as error:
        families.family_of(Environment('mpi', 'mpich', mpi=own))
    assert '\n' not in str(error.value)


@every_mpi
def test_wrapper_tells_its_mpi(mpi, monkeypatch):
    needs_mpi(mpi)
    for name, value in variables(mpi).items():
        monkeypatch.setenv(name, value)
    assert environments.family_of_wrapper(MPIS[mpi]['cc']) == mpi


def test_wrapper_of_no_mpi_is_none():
    assert environments.family_of_wrapper('gcc') is None
    assert environments.family_of_wrapper('no-such-compiler') is None


# What the three launchers write when rank 1 dies of signal 11, or is killed.
OPENMPI = 'mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 11 (Segmentation fault).'
MPICH = '''=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 77 RUNNING AT vm
=   EXIT CODE: 11
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)'''
INTEL = '''=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 0 PID 76 RUNNING AT vm
=   KILLED BY SIGNAL: 9 (Killed)
=   RANK 1 PID 77 RUNNING AT vm
=   KILLED BY SIGNAL: {} ({})'''


@pytest.mark.parametrize('mpi, said, told', [
    ('openmpi', OPENMPI, 'rank 1 died of SIGSEGV (signal 11)'),
    ('mpich', MPICH, 'rank 1 died of SIGSEGV (signal 11)'),
    ('mpich', MPICH.replace('77', '99'), 'a rank died of SIGSEGV (signal 11)'),
    ('impi', INTEL.format(11, 'Segmentation fault'), 'rank 1 died of SIGSEGV (signal 11)'),
    ('impi', INTEL.format(9, 'Killed'), 'one of the ranks 0, 1 died of SIGKILL (signal 9)'),
    ('openmpi', 'a non-zero exit code', None),
])
def test_obituary(mpi, said, told):
    processes = [{'host': 'vm', 'pid': 76}, {'host': 'vm', 'pid': 77}]
    assert families.obituary(families.families()[mpi].deaths(said, processes)) == told


# --- which way the messages went ----------------------------------------------------------------------------------------

def test_bytes_between_two_looks_count_and_an_unknown_signal_is_a_number():
    text = 'plumbline: loopback bytes 100\nplumbline: loopback bytes of IMB 7\nplumbline: loopback bytes 350\n'
    assert loopback.crossed(text) == 250
    assert loopback.crossed(text, ' of IMB') is None
    assert loopback.look() != loopback.look(' of IMB')
    assert families.name_of(100) == 'signal 100'


@pytest.mark.parametrize('transport, moved, crossed, wrong, unproved', [
    ('tcp', 1000, 1200, False, False), ('tcp', 1000, 10, True, False),
    ('shm', 1000, 10, False, False), ('shm', 1000, 1200, False, True), ('shm', 2e9, 3e9, True, False),
    ('tcp', 0, 0, False, False),
])
def test_others_can_only_add_to_the_loopback(transport, moved, crossed, wrong, unproved):
    found = loopback.judge(transport, moved, crossed)
    assert tuple(text is not None for text in found) == (wrong, unproved)


# --- the runtime ----------------------------------------------------------------------------------------------------

@two_cpus
@every_mpi
def test_ranks_are_placed_and_the_record_says_so(mpi, mpi_programs):
    cpus = CPUS[1::-1]      # not the order that comes by itself
    found = mpi_programs(mpi).measured(2, 'pingpong', *FEW, '--cpus', ','.join(map(str, cpus)), cpus=cpus)
    assert [process['host'] for process in found.machine['processes']] == [os.uname().nodename] * 2
    assert len({process['pid'] for process in found.machine['processes']}) == 2
    for record in found.measurements:
        assert (record['ranks'], record['threads'], record['cpus'], record['valid']) == (2, 1, cpus, True)
        assert record['options']['mpi'].startswith(families.families()[mpi].library)


@two_cpus
@every_mpi
def test_ranks_are_placed_on_hardware_threads_of_one_core(mpi, mpi_programs):
    seen = {'HWLOC_SYNTHETIC': f'core:1 pu:{os.cpu_count()}', 'HWLOC_THISSYSTEM': '1'}
    cpus = CPUS[1::-1]
    assert mpi_programs(mpi).run(2, 'pingpong', *FEW, '--cpus', ','.join(map(str, cpus)), cpus=cpus, **seen).code == 0


@two_cpus
@every_mpi
def test_rank_elsewhere_is_found(mpi, mpi_programs):
    asked = ','.join(map(str, CPUS[:2]))
    found = mpi_programs(mpi).run(2, 'pingpong', *FEW, '--cpus', asked, cpus=CPUS[1::-1])
    assert found.code == 1
    assert f'plumbline: rank 0 ran on CPU {CPUS[1]}, asked for CPU {CPUS[0]}' in found.errors


@every_mpi
def test_bad_input_is_one_line_from_all_ranks(mpi, mpi_programs):
    cases = [(1, '', 'plumbline: pingpong needs 2 processes, it was started with 1: start it with mpirun -np 2 or more'),
             (2, '--cpus 0', 'plumbline: --cpus names 1 CPUs for 2 ranks: name one for each'),
             (3, '', 'plumbline: pingpong needs pairs of processes, it was started with 3: give an even number'),
             (2, '--size -1', 'plumbline: --size -1: give a whole number from 0 to 1e+15'),
             (2, '--size 1e10', 'plumbline: --size 10000000000: MPI counts the bytes of a message with an int: give at most 2147483647'),
             (2, '--variants fast', 'plumbline: --variants fast: pingpong has no such variant; it has standard, swapped, touched')]
    refused(mpi_programs(mpi), 'pingpong', *cases[:None if mpi == 'openmpi' else 2])


def test_a_complaint_of_another_rank_names_it(mpi_programs):
    program = mpi_programs('openmpi').path('pingpong')
    found = mpirun('openmpi', 1, [program, ':', '-np', '1', program, '--samples', '1'], timeout=120)
    assert found.code != 0
    assert ours(found) == ['plumbline: rank 1: --samples 1: give a whole number from 10 to 100000']


def test_memory_of_all_ranks_on_the_node_counts(mpi_programs):
    memory, each = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'), 4e9
    ranks = 2 * int(memory / each / 2 + 1)
    if ranks > 64:
        pytest.skip('this machine has memory for more processes than a test should start')
    found = mpi_programs('openmpi').run(ranks, 'pingpong', '--size', '2e9')
    assert found.code != 0
    complaint, = ours(found)
    assert complaint.startswith(f'plumbline: --size 2000000000: needs {4 * ranks}.0 GB in all, of ') and 'GB that are free' in complaint


@pytest.mark.parametrize('option, which', [('--list', 0), ('--help', -1)])
def test_list_and_help_come_once(option, which, mpi_programs):
    found = mpi_programs(sorted({any_mpi(), *MPIS})[which]).run(2, 'pingpong', option)
    assert (found.code, found.text.count('pingpong: ')) == (0, 1)


#: MPI_Finalize never returns, and patience is short; a process seems to run where it is said to.
HANGS = '''
#include <stdlib.h>
#include <unistd.h>
int sched_getcpu(void) { return atoi(getenv("ON_CPU")); }
int MPI_Finalize(void)
{
    alarm(1);
    for (;;)
        pause();
}
'''


@pytest.mark.parametrize('cpu, code', [(CPUS[0], 0), (CPUS[-1] + 1, 1)], ids=['there', 'elsewhere'])
def test_a_program_whose_mpi_does_not_end_has_its_own_exit_code(mpi_programs, tmp_path, cpu, code):
    '''Without a launcher, which has codes of its own; 1: it ran on another CPU than it was asked to.'''
    mpi, library = any_mpi(), tmp_path / 'hangs.so'
    (tmp_path / 'hangs.c').write_text(HANGS)
    output_of('cc', '-shared', '-fPIC', tmp_path / 'hangs.c', '-o', library)
    command = [str(part) for part in (mpi_programs(mpi).path('triad-ranks'), '--size', 1000, *QUICK, '--cpus', CPUS[0])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, env=variables(mpi, LD_PRELOAD=library, ON_CPU=cpu))
    assert 'MPI_Finalize has not returned' in done.stderr and done.returncode == code


@pytest.mark.parametrize('program, options', [
    ('pairs', '--size 8'), ('patterns', '--size 8 --variants pair'), ('rma', '--size 8 --variants get_busy --compute 20'), ('cg', '--class S')])
def test_a_clock_of_the_day_that_is_set_back_spoils_no_time(mpi_programs, tmp_path, program, options):
    '''MPI_Wtime of MPICH goes by it.'''
    mpi, library = any_mpi(), tmp_path / 'back.so'
    (tmp_path / 'back.c').write_text('double MPI_Wtime(void) { static double now = 1e9; return now -= 1; }')
    output_of('cc', '-shared', '-fPIC', tmp_path / 'back.c', '-o', library)
    for record in mpi_programs(mpi).measured(2, program, *options.split(), *QUICK, LD_PRELOAD=library).measurements:
        times = [record['pairs']['shortest']] if program == 'pairs' else record['pattern']['rounds'][0] if program == 'patterns' else record['communication']
        assert min(record['seconds']) > 0 and 0 < min(times) <= max(times) <= max(record['seconds'])


# --- the check --------------------------------------------------------------------------------------------------------

CHECK = rfm.REPOSITORY / 'checks/mpi/pingpong.py'


def only(mpi, transport):
    return ('-r', '-p', f'gnu-{mpi}', '--exec-policy=serial', '-S', 'processes=1', '-n', f'pingpong%transport={transport}')


@two_cpus
def test_transport_that_was_not_used_is_a_failure(measuring_mpi, tmp_path):
    '''What should choose TCP chooses shared memory: the label would be wrong.'''
    place = measuring_mpi(tmp_path / 'place', 'openmpi')
    check = tmp_path / 'pingpong.py'
    check.write_text(CHECK.read_text() + '''

from plumbline.mpi import families
known = families.families()['openmpi'].transports
known['tcp'] = known['shm']
''')
    done = place.reframe(*only('openmpi', 'tcp'), '-S', 'pingpong.largest=4096', checks=check)
    case = next(iter(done.cases().values()))
    assert (case['result'], case['fail_phase']) == ('fail', 'sanity')
    assert 'tcp was asked for, but of ' in case['fail_reason'] and ' went over the loopback device' in case['fail_reason']


def test_the_bytes_of_a_first_run_did_not_cross_in_the_second():
    moved = []
    sent = [{'process': process, 'bytes': 100 * 10**process, 'seconds': [1.0, 1.0], 'options': {}} for process in range(4)]
    case = SimpleNamespace(is_dry_run=lambda: False, counts_messages=True, measurements=sent, again=None, prove_transport=moved.append)
    MpiCheck.check_transport(case)
    case.again = 2
    MpiCheck.check_transport(case)
    assert moved == [222200, 220000]


@two_cpus
@every_mpi
def test_rank_that_dies_fails_the_check_and_is_named(mpi, measuring_mpi, tmp_path):
    '''A rank is killed in the middle of a run that would take minutes.'''
    place = measuring_mpi(tmp_path / 'place', mpi)
    running = place.start_reframe(*only(mpi, 'shm'), '-S', 'pingpong.samples=100000', checks=CHECK)
    try:
        victim = _pid_of_rank(place, 1, 120)
        os.kill(victim, signal.SIGSEGV)
        assert running.wait(timeout=100) == 1
    finally:
        running.send_signal(signal.SIGINT)      # it ends its job, too
        running.wait(timeout=100)
    case = next(entry for entry in json.loads(place.report.read_text())['runs'][0]['testcases'] if not entry['fixture'])
    assert case['result'] == 'fail'
    assert 'rank 1 died of SIGSEGV (signal 11)' in case['fail_reason'], case['fail_reason']


def _pid_of_rank(place, rank, patience):
    '''From the machine's record in the output of the running check.'''
    for _ in range(int(patience / 0.1)):
        for path in place.stage.glob('*/*/*/pingpong*/rfm_job.out'):      # not in a build's folders, which come and go
            text = path.read_text() if path.is_file() else ''
            if '}\n' in text and (machine := records.parse(text[:text.rindex('\n') + 1]).machine):
                return machine['processes'][rank]['pid']
        time.sleep(0.1)
    raise AssertionError('the program did not begin')


@two_cpus
@every_mpi
def test_ranks_that_share_a_cache_have_a_part_of_it_each(mpi, mpi_programs):
    '''Also where the MPI is told to see no shared memory between them.'''
    alone, pair = {'MPIR_CVAR_NOLOCAL': 1}, CPUS[:2]
    build = mpi_programs(mpi)
    caches = build.measured(2, 'pingpong', *FEW, cpus=pair, **alone).machine['caches']
    room = {f"L{cache['level']}": cache['size'] // len({*pair} & {*cache['shared_cpus']}) for cache in caches if cache['level'] <= 3}
    if not room or sorted(room.values()) != list(room.values()):
        pytest.skip('the system does not tell its caches')
    expected = {}
    for inside, outside in zip(room, [*room, 'memory'][1:]):
        fits = room[inside] // 2        # two buffers
        if fits < 5e7:                  # what takes no time
            expected |= {fits: inside, fits + 1: outside}
    found = build.measured(2, 'pingpong', '--size', ','.join(map(str, expected)), *QUICK, cpus=pair, **alone)
    assert {record['size']: record['level'] for record in found.measurements} == expected


@pytest.mark.skipif(os.geteuid() != 0, reason='only root is refused')
def test_an_mpi_that_refuses_root_is_left_out_unless_the_site_says_that_it_may(tmp_path):
    needs_mpi('openmpi')
    text = (rfm.REPOSITORY / 'config/localhost.py').read_text()
    assert text.count(', as_root=True') == 1
    config = tmp_path / 'site.py'
    config.write_text(text.replace(', as_root=True', ''))       # with it root runs all that is tested here
    done = rfm.Workplace(tmp_path / 'place', config=config).reframe(
        '-n', 'pingpong%transport=shm', '-p', 'gnu-openmpi', '--dry-run', checks=rfm.REPOSITORY / 'checks/mpi/pingpong.py')
    reason = 'the launcher of Open MPI does not run as root: run ReFrame as an ordinary user, or let the site file say in gnu-openmpi that it may'
    assert done.code == 0 and reason in done.out and 'Ran 1/2 test case' in done.out


@pytest.mark.parametrize('ranks, program, few', [
    (3, 'cg', '--class S --working 1,2'), (3, 'lbm-slabs', '--size 9 --planes 4'), (3, 'md', '--size 4 --working 2'), (3, 'planewave', '--size 5 --bands 2'),
    (3, 'triad-ranks', '--size 67'), (3, 'pairs', '--size 0,7,4097'), (3, 'patterns', '--size 7,70001 --nodes 2,3'), (2, 'pingpong', '--size 0,1,7,9,4095,100001'),
    (2, 'rma', '--size 13 --window 48 --memory allocate,create --compute 20'), (2, 'datatype', '--size 1,2,3,16,17,63,65')])
def test_under_sanitizers(mpi_sanitized, ranks, program, few):
    found = mpi_sanitized(any_mpi()).measured(ranks, program, '--variants', 'all', *few.split(), *SAMPLES, '--passes', 2, ASAN_OPTIONS='detect_leaks=0')
    assert all(record['valid'] for record in found.measurements)


def test_sources_lie_in_layers(mpi_programs):
    assert circles(mpi_programs(next(iter(sorted(MPIS)), None) or pytest.skip('there is no MPI')).folder) == []

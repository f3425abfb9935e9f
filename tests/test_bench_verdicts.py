'''The benchmark of the verdicts: faults are real and leave nothing behind, sessions are run once, and the table counts rightly.'''

import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import sample_session as sample
from native import SOURCE, needs, x86_only
from plumbline import bench, cli
from plumbline.analysis import diagnosis, lines, subsystems
from plumbline.analysis.session import Session
from plumbline.bench import sweeps, verdicts
from plumbline.bench.common import Figure
from plumbline.bench.verdicts import exchanged, faults, rungs, session, simulation, table
from plumbline.bench.verdicts.faults import FAULTS, Launch, NotHere
from plumbline.errors import PlumblineError
from plumbline.model import records, registry
from plumbline.model.metrics import Metric
from plumbline.model.result import Process
from plumbline.rfm import evaluation
from plumbline.store import archive
from plumbline.system import codegen
from waiting import until


@contextlib.contextmanager
def provoked(provoke, folder, **options):
    '''The fault's launch; the test is skipped where there is none.'''
    with contextlib.ExitStack() as stack:
        try:
            launch = stack.enter_context(provoke(folder, **options))
        except NotHere as reason:
            pytest.skip(str(reason))
        yield launch


def output_of(launch, *command):
    process = launch.start(command, stdout=subprocess.PIPE, text=True)
    return process.communicate(timeout=60)[0]


def python(launch, text):
    return output_of(launch, sys.executable, '-c', text)


def children(pid):
    '''Processes whose parent it is: pid -> command line.'''
    found = {}
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(')')[2].split()[1]) == pid:
                found[int(stat.parent.name)] = (stat.parent / 'cmdline').read_text()
    return found


def command_of(pid):
    '''The command line of a process; nothing of one that has ended.'''
    with contextlib.suppress(OSError):
        return pathlib.Path(f'/proc/{pid}/cmdline').read_text()


def groups(pid):
    walked = (pathlib.Path(folder) for folder, *_ in os.walk('/sys/fs/cgroup'))      # others come and go
    return [folder for folder in walked if folder.name.startswith(f'plumbline-{pid}-')]


# --- the faults --------------------------------------------------------------------------------

def test_a_quota_holds_and_its_group_goes(tmp_path):
    with provoked(faults.quota, tmp_path, share=0.2 / len(faults.our_cpus())) as launch:
        assert groups(os.getpid())
        # Of a busy second of one thread; a period more or less.
        used = float(python(launch, 'import time\nwhile time.monotonic() - began < 1: pass\nprint(time.process_time())'.replace(
            'import time\n', 'import time\nbegan = time.monotonic()\n')))
    assert used < 0.45
    assert not groups(os.getpid())
    with provoked(faults.quota, tmp_path, share=0.5) as launch:
        left = launch.start(['sleep', '60'])
    assert left.wait(5) == -signal.SIGKILL and not groups(os.getpid())


@pytest.mark.alone
def test_a_group_of_a_benchmark_that_was_killed_is_removed_by_the_next(tmp_path):
    with provoked(faults.quota, tmp_path, share=0.5):
        dead = subprocess.Popen(['true'])
        dead.wait()
        left = groups(os.getpid())[0].with_name(f'plumbline-{dead.pid}-cpu')
        left.mkdir()
    with provoked(faults.quota, tmp_path, share=0.5):
        assert not left.exists()


@pytest.mark.alone
@pytest.mark.parametrize('name', ['hog', 'shared'])
def test_a_neighbour_works_on_its_cpu_and_is_gone_afterwards(name, tmp_path):
    before = children(os.getpid()).keys()
    with provoked(FAULTS[name].provoke, tmp_path):
        (pid, command), = ((pid, command) for pid, command in children(os.getpid()).items() if pid not in before)
        assert 'running' in command
        assert os.sched_getaffinity(pid) == {faults.our_cpus()[-1 if name == 'hog' else 0]}
        assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    assert not pathlib.Path(f'/proc/{pid}').exists()


INTERRUPTED = '''
import time
from plumbline.bench import sweeps, verdicts
def measure(place, kind, number, launch):
    launch.start(['sleep', '60'])
    print('measuring', flush=True)
    time.sleep(60)
verdicts.Place.measure = measure
verdicts.run({folder!r}, 0, 1, [{name!r}])
'''


@pytest.mark.parametrize('name, number', [('shared', signal.SIGINT), ('shared', signal.SIGKILL),
                                          pytest.param('quota50', signal.SIGTERM, marks=pytest.mark.alone)])
def test_a_benchmark_that_is_broken_off_leaves_nothing(name, number, tmp_path):
    with provoked(FAULTS[name].provoke, tmp_path):
        pass
    begun(tmp_path)
    program = INTERRUPTED.format(folder=str(tmp_path), name=name)
    process = subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'measuring\n'
    started = children(process.pid)
    assert len(started) == (2 if name == 'shared' else 1) and bool(groups(process.pid)) == (name == 'quota50')
    process.send_signal(number)
    assert process.wait(20)
    until(lambda: not any(map(command_of, started)), seconds=60)
    assert not groups(process.pid)


def test_a_process_with_a_fault_has_one_cpu_no_huge_pages_or_slow_files(tmp_path, monkeypatch):
    with provoked(faults.one_cpu, tmp_path) as launch:
        assert python(launch, 'import os; print(len(os.sched_getaffinity(0)))') == '1\n'
    with provoked(faults.base_pages, tmp_path) as launch:
        get_thp_disable = 'import ctypes; print(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0))'
        assert (python(launch, get_thp_disable), python(Launch(), get_thp_disable)) == ('1\n', '0\n')
    monkeypatch.setattr(faults, '_written', lambda folder: 1e7)
    with provoked(faults.slow_files, tmp_path) as launch:
        began = time.monotonic()
        output_of(launch, 'dd', 'if=/dev/zero', f'of={tmp_path}/file', 'bs=1M', 'count=3', 'conv=fsync', 'status=none')
        assert time.monotonic() - began > 1     # 1.5 s at 2 MB/s
    assert not groups(os.getpid())


def test_compilers_append_what_they_should_not(tmp_path):
    with provoked(FAULTS['O1'].provoke, tmp_path) as launch:
        said = output_of(launch, 'sh', '-c', f"{faults._compiler()['cc']} -O3 -x c -c -v /dev/null -o {tmp_path}/o 2>&1")
        assert '-O3 -O1' in said
    with provoked(FAULTS['avx'].provoke, tmp_path) as launch:
        macros = ['sh', '-c', f"{faults._compiler()['cc']} -march=native -x c -dM -E /dev/null"]
        assert '__AVX__' in output_of(Launch(), *macros) and '__AVX' not in output_of(launch, *macros)


@pytest.mark.parametrize('name', ['tcp', 'eager'])
def test_a_launcher_has_ideas_of_its_own(name, tmp_path):
    with provoked(FAULTS[name].provoke, tmp_path) as launch:
        environment, family = faults.mpi()
        shared, tcp = family.transports['shm'], family.transports['tcp']
        command = [os.path.basename(environment['extras']['launcher'][0]), '-np', '1', *shared.options, 'env']
        variables = launch.start(command, {**os.environ, **dict(environment['env_vars']), **shared.env}, stdout=subprocess.PIPE,
                                 text=True).communicate(timeout=60)[0].splitlines()
        eager = family.eager.filled(value=faults.EAGER)
        wanted = tcp if name == 'tcp' else eager
        assert {f'{key}={value}' for key, value in wanted.env.items()} <= set(variables)
        for word in set(wanted.options) - set(shared.options) - {'--mca'}:
            assert any(word in line for line in variables), word


def test_what_cannot_be_provoked_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(faults, '_CGROUPS', tmp_path / 'no')
    monkeypatch.setattr(faults, 'our_cpus', lambda: [0])
    monkeypatch.setattr(faults.environments, 'found', lambda compilers, **how: [])
    faults.mpi.cache_clear()
    for name, reason in (('quota50', 'no cgroup with the controller cpu can be made in'), ('hog', 'one CPU'), ('affinity', 'one CPU'),
                         ('tcp', 'there is no MPI')):
        with pytest.raises(NotHere, match=reason), FAULTS[name].provoke(tmp_path):
            pass
    faults.mpi.cache_clear()


# --- what is named of them ---------------------------------------------------------------------

def causes(detail):
    '''The rules that a session shows whose test left this, and in which all of its rates have lost.'''
    rows = sample.frame(sample.case('triad_memory', [sample.predicted('v0', 0.3, 'FAIL')], threads='all', detail=detail))
    verdicts = lines.verdict_lines(rows)
    return [one.rule['name'] for one in diagnosis.diagnose(verdicts, [], subsystems.judge(verdicts)).findings]


def triad(launch, programs):
    '''What a real run of the triad in memory leaves.'''
    cpus = faults.our_cpus()
    text = output_of(launch, programs.folder / 'bin/triad', '--variants', 'plain', '--size', 4_000_000, '--threads', len(cpus), '--samples', 10,
                     '--min-time', 0.05, '--capacity', 'L2=1e6,L3=16e6')      # in memory, however large the caches
    found = records.parse(text)
    return {'machine': found.machine, 'contention': found.contention, 'records': found.measurements}


@pytest.mark.alone
@pytest.mark.parametrize('name', ['quota50', 'hog', 'shared', 'pages'])
def test_the_cause_of_a_real_fault_is_named(name, tmp_path, programs):
    if name == 'pages' and not triad(Launch(), programs)['records'][0]['huge_page_share']:
        pytest.skip('this kernel gives no huge pages')
    with provoked(FAULTS[name].provoke, tmp_path) as launch:
        assert set(FAULTS[name].causes) <= set(causes(triad(launch, programs)))
    if name in ('quota50', 'pages'):        # others may be busy here at any time
        assert not set(FAULTS[name].causes) & set(causes(triad(Launch(), programs)))


@x86_only
@pytest.mark.parametrize('name', ['O1', 'avx'])
def test_code_that_lost_its_width_is_named(name, tmp_path):
    needs('objdump')

    def widths(launch):
        source, cc = SOURCE / 'kernels/triad/kernel.c', os.path.basename(faults._compiler()['cc'])
        output_of(launch, 'sh', '-c', f'{cc} -std=gnu17 -O3 -march=native -fopenmp -I{SOURCE}/harness -c {source} -o {tmp_path}/o')
        return codegen.widths_of(output_of(Launch(), 'objdump', '-d', '--no-show-raw-insn', tmp_path / 'o'), 'triad', {('plain', None)})

    before = widths(Launch())
    if before.get('plain') not in ('256-bit', '512-bit'):
        pytest.skip(f'the compiler makes {before} here')
    with provoked(FAULTS[name].provoke, tmp_path) as launch:
        assert causes({'simd_width': widths(launch), 'simd_width_of_references': before}) == ['lost_vectorisation']
    assert causes({'simd_width': widths(Launch()), 'simd_width_of_references': before}) == []


# --- sessions ----------------------------------------------------------------------------------

def begun(folder):
    '''A benchmark whose references are there.'''
    (folder / 'references').mkdir()
    (folder / 'references/localhost.yaml').write_text('{}')


def test_sessions_with_and_without_a_fault_take_turns():
    assert verdicts.plan(3, 1, ['a', 'b', 'c']) == ['null', 'a', 'null', 'b', 'null', 'c']
    assert verdicts.plan(2, 2, ['a', 'b']) == ['null', 'a', 'b', 'null', 'a', 'b']
    assert verdicts.plan(1, 0, ['a']) == ['null'] and verdicts.plan(0, 0, ['a']) == []


@pytest.mark.parametrize('benchmark', [verdicts, sweeps])
def test_two_benchmarks_do_not_measure_each_other(benchmark, tmp_path):
    with open(tmp_path / 'lock', 'w') as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(PlumblineError, match='another benchmark runs there: wait for its end'):
            benchmark.run(tmp_path, 1, 0)
        assert not (tmp_path / 'sessions').exists()


def test_the_first_sessions_become_references_as_soon_as_they_are_good_enough(tmp_path, monkeypatch):
    run = []

    def measure(place, kind, number, launch=None):
        run.append((kind, number))
        return session.Session(kind, number, 0, None, 0.0, 1.0, '')

    def accept(place, apart):
        if run[-1][1] < good:
            return 'too few'
        begun(tmp_path)

    monkeypatch.setattr(session.Place, 'measure', measure)
    monkeypatch.setattr(session.Place, 'accept', accept)
    monkeypatch.setattr(verdicts, 'told', lambda place: ([], table.MET))
    good = 99
    with pytest.raises(PlumblineError, match='10 sessions make no references: too few'):
        verdicts.run(tmp_path, 1, 0)
    run.clear()
    good = 6
    monkeypatch.setitem(FAULTS, 'hog', faults.Fault('hog', (), (), lambda folder: contextlib.nullcontext(Launch())))
    verdicts.run(tmp_path, 1, 1, ['hog'])
    assert run == [*(('reference', number) for number in range(1, 7)), ('null', 1), ('hog', 1)]


def test_sessions_that_become_references_begin_apart(tmp_path, monkeypatch):
    now, waits = [1e9], []

    def measure(place, kind, number, *_):
        place.path(kind, number).parent.mkdir(parents=True, exist_ok=True)
        place.path(kind, number).write_text(json.dumps(asdict(session.Session(kind, number, 0, None, now[0], 80.0, ''))))
        now[0] += 80
        return session.Session(kind, number, 0, None, now[0], 80.0, '')

    def sleep(seconds):
        waits.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(verdicts.time, 'time', lambda: now[0])
    monkeypatch.setattr(verdicts.time, 'sleep', sleep)
    monkeypatch.setattr(session.Place, 'measure', measure)
    monkeypatch.setattr(session.Place, 'accept', lambda place, apart: begun(tmp_path))
    monkeypatch.setattr(verdicts, 'told', lambda place: ([], table.MET))
    told = []
    verdicts.run(tmp_path, 1, 0, tell=told.append)
    assert waits == [3600 - 80 + 5] * 4 and told[1] == 'sessions that become references begin 60 minutes apart: the next one in 59'


def test_a_session_is_a_real_run_in_a_folder_of_its_own(tmp_path, handed_out, built_already, monkeypatch):
    monkeypatch.setenv('PATH', str(built_already))
    monkeypatch.setenv('CANNED_PROGRAMS', str(handed_out))
    monkeypatch.setenv('PLUMBLINE_REPORTS', str(tmp_path / 'users'))
    monkeypatch.setattr(session, 'SETTINGS', {**session.SETTINGS, 'node_speed.samples': 10, 'node_speed.processes': 1, 'node_speed.min_time': 0.02})
    place = session.Place(tmp_path / 'bench')
    ended = place.measure('null', 1, Launch({'PLUMBLINE_CAPACITY': 'topology'}), '^node_speed%threads=one$')
    assert ended.exit in (0, 1, 3), ended.said
    assert 'report: ' in ended.said and not (tmp_path / 'users').exists()
    assert place.sessions() == [ended]
    seen = table.look(place, ended)
    assert seen.values['node_speed %threads=one', 'gnu', 'bandwidth.memory'][1:] == (registry.MEMORY_ONE, registry.MORE)
    assert seen.values['node_speed %threads=one', 'gnu', 'flops.L1'][1] == registry.L1
    assert any('Nothing changed: exit code 0 in' in line for line in table.told(place)[0])


def test_every_fault_has_a_rule_that_names_it():
    assert {cause for fault in FAULTS.values() for cause in fault.causes} <= {rule['name'] for rule in diagnosis.rules()}


# --- the table ---------------------------------------------------------------------------------

def seen(bandwidth, latency, code=0, fails=(), causes=()):
    return table.Seen(code, {('t', 'gnu', 'bandwidth.plain'): (bandwidth, registry.MEMORY_ONE, registry.MORE),
                             ('l', 'gnu', 'latency.L1'): (latency, registry.LATENCY, registry.LESS)}, list(fails), list(causes))


def test_losses_are_medians_against_sessions_without_a_fault_and_shares_have_their_intervals():
    found, metrics = table.losses([seen(50, 2), seen(60, 2), seen(40, 4)], [seen(90, 1), seen(100, 1), seen(130, 2)])
    assert found[registry.MEMORY_ONE] == pytest.approx(0.5)         # 50 of 100
    assert found[registry.LATENCY] == pytest.approx(0.5)            # twice as long
    assert metrics['bandwidth.plain'] == (pytest.approx(0.5), registry.MEMORY_ONE)
    assert np.isclose(table.losses([seen(200, 1)], [seen(100, 1)])[0][registry.MEMORY_ONE], -1)
    assert table.share(97, 100) == '97 of 100 (97.0 %, 91.5 to 99.4)'
    assert table.share(0, 5) == '0 of 5 (0.0 %, 0.0 to 52.2)'


def test_a_fault_is_named_by_its_cause_or_by_most_of_what_is_blamed(tmp_path, monkeypatch):
    fault = faults.Fault('hog', (registry.MEMORY_ONE,), ('noisy_neighbour',), None)
    right, wrong = ('metric', registry.MEMORY_ONE), ('metric', registry.L1)
    assert seen(1, 1, 1, [right, right, wrong]).names_subsystem(fault) and not seen(1, 1, 1, [right, wrong]).names_subsystem(fault)
    assert seen(1, 1, 1, causes=['quota', 'noisy_neighbour']).names_cause(fault) and not seen(1, 1, 1, causes=['quota']).names_cause(fault)
    rows = sample.frame(*(sample.case(check, [sample.predicted(variant, loss) for variant in sample.HISTORY], threads='one')
                          for check, loss in (('triad_memory', 0.08), ('latency', 0.0))))
    monkeypatch.setattr(session.Place, 'rows', lambda place, of: rows)
    found = table.look(session.Place(tmp_path), session.Session('hog', 1, 1, 'name', 0.0, 1.0, ''))
    assert found.fails == [('subsystem', registry.MEMORY_ONE)]


def test_the_row_of_a_fault_and_the_table_in_restructured_text(monkeypatch):
    monkeypatch.setitem(FAULTS, 'hog', faults.Fault('hog', (registry.MEMORY_ONE,), ('noisy_neighbour',), None))
    fail = ('metric', registry.MEMORY_ONE)
    found = [seen(50, 1, 1, [fail], ['noisy_neighbour']), seen(60, 1, 1, [fail]), seen(60, 1, 3), seen(100, 1)]
    assert table._row('hog', found, [seen(100, 1)]) == [
        'hog', '40 % memory, one thread', '40 % bandwidth.plain', '2 of 4', 'MISSED', '0: 1, 1: 2, 3: 1', 'metric 2', '1', '2']
    assert table._row('hog', [seen(81, 1)] * 4, [seen(100, 1)])[1:5] == ['19 % memory, one thread', '19 % bandwidth.plain', '0 of 4', '-']
    of_other = seen(50, 1, 1, [('metric', registry.L1)])        # a FAIL that the fault has no part in does not find it
    assert table._row('hog', [of_other], [seen(100, 1)])[3] == '0 of 1'
    assert table.grid([['fault', 'loss'], ['hog', '40 %'], ['busy loop', '-']]) == [
        '=========  ====', 'fault      loss', '=========  ====', 'hog        40 %', 'busy loop  -', '=========  ====']


@pytest.mark.parametrize('wrong, total, most, target', [
    (0, 100, 0.01, 'met'), (1, 100, 0.01, 'met'), (2, 100, 0.01, 'too few to tell'), (3, 100, 0.01, 'too few to tell'), (4, 100, 0.01, 'MISSED'),
    (1, 20, 0.05, 'met'), (2, 20, 0.05, 'too few to tell'), (4, 20, 0.05, 'MISSED'),
    # By fewer one that is wrong would not be seen.
    (0, 99, 0.01, 'too few to tell'), (0, 19, 0.05, 'too few to tell'), (0, 0, 0.05, 'too few to tell'), (2, 2, 0.05, 'MISSED')])
def test_what_becomes_of_a_target(wrong, total, most, target):
    assert table.becomes(wrong, total, most) == target


@pytest.mark.parametrize('quiet, faulty, targets, code', [
    ({0: 95, 3: 5}, {1: 20}, ['met', 'met', 'met'], 0),
    ({0: 96, 1: 4}, {1: 20}, ['met', 'MISSED', 'met'], 1),
    ({0: 85, 3: 15}, {1: 20}, ['MISSED', 'met', 'met'], 1),
    ({0: 100}, {1: 16, 3: 4}, ['met', 'met', 'MISSED'], 1),
    ({0: 10}, {1: 16, 0: 4}, ['too few to tell', 'too few to tell', 'MISSED'], 1),
    ({0: 20}, {1: 20}, ['met', 'too few to tell', 'met'], 3), ({0: 100}, {}, ['met', 'met', 'too few to tell'], 3)])
def test_the_benchmark_ends_with_what_becomes_of_its_targets(tmp_path, monkeypatch, quiet, faulty, targets, code):
    monkeypatch.setitem(FAULTS, 'hog', faults.Fault('hog', (registry.MEMORY_ONE,), (), None))
    monkeypatch.setattr(table, 'look', lambda place, one: seen(50 if one.kind == 'hog' else 100, 1, one.exit, [('metric', registry.MEMORY_ONE)]))
    monkeypatch.setattr(session.Place, 'sessions', lambda place: [
        session.Session(kind, number, exit, None, float(number), 60.0, '') for kind, codes in (('null', quiet), ('hog', faulty))
        for exit, count in codes.items() for number in range(count)])
    told = []
    assert verdicts.run(tmp_path, 0, 0, tell=told.append) == code
    assert told[-1].startswith('Targets: ') and re.findall('(met|MISSED|too few to tell)[;.]', told[-1]) == targets


def test_bench_tells_what_is_there_of_the_verdicts(tmp_path, monkeypatch):
    monkeypatch.setattr(cli, 'REPORTS', tmp_path)
    monkeypatch.setattr(bench, 'FIGURES', {})
    words = ['bench', '--archive', str(tmp_path / 'archive')]
    done = CliRunner().invoke(cli.app, words)
    unknown = "NOT MEASURED  timed loops / time of the last session's tests: no session that says how long it took: run make health\n"
    assert (done.exit_code, done.output) == (1, unknown)        # nobody has run it
    (tmp_path / 'verdicts').mkdir()
    assert CliRunner().invoke(cli.app, words).output == f'{unknown}{tmp_path}/verdicts: no session yet\n'
    done = CliRunner().invoke(cli.app, [*words, 'verdicts', '--null', '0', '--faults', '0'])
    assert (done.exit_code, done.output) == (3, f'{tmp_path}/verdicts: no session yet\n')
    monkeypatch.setattr(bench, 'FIGURES', {'none': lambda machine, pairs: [Figure('a / b', np.array([]))]})
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 1 and done.output.endswith('verdicts: no session yet\n')


# --- references drawn from the sessions --------------------------------------------------------

def archived(place, number, factor=1.0, struck=1.0, size=None):
    '''A session of a made-up machine: eight rates in memory that scatter by 1 %, times a factor, one of them struck by something.'''
    rates = 1000 * factor * np.exp(0.01 * np.random.default_rng(number).standard_normal(8)) * [1, 1, struck, 1, 1, 1, 1, 1]
    metrics = [sample.metric(f'bandwidth.v{variant}', rate, 'MB/s', reference=None) | {'samples': (rate * np.linspace(0.99, 1.01, 12)).tolist(), 'working_set': size}
               for variant, rate in enumerate(rates)]
    started = datetime.datetime(2026, 1, 2, number, tzinfo=datetime.timezone.utc)
    rows = sample.case('triad_memory', metrics, threads='one', system=session.SYSTEM, session=f'{started:%Y%m%dT%H%M%SZ}-made', started=started)
    archive.write(sample.frame(rows), place.archive)
    return session.Session('null' if factor == 1.0 else 'hog', number, 0, rows[0]['session'], float(number), 60.0, '')


@pytest.fixture
def measured(tmp_path):
    '''(place, function that archives a session).'''
    place = session.Place(tmp_path)
    place.portable.parent.mkdir()
    place.portable.write_text('{}')
    return place, lambda *numbers, **how: [archived(place, number, **how) for number in numbers]


def test_a_session_with_a_fault_is_not_in_the_history_of_the_next(measured, monkeypatch):
    place, sessions = measured
    healthy, = sessions(1)
    monkeypatch.setattr(session.Place, 'measure', lambda place, kind, number, launch: archived(place, number, factor=0.5))
    ended = place.measure_with(replace(FAULTS['hog'], provoke=lambda folder: contextlib.nullcontext(Launch())), 'hog', 2)
    assert [path.stem for path in archive.sessions(place.archive)] == [healthy.name]
    assert place.rows(ended)['value'].median() < 600 < place.rows(healthy)['value'].median()


def test_sessions_are_held_against_references_from_others_of_them(measured):
    place, sessions = measured
    quiet, faulty = sessions(*range(12)), sessions(12, 13, factor=0.5)
    of_quiet, of_faulty, seen = exchanged.count(place, quiet, faulty, 5, 4, np.random.default_rng(1))
    assert of_quiet == [{0: 7}] * 4 and of_faulty == {'hog': {1: 4 * 2}} and len(seen) == 4 * 7 * 8
    told, = exchanged.lines(place, quiet, faulty, 3)
    assert re.fullmatch(re.escape('References from 5 of them, drawn 3 times: of 21 judgements without a fault exit code 0 in 100.0 %, 1 in 0.0 %, '
                                  '3 in 0.0 % (1 of one draw: at most in 0.0 %); half of the PASSes would see a loss of')
                        + r' [5-9] %; faults not always found: none\.', told), told
    assert not list(exchanged.lines(place, quiet[:9], [], 3)) and not list(exchanged.lines(place, quiet, [], 0))


@pytest.mark.parametrize('size, rulings', [(2**19, {'UNSTABLE', 'FAIL'}), (2**18, {'NO REFERENCE'})])
def test_references_of_another_working_set_of_a_cache_judge_nothing(measured, size, rulings):
    place, sessions = measured
    references = exchanged.references_of(place, [one.name for one in sessions(*range(5), size=2**19)])
    slow, = sessions(5, factor=0.5, size=size)
    assert set(exchanged.Again(place.rows(slow)).judged(references)['verdict']) <= rulings


def test_a_fault_that_is_too_small_is_told(measured):
    place, sessions = measured
    line, = exchanged.lines(place, sessions(*range(10)), sessions(12, factor=0.995), 2)
    assert line.endswith(f"faults not always found: {FAULTS['hog'].what} 0 of 2.")


def test_the_next_session_stands_for_a_second_run(measured):
    place, sessions = measured
    quiet = [*sessions(*range(11)), *sessions(11, struck=0.5)]
    struck = exchanged.Again(place.rows(quiet[-1]))
    references = exchanged.references_of(place, [one.name for one in quiet[:5]])
    once, other = struck.judged(references), exchanged.Again(place.rows(quiet[6]))
    assert once['verdict'].to_list().count('FAIL') == 1 and Session(once).exit_status() == 1
    assert '50 % less than the reference' in once.filter(name='bandwidth.v2')['reason'].item()
    second = struck.judged(references, other)
    ruling, reason = second.filter(name='bandwidth.v2').select('verdict', 'reason').row(0)
    assert ruling == 'UNSTABLE' and 'but within bounds in one of two runs' in reason
    assert Session(second).exit_status() == 3       # of its subsystem the two runs together say nothing
    twice = struck.judged(references, struck)
    assert Session(twice).exit_status() == 1 and twice.filter(name='bandwidth.v2')['reason'].item().endswith('in both runs')


def test_a_second_run_of_a_single_process_is_one(measured):
    place, sessions = measured
    quiet = [*sessions(*range(5)), *sessions(6, factor=0.7)]
    references = exchanged.references_of(place, [one.name for one in quiet[:5]])
    first = place.rows(quiet[-1])
    both = first.with_columns(run=pl.lit(1, pl.Int64), samples=pl.concat_list('samples', 'samples'), n=2 * pl.col('n'), processes=pl.lit(json.dumps(
        [{'process': number, 'n': 12, 'record': None} for number in range(2)])))
    judged = exchanged.Again(pl.concat([first, both])).judged(references)
    assert set(judged['verdict']) == {'FAIL'} and all(reason.endswith('in both runs') for reason in judged['reason'])


def test_what_a_second_run_knows_of_the_first_is_measured():
    '''Of the variance of a made-up machine's runs 0.8 are their session's.'''
    def session_of(chance, case=('made', 'cpu', 'gnu', 't')):
        rows = []
        for variant in range(8):
            runs = 1000 * np.exp(0.05 * (np.sqrt(0.8) * chance.standard_normal() + np.sqrt(0.2) * chance.standard_normal(2)))
            its = evaluation.Case(Metric('bandwidth', f'v{variant}', np.repeat(runs, 3)), {}, processes=[Process(0, 3, None), Process(1, 3, None)])
            rows.append({**dict(zip(exchanged.CASE, case)), 'name': its.metric.name, 'value': float(np.median(runs)), 'cases': [its]})
        return SimpleNamespace(rows=rows, twice={case: 1})
    chance = np.random.default_rng(1)
    sessions = [session_of(chance) for _ in range(40)]
    second, after, values, count = exchanged.shared(sessions)
    assert 0.7 < second < 0.9 and abs(after) < 0.15 and (values, count) == (39 * 8, 39)
    for one in sessions:
        one.twice = {}
    assert exchanged.shared(sessions) is None


def test_sessions_that_make_no_references_are_refused(measured, monkeypatch):
    place, sessions = measured
    of_quiet, _, _ = exchanged.count(place, [*sessions(*range(5)), *sessions(5, factor=0.5)], [], 5, 12, np.random.default_rng(1))
    assert 0 < len(of_quiet) < 12 and {codes.total() for codes in of_quiet} == {1}      # the one that is left out
    monkeypatch.setattr(exchanged, 'references_of', lambda place, names: None)
    assert list(exchanged.lines(place, sessions(*range(10)), [], 3)) == ['References from 5 of them: none of 3 draws was of good state.']


def test_what_each_rung_sees_is_judged_by_its_tests_alone(measured, monkeypatch):
    place, sessions = measured
    quiet, faulty = sessions(*range(3)), sessions(7, 8, factor=0.5)
    for one, ruling, messages in ((quiet[0], 'PASS', 'PASS'), (quiet[1], 'PASS', 'PASS'), (quiet[2], 'NO REFERENCE', 'FAIL'), (faulty[0], 'PASS', 'PASS'),
                                  (faulty[1], 'PASS', 'FAIL')):
        path, = place.archive.glob(f'*/*/{one.name}.parquet')
        rows = pl.read_parquet(path).with_columns(verdict=pl.lit(ruling), sees=pl.lit(0.2))
        other = rows.with_columns(test=pl.lit('pingpong'), check=pl.lit('pingpong'), display_name=pl.lit('pingpong'), verdict=pl.lit(messages), sees=pl.lit(0.4))
        archive.write(pl.concat([rows, other]), place.archive)
    name = place.rows(quiet[0])['display_name'][0]
    monkeypatch.setattr(rungs, 'tests_of', lambda place, mode: {'node': {name}, 'screen': {name, 'pingpong'}}[mode])
    table = [re.split(r'  +', line) for line in rungs.lines(place, quiet, faulty)][4:6]
    assert table == [['``node``', '0 of 2', 'memory hog on the last core (0), memory hog on the last core (0)', '0: 3', 'would see 20 %'],
                     ['``screen``', '1 of 2', 'memory hog on the last core (0)', '0: 2, 1: 1', 'would see 30 %']]
    assert rungs.lines(place, quiet, []) == rungs.lines(place, [], faulty) == []


# --- on paper --------------------------------------------------------------------------------------------------------

def test_what_is_lost_on_paper_is_lost_in_both_runs():
    machine = simulation.Machine(np.random.default_rng(1), simulation.Noise(0.0), metrics=2)
    rates = machine.rates_of('latency')
    assert [machine.metrics[number] for number in rates] == [('latency', 'latency', 0), ('latency', 'latency', 1)]
    for frame in machine.session((rates, 0.25)):
        values = frame.filter(pl.col('value') != 1.0)
        assert values['name'].to_list() == ['latency.0', 'latency.1'] and values['value'].to_list() == pytest.approx([1.25] * 2)
    first, second = machine.session(), machine.session()
    assert first[0]['session'][0] == first[1]['session'][0] < second[0]['session'][0]


def test_noise_on_paper_is_as_large_as_asked_and_as_much_in_common():
    machine = simulation.Machine(np.random.default_rng(1), simulation.Noise(0.02, 0.5), metrics=2)
    logs = np.log([machine.session()[0]['value'].to_numpy() for _ in range(100)]) / machine.unlike.ravel()
    assert logs.std() == pytest.approx(0.02, rel=0.05)
    between = np.corrcoef(logs.T)[::2, 1::2]       # of each subsystem one metric against the other one of it, and of others
    assert between.diagonal().mean() == pytest.approx(0.5, abs=0.05)
    assert between[~np.eye(len(between), dtype=bool)].mean() == pytest.approx(0, abs=0.05)


@pytest.mark.slow
def test_on_paper_it_sees_what_it_says_that_it_sees():
    found = simulation.run(simulation.Noise(0.01), 5, draws=1, sessions=5)
    assert found.codes == {0: 5} and len(found.metric) == len(found.part) == 5
    assert all(0.02 < loss < 0.25 for loss, _ in (*found.metric, *found.part)) and sum(did for _, did in (*found.metric, *found.part)) >= 9
    again, other = (simulation.run(simulation.Noise(0.01), 5, draws=1, sessions=1, seed=seed) for seed in (1, 2))
    assert again.metric + again.part == found.metric[:1] + found.part[:1] and other.metric != again.metric


@pytest.mark.slow
def test_the_table_of_the_simulation_is_told():
    done = simulation.lines((0.01,), (0.5,), (5,), draws=1, sessions=1, metrics=2)
    assert done[0] == 'Simulated: 42 metrics of 8 subsystems.' and re.fullmatch(
        r'1 % +50 % +5 +0: 1 +\d+\.\d % +[01] of 1 \(.*\) +\d+\.\d % +[01] of 1 \(.*\)', done[5])

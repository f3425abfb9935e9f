'''Data motion, strided copy, concurrent streams: the programs, their checks, and the switching of the prefetchers.'''

import ctypes
import itertools
import os
import re
import signal
import subprocess

import numpy as np
import pytest

import rfm
from native import CPUS, QUICK, SAMPLES, THREADS, library, listed, needs, output_of, pointer, refused, x86_only
from plumbline.likwid import features
from plumbline.model import uncertainty
from plumbline.report import figures
from waiting import until

PROGRAMS = ['motion', 'strided', 'concurrent']


# --- right results ---------------------------------------------------------------------------------

@pytest.mark.parametrize('program, options', [('motion', []), ('strided', ['--stride', '1,2,8,31,64,1073741824', '--distance', 65536]),
                                              ('concurrent', ['--streams', '1,2,7,32,4096', '--distance', 8])])
@pytest.mark.parametrize('flavour', ['programs', 'sanitized'])
def test_every_variant_is_right_at_every_size(request, flavour, program, options):
    build, sizes = request.getfixturevalue(flavour), [1, 2, 7, 8, 17, 67, 1003, *([300007] if flavour == 'programs' else [])]
    found = build.measured(program, '--variants', 'all', '--size', listed(sizes), '--threads', listed(THREADS), *options,
                           *SAMPLES, '--passes', '1,2,3' if program == 'motion' else 1).measurements      # an update of an update is the vector
    assert {record['variant'] for record in found} == build.runnable(program)
    assert {record['size'] for record in found} == set(sizes)
    assert all(record['valid'] and record['max_error'] == 0 for record in found)


# --- the loops do what their names say ---------------------------------------------------------------

@pytest.fixture(scope='module')
def loops(programs, tmp_path_factory):
    return library(programs, tmp_path_factory.mktemp('loops'), 'motion', *(f'kernels/{program}/kernel.c' for program in PROGRAMS))


@pytest.mark.parametrize('streams, distance', [(1, 125), (2, 61), (3, 41), (7, 17), (32, 3), (100, 1), (200, 0)])
def test_streams_are_read_in_turn(loops, streams, distance):
    '''Sums of reals depend on their order, which no compiler may change: a line of each stream, then the next.'''
    n = 1003
    x, parameters = np.random.default_rng(19971).random(n) * 10.0 ** np.arange(n) ** 0.3, (ctypes.c_long * 2)(streams, 64)
    part = distance * 8     # an odd number of lines
    sums, rest = np.zeros((4, 8)), streams * part
    if streams == 1:        # as any array: partial sums of four lines
        rest = n // 32 * 32
        for four in x[:rest].reshape(-1, 4, 8):
            sums += four
    else:
        for line, stream in itertools.product(range(distance), range(streams)):
            sums[0] += x[stream * part + 8 * line:][:8]
    total = 0.0
    for value in (*sums.flat, *x[rest:]):
        total += value
    for name in ('plain', 'prefetch'):
        loop = getattr(loops, f'concurrent_{name}')
        loop.restype = ctypes.c_double
        assert loop(ctypes.c_size_t(n), pointer(x), parameters) == total


@x86_only
def test_loops_hold_what_their_names_say(loops):
    needs('objdump')
    text = output_of('objdump', '-d', '--no-show-raw-insn', loops._name)
    for function in text.split('\n\n'):
        name = function.split('<', 1)[-1].split('>', 1)[0]
        if name.startswith(('motion_', 'strided_', 'concurrent_')):
            assert ('movnt' in function) == ('_nt' in name), name
            assert ('prefetch' in function.split(':', 1)[1]) == ('_prefetch' in name), name
        if name.startswith('concurrent_'):      # loads and additions
            assert not re.search('perm|shuf|unpck|valign|insert|extract', function), name


# --- the model ---------------------------------------------------------------------------------------

def work_of(build, program, *options):
    return {(r['variant'], r['options'].get('stride')): (r['bytes'], r['flops'], r['traffic'])
            for r in build.measured(program, *options, *QUICK).measurements}


#: Elements of an array that is beyond caches of which so little is ours.
ELEMENTS = 2**17
IN_MEMORY = ['--size', ELEMENTS, '--capacity', 'L1=8192,L2=8192,L3=8192']


def test_work_and_traffic_of_the_motions(programs):
    '''Per element and in L1: fill stores 8 bytes, load loads 8 and adds once, copy and update load 8 and store 8.'''
    found = work_of(programs, 'motion', '--variants', 'fill,load,update,copy,copy_prefetch', '--size', 1000)
    assert found['fill', None] == (8000, 0, 8000)
    assert found['load', None] == (8000, 1000, 8000)
    assert found['update', None] == found['copy', None] == found['copy_prefetch', None] == (16000, 0, 16000)
    # What is stored without having been loaded is fetched first, unless the stores are non-temporal.
    found = work_of(programs, 'motion', '--variants', 'all', *IN_MEMORY)
    per_element = {variant: traffic / ELEMENTS for (variant, _), (_, _, traffic) in found.items()}
    known = {'fill': 16, 'fill_nt': 8, 'load': 8, 'update': 16, 'copy': 24, 'copy_nt': 16}
    assert {variant: per_element[variant] for variant in known if variant in per_element} == \
        {variant: known[variant] for variant in known if variant in per_element}


@x86_only
def test_least_traffic_is_without_write_allocates(programs):
    '''In memory, of ordinary stores: what is loaded, updated or stored past the caches has one traffic.'''
    found = {record['variant']: record for record in
             programs.measured('motion', '--variants', 'fill,fill_nt,load,update,copy', *IN_MEMORY, *QUICK).measurements}
    assert {variant for variant, record in found.items() if 'traffic_least' in record} == {'fill', 'copy'}
    assert all(found[variant]['traffic_least'] == found[variant]['bytes'] for variant in ('fill', 'copy'))
    assert 'traffic_least' not in programs.measured('motion', '--variants', 'fill', '--size', 1000, *QUICK).measurements[0]


def test_work_of_the_strided_copy(programs):
    '''By hand, of 1000 elements: k = 3 moves 334; k = 31 three runs, 33 from 0 (32 x 31 = 992 is the last), 32 from 8 and
    from 16; k = 4096 one from each of the 125 lines.'''
    found = work_of(programs, 'strided', '--variants', 'read,write', '--size', 1000, '--stride', '1,3,31,4096')
    moved = {1: 1000, 3: 334, 31: 33 + 32 + 32, 4096: 125}
    for (_, stride), (application, flops, traffic) in found.items():
        assert (application, flops, traffic) == (16 * moved[stride], 0, 16 * moved[stride])     # in L1 no lines move


@x86_only
def test_traffic_of_the_strided_copy_in_memory(programs):
    '''Per element: lines of x, 8 min(k, 8), and 8 of y; twice what is written, but for non-temporal stores.'''
    found = work_of(programs, 'strided', '--variants', 'read,read_nt,write', *IN_MEMORY, '--stride', '1,2,8,64')
    per_element = {key: 16 * traffic / application for key, (application, _, traffic) in found.items()}
    assert per_element == {
        ('read', 1): 8 + 16, ('read', 2): 16 + 16, ('read', 8): 64 + 16, ('read', 64): 64 + 16,
        ('read_nt', 1): 8 + 8, ('read_nt', 2): 16 + 8, ('read_nt', 8): 64 + 8, ('read_nt', 64): 64 + 8,
        ('write', 1): 16 + 8, ('write', 2): 32 + 8, ('write', 8): 128 + 8, ('write', 64): 128 + 8}


def test_work_of_the_streams(programs):
    found = programs.measured('concurrent', '--size', 1000, '--streams', '1,7', *QUICK).measurements
    assert [(r['bytes'], r['flops'], r['traffic']) for r in found] == [(8000, 1000, 8000)] * 2


@pytest.mark.parametrize('program, options, parts', [('strided', '--stride 0', ['--stride 0', 'whole number from 1']),
                                                     ('strided', '--stride -8', ['--stride -8']), ('strided', '--stride 2.5', ['--stride 2.5']),
                                                     ('strided', '--stride 8,8', ['--stride: 8 stands there twice']),
                                                     ('strided', '--stride 8,,9', ['an item of the list is empty']),
                                                     ('strided', '--distance 65537', ['--distance 65537', 'to 65536']),
                                                     ('concurrent', '--streams 0', ['--streams 0']),
                                                     ('concurrent', '--streams 4097', ['--streams 4097', 'to 4096']),
                                                     ('concurrent', '--distance 12', ['--distance 12', 'multiple of 8']),
                                                     ('motion', '--variants load_nt', ['motion has no such variant', 'fill_nt']),
                                                     ('motion', '--stride 8', ['--stride'])])
def test_bad_input_is_refused(programs, program, options, parts):
    refused(programs.run(program, *options.split()), *parts)


# --- the checks --------------------------------------------------------------------------------------

def test_knee():
    assert uncertainty.knee([1, 2, 4, 8], [5, 10, 9, 7.9], 0.8) == 8
    assert uncertainty.knee([1, 2, 4, 8], [5, 10, 7, 7.9], 0.8) == 4
    assert uncertainty.knee([1, 2, 4, 8], [10, 7, 9, 7], 0.8) == 8      # a dip is no knee
    assert uncertainty.knee([1, 2, 4, 8], [1, 2, 3, 4], 0.8) is None
    assert uncertainty.knee([3], [1], 0.8) is None


def small():
    return [*rfm.small(), '-S', 'strided_copy.strides=1,31', '-S', 'concurrent_streams.streams=1,4']


@pytest.fixture(scope='module')
def measured(measuring, tmp_path_factory):
    '''One run of each check that needs no switches: name -> test case.'''
    place = measuring(tmp_path_factory.mktemp('motion') / 'place')
    done = place.reframe(*small(), '-n', '(motion_memory|strided_copy|concurrent_streams)%threads=one'
                         '|motion_levels%motion=copy%threads=one', checks=rfm.REPOSITORY / 'checks/memory')
    assert done.report, done.out
    return {name.split()[0]: case for name, case in done.cases().items()}


@pytest.mark.parametrize('check, expected', [('motion_memory', {f'{metric}.{variant}' for metric in ('of_limit', 'bandwidth')
                                                                for variant in ('fill', 'fill_nt', 'load', 'copy', 'copy_nt')}),
                                             ('motion_levels', {'of_limit.copy.L1', 'of_limit.copy_nt.memory', 'bandwidth.copy_prefetch.memory'}),
                                             ('strided_copy', {'of_limit.read.31', 'bandwidth.read_nt.1', 'of_limit.write_prefetch.31'}),
                                             ('concurrent_streams', {'of_limit.plain.4', 'bandwidth.prefetch.1'})])
@x86_only
def test_checks_measure_what_they_ask(measured, check, expected):
    case = measured[check]
    rfm.assert_measured(case)
    left = case['plumbline']
    names = {metric['name'] for metric in left['metrics']}
    assert expected <= names | {skipped['metric'] for skipped in left.get('skipped', [])}
    if check == 'concurrent_streams':
        assert {'knee.plain', 'knee.prefetch'} <= names | {skipped['metric'] for skipped in left.get('skipped', [])}
        assert all(m['verdict'] == 'NO REFERENCE' for m in left['metrics'] if m['metric'] == 'knee')
    rfm.assert_drawn(check, case, 'anderson1997')


# --- switching the prefetchers -------------------------------------------------------------------------

def heed_signals():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Switches:
    '''A folder with the script of :mod:`plumbline.likwid.features` and a stand-in for likwid-features.

    :arg on: what is on before: lines ``NAME``, or ``NAME CPU``.
    '''

    def __init__(self, folder, *on, broken=''):
        self.folder, self.state = folder, folder / 'state'
        self.state.write_text(''.join(f'{name}\n' for name in on))
        (folder / 'prefetchers.sh').write_text(features.script([0, 1], 2, folder / 'kept'))
        path = rfm.tools(folder / 'bin', scripts=[rfm.GUARDS / 'likwid-features'])
        self.environment = {**os.environ, 'PATH': str(path), 'CANNED_PREFETCHERS': str(self.state),
                            'CANNED_SWITCHES': broken}

    @property
    def on(self):
        return sorted(self.state.read_text().split('\n')[:-1])

    @property
    def calls(self):
        return [line.split()[2:] for line in (self.folder / 'state.log').read_text().splitlines()]

    def start(self, *command):
        # A shell cannot trap what was ignored when it began, as it is below nohup.
        return subprocess.Popen(['sh', 'prefetchers.sh', *command], cwd=self.folder, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_signals)

    def run(self, *command):
        process = self.start(*command)
        out, errors = process.communicate(timeout=30)
        return process.returncode, out, errors


ON = ['DCU_PREFETCHER', 'HW_PREFETCHER']

#: A program that leaves a line that says what was on when it ran; one that stays while they are off.
SAYS = ['sh', '-c', 'echo "{\\"record\\": \\"measurement\\", \\"group\\": 0, \\"options\\": {}}"'
                    ' $(sort "$CANNED_PREFETCHERS")']
STAYS = ['sh', '-c', 'grep -q . "$CANNED_PREFETCHERS" || { echo $$ > pid; exec sleep 60; }']


def test_prefetchers_are_switched_in_turn_and_back(tmp_path):
    '''CL_PREFETCHER is off before, and stays off.'''
    switches = Switches(tmp_path, *ON)
    code, out, errors = switches.run(*SAYS)
    assert (code, errors) == (0, '')
    names = ' '.join(ON)
    assert out.splitlines() == [
        f'{{"record": "measurement", "group": {group}, "options": {{"prefetchers": "{state}", }}}}{rest}'
        for group, state, rest in ((0, 'on', f' {names}'), (1, 'off', ''), (2, 'on', f' {names}'), (3, 'off', ''))]
    assert switches.on == ON
    assert [call for call in switches.calls if call != ['-l']] == [['-d', 'HW_PREFETCHER,DCU_PREFETCHER'],
                                                                   ['-e', 'HW_PREFETCHER,DCU_PREFETCHER']] * 2


@pytest.mark.parametrize('number, code', [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129),
                                          (signal.SIGKILL, -9)])
def test_prefetchers_are_on_again_however_it_ends(tmp_path, number, code):
    switches = Switches(tmp_path, *ON)
    process = switches.start(*STAYS)
    pid = tmp_path / 'pid'
    until(lambda: pid.exists() and pid.read_text().strip())
    assert switches.on == []
    process.send_signal(number)
    until(lambda: process.poll() is not None)
    until(lambda: switches.on == ON)
    assert process.returncode == code
    if number == signal.SIGKILL:
        os.kill(int(pid.read_text()), signal.SIGTERM)
    until(lambda: not os.path.exists(f'/proc/{int(pid.read_text())}'))
    process.communicate()


def test_prefetchers_are_on_again_at_the_next_start_where_all_was_killed(tmp_path):
    '''As a scheduler ends a job: its cgroup, the guardian included.'''
    switches = Switches(tmp_path, *ON)
    process = switches.start(*STAYS)
    pid = tmp_path / 'pid'
    until(lambda: pid.exists() and pid.read_text().strip())
    guardians = subprocess.run(['pgrep', '-f', f'guardian {process.pid} '], text=True, capture_output=True, timeout=20).stdout.split()
    assert guardians
    for victim in (*guardians, process.pid, pid.read_text()):
        os.kill(int(victim), signal.SIGKILL)
    process.communicate()
    assert switches.on == [] and (tmp_path / 'kept/prefetchers').exists()
    code, out, errors = switches.run(*SAYS)
    assert (code, errors) == (0, '') and out.splitlines()[0].endswith(' '.join(ON))
    assert switches.on == ON and not (tmp_path / 'kept/prefetchers').exists()


@pytest.mark.parametrize('left, reason', [
    ('0,1 HW_PREFETCHER {pid}', 'process {pid} has them off for its own measurement'),
    ('0,1 HW_PREFETCHER;id 1', '{kept}/prefetchers holds something else; remove it')])
def test_what_another_run_has_left_is_looked_at(tmp_path, left, reason):
    switches = Switches(tmp_path, *ON)
    (tmp_path / 'kept').mkdir()
    names = {'pid': os.getpid(), 'kept': tmp_path / 'kept'}
    (tmp_path / 'kept/prefetchers').write_text(left.format(**names) + '\n')
    code, out, _ = switches.run('true')
    assert (code, features.unavailable_reason(out)) == (0, reason.format(**names)) and switches.on == ON


def test_prefetchers_that_stay_off_are_a_failure_that_says_how_to_mend_it(tmp_path):
    switches = Switches(tmp_path, *ON, broken='-e')
    code, _, errors = switches.run('true')
    assert code == 1
    assert 'the prefetchers are still off' in errors
    assert 'run likwid-features -c 0,1 -e HW_PREFETCHER,DCU_PREFETCHER' in errors


def test_prefetchers_are_on_again_after_a_program_that_fails(tmp_path):
    switches = Switches(tmp_path, *ON)
    code, _, errors = switches.run('sh', '-c', 'grep -q . "$CANNED_PREFETCHERS" || { echo broken >&2; exit 7; }')
    assert (code, errors) == (7, 'broken\n') and switches.on == ON


@pytest.mark.parametrize('on, broken, reason', [([], '', 'none of them is on'),
                                                (['HW_PREFETCHER', 'CL_PREFETCHER 1'], '', 'CL_PREFETCHER: not alike on all CPUs'),
                                                (ON, '-d',
                                                 'HW_PREFETCHER,DCU_PREFETCHER stay on: Failed HW_PREFETCHER,DCU_PREFETCHER for HWThread 0,1')])
def test_what_cannot_be_switched_is_said(tmp_path, on, broken, reason):
    switches = Switches(tmp_path, *on, broken=broken)
    code, out, _ = switches.run('true')
    assert (code, features.unavailable_reason(out)) == (0, reason)
    assert switches.on == sorted(on)


@pytest.mark.parametrize('said, reason', [('INFO: Manipulation of CPU features is only available on Intel platforms', None),
                                          ('ERROR - [./src/access.c:12] Cannot access MSR device file /dev/cpu/0/msr',
                                           'Cannot access MSR device file /dev/cpu/0/msr'), ('', 'likwid-features says nothing')])
def test_what_the_tool_complains_of_is_the_reason(tmp_path, said, reason):
    tool = rfm.script(tmp_path / 'likwid-features', f"echo '{said}'")
    script = tmp_path / 'prefetchers.sh'
    script.write_text(features.script([0], 1, tmp_path / 'kept'))
    out = output_of('sh', script, 'true', cwd=tmp_path, env={'PATH': f'{tmp_path}:/usr/bin:/bin'})
    assert features.unavailable_reason(out) == (reason or said)
    os.remove(tool)
    tools = rfm.tools(tmp_path / 'bin', without=['likwid-features'])
    out = output_of('sh', script, 'true', cwd=tmp_path, env={'PATH': str(tools)})
    assert features.unavailable_reason(out) == 'likwid-features is not on this node'
    assert features.unavailable_reason('{"record": 1}') is None


CHECK = rfm.REPOSITORY / 'checks/memory/motion_prefetchers.py'


def switched(folder, handed_out, scripts):
    '''The check on one CPU, with stand-ins for LIKWID: (run, test case).'''
    folder.mkdir()
    path = rfm.tools(folder / 'bin', without=(*rfm.LIKWID, 'likwid-features', 'objdump'),     # which takes longer than all of the rest
                     scripts=[rfm.GUARDS / name for name in ('cmake', *scripts)])
    state = folder / 'state'
    state.write_text('HW_PREFETCHER\n')
    place = rfm.Workplace(folder / 'place', path, rfm.REPOSITORY / 'config/localhost.py',
                          CANNED_PROGRAMS=handed_out, CANNED_PREFETCHERS=state)
    needs('taskset')
    done = place.reframe(*small(), '-S', 'motion_prefetchers.rounds=1', '-n', 'motion_prefetchers%threads=one',
                         checks=CHECK, before=['taskset', '-c', str(CPUS[0])])
    assert state.read_text() == 'HW_PREFETCHER\n'
    return done, done.cases()['motion_prefetchers %threads=one']


def test_check_with_switches(tmp_path, handed_out):
    done, case = switched(tmp_path / 'on', handed_out, ['likwid-pin', 'likwid-features'])
    assert case['result'] == 'pass', done.out
    left = case['plumbline']
    variants = ('fill', 'load', 'load_prefetch', 'copy', 'copy_prefetch')
    assert {m['name']: m['n'] for m in left['metrics']} == {
        **{f'speedup.{variant}': 1 for variant in variants},
        **{f'bandwidth.{variant}.{state}': 10 for variant in variants for state in ('on', 'off')}}
    assert [r['options']['prefetchers'] for r in left['records'][::5]] == ['on', 'off']
    (_, caption, table), = figures.of_check('motion_prefetchers', [left])
    assert [row[0] for row in table.rows] == list(variants) and caption.endswith('table 3.')


@pytest.mark.parametrize('scripts, reason', [([], 'likwid is not on this partition'),
                                             (['likwid-pin'], 'likwid-features is not on this node')])
def test_check_without_switches_is_skipped_with_the_reason(tmp_path, handed_out, scripts, reason):
    done, case = switched(tmp_path / 'off', handed_out, scripts)
    assert case['result'] == 'skip', done.out
    assert case['plumbline']['skipped'] == [{'metric': 'speedup', 'reason': reason}]

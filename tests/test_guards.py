'''The ways in which a ReFrame suite passes wrongly, each tried on the real ReFrame.

The native programs are canned (``guards/program.py``): they print what a story says.  The build,
ReFrame's pipeline, the base plugin, the settings, the archive and the report are real.
'''

import csv
import itertools
import json
import os
import re
import shlex
import shutil
import socket
import sys
import types

import pytest
import yaml
from reframe.core.exceptions import ForceExitError, ReframeError

import rfm
from plumbline.mpi.check import MpiCheck
from plumbline.rfm import job, variables
from plumbline.rfm.variables import Amount, Size, Whole, WholeOrAll, Wholes, Words, YesNo
from plumbline.store import perflogs

SERIAL = '--exec-policy=serial'


# --- where the runs take place ------------------------------------------------------------------

@pytest.fixture(scope='session')
def with_likwid(tmp_path_factory):
    '''PATH with a canned cmake and a canned LIKWID, of which likwid-bench dies.'''
    return rfm.tools(tmp_path_factory.mktemp('path') / 'bin', scripts=[rfm.GUARDS / name for name in ('cmake', 'likwid-pin', 'likwid-bench')])


@pytest.fixture
def place(tmp_path, commands):
    return rfm.Workplace(tmp_path / 'place', commands, PLUMBLINE_REFERENCES=rfm.KNOWN, CANNED_MARK=tmp_path / 'mark')


@pytest.fixture(scope='module')
def stories(tmp_path_factory, commands):
    '''One run of all canned checks: (place, run, what ``plumbline report`` says of it).'''
    folder = tmp_path_factory.mktemp('stories')
    place = rfm.Workplace(folder, commands, PLUMBLINE_REFERENCES=rfm.KNOWN, CANNED_MARK=folder / 'mark')
    done = place.reframe('-r', SERIAL, '--keep-stage-files')
    assert done.report, done.out
    return place, done, place.judge()


def verdicts_of(case):
    return {metric['name']: metric['verdict'] for metric in case['plumbline']['metrics']}


def written_references(folder, content, name='portable.yaml'):
    folder.mkdir(exist_ok=True)
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    (folder / name).write_text(text)
    return folder


# --- what a program prints is not believed ------------------------------------------------------

@pytest.mark.parametrize('story, reason', [
    ('crash', 'the job ended with exit code 3: plumbline: a made-up crash'),
    ('invalid', 'the result is wrong'),
    ('missing', 'triad measured nothing'),
    ('silent', 'triad measured nothing'),
    ('truncated', 'line 3: truncated record'),
    ('elsewhere', 'thread 0 was placed on CPU'),
    ('level', 'is meant for memory, but lives in L3'),
    ('endless', 'NaN is not a finite number'),
    ('timeless', 'every sample took time'),
    ('short', 'more passes are needed'),
    ('few', '9 samples are fewer than 10'),
])
def test_bad_records_fail_before_their_numbers_are_looked_at(stories, story, reason):
    _, done, judged = stories
    case = done.cases()[f'Told %story={story}']
    assert (case['result'], case['fail_phase']) == ('fail', 'sanity')
    assert reason in case['fail_reason'] and '\n' not in case['fail_reason'].strip()
    assert not case['perfvalues'] and 'metrics' not in (case['plumbline'] or {})
    assert re.search(rf'Told {story} +\(no metric\) .* FAIL\n', judged.out)


@pytest.mark.parametrize('name, reason', [
    ('Unmeasurable', 'reframe syntax error: time: a performance function is not judged here: yield it from evaluate()'),
    ('Nothing', 'performance error: not measured: any metric at all'), ('Unregistered', "metric 'bandwith' is not in the registry; enter it in ")])
def test_what_measures_nothing_that_could_be_judged_fails_by_its_reason(stories, name, reason):
    case = stories[1].cases()[name]
    assert case['result'] == 'fail' and reason in case['fail_reason'] and '\n' not in case['fail_reason'].strip() and not case['perfvalues']


# --- verdicts, in ReFrame and in ours -----------------------------------------------------------

@pytest.mark.parametrize('name, result, of_limit, bandwidth', [
    ('Told %story=good', 'pass', 'PASS', 'PASS'),
    ('Told %story=slow', 'fail', 'FAIL', 'FAIL'),
    ('Told %story=impossible', 'fail', 'FAIL', 'PASS'),
    ('Told %story=noisy', 'fail', 'UNSTABLE', 'UNSTABLE'),
    ('Told %story=wavering', 'fail', 'PASS', 'UNSTABLE'),
    ('Told %story=unknown', 'pass', 'NO REFERENCE', 'NO REFERENCE'),
])
def test_reframe_agrees_with_the_verdicts(stories, name, result, of_limit, bandwidth):
    case = stories[1].cases()[name]
    assert case['result'] == result
    assert verdicts_of(case) == {'of_limit.plain': of_limit, 'bandwidth.plain': bandwidth}
    okay = re.search(rf'OK.* {re.escape(name)} /', stories[1].out)
    assert bool(okay) == (result == 'pass')


def test_median_in_bounds_with_too_much_spread_is_no_pass(stories):
    '''ReFrame looks at the median only, and would be content.'''
    case = stories[1].cases()['Told %story=wavering']
    assert all(entry[-1] != 'fail' for entry in case['perfvalues'].values())
    assert 'UNSTABLE: bandwidth.plain: interval' in case['fail_reason']
    assert case['plumbline']['failed_for'] == 'UNSTABLE'
    case = stories[1].cases()['NotANumber']
    assert (case['result'], verdicts_of(case)) == ('fail', {'time': 'FAIL'})


def test_report_of_the_stories(stories):
    _, done, judged = stories
    assert (done.code, judged.code) == (1, 1)
    assert re.search(r'Told impossible +of_limit.plain .* FAIL\n +1.25 is outside 0.65 .. 1.10', judged.out)
    counts = ' '.join(re.findall('^(?:software|speed|measurement) .*', judged.out, re.MULTILINE)[-3:])
    counted = {name: sum(map(int, re.findall(rf'(\d+) {name}', counts))) for name in ('FAIL', 'PASS', 'UNSTABLE')}
    assert counted == {'FAIL': 19, 'PASS': 4, 'UNSTABLE': 4}
    # A check that is skipped is not measured, for the reason that it gave.
    assert 'Skipped: bandwidth - made to be skipped' in judged.out
    assert not re.search(r'^Skipped .*(PASS|FAIL)', judged.out, re.MULTILINE)
    for out in (done.out, judged.out):
        assert 'Traceback' not in out


def test_printed_command_runs_the_check_again(stories, tmp_path):
    place, _, judged = stories
    command = re.search(r'^  (reframe .*)$', judged.out, re.MULTILINE)[1]
    again = rfm.Workplace(tmp_path / 'again', place.environment['PATH'])
    again.environment['PLUMBLINE_REFERENCES'] = place.environment['PLUMBLINE_REFERENCES']
    done = again.reframe(*shlex.split(command)[5:])
    assert list(done.cases()) == ['Told %story=slow'] and done.code == 1


# --- exit codes ---------------------------------------------------------------------------------

def test_good_run_exits_with_0(place):
    done = place.reframe('-r', SERIAL, '-n', 'Told.*go{1,2}d')     # braces do no harm, as long as ReFrame stores nothing
    judged = place.judge()
    assert (done.code, judged.code) == (0, 0)
    assert all(re.search(f'^{question} .* 1 PASS, 0 FAIL, 0 UNSTABLE, 0 NO REFERENCE', judged.out, re.MULTILINE) for question in ('software', 'speed'))
    assert (place.folder / 'reports/latest/index.html').exists()
    assert list(place.folder.glob('reports/archive/system=made/date=*/*.parquet'))
    # An exit code of ReFrame that no verdict explains is no pass.
    judged = place.plumbline('report', place.report, '--reframe-status', '1')
    assert judged.code == 2 and 'REFRAME FAILED: its exit code is 1, ' in judged.out
    done = place.reframe('-r', SERIAL, '-n', 'Told.*good', '--skip-performance-check')
    judged = place.judge()
    assert (done.code, judged.code) == (0, 1)
    assert 'measured nothing: the test passed without a metric' in judged.out


def test_make_health_without_a_test_fails(place):
    if not (rfm.REPOSITORY / '.venv/bin/plumbline').exists():
        pytest.skip('there is no .venv, which make uses')
    done = place.run(['make', '-C', rfm.REPOSITORY, 'health', 'SETUP=true', f'RUNS={place.folder}', 'RFMFLAGS=-n NoSuchTest'])
    assert 'nothing was measured' in done.line('plumbline: ')
    assert re.search(r'health\] Error 2$', done.out, re.MULTILINE) and done.code == 2


def test_hardware_is_accepted_by_more_processes(place):
    '''One slow process of five moves no value, so that nothing is measured again.'''
    done = place.reframe('--mode', 'acceptance', '-r', '-n', 'Flaky')
    payload = done.cases(0)['Flaky']['plumbline']
    assert [process['n'] for process in payload['metrics'][0]['processes']] == [10] * 5
    assert '-S Flaky.processes=5 -r' in payload['rerun']
    assert done.code == 0 and len(done.report['runs']) == 1


def test_failure_is_measured_again(place):
    done = place.reframe('--mode=daily', '-r', '-n', 'Flaky')
    results = [done.cases(run)['Flaky']['result'] for run in (0, 1)]
    assert results == ['fail', 'pass'] and done.code == 0
    judged = place.judge()
    assert judged.code == 0
    assert 'PASS at run 2 of 2; run 1: 7.94 GB/s' in judged.out
    # One process was slow, and is not forgotten: the second run judges all of both.
    metric, = (m for m in done.cases()['Flaky']['plumbline']['metrics'] if m['metric'] == 'bandwidth')
    assert [process['n'] for process in metric['processes']] == [10] * 6 and min(metric['samples']) < 5100
    assert [record['process'] for record in done.cases()['Flaky']['plumbline']['records'][::2]] == list(range(6))


@pytest.mark.parametrize('story, first, end', [
    ('flipped', 'exit code 1: plumbline: triad plain, size 1, 1 threads: the result is wrong', ('fail', 1)),
    ('invalid', 'the result is wrong: it differs from the independent reference', ('fail', 1)),      # the launcher has swallowed the exit code
    ('elsewhere', 'was placed on CPU', ('pass', 0))])
def test_a_wrong_result_is_not_made_up_for_by_another_run(place, story, first, end):
    done = place.reframe('--mode=acceptance', '-r', '-n', 'Flaky', '-S', f'Flaky.story=once {story}')
    before, after = (done.cases(run)['Flaky'] for run in (0, 1))
    assert before['fail_phase'] == 'sanity' and first in before['fail_reason']
    assert (after['result'], done.code) == end and place.judge().code == end[1]
    if end[1]:
        assert re.search('in an earlier run of this session: .*: the result is wrong', after['fail_reason'])


def test_each_run_has_the_share_of_the_time_that_it_was_given(place):
    done = place.reframe('--max-retries=1', '-r', '-n', 'node_speed%threads=one', checks=rfm.REPOSITORY / 'checks/memory/node_speed.py', CANNED_WAITED='0.5 0.01')
    metric, = (metric for metric in done.cases()['node_speed %threads=one']['plumbline']['metrics'] if metric['name'] == 'cpu_availability')
    assert metric['samples'] == [0.5, 0.99] and metric['verdict'] == 'UNSTABLE'
    done = place.reframe('--max-retries=1', '-r', '-n', 'Shared', CANNED_WAITED='0 0.15')
    assert [verdicts_of(done.cases(run)['Shared']) for run in (0, 1)] == [{'efficiency.plain': 'FAIL'}] * 2


# --- a check that is not there ------------------------------------------------------------------

BROKEN = '''import reframe as rfm
from plumbline.rfm.check import NativeCheck
NativeCheck.no_such_thing
'''


@pytest.fixture
def half_broken(tmp_path):
    '''A folder of checks of which one file cannot be imported.'''
    folder = tmp_path / 'checks'
    folder.mkdir()
    shutil.copy(rfm.GUARDS / 'canned.py', folder)
    (folder / 'broken.py').write_text(BROKEN)
    return folder


def test_broken_check_file_stops_the_modes(place, half_broken):
    plain = place.reframe('-r', SERIAL, '-n', 'Told.*good', checks=half_broken)
    assert plain.code == 0 and 'skipping test file' in plain.out    # what ReFrame thinks of it
    done = place.reframe('--mode=daily', '-r', checks=half_broken)
    assert done.code == 1 and done.report is None
    assert 'skipping test file' in done.line('ERROR: run session stopped: ')
    assert 'Traceback' not in done.out
    assert place.judge().code == 2


# --- references ---------------------------------------------------------------------------------

@pytest.mark.parametrize('beside, why, told', [
    ({}, 'performance error: not measured: bandwidth.gone of made.yaml', 'not measured: bandwidth.gone of made.yaml'),
    ({'bandwidth.plain': [1e9, -0.1, None, 'MB/s']}, 'bandwidth.plain=', 'it is gone, and made.yaml has it; references are recorded of 1 of its metrics')])
def test_recorded_metric_that_is_gone_fails(place, tmp_path, beside, why, told):
    '''It is named beside a metric that is a FAIL, too.'''
    folder = shutil.copytree(rfm.KNOWN, tmp_path / 'r')
    written_references(folder, {'Told': {
        '$index': ['$partition', '$environ', 'story'],
        'made:cpu': {'gnu': {'good': {'bandwidth.gone': [1000, -0.1, None, 'MB/s'], **beside}}}}},
        'made.yaml')
    done = place.reframe('-r', '-n', 'Told.*good', PLUMBLINE_REFERENCES=str(folder))
    case = done.cases()['Told %story=good']
    assert (done.code, case['result']) == (1, 'fail')
    assert why in case['fail_reason']
    judged = place.judge()
    assert judged.code == 1 and told in ' '.join(judged.out.split()) and 'bandwidth.gone' in judged.out


def test_a_size_that_is_given_is_judged_by_no_reference_of_the_usual_one(place, tmp_path):
    folder = shutil.copytree(rfm.KNOWN, tmp_path / 'r')
    run, given, where = ['-r', '-n', 'Told.*good'], ['-S', 'Told.memory_bytes=1073741824'], {'PLUMBLINE_REFERENCES': str(folder)}
    payload = place.reframe(*run, *given, **where).cases()['Told %story=good']['plumbline']
    assert payload['given'] == {'memory_bytes': '1073741824'} and ' -S Told.memory_bytes=1073741824 -r' in payload['rerun']
    place.judge()
    accepted = place.accept('made', '--output', folder / 'made.yaml', **where)
    assert accepted.code == 0, accepted.out
    for options, file in ((given, 'made.yaml'), ((), 'portable.yaml')):      # which holds for any
        case = place.reframe(*run, *options, **where).cases()['Told %story=good']
        assert rfm.metrics_of(case)['bandwidth.plain']['reference_from'] == file


def test_what_failed_runs_again_in_a_restored_session(place):
    first, before = place.reframe('-r', '-n', 'Told.*slow', PLUMBLINE_CAPACITY='measured'), place.folder / 'before.json'
    before.write_text(place.report.read_text())
    again = place.reframe('-r', '--failed', f'--restore-session={before}', PLUMBLINE_CAPACITY='measured')
    (was,), (case,) = first.cases().values(), again.cases().values()
    assert case['fail_phase'] == was['fail_phase'] == 'performance', case['fail_reason']
    dumped, = place.stage.rglob('native_programs*/.rfm_testcase.json')
    assert json.loads(dumped.read_text())['claimed']       # ReFrame's topology is not read back


def test_recorded_references_see_what_gets_worse(place, tmp_path):
    '''Recorded by a real run, whose impossible values are left out alone; then the same test runs worse.'''
    run = ['-r', '-n', '^Directions$']
    assert place.reframe(*run).code == 0
    place.judge()
    folder = written_references(tmp_path / 'r', '')
    done = place.accept('made', '--output', folder / 'made.yaml', PLUMBLINE_REFERENCES=folder)
    assert done.code == 0 and '8 references from 5 sessions' in done.out, done.out
    for metric, why in (('of_limit', '1.2 is above 1.1'), ('cpu_availability', '1.01 is above 1')):
        assert re.search(rf'no reference: Directions/.*/{metric}.plain: {re.escape(why)}, the most that any hardware gives', done.out)
    done = place.reframe(*run, '-S', 'Directions.worse=2', PLUMBLINE_REFERENCES=str(folder))
    found = verdicts_of(done.cases()['Directions'])
    assert len(found) == 10
    assert {name for name, verdict in found.items() if verdict != 'FAIL'} == {'of_limit.plain', 'cpu_availability.plain'}

    def told(*options):
        done = place.reframe(*run, '-S', 'Directions.worse=1.25', *options, PLUMBLINE_REFERENCES=str(folder))
        case = done.cases()['Directions']
        metric, = (one for one in case['plumbline']['metrics'] if one['name'] == 'speedup.plain')
        return metric['verdict'], metric['reason'], case['result'], done.code

    ruling, reason, result, code = told()
    assert (ruling, result, code) == ('UNSTABLE', 'fail', 1) and reason.endswith(', 20 % less than the reference: a FAIL if a second run says so, too')
    ruling, reason, result, code = told('--max-retries=1', '-S', 'Directions.once=yes')
    assert (ruling, result, code) == ('PASS', 'pass', 0) and reason.startswith('0.7155 is at least')


def test_reference_above_the_peak_is_refused(place, tmp_path):
    folder = written_references(tmp_path / 'r', {'limits': {
        '$index': ['$partition', '$environ', 'threads'],
        'made:cpu': {'gnu': {'all': {'bandwidth.memory': [400000, -0.1, None, 'MB/s']}}}}})
    machine = tmp_path / 'machine.yaml'
    machine.write_text('schema: 1\nmemory: {channels: 8, transfer_rate: 3200, source: made}\n')
    file = folder / 'portable.yaml'
    assert place.plumbline('references', 'check', file).code == 0
    done = place.plumbline('references', 'check', file, '--machine', machine)
    assert done.code == 2 and len(done.out.splitlines()) == 1
    assert 'above the hardware limit of memory/all, 204800 MB/s' in done.out


# --- where and when things run ------------------------------------------------------------------

def intervals(path):
    '''(begin, end, what) of each stamped piece of work, by its begin.'''
    open_, closed = {}, []
    for line in path.read_text().splitlines():
        edge, when, what = line.split(' ', 2)
        if edge == 'begin':
            open_[what] = float(when)
        else:
            closed.append((open_.pop(what), float(when), what))
    assert not open_
    return sorted(closed)


def overlaps(path):
    work = intervals(path)
    return [(a[2], b[2]) for a, b in itertools.pairwise(work) if b[0] < a[1]]


def test_local_jobs_and_builds_do_not_overlap(place, tmp_path):
    run = ['-r', '--exec-policy=async', '-n', 'AllThreads|OtherMetric', '-S', 'processes=1']
    stamps = {'CANNED_ENVIRONS': 'gnu other', 'CANNED_STAMPS': str(tmp_path / 'stamps')}
    assert place.reframe(*run, **stamps).code == 0
    assert {what for _, _, what in intervals(tmp_path / 'stamps')} >= {'build', 'AllThreads'}
    assert len(intervals(tmp_path / 'stamps')) == 8
    assert overlaps(tmp_path / 'stamps') == []


def test_overlap_would_be_seen(place, tmp_path):
    '''What ReFrame does without ``max_jobs``: if this fails, the test above proves nothing.'''
    place.reframe('-r', '--exec-policy=async', '-n', 'AllThreads|OtherMetric|Nothing', CANNED_OVERLAP='1', CANNED_STAMPS=str(tmp_path / 'stamps'))
    assert overlaps(tmp_path / 'stamps')


def test_one_cpu_of_128(place):
    '''ReFrame's detection does not know affinity: the check does.'''
    cpu = min(rfm.os.sched_getaffinity(0))
    done = place.reframe('-r', SERIAL, '-n', 'AllThreads', CANNED_CPUS='128', before=['taskset', '-c', cpu])
    assert done.code == 0
    left = done.cases()['AllThreads']['plumbline']
    assert [record['cpus'] for record in left['records']] == [[cpu]] * 6
    assert left['command'].endswith(f'--cpus {cpu}')
    assert left['records'][0]['options']['environment'] == '1'


def test_sources_are_not_copied(stories):
    place, _, _ = stories
    staged = [path.name for path in place.stage.rglob('*') if 'build' not in path.parts]
    assert staged and (rfm.GUARDS / 'src/decoy.txt').exists()
    assert not {'decoy.txt', 'CMakeLists.txt', 'kernels'} & set(staged)


@pytest.fixture(scope='module')
def slurm_run(tmp_path_factory, with_likwid):
    '''A run on a partition of a canned Slurm, with a canned LIKWID: (place, run).'''
    folder = tmp_path_factory.mktemp('slurm')
    place = rfm.Workplace(folder, f"{rfm.GUARDS / 'slurm'}:{with_likwid}",
                          PLUMBLINE_REFERENCES=rfm.KNOWN, CANNED_SCHEDULER='squeue',
                          CANNED_LAUNCHER='srun', CANNED_FEATURES='likwid')
    return place, place.reframe('-r', '--keep-stage-files', '-n', 'Told.*(good|crash)', '-n', 'CrossChecked')


def script_of(place, test, name='rfm_job.sh'):
    path, = place.stage.glob(f'made/cpu/gnu/{test}*/{name}')
    return path.read_text()


def test_squeue_does_not_tell_exit_codes_but_they_count(slurm_run):
    done = slurm_run[1]
    assert done.fixtures()['native_programs']['result'] == 'pass', done.out
    cases = done.cases()
    assert cases['Told %story=good']['result'] == 'pass'
    assert cases['Told %story=crash']['fail_reason'].endswith('the job ended with exit code 1: plumbline: a made-up crash')
    script = script_of(slurm_run[0], 'CrossChecked')
    assert 'export OMP_NUM_THREADS=1\n' in script and '--export' not in script
    record = slurm_run[1].cases()['CrossChecked']['plumbline']['records'][0]
    assert record['options']['environment'] == '1'


def test_likwid_pin_stands_between_srun_and_the_program(slurm_run):
    script = script_of(slurm_run[0], 'CrossChecked')
    line, = re.findall(r'^env .* srun .*', script, re.MULTILINE)
    assert f'for process in 1 2 3; do\n{line}\ndone\n' in script
    words = shlex.split(line)
    launcher = words[:words.index('likwid-pin')]
    unset = ('SLURM_CPUS_PER_TASK', 'SRUN_CPUS_PER_TASK', 'SLURM_EXACT', 'SLURM_TRES_PER_TASK')
    assert launcher == ['env', *itertools.chain(*(('-u', name) for name in unset)), 'srun', '--cpu-bind=none']
    assert words[len(launcher) + 1:len(launcher) + 3] == ['-q', '-c']
    assert words[len(launcher) + 4].endswith('build/bin/triad')
    build = script_of(slurm_run[0], 'native_programs', 'rfm_build.sh')
    assert '#SBATCH --job-name' in build and '\ncmake ' in build
    script = next(slurm_run[0].stage.glob('made/cpu/*/likwid_bench*/rfm_job.sh')).read_text()
    assert re.search(r'^env .* srun .*--cpu-bind=none.* sh -c ', script, re.MULTILINE)


# --- LIKWID, or not -----------------------------------------------------------------------------

def test_cross_check_that_dies_does_not_stop_the_checks(slurm_run):
    place, done = slurm_run
    case = done.cases()['CrossChecked']
    assert case['result'] == 'pass' and case['plumbline']['cross_check'] is None
    reason = case['plumbline']['cross_check_reason']
    assert reason.startswith('not confirmed by likwid-bench: ') and '\n' not in reason
    place.judge()
    assert 'not confirmed by likwid-bench' in (place.folder / 'reports/latest/index.html').read_text()


def test_without_likwid(stories):
    left = stories[1].cases()['CrossChecked']['plumbline']
    assert left['cross_check_reason'] == 'not confirmed by likwid-bench: it is not on this partition'
    assert 'likwid-pin is not on this partition: OpenMP binds the threads' in left['notes']
    assert 'likwid-pin' not in left['command']
    assert left['cross_check_reason'] in (stories[0].folder / 'reports/latest/index.html').read_text()


# --- ReFrame's own stores -----------------------------------------------------------------------

def test_performance_log_has_the_right_values_under_the_right_names(stories):
    logs = stories[0].folder / 'reports/perflogs/made/cpu'
    read = [row for name in ('Told', 'OtherMetric') for row in csv.DictReader((logs / f'{name}.log').read_text().splitlines(), delimiter='|')]
    assert all(None not in row and None not in row.values() for row in read)        # no line has fewer fields, or more, than its first
    found = {(row['display_name'], row['perf_var']): (row['perf_value'], row['perf_unit'], row['perf_result'], row['verdict']) for row in read}
    assert {key: value for key, value in found.items() if key[0] in ('Told %story=good', 'OtherMetric')} == {
        ('Told %story=good', 'bandwidth.plain'): ('10001.00010001', 'MB/s', 'pass', 'PASS'),
        ('Told %story=good', 'of_limit.plain'): ('1.0', '1', 'pass', 'PASS'), ('OtherMetric', 'time.plain'): ('7.0', 's', 'pass', 'NO REFERENCE')}
    # What we write we read.
    name, = (case for report in perflogs.read(logs.parent.parent).reports for run in report['runs'] for case in run['testcases']
             if case['name'] == 'Told %story=good')
    assert name['perfvalues']['of_limit.plain'][:2] == [1.0, 1.0]


def test_brace_in_the_command_line_is_refused_where_results_are_stored(place, tmp_path):
    done = place.reframe('-r', '-n', 'Told.*go{1,2}d', RFM_ENABLE_RESULTS_STORAGE='yes')
    assert done.code == 1 and done.report is None
    assert "a '}' in the command line" in done.line('plumbline: ')
    assert 'Traceback' not in done.out
    (tmp_path / 'file').write_text('')
    done = place.reframe('-r', PLUMBLINE_REPORTS=str(tmp_path / 'file/reports'))
    assert done.code == 1 and 'Not a directory' in done.line('ERROR: ')
    assert 'Traceback' not in done.out


# --- what a person may get wrong ----------------------------------------------------------------

def test_wrong_references_are_one_line_and_fail_the_check_that_reads_them(place, tmp_path):
    folder = written_references(tmp_path / 'r', {'Told': {'$index': ['$partition'], 'made:cpu': {'bandwidth.plain': [1, 2]}}}, 'made.yaml')
    checked = place.plumbline('references', 'check', PLUMBLINE_REFERENCES=str(folder))
    assert checked.code == 2 and len(checked.out.splitlines()) == 1 and 'made.yaml: field Told/made:cpu/bandwidth.plain: ' in checked.out
    folder = written_references(tmp_path / 'r', {'Told': {'$index': ['nonsense'], 'a': {'bandwidth.plain': [1, -0.1, None, 's']}}}, 'made.yaml')
    for at, said in (folder, "$index names 'nonsense'"), (tmp_path / 'none', 'no folder of references'):
        done = place.reframe('-r', '-n', 'Told.*good', PLUMBLINE_REFERENCES=str(at))
        case = done.cases()['Told %story=good']
        reason = case['fail_reason']
        assert (done.code, case['fail_phase']) == (1, 'performance') and said in reason, reason
        assert '\n' not in reason.strip() and 'Traceback' not in done.out


def test_no_matching_system(place):
    '''ReFrame alone would fall back on a system of its own, have no test for it and pass.'''
    done = place.reframe('--mode=daily', '-r', CANNED_HOSTNAMES='nowhere[0-9]+')
    assert done.code == 1
    assert 'no system of this configuration matches the host' in done.out and done.out.count('\n') == 1
    assert place.judge().code == 2
    # The host is called what ReFrame takes it for.
    for host, asked, code in ('nowhere1', 'nowhere[0-9]+', 0), ('nowhere1', socket.gethostname(), 1):
        done = place.reframe('-l', '-n', 'Told', CANNED_HOSTNAMES=asked, RFM_AUTODETECT_METHODS=f'echo {host}')
        assert (done.code, 'by autodetect_methods echo nowhere1' in done.out) == (code, bool(code)), done.out
    done = place.reframe('-r', '--system=nowhere')
    assert done.code == 1 and 'failed to load configuration' in done.line('ERROR: ')


def test_a_chain_of_configurations_has_the_systems_of_all(place):
    '''Several clusters, a file each: that one does not match this host is no error while another one does.'''
    for first, second in (('config.py', 'four_partitions.py'), ('four_partitions.py', 'config.py')):
        place.config = rfm.GUARDS / first
        done = place.reframe('-C', rfm.GUARDS / second, '-l', '-n', 'Told', CANNED_HOSTNAMES='nowhere[0-9]+')
        assert done.code == 0 and "selected system:   'four'" in done.out, done.out


# --- what runs beside the programs ------------------------------------------------------------------

SLEEPS = '''
import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import sanity_function


@rfm.simple_test
class sleeps(rfm.RunOnlyRegressionTest):
    valid_systems = valid_prog_environs = ['*']
    executable, executable_opts = 'sh', ['-c', "'reframe=$(ps -o ppid= -p $PPID); cd /proc/$((reframe)) && cat stat && sleep 3 && cat stat'"]

    @sanity_function
    def ended(self):
        return sn.assert_true(True)
'''


@pytest.mark.alone
def test_reframe_sleeps_while_a_program_runs(tmp_path, commands):
    '''Of a node with two CPUs a team of two threads would stop with it.  Of its CPU time 5 % at most: what shares the cores makes it twice as long.'''
    check = tmp_path / 'sleeps.py'
    check.write_text(SLEEPS)
    place, took = rfm.Workplace(tmp_path / 'place', commands, PLUMBLINE_REFERENCES=rfm.KNOWN, RFM_POLL_RATE_MAX=10, RFM_POLL_RATE_MIN=10), []
    for _ in range(3):
        assert place.reframe(SERIAL, '-r', '--keep-stage-files', checks=check).code == 0
        output, = place.stage.rglob('rfm_job.out')
        begin, end = (sum(map(int, line.rpartition(')')[2].split()[11:13])) for line in output.read_text().splitlines())       # utime, stime
        assert begin > 0        # it is ReFrame, which has loaded the check
        took.append((end - begin) / os.sysconf('SC_CLK_TCK'))
        if took[-1] < 0.05 * 3:
            return
    pytest.fail(f'CPU seconds of ReFrame while a program slept for 3 s: {took}')


@pytest.mark.parametrize('said, why', [('samples=abc', "'abc' is no whole number of 0 and more"), ('samples=-3', "'-3' is no whole number of 0 and more"), ('time_limit=abc', 'no time: write seconds, or such as 1h30m'),
                                       ('Told.intended=3', 'this is what a check writes, and nothing that can be given; leave it out')])
def test_a_variable_that_is_given_no_number_or_that_a_check_writes(place, said, why):
    done = place.reframe('-n', 'Told%story=good', '-r', '-S', said)
    assert done.code == 1 and 'Traceback' not in done.out and not done.report
    assert done.line('plumbline: ') == f'plumbline: -S {said}: {why}'


@pytest.mark.parametrize('kind, text, wrong', [(YesNo, 'abc', 'is neither yes nor no'), (Whole, '1e3', 'is no whole number'), (Whole, '', 'is no whole number'),
                                               (Wholes, '1,a', 'is no list of whole numbers, such as 1,2,4'), (WholeOrAll, '1.5', "is neither a whole number nor 'all'"),
                                               (Amount, 'abc', 'is no number above 0'), (Amount, '0', 'is no number above 0')])
def test_a_no_is_no_and_other_words_are_refused(monkeypatch, kind, text, wrong):
    assert [YesNo.__rfm_cast_str__(text) for text in ('no', 'False', '1')] == [False, False, True]
    assert [WholeOrAll.__rfm_cast_str__(text) for text in ('all', '4')] == ['all', 4] and Wholes.__rfm_cast_str__('1,2, 4') == [1, 2, 4]
    monkeypatch.setattr(sys, 'argv', ['reframe', '-S', f'triad_curve.into_memory={text}'])
    with pytest.raises(SystemExit, match=f"plumbline: -S triad_curve.into_memory={text}: '{text}' {wrong}"):
        kind.__rfm_cast_str__(text)


def test_what_is_given_of_what_is_measured_is_known():
    test = type('Made', (), {'var_space': {'largest', 'windows', 'matrix', 'samples', 'length'}})()
    vars(test).update(largest=Size('4'), windows=Wholes('1,2'), matrix=Words('a.mtx'), samples=Whole('9'), length=5, of_it=Size('8'))
    assert variables.given(test) == {'largest': '4', 'windows': '1,2', 'matrix': 'a.mtx'}


@pytest.mark.parametrize('said, why', [('nothing=3', "no test has a variable 'nothing'"), ('Told.smaples=3', "Told has no variable 'smaples'"),
                                       ('Tld.samples=3', "no test is called 'Tld'; reframe -l lists their names")])
def test_a_variable_that_nothing_has_is_refused(monkeypatch, said, why):
    monkeypatch.setattr(variables, '_tests', lambda: {type('Told', (), {'var_space': {'samples': 10}})})
    monkeypatch.setattr(sys, 'argv', ['reframe', '-S', 'likwid_bench.levels=none', '-S', said])         # which is not loaded here, but ours
    with pytest.raises(ForceExitError, match=re.escape(f'-S {said}: {why}')):
        variables.refuse_unknown.__wrapped__()


def test_a_variable_that_nothing_has_ends_the_run(place):
    done = place.reframe('-n', 'Told%story=good', '-r', '-S', 'Told.smaples=3')
    assert done.code == 1 and 'Traceback' not in done.out
    assert "ERROR: run session stopped: force exit error: -S Told.smaples=3: Told has no variable 'smaples'" in done.out


CHECK = '''
import reframe as rfm
from plumbline.judged import Judged
from plumbline.mpi.check import MpiCheck
from plumbline.rfm.check import NativeCheck

@rfm.simple_test
class site_check(rfm.RunOnlyRegressionTest, {base}):
    subsystem = 'memory'
    {lines}
'''


@pytest.mark.parametrize('base, lines, wrong', [
    ('NativeCheck', "program, threads = 'triad', 'bogus'", "site_check.threads is 'bogus': give 'one'"),
    ('NativeCheck', "threads = 'one'", "site_check.program is 'none': name the program that it runs"),
    ('NativeCheck', "program, threads, subsystem = 'triad', 'one', ''", "site_check.subsystem is '': give what it tells of: 'core', "),
    ('Judged', "subsystem = 'memory, one thread'", "site_check.subsystem is 'memory, one thread': give what it tells of: "),
    ('NativeCheck', "program, threads, samples = 'triad', 'one', -3", 'site_check.samples is -3: give a number of 1 and more'),
    ('Judged', 'repeat = 0', 'site_check.repeat is 0: give a number of 1 and more'),
    ('Judged', 'threads = 0', "site_check.threads is 0: give 'one', 'all', or a number"),
    ('MpiCheck', "program, ranks = 'pingpong', 0", "site_check.ranks is 0: give a number of processes, or 'all'")])
def test_a_check_that_lacks_an_attribute_says_so_when_it_is_loaded(place, tmp_path, base, lines, wrong):
    check = tmp_path / 'site.py'
    check.write_text(CHECK.format(base=base, lines=lines))
    done = place.reframe('-l', checks=check)
    assert done.code == 1 and done.line('plumbline: ').startswith(f'plumbline: {tmp_path}: {wrong}')


def test_a_number_of_nodes_and_a_transport_that_cannot_be_are_refused(tmp_path):
    told = []
    MpiCheck.refuse_other_ranks(types.SimpleNamespace(ranks='all', nodes=-1, transport='tpc', refuse=lambda *said: told.append(said)))
    assert told == [('nodes', -1, 'give a number of nodes, or 0 for those of --flex-alloc-nodes'),
                    ('transport', 'tpc', "give 'shm', 'tcp' or 'default'")]
    case = types.SimpleNamespace(stagedir=str(tmp_path))
    job.Job.write_file(case, 'x', 'text')
    assert (tmp_path / 'x').read_text() == 'text'
    case.stagedir = str(tmp_path / 'x')
    with pytest.raises(ReframeError, match='x/y: cannot be written: Not a directory; make room there'):
        job.Job.write_file(case, 'y', 'text')


OWN = '''import sys
sys.path.insert(0, {folder!r})
import reframe as rfm
from canned import Canned

@rfm.simple_test
class OfAll(Canned):
    """What has references, and cannot be judged?"""
    story, threads = 'good', 'all'

    def evaluate(self):
        if {skips}:
            self.skip_metric('all in L3', 'made to be skipped', ['L3'], subsystem='L3')
        yield from super().evaluate()
'''
ACCEPTED = '''$accepted:
  '2026-01-01T00:00:00Z': {{sessions: [a, b, c, d, e], false_alarms: 0.05, metrics: 2, machine: {{processors: []}}}}
OfAll:
  $index: [$partition, $environ, threads]
  made:cpu: {{gnu: {{all: {{{name}: [10000.0, -0.2, 0.2, MB/s]}}}}}}
$provenance:
  OfAll:
    made:cpu: {{gnu: {{all: {{{name}: {{accepted: '2026-01-01T00:00:00Z', n: 90, compiler: gcc, deviation: 0.05, freedom: 9.0, sees: 0.2,
      measured: [10000.0, 10000.0, 10000.0, 10000.0, 10000.0], threads: [{threads}]}}}}}}}}
'''


@pytest.mark.parametrize('name, threads, skips, ruling, told', [
    ('bandwidth.plain', 3, False, 'NO REFERENCE', 'they are of 3 threads, and 1 ran'),
    ('bandwidth.L3', 1, True, 'NO REFERENCE', 'made to be skipped')])
def test_what_has_references_and_is_not_judged_is_no_pass(tmp_path, commands, name, threads, skips, ruling, told):
    (tmp_path / 'own.py').write_text(OWN.format(folder=str(rfm.GUARDS), skips=skips))
    folder = shutil.copytree(rfm.KNOWN, tmp_path / 'references')
    (folder / 'made.yaml').write_text(ACCEPTED.format(name=name, threads=threads))
    place = rfm.Workplace(tmp_path / 'place', commands, PLUMBLINE_REFERENCES=folder, CANNED_WAITED='0 0')
    case, = place.reframe('-r', SERIAL, '-n', 'OfAll', checks=tmp_path / 'own.py').cases().values()
    assert (case['result'], verdicts_of(case)['bandwidth.plain']) == ('pass', ruling)
    lost, = (one for one in case['plumbline']['skipped'] if 'referenced' in one)
    assert (lost['referenced'], lost['subsystems']) == ([name], ['L3' if skips else 'memory, all threads'])
    said = place.judge()
    assert said.code == 3 and f'{told}; references are recorded of 1 of its metrics' in re.sub(r'\s+', ' ', said.out)

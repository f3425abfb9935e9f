'''A check of a program that is not ours: a few lines (``docs/tutorials``), run by the real ReFrame, judged as all others.'''

import functools
import os
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from reframe.core.exceptions import SanityError

import rfm
from native import CPUS, needs, two_cpus
from plumbline import judged
from plumbline.errors import PlumblineError
from plumbline.rfm import judging
from virtual import cluster_in

TUTORIALS = rfm.REPOSITORY / 'docs/tutorials'
STREAM = TUTORIALS / 'stream/site_stream.py'
SUITE = rfm.REPOSITORY / 'tests/data/foreign/suite.py'


@pytest.fixture
def place(tmp_path):
    return functools.partial(rfm.with_stream, tmp_path)


@pytest.fixture(scope='module')
def measured(tmp_path_factory):
    '''STREAM measured and judged, once: the workplace, how the run ended, what was said of it.'''
    where = rfm.with_stream(tmp_path_factory.mktemp('measured'))
    return where, where.reframe('-r', checks=STREAM), where.judge()


@pytest.fixture
def again(measured, place, tmp_path):
    '''A workplace of the test's own in which that has been.'''
    shutil.copytree(measured[0].folder, tmp_path / 'place')
    return place()


@pytest.fixture(scope='module')
def two_nodes(tmp_path_factory):
    '''Variables of a virtual cluster, and the configuration that finds it.'''
    folder = tmp_path_factory.mktemp('cluster')
    (folder / 'site.py').write_text(SITE)
    with cluster_in(folder / 'cluster', nodes=2, cpus=[CPUS[:2]] * 2) as running:
        yield {**running.variables, 'config': folder / 'site.py'}


def metrics_of(done):
    case, = done.cases().values()
    return case, rfm.metrics_of(case)


def test_each_run_is_a_sample_and_the_threads_are_placed(measured):
    where, done, said = measured
    case, found = metrics_of(done)
    assert case['result'] == 'pass' and set(found) == {'bandwidth.triad'}
    triad = found['bandwidth.triad']
    assert triad['samples'] == [10000.5 + run for run in range(1, 11)] and triad['unit'] == 'MB/s' and triad['verdict'] == 'NO REFERENCE'
    assert triad['value'] == pytest.approx(10006) and len(triad['processes']) == 10
    cpus = sorted(os.sched_getaffinity(0))
    output, = where.folder.rglob('output/**/rfm_job.out')
    assert re.search(rf'^threads {len(cpus)} on {{{cpus[0]}}}', output.read_text(), re.M)
    assert said.code == 0 and re.search('site_stream application all +bandwidth.triad +10.0 GB/s', said.out)


def test_its_references_are_recorded_and_a_loss_is_a_fail(again):
    where = again
    accepted = where.accept('made')
    assert accepted.code == 0, accepted.out
    assert metrics_of(where.reframe('-r', checks=STREAM))[1]['bandwidth.triad']['verdict'] == 'PASS'
    slow = where.reframe('-r', '--max-retries=2', checks=STREAM, CANNED_RATE='5000')
    assert slow.code == 1
    case = list(slow.cases(run=-1).values())[0]
    metric, = case['plumbline']['metrics']
    assert metric['verdict'] == 'FAIL' and len(metric['samples']) == 20      # the second try adds to the first, and the third, which is good, changes nothing
    said = where.judge()
    assert said.code == 1 and 'FAIL' in said.out
    repeated = where.reframe('-r', '--max-retries=1', '--reruns=1', checks=STREAM, CANNED_RATE='5000')
    of_runs = [next(iter(repeated.cases(run=run).values()))['plumbline']['metrics'][0] for run in (1, 2)]     # a retry, and a repetition
    assert [(metric['verdict'], len(metric['samples'])) for metric in of_runs] == [('FAIL', 20), ('PASS', 10)]
    once = where.reframe('-r', '--max-retries=2', checks=STREAM, CANNED_RATE='5000', CANNED_UNTIL='1')
    for run, words in ((1, 'in one of two runs: 5006, 10006'), (2, 'in [12] of 3 runs: 5006, 10006, 10006')):      # one run is never judged alone
        metric, = list(once.cases(run=run).values())[0]['plumbline']['metrics']
        assert metric['verdict'] == 'UNSTABLE' and len(metric['samples']) == 10 * (run + 1) and metric['sees'] > 0.49
        assert re.search(words, metric['reason']), metric['reason']
    said = where.judge()
    assert said.code == 3 and 'NOT JUDGED: site_stream' in said.out and 'references span' in said.out, said.out
    known = where.folder.parent / 'references/made.yaml'
    known.write_text(re.sub(r"processors: \['.*?'\]", "processors: ['Older CPU [Made 1/2]']", known.read_text(), flags=re.DOTALL))
    case, metrics = metrics_of(where.reframe('-r', checks=STREAM))
    assert metrics['bandwidth.triad']['verdict'] == 'NO REFERENCE' and case['plumbline']['other_processors'] == ['Older CPU [Made 1/2]']
    said = where.judge()
    assert said.code == 3 and 'NOT JUDGED: what has references of another processor (Older CPU [Made 1/2])' in said.out, said.out


@two_cpus
def test_references_of_all_threads_judge_no_other_number_of_them(again):
    where = again
    assert where.accept('made').code == 0 and f'threads: [{len(CPUS)}]' in (where.folder.parent / 'references/made.yaml').read_text()
    case, metrics = metrics_of(where.reframe('-r', checks=STREAM, before=['taskset', '-c', CPUS[0]]))
    assert case['plumbline']['team'] == 1 and metrics['bandwidth.triad']['verdict'] == 'NO REFERENCE'
    said = where.judge()
    assert said.code == 3 and f'they are of {len(CPUS)} threads, and 1 ran' in said.out, said.out


def test_a_node_that_differs_has_references_of_its_own(again):
    where = again
    host = os.uname().nodename
    accepted = where.accept('made', '--node', host)
    assert accepted.code == 0 and f'made@{host}.yaml' in accepted.out
    assert metrics_of(where.reframe('-r', checks=STREAM))[1]['bandwidth.triad']['reference_from'] == f'made@{host}.yaml'
    other = where.plumbline('references', 'propose', 'made', '--sessions', '5', '--apart', '0', '--node', 'elsewhere')
    assert other.code == 2 and '0 sessions of made' in other.out
    assert where.plumbline('references', 'propose', 'made', '--node', '../x').out.startswith("plumbline: node '../x': this is no name of a node")


def test_a_test_that_has_references_is_not_silently_skipped(place, tmp_path):
    check = tmp_path / 'own.py'
    check.write_text(f'''import os
{STREAM.read_text()}
    @run_after('setup')
    def look(self):
        if 'CANNED_GONE' in os.environ:
            self.skip_test('its library is gone')
''')
    where = place()
    where.reframe('-r', checks=check, CANNED_GONE='1')
    assert where.judge().code == 2      # nothing was measured
    where.reframe('-r', checks=check)
    assert where.judge().code == 0 and where.accept('made').code == 0
    case, = where.reframe('-r', checks=check, CANNED_GONE='1').cases().values()
    assert case['result'] == 'skip'
    said = where.judge()
    assert 'its library is gone; references are recorded of 1 of its metrics' in said.out and said.code == 2, said.out


def checks_of(folder, *texts):
    '''A folder of checks: site_stream0, site_stream1, .. of these texts of STREAM's.'''
    (folder / 'checks').mkdir()
    for number, text in enumerate(texts):
        (folder / f'checks/{number}.py').write_text('from reframe.core.builtins import performance_function, run_before, xfail\n' + text.replace(
            'class site_stream', f'class site_stream{number}'))
    return folder / 'checks'


def with_reference(reference):
    return STREAM.read_text().replace('    repeat', f"    reference = {{'made:cpu': {{{reference}}}}}\n    repeat")


BAD = "    env_vars = {'CANNED_BAD': '%s'}\n    repeat"
REFERENCES = [
    ("'bandwidth.triad': (10000, -0.05, 0.05, 'MB/s')", 'pass', 'PASS'), ("'bandwidth.triad': (12000, -0.05, None, 'MB/s')", 'fail', 'FAIL'),
    ("'bandwidth.triad': (10, -0.05, 0.05, 'GB/s')", 'fail', 'the reference of bandwidth.triad in the check is in GB/s: it is in MB/s'),
    ("'bandwidth.triad': (10000, -0.05, 0.05)", 'fail', 'the reference of bandwidth.triad in the check is in no unit: it is in MB/s'),
    ("'speed.triad': (10, -0.05, 0.05, 'GB/s')", 'fail', "metric 'speed' is not in the registry"),
    ("'bandwidth.traid': (10, -0.05, 0.05, 'MB/s')", 'fail', 'not measured: bandwidth.traid of the check')]


def test_a_reference_in_the_check_counts(place, tmp_path):
    glued = STREAM.read_text().replace('    repeat', BAD % 'glued')      # a last line need not end
    done = place().reframe('-r', checks=checks_of(tmp_path, *(with_reference(reference) for reference, *_ in REFERENCES), glued))
    assert 'Traceback' not in done.out and len(done.cases()) == len(REFERENCES) + 1
    case = done.cases()[f'site_stream{len(REFERENCES)}']
    assert case['result'] == 'pass' and case['plumbline']['metrics'][0]['samples'] == [9000.5] * 10
    for number, (reference, result, expected) in enumerate(REFERENCES):
        case = done.cases()[f'site_stream{number}']
        assert case['result'] == result, reference
        if expected in ('PASS', 'FAIL'):
            metric, = case['plumbline']['metrics']
            assert (metric['verdict'], metric['reference_from']) == (expected, 'the check')
        else:
            assert expected in case['fail_reason'], reference


def test_a_known_issue_is_named_and_fails_nothing(place, tmp_path):
    '''Whether the file of references names it, or the check.'''
    where = place()
    (tmp_path / 'references/made.yaml').write_text('site_stream0:\n  $index: [$partition]\n  made:cpu:\n'
                                                   "    bandwidth.triad: ['$xfail', 'HPC-1: a DIMM is out', [12000.0, -0.05, null, MB/s]]\n")
    checks = checks_of(tmp_path, STREAM.read_text(), with_reference("'bandwidth.triad': xfail('HPC-1: a DIMM is out', (12000, -0.05, None, 'MB/s'))"))
    cases = where.reframe('-r', checks=checks).cases().values()
    assert len(cases) == 2
    for case in cases:
        triad, = case['plumbline']['metrics']
        assert case['result'] == 'pass' and triad['verdict'] == 'KNOWN ISSUE' and triad['reason'].startswith('HPC-1: a DIMM is out: 100')
    said = where.judge()
    assert said.code == 0 and re.search('speed .* 0 PASS, 0 FAIL, 0 UNSTABLE, 2 KNOWN ISSUE, 0 NO REFERENCE', said.out) and said.out.count('HPC-1: a DIMM is out') >= 2
    assert 'HPC-1' in (where.folder / 'reports/latest/index.html').read_text()
    for case in where.reframe('-r', checks=checks, CANNED_RATE='12000').cases().values():
        triad, = case['plumbline']['metrics']
        assert triad['verdict'] == 'PASS' and 'the known issue is gone, take its $xfail away' in triad['reason']


WRONG = [
    ('    repeat', BAD % 'silent', r"run 3: nothing in the output matches 'Triad:"),
    ('    repeat', BAD % 'text', r"run 3: '\*\*\*\*' is no number"),
    ('    repeat', BAD % 'fails', 'the job ended with exit code 1: out of memory'),
    ("'MB/s')", "'us')", 'bandwidth in us: give one of B/s, GB/s, GiB/s'),
    ("threads = 10, 'all'", 'threads = 10, 4096', r'site_stream\d.threads=4096: give .one., .all., or a number of the \d+ CPUs'),
    ("executable = 'stream'", "executable = 'no-such-stream'", 'the job ended with exit code 127'),
    ('    def evaluate', "    @performance_function('s')\n    def elapsed_time(self):\n        return 1\n\n    def evaluate",
     'elapsed_time: a performance function is not judged here: yield it from evaluate')]


def test_what_went_wrong_is_one_line(place, tmp_path):
    done = place().reframe('-r', checks=checks_of(tmp_path, *(STREAM.read_text().replace(old, new) for old, new, _ in WRONG)))
    assert done.code == 1 and 'Traceback' not in done.out and len(done.cases()) == len(WRONG)
    for number, (*_, reason) in enumerate(WRONG):
        case = done.cases()[f'site_stream{number}']
        assert case['result'] == 'fail' and re.search(reason, case['fail_reason']), case['fail_reason']
        assert len(case['fail_reason'].splitlines()) == 1


@pytest.mark.parametrize('metric, unit, factor', [
    ('bandwidth', 'MB/s', 1), ('bandwidth', 'GiB/s', 1073.741824), ('latency', 'ns', 1e-3), ('time', 'ms', 1e-3), ('time', 'h', 3600),
    ('cpu_availability', '%', 0.01), ('figure_of_merit', '1', 1)])
def test_units(metric, unit, factor):
    assert judged._factor(metric, unit) == pytest.approx(factor)


@pytest.mark.parametrize('metric, unit', [('time', 'MB/s'), ('bandwidth', 'furlongs'), ('latency', 'min')])
def test_units_that_a_metric_has_not(metric, unit):
    with pytest.raises(PlumblineError, match=f'{metric} in {unit}: give one of '):
        judged._factor(metric, unit)


# --- the other tutorials ------------------------------------------------------------------------------------------------

@two_cpus
def test_an_application_of_several_nodes(place, two_nodes):
    '''By Slurm's own srun, on two of the nodes of the virtual cluster.'''
    where = place(**two_nodes)
    case, found = metrics_of(where.reframe('-r', checks=TUTORIALS / 'application'))
    assert case['result'] == 'pass', case['fail_reason']
    assert found['figure_of_merit.ns_per_day']['samples'] == [12.5] * 3
    assert len(found['time']['samples']) == 3 and min(found['time']['samples']) > 0
    output, = where.folder.rglob('output/**/rfm_job.out')
    ranks = re.findall(r'^rank (\d) of 4 on (\S+), 1 threads', output.read_text(), re.M)
    assert len(ranks) == 12 and len({host for _, host in ranks}) == 2


@two_cpus
def test_a_second_run_is_on_the_node_of_the_first(tmp_path, place, two_nodes):
    where = place(**two_nodes)
    done = where.reframe('-r', '--max-retries=1', checks=checks_of(tmp_path, with_reference(REFERENCES[1][0]).replace('made:cpu', 'theirs:all')))
    first, second = (run['testcases'][0] for run in done.report['runs'])
    assert first['job_nodelist'] == second['job_nodelist'] and len(second['plumbline']['metrics'][0]['samples']) == 20
    scripts = [path.read_text() for path in where.folder.rglob('stage/**/rfm_job.sh')]
    assert sorted(f"--nodelist={first['job_nodelist'][0]}" in text for text in scripts) == [False, True]


@pytest.mark.parametrize('ruling, hosts, processes', [('FAIL', ['n1'], [0, 1]), ('UNSTABLE', ['n2'], [0]), ('FAIL', [], [0, 1])])
def test_a_second_run_on_other_nodes_says_nothing_of_the_first(ruling, hosts, processes):
    metric, told = SimpleNamespace(name='bandwidth', verdict=ruling, reason='too low'), []
    first = SimpleNamespace(hosts=lambda: ['n1'], verdict=ruling, measurements=[{'process': 0}], earlier=None, doubt='',
                            plumbline=SimpleNamespace(metrics=[metric]))
    second = SimpleNamespace(suspected=first, hosts=lambda: hosts, note=told.append)
    assert [record['process'] for record in judging.Judging.pooled(second, [{'process': 0}])] == processes
    assert told == ['the run before, on n1, was UNSTABLE (bandwidth: too low); this one was on n2'] * (len(processes) == 1) == [second.doubt][:len(told)]


def test_a_loss_of_one_node_is_not_made_up_for_by_another():
    metric = SimpleNamespace(name='bandwidth', verdict='FAIL', reason='too low')
    first = SimpleNamespace(hosts=lambda: ['n1'], verdict='FAIL', measurements=[{'process': 0}], doubt='',
                            plumbline=SimpleNamespace(metrics=[metric]))
    with pytest.raises(SanityError, match=r'the run before, on n1, was FAIL \(bandwidth: too low\); this one was on n2: run the test on those'):
        judging.Judging.pooled(SimpleNamespace(suspected=first, hosts=lambda: ['n2'], note=str, _keep=functools.partial(
            judging.Judging._keep, None)), [{'process': 0}])


LEFT_OUT = '''
    @run_before('run')
    def miss_a_node(self):
        if '_retry' in self.stagedir:
            self.skip_test('needs 4 nodes: 3 can be used')
'''
ELSEWHERE = '''
    def hosts(self):
        return ['n2' if '_retry' in self.stagedir else 'n1']
'''


def test_a_second_run_that_says_nothing_of_the_first_clears_nobody(place, tmp_path):
    '''One that is left out, and ones on another node than a first that was UNSTABLE or met a bad node.'''
    where, text = place(), with_reference(REFERENCES[0][0])
    slow, unstable = (text.replace('    repeat', f"    env_vars = {{'CANNED_TRIAD': '{values}'}}\n    repeat") for values in ('9000', '9000:9900'))
    rfm.script(tmp_path / 'bin/stream', '''IFS=:; set -- ${CANNED_TRIAD:-10000}
case $PWD in *_retry*) set -- 10000;; esac
shift $(( $(cat n 2>/dev/null | wc -l) % $# )); echo >> n; echo "Triad: $1.0"''')
    done = where.reframe('-r', '--max-retries=1', checks=checks_of(tmp_path, slow + LEFT_OUT, unstable + LEFT_OUT, unstable + ELSEWHERE, unstable))
    second = {case['name']: case['fail_reason'] for case in done.report['runs'][1]['testcases']}
    assert 'needs 4 nodes: 3 can be used; the run before was FAIL' in second['site_stream0']
    assert 'needs 4 nodes: 3 can be used; the run before was UNSTABLE' in second['site_stream1']
    assert 'the run before, on n1, was UNSTABLE' in second['site_stream2'] and second['site_stream3'] is None
    said = where.judge()
    assert said.code == 1 and sorted(re.findall(r'^(site_stream\d) .* (FAIL|UNSTABLE)$', said.out, re.M)) == [
        ('site_stream0', 'FAIL'), ('site_stream1', 'UNSTABLE'), ('site_stream2', 'UNSTABLE')], said.out
    where.reframe('-r', '--max-retries=1', '-n', 'site_stream[23]', checks=tmp_path / 'checks')
    assert where.judge().code == 3


@two_cpus
def test_distributed_over_the_nodes_each_is_judged(tmp_path, place, two_nodes):
    '''ReFrame's own way to every node, of a check of ours and of one of another suite: references are of all nodes.'''
    where = place(**two_nodes)
    done = where.reframe('-r', '--distribute=all', '-c', SUITE, '-n', 'site_stream|their_application', checks=STREAM)
    assert [case['result'] for case in done.report['runs'][0]['testcases']] == ['pass'] * 4, done.out
    said = where.judge()
    assert said.code == 0 and len(re.findall(r'^their_application .*steps .* NO REFERENCE$', said.out, re.M)) == 2, said.out
    accepted = where.accept('theirs')
    assert accepted.code == 0, accepted.out
    written = (tmp_path / 'references/theirs.yaml').read_text()
    assert '.nid' not in written and written.count('steps: [80.0') == written.count('bandwidth.triad: [100') == 1


SITE = '''
from plumbline import settings
from reframe.core.schedulers.slurm import SqueueJobScheduler
from reframe.utility.cpuinfo import cpuinfo
SqueueJobScheduler.SQUEUE_DELAY = 0.2
site_configuration = settings.site(
    systems=[{'name': 'theirs', 'hostnames': ['.*'], 'partitions': [{
        'name': 'all', 'scheduler': 'squeue', 'launcher': 'srun', 'access': ['--partition=all', '--overcommit'], 'environs': ['gnu-openmpi'],
        'processor': cpuinfo(), 'extras': {'exclusive': False}}]}],
    environments=[{'name': 'gnu-openmpi', 'cc': 'mpicc', 'features': ['mpi', 'openmpi']}])
'''


def test_a_kernel_of_the_sites_own(measuring, tmp_path):
    needs('cmake', 'cc')
    where = measuring(tmp_path / 'place', CANNED_CMAKE=shutil.which('cmake'))
    done = where.reframe(*rfm.small(), checks=TUTORIALS / 'kernel')
    assert done.report, done.out
    case, = done.cases().values()
    rfm.assert_measured(case)
    names = {metric['name'] for metric in case['plumbline']['metrics']}
    assert names >= {f'{metric}.{variant}' for metric in ('bandwidth', 'of_limit', 'of_parts') for variant in ('plain', 'unrolled')}
    share = next(metric for metric in case['plumbline']['metrics'] if metric['name'] == 'of_limit.plain')
    assert 0.2 < np.median(share['samples']) < 4      # of a busy machine
    assert {record['kernel'] for record in case['plumbline']['records'] if record['role'] == 'kernel'} == {'axpy'}


@pytest.mark.parametrize('times, seconds', [(('100.5', '102.75', '10.00', '12.25'), 2.25), (('100,500000', '102,700000', '10.00', '12.42'), 2.2)])
def test_seconds_of_a_run(times, seconds):
    assert judged._elapsed(1, times) == pytest.approx(seconds)


@pytest.mark.parametrize('times', [('100.0', '40.0', '10.0', '12.0'), ('100.0', '3702.0', '10.0', '12.0')])
def test_a_clock_that_was_set_is_no_time(times):
    with pytest.raises(SanityError, match=r'the clock was set during run 2: -?\d+\.00 s by the clock of the day, 2\.00 s since'):
        judged._elapsed(2, times)

'''What ReFrame itself can do works with our checks, by the real ReFrame.'''

import functools
import json
import os
import re
import shlex
import zlib

import pytest
import yaml

import rfm
from plumbline.model import parameters
from plumbline.private import references_of
from plumbline.store import archive

STREAM = rfm.REPOSITORY / 'docs/tutorials/stream/site_stream.py'
SUITE = rfm.REPOSITORY / 'tests/data/foreign/suite.py'

#: As a site has it that does not know us.
PLAIN = '''
site_configuration = {
    'systems': [{'name': 'made', 'hostnames': ['.*'], 'partitions': [
        {'name': 'cpu', 'scheduler': 'local', 'launcher': 'local', 'environs': ['gnu'], 'max_jobs': 1}]}],
    'environments': [{'name': 'gnu', 'cc': 'gcc', 'features': ['openmp'], 'env_vars': [['SITE_PAGES', 2], ['SITE_TOKEN', 'abc']]}],
}
'''


@pytest.fixture
def place(tmp_path):
    '''Function (variables) -> :func:`rfm.with_stream` there.'''
    return functools.partial(rfm.with_stream, tmp_path)


def triad(done):
    case, = done.cases().values()
    return case['result'], case['plumbline']['metrics'][0]


# --- references from elsewhere than our files -----------------------------------------------------------------------------

def test_a_reference_from_the_command_line_counts(place):
    '''Of a check of ours, and of one of another suite.'''
    done = place().reframe('-r', '-c', SUITE, '-n', 'site_stream|their_stream', '-S', 'site_stream.reference=bandwidth.triad:12000,-0.05,none,MB/s', '-S',
                           'their_stream.reference=copy:20,-0.1,none,GB/s;latency:3.25,none,0.1,us', checks=STREAM)
    assert 'were not set' not in done.out and {case['result'] for case in done.cases().values()} == {'fail'}, done.out
    metric, = done.cases()['site_stream']['plumbline']['metrics']
    assert (metric['verdict'], metric['reference_from']) == ('FAIL', 'the check')
    for size in (10, 20):
        assert [entry[1:] for entry in done.cases()[f'their_stream %size={size}']['perfvalues'].values()] == [
            [20.0, -0.1, None, 'GB/s', 'fail'], [3.25, None, 0.1, 'us', 'pass']]


def test_what_is_no_reference_is_refused(place):
    done = place().reframe('-r', '-S', 'site_stream.reference=12000', checks=STREAM)
    assert done.code == 1 and 'write METRIC:REFERENCE,LOWER,UPPER,UNIT, for example' in done.line('plumbline: -S reference=')
    assert 'Traceback' not in done.out
    for leaf in ('many,none,none', 'nan,-0.05,none,MB/s', 'inf,-0.05,none', '1000,nan,none', 'none,-0.05,none'):
        with pytest.raises(SystemExit, match='write METRIC:REFERENCE'):
            references_of(f'bandwidth.triad:{leaf}')


OWN = {'ours': "{'made:cpu': {'bandwidth.triad': (12000, -0.05, None, 'MB/s')}}",
       'ours_of_all_threads': "{'$index': ['$partition', 'threads'], 'made:cpu': {'all': {'bandwidth.triad': (12000, -0.05, None, 'MB/s')}}}",
       'ours_elsewhere': "{'$index': ['$partition'], 'elsewhere:cpu': {'bandwidth.triad': (12000, -0.05, None, 'MB/s')}}"}


def test_a_subclass_has_references_of_its_own(place, tmp_path):
    (tmp_path / 'subclass.py').write_text(f'import sys\nsys.path.insert(0, {str(STREAM.parent)!r})\nimport reframe as rfm\nfrom site_stream import site_stream\n'
                                          + ''.join(f'\n\n@rfm.simple_test\nclass {name}(site_stream):\n    reference = {own}\n' for name, own in OWN.items()))
    done = place().reframe('-r', '-n', '^ours', checks=tmp_path / 'subclass.py')
    assert done.report, done.out
    assert {name: (case['result'], case['plumbline']['metrics'][0]['verdict']) for name, case in done.cases().items()} == {
        'ours': ('fail', 'FAIL'), 'ours_of_all_threads': ('fail', 'FAIL'), 'ours_elsewhere': ('pass', 'NO REFERENCE')}


# --- a configuration that is not ours -------------------------------------------------------------------------------------

def test_a_configuration_of_another_suite(place, tmp_path):
    '''Without our settings an error of the program counts all the same.'''
    (tmp_path / 'plain.py').write_text(PLAIN)
    where = place()
    where.config = tmp_path / 'plain.py'
    both = where.reframe('-r', '-c', SUITE, '-n', 'site_stream|their_(stream|mount)', '--prefix', where.folder, checks=STREAM)
    assert {case['result'] for case in both.cases().values()} == {'pass'} and len(both.cases()) == 4
    assert both.cases()['site_stream']['plumbline']['software'] == {'variables': ['SITE_PAGES=2', 'SITE_TOKEN=***'], 'modules': []}
    said = where.judge()
    assert said.code == 0 and 'their_mount' in said.out
    assert 'SITE_PAGES=2 <small>(for gnu)' in (where.folder / 'reports/latest/index.html').read_text()
    rfm.script(tmp_path / 'bin/stream', 'echo "Triad: 10000.0"; echo lost >&2; exit 3')
    case, = where.reframe('-r', '--prefix', where.folder, checks=STREAM).cases().values()
    assert case['result'] == 'fail' and 'the job ended with exit code 3: lost' in case['fail_reason']


@pytest.mark.parametrize('each_metric', [True, False], ids=['perflog_multiline', 'a record for each test'])
def test_its_logs_get_no_samples(place, tmp_path, each_metric):
    where = place()
    where.config = tmp_path / 'plain.py'
    with rfm.listener() as (port, got):
        where.config.write_text(f'''{PLAIN}
site_configuration['logging'] = [{{'perflog_multiline': {each_metric}, 'handlers_perflog': [
    {{'type': 'httpjson', 'url': 'http://127.0.0.1:{port}/', 'level': 'info'}},
    {{'type': 'filelog', 'level': 'info', 'basedir': '{tmp_path}/logs', 'prefix': 'all', 'format': '%(check_result)s~%(check_#ALL)s~%(check_perfvalues)s',
      'format_perfvars': '%(check_perf_value)s~'}}]}}]
''')
        done = where.reframe('-r', '-c', SUITE, '-n', 'site_stream|their_application', '--prefix', where.folder, checks=STREAM)
    assert done.report and not any(b'"samples"' in one for one in got), done.out
    told = {(one['check_name'], one['check_perf_var'] if each_metric else None): one for one in map(json.loads, got)}
    if each_metric:
        ours = told['site_stream', 'bandwidth.triad']
        assert (ours['check_perf_value'], ours['check_perf_verdict'], ours['check_verdict']) == (pytest.approx(10006), 'NO REFERENCE', 'NO REFERENCE')
    else:
        assert told['site_stream', None]['check_perf_bandwidth_triad_value'] == pytest.approx(10006)
    assert told['their_application', 'elapsed' if each_metric else None]['check_perf_elapsed_value'] == 40.0       # as ReFrame has it
    log, = (tmp_path / 'logs').rglob('site_stream.log')
    names, line = (text.split('~') for text in log.read_text().splitlines())
    assert 'verdict' in names and 'plumbline' not in names and '"samples"' not in str(line)
    assert line[names.index('verdict')] == 'NO REFERENCE'


# --- many runs ------------------------------------------------------------------------------------------------------------

def test_repeated_runs_are_cases_of_one_session(place):
    where = place()
    done = where.reframe('-r', '--repeat=2', '-c', SUITE, '-n', 'site_stream|their_application', '--exec-policy=serial', checks=STREAM)
    assert len(done.report['runs'][0]['testcases']) == 4, done.out
    again, _ = (shlex.split(one['plumbline']['rerun']) for one in done.report['runs'][0]['testcases'] if 'plumbline' in one)
    said = where.judge()
    told = [line for line in said.out.splitlines() if ' bandwidth.triad ' in line]
    assert said.code == 0 and all(line.startswith(f'site_stream {number} ') for number, line in enumerate(sorted(told))) and len(told) == 2, said.out
    assert 'Found 1 check' in where.reframe('-l', *again[again.index('-n'):-1], checks=STREAM).out
    accepted = where.accept('made')
    assert accepted.code == 0, accepted.out
    # Of one case, whichever of its repetitions.
    content = yaml.safe_load((where.folder.parent / 'references/made.yaml').read_text())
    assert set(content) == {'$accepted', '$provenance', 'site_stream', 'their_application'}
    end, metric = triad(where.reframe('-r', checks=STREAM))
    assert (end, metric['verdict'], metric['reference_from']) == ('pass', 'PASS', 'made.yaml')
    # With other values of its variables it is another test.
    cases = where.reframe('-r', '-P', 'source=a,b', checks=STREAM).report['runs'][0]['testcases']
    assert sorted(one['display_name'] for one in cases) == ['site_stream %.source=a', 'site_stream %.source=b']
    for varied in (one['plumbline'] for one in cases):
        assert [one['verdict'] for one in varied['metrics']] == ['NO REFERENCE']
        assert [one['reason'] for one in varied['skipped']] == ['they are of the test without -P source']
    again = shlex.split(varied['rerun'])
    listed = where.reframe('-l', *again[again.index('-n'):-1], checks=STREAM).out
    assert 'site_stream %.source=b' in listed and '%.source=a' not in listed and 'Found 1 check' in listed, listed


def test_a_varied_test_is_selected_by_its_other_parameters():
    assert parameters.options_of_varied('Test %level=L1 %.size=1.5 %.nid=n1') == ['-n', '^Test%level=L1$', '-P', 'Test.size=1.5']
    assert parameters.options_of_varied('Test %level=L1 %.nid=n1') == ['-n', '^Test%level=L1$'] and parameters.options_of_varied('Test %level=L1') == []


@pytest.mark.parametrize('options, fails_first, code', [
    (['--reruns=1'], True, 1), (['--max-retries=1', '--reruns=1'], True, 0), (['--duration=6s'], False, 0)])
def test_each_repetition_counts_and_of_retries_the_last(place, tmp_path, options, fails_first, code):
    '''What the end of --duration cuts off is no failure.'''
    where = place()
    rfm.script(tmp_path / 'bin/stream', f'[ -e {tmp_path}/ran ] || {{ touch {tmp_path}/ran; echo lost >&2; exit 3; }}\necho "Triad: 10000.0"')
    if not fails_first:
        (tmp_path / 'ran').touch()
    done = where.reframe('-r', *options, checks=STREAM)
    assert len(done.report['runs']) > 1, done.out
    said = where.judge()
    assert said.code == code and done.code == (fails_first and '--reruns=1' in options), said.out
    retried = '--max-retries=1' in options
    rows = archive.final_rows(archive.load_session(where.folder / 'reports/archive'))
    assert rows.filter(verdict='FAIL').height == code and rows['test'].n_unique() == len(done.report['runs']) - retried
    assert set(rows['display_name']) == {'site_stream'} and rows['repetition'].null_count() == 0


def test_repetitions_after_a_pass_are_no_retries(place, tmp_path):
    '''However many retries there may be; each is judged by what it measures itself.'''
    where = place()
    for _ in range(5):
        assert where.reframe('-r', checks=STREAM).report and where.judge().code == 0
    assert where.accept('made').code == 0
    rfm.script(tmp_path / 'bin/stream', 'case $PWD in *_retry*) echo "Triad: 5000.0";; *) echo "Triad: 10000.0";; esac')
    done = where.reframe('-r', '--max-retries=2', '--reruns=2', checks=STREAM)
    of_runs = [next(iter(done.cases(run=run).values()))['plumbline']['metrics'][0] for run in range(len(done.report['runs']))]
    assert [len(metric['samples']) for metric in of_runs] == [10] * 3 and [metric['verdict'] == 'PASS' for metric in of_runs] == [True, False, False]


def test_a_pipeline_of_gitlab_ends_in_one_verdict(place, tmp_path):
    '''Its jobs as GitLab runs them.  ReFrame 4.10.4 runs nothing in the job of a fixture, so there is no session of it to restore.'''
    where, pipeline = place(), tmp_path / 'pipeline.yml'
    made = where.reframe('-c', SUITE, '-n', 'site_stream|their_stream', f'--ci-generate={pipeline}', checks=STREAM)
    assert made.code == 0, made.out
    jobs = {name: job for name, job in yaml.safe_load(pipeline.read_text()).items() if 'script' in job}
    assert len(jobs) == 4       # with the fixture
    for _, job in sorted(jobs.items(), key=lambda item: item[1]['stage']):
        script, = job['script']
        command = re.sub(r'--restore-session=\S+', '', script).replace('reframe ', f'{rfm._REFRAME} ', 1)
        done = where.run(['bash', '-c', command], CI_COMMIT_SHORT_SHA='0a1b2c3d')
        assert done.code == 0, done.out
    reports = sorted(path for job in jobs.values() for path in map(where.folder.joinpath, job['artifacts']['paths']) if path.exists())
    assert len(reports) == 3
    said = where.plumbline('report', *reports)
    assert said.code == 0 and ' FAIL, ' in said.out and not re.search('[1-9] FAIL', said.out), said.out


# --- where results go -----------------------------------------------------------------------------------------------------

def test_reframes_own_comparison_is_of_our_values(place, tmp_path):
    where = place(CANNED_STORAGE=tmp_path / 'results.db')
    for rate in ('10000', '8000'):
        assert where.reframe('-r', '-c', SUITE, '-n', 'site_stream|their_stream', checks=STREAM, CANNED_RATE=rate).report
    listed = where.reframe('--list-stored-sessions', checks=STREAM)
    uuids = [word for word in listed.out.replace('│', ' ').split() if len(word) == 36 and word.count('-') == 4]
    assert len(uuids) == 2, listed.out
    compared = where.reframe(f'--performance-compare={uuids[1]}/{uuids[0]}/mean:/', checks=STREAM)
    row, = (line for line in compared.out.splitlines() if 'bandwidth.triad' in line)
    values = [float(word) for word in row.replace('│', ' ').split()[-3:]]
    assert values == pytest.approx([8006, 10006, -19.99], abs=2) or values == pytest.approx([10006, 8006, 24.98], abs=2), row


@pytest.fixture(scope='session')
def pygelf(tmp_path_factory):
    '''PYTHONPATH with the library of ReFrame's handler ``graylog``, which is an extra of a site that has it.'''
    return rfm.installed(tmp_path_factory.mktemp('pygelf'), 'pygelf==0.4.2')


def test_graylog_gets_the_verdict_and_no_samples(place, pygelf):
    with rfm.listener() as (port, got):
        path = os.pathsep.join(filter(None, (str(pygelf), os.environ.get('PYTHONPATH'))))
        done = place().reframe('-r', '-c', SUITE, '-n', 'site_stream|their_application', checks=STREAM, PYTHONPATH=path,
                               CANNED_GRAYLOG=f'127.0.0.1:{port}')
    assert done.report and 'could not' not in done.out, done.out
    told = {one.get('_check_perf_var'): one for one in (json.loads(zlib.decompress(body) if body[:1] == b'\x78' else body) for body in got)}
    ours = told['bandwidth.triad']
    assert (ours['_check_perf_value'], ours['_check_perf_verdict'], ours['_check_perf_unit']) == (pytest.approx(10006), 'NO REFERENCE', 'MB/s')
    assert told['elapsed']['_check_perf_value'] == 40.0
    assert not any('plumbline' in key for one in told.values() for key in one) and not ours['_check_perfvalues'] and max(map(len, got)) < 8000

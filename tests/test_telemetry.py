'''A session for machines: the summary fits its schema, and Prometheus's own programs read what is written for them.'''

import json
import math
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

import rfm
import sample_session as sample
from native import needs
from plumbline import schemas
from plumbline.cli import app
from plumbline.report import Session, telemetry
from plumbline.report.history import Loss
from plumbline.store import archive


def summary(rows, *more, **named):
    return telemetry.summary(Session(rows), *more, **named)


RULES = rfm.REPOSITORY / 'config/prometheus/plumbline.rules.yml'


def tiny(**more):
    '''One metric that FAILs, of a host whose name nobody should have.'''
    return sample.frame(sample.case('latency', [sample.metric('latency.L1', 2.0, 'us', 'FAIL', (1.0, None, 0.1), 'above', reference_from='made.yaml')],
                                    threads='one', host='a"b\\c', detail={'maintainers': ['ops']}, **more))


def test_the_summary_fits_its_schema_and_no_two_samples_have_the_same_labels():
    for rows in (sample.sample_session(), tiny(), sample.frame(sample.skipped())):
        found = json.loads(telemetry.as_json(summary(rows, [Loss('memory, rates and times', 'a loss')])))
        assert schemas.complaint('summary', found) is None
    found = summary(tiny())
    metric, = found['metrics']
    assert (found['exit_status'], found['system'], metric['value'], metric['reference'], metric['maintainers']) == (1, 'sample', 2.0, 1.0, ['ops'])
    assert found['started'] == 1767323045.0 and metric['low'] is None and metric['high'] == pytest.approx(1.1)
    twice = [sample.case('a', [sample.metric('of_limit.x', value)], test=name) for name, value in (('a_1', 0.9), ('a_2', 0.8))]
    named = [line.rpartition(' ')[0] for line in telemetry.prometheus(summary(sample.frame(*twice))).splitlines() if line[0] != '#']
    assert len(named) == len(set(named))


def test_values_are_in_base_units_with_the_mode_and_what_is_not_known_is_left_out():
    text = telemetry.prometheus(summary(tiny()))
    labels = r'{system="sample",mode="daily",partition="cpu",environment="gnu",host="a\"b\\c",test="latency one",metric="latency.L1"'
    assert f'plumbline_time_seconds{labels}}} 2e-06\n' in text and f'plumbline_time_reference_seconds{labels}}} 1e-06\n' in text
    assert f'plumbline_verdict_info{labels},verdict="FAIL"}} 1\n' in text and 'lower_bound' not in text
    assert 'plumbline_session_start_time_seconds{system="sample",mode="daily"} 1767323045.0\n' in text
    assert 'nan' not in telemetry.prometheus(summary(sample.frame(sample.case('a', [sample.metric('of_limit.x', math.nan)]))))
    foreign = telemetry.prometheus(summary(sample.frame(sample.case('Stream', [sample.metric('Copy', 250.0, 'GB/s')], foreign=True))))
    assert re.search(r'^plumbline_other_value{.*metric="Copy",unit="GB/s"} 250.0$', foreign, re.M) and 'plumbline_value_ratio{' not in foreign
    case = sample.case('latency', [sample.metric('latency.L1', 2.0, 'us')])
    for said, mode, partition in (('reframe -r', '', ''), ('reframe --mode=daily --system=sample -r', 'daily', ''),
                                  ('reframe --mode daily --mode upgrade --system sample:gpu -r', 'upgrade', 'gpu')):
        found = summary(sample.frame(case, info={'cmdline': said}))
        assert (found['mode'], found['partition']) == (mode, partition)
    assert '\nplumbline_session_exit_status{system="sample",mode="upgrade",partition="gpu"} ' in telemetry.prometheus(found)


@pytest.mark.slow
def test_report_writes_them(tmp_path):
    archive.write(sample.sample_session(), tmp_path / 'archive')
    files = tmp_path / 'summary.json', tmp_path / 'metrics/plumbline.prom'
    done = CliRunner().invoke(app, ['report', '--archive', str(tmp_path / 'archive'), '--destination', str(tmp_path / 'page'),
                                    '--json', str(files[0]), '--prometheus', str(files[1])])
    assert done.exit_code == 1 and schemas.complaint('summary', json.loads(files[0].read_text())) is None
    assert files[1].read_text().count('\nplumbline_verdict_info{') == len(json.loads(files[0].read_text())['metrics'])
    assert os.stat(files[1]).st_mode & 0o777 == 0o644       # node-exporter is somebody else
    assert sorted(path.name for path in files[1].parent.iterdir()) == [files[1].name]


def test_promtool_finds_nothing_wrong(tmp_path):
    needs('promtool')
    text = telemetry.prometheus(summary(sample.sample_session()))
    done = subprocess.run(['promtool', 'check', 'metrics'], input=text, text=True, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, '')
    assert subprocess.run(['promtool', 'check', 'rules', RULES], capture_output=True).returncode == 0


def test_the_alerts_are_raised_when_they_should_be(tmp_path):
    needs('promtool')

    def case(status, started, raised, mode='daily'):
        return {'interval': '1h', 'input_series': [{'series': f'plumbline_session_exit_status{{system="s",mode="{mode}"}}', 'values': f'{status}x60'},
                                                   {'series': f'plumbline_session_start_time_seconds{{system="s",mode="{mode}"}}', 'values': f'{started}x60'}],
                'promql_expr_test': [{'expr': 'count by (alertname) (ALERTS)', 'eval_time': '55h',
                                      'exp_samples': [{'labels': f'{{alertname="{raised}"}}', 'value': 1}] if raised else []}]}

    path = tmp_path / 'tests.yaml'
    with open(path, 'w') as file:
        YAML().dump({'rule_files': [str(RULES)], 'evaluation_interval': '1h', 'tests': [
            case(0, 180000, None), case(1, 180000, 'PlumblineFail'), case(3, 180000, 'PlumblineNotJudged'), case(0, 0, 'PlumblineTooOld'), case(0, 0, 'PlumblineTooOld', ''),
            case(0, 0, None, 'upgrade')]}, file)
    done = subprocess.run(['promtool', 'test', 'rules', path], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_asks_for_what_is_written():
    written = set(re.findall(r'^# TYPE (\S+)', telemetry.prometheus(summary(sample.sample_session(), [Loss('memory, rates and times', 'a loss')])), re.MULTILINE))
    shown = (rfm.REPOSITORY / 'config/prometheus/plumbline.dashboard.json').read_text() + RULES.read_text()
    asked = set(re.findall(r'plumbline_[a-z_]+', shown))
    assert json.loads((rfm.REPOSITORY / 'config/prometheus/plumbline.dashboard.json').read_text())['panels'] and asked
    assert asked - written <= {'plumbline_cause_info', 'plumbline_subsystem_change_ratio'}     # those the sample has no reason for


@pytest.mark.reframe
def test_a_real_prometheus_alerts_by_a_real_node_exporter(tmp_path):
    needs('prometheus', 'prometheus-node-exporter')
    telemetry_file = tmp_path / 'textfiles/plumbline.prom'
    telemetry_file.parent.mkdir()
    found = summary(sample.sample_session())
    telemetry_file.write_text(telemetry.prometheus(found))
    telemetry_file.with_name('upgrade.prom').write_text(telemetry.prometheus({**found, 'mode': 'upgrade'}))
    exporter, server = free_port(), free_port()
    with open(tmp_path / 'prometheus.yml', 'w') as file:
        YAML().dump({'global': {'scrape_interval': '1s', 'evaluation_interval': '1s'}, 'rule_files': [str(RULES)], 'scrape_configs': [
            {'job_name': 'node', 'static_configs': [{'targets': [f'127.0.0.1:{exporter}']}]}]}, file)
    commands = (['prometheus-node-exporter', '--collector.disable-defaults', '--collector.textfile',
                 f'--collector.textfile.directory={telemetry_file.parent}', f'--web.listen-address=127.0.0.1:{exporter}'],
                ['prometheus', f'--config.file={tmp_path}/prometheus.yml', f'--storage.tsdb.path={tmp_path}/data', f'--web.listen-address=127.0.0.1:{server}'])
    log = open(tmp_path / 'log', 'w')
    running = [subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path) for command in commands]
    try:
        raised = wait_for(lambda: {one['metric']['alertname'] for one in query(server, 'ALERTS{alertstate="firing"}')}, 200)
        assert raised == {'PlumblineFail', 'PlumblineTooOld'}, (tmp_path / 'log').read_text()       # it is of January
        assert query(server, 'node_textfile_scrape_error')[0]['value'][1] == '0'
        fails = {one['metric']['mode']: one['value'][1] for one in query(server, 'plumbline_session_verdicts{verdict="FAIL",question="software"}')}
        assert fails == dict.fromkeys(('daily', 'upgrade'), str(found['counts']['software']['FAIL']))
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(100)
        log.close()


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def query(port, expression):
    try:
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(expression)}', timeout=5) as answer:
            return json.load(answer)['data']['result']
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return []       # not up yet


def wait_for(what, seconds):
    until = time.monotonic() + seconds
    while len(found := what()) < 2 and time.monotonic() < until:
        time.sleep(0.3)
    return found

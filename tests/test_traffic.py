'''Counted traffic against the model's: the check with a stand-in for likwid-perfctr, and without counters.'''

import pytest
import rfm

CHECK = rfm.REPOSITORY / 'checks/memory/triad_traffic.py'


@pytest.fixture(scope='module')
def commands(tmp_path_factory):
    return rfm.tools(tmp_path_factory.mktemp('perfctr') / 'bin', without=rfm.LIKWID,
                     scripts=[rfm.GUARDS / 'perfctr/likwid-perfctr', rfm.GUARDS / 'likwid-pin'])


def run(folder, commands, config=rfm.REPOSITORY / 'config/localhost.py', **environment):
    place = rfm.Workplace(folder, commands, config, **environment)
    done = place.reframe('-r', checks=CHECK)
    return place, done, done.cases()['triad_traffic']


def test_traffic_that_agrees_with_the_model_passes(tmp_path, commands):
    _, done, case = run(tmp_path, commands, CANNED_TRAFFIC='1.03')
    assert case['result'] == 'pass', done.out
    values = {metric['name']: metric['value'] for metric in case['plumbline']['metrics']}
    assert values == {'traffic.plain': pytest.approx(1.03, rel=1e-3), 'traffic.nt': pytest.approx(1.03, rel=1e-3)}


def test_traffic_that_the_model_does_not_explain_fails(tmp_path, commands):
    place, done, case = run(tmp_path, commands, CANNED_TRAFFIC='1.5')
    assert case['result'] == 'fail' and 'traffic.plain' in case['fail_reason']
    assert place.judge().code == 1


@pytest.fixture(scope='module')
def without_counters(tmp_path_factory):
    folder = tmp_path_factory.mktemp('quiet')
    quiet = folder / 'likwid-perfctr'
    quiet.write_text("#!/bin/sh\n[ \"$1\" = -i ] || echo 'No groups defined for nil'\n")
    quiet.chmod(0o755)
    return rfm.tools(folder / 'bin', without=rfm.LIKWID, scripts=[quiet, rfm.GUARDS / 'likwid-pin'])


def test_without_counters_it_is_not_measured_for_the_reason_that_likwid_gives(tmp_path, without_counters):
    _, done, case = run(tmp_path, without_counters)
    assert case['result'] == 'skip', done.out
    assert case['plumbline']['skipped'][0]['metric'] == 'traffic'
    assert 'LIKWID has no group for memory' in case['plumbline']['skipped'][0]['reason']


def test_without_counters_that_the_site_has_promised_it_fails(tmp_path, without_counters):
    place, done, case = run(tmp_path, without_counters, rfm.GUARDS / 'config.py', CANNED_FEATURES='likwid counters')
    assert case['result'] == 'fail', done.out
    assert 'LIKWID has no group for memory' in case['fail_reason']
    assert 'made:cpu has the feature counters: mend that, or take it out of the site file' in case['fail_reason']
    judged = place.judge()
    assert judged.code == 1 and 'has the feature counters' in ' '.join(judged.out.split()), judged.out

'''Counted traffic against the model's: the check with a stand-in for likwid-perfctr, and without counters.'''

import pytest

import rfm

CHECK = rfm.REPOSITORY / 'checks/memory/triad_traffic.py'


def likwid(folder, perfctr):
    '''A PATH with this likwid-perfctr, and a cmake that hands out programs that these tests have built; objdump takes longer than all of the rest.'''
    return rfm.tools(folder / 'bin', without=(*rfm.LIKWID, 'objdump'), scripts=[perfctr, rfm.GUARDS / 'likwid-pin', rfm.GUARDS / 'cmake'])


@pytest.fixture(scope='module')
def commands(tmp_path_factory):
    return likwid(tmp_path_factory.mktemp('perfctr'), rfm.GUARDS / 'perfctr/likwid-perfctr')


@pytest.fixture
def place(handed_out, tmp_path):
    '''Function (PATH, variables) -> a workplace with it; ``config`` names another configuration.'''
    def make(commands, config=rfm.REPOSITORY / 'config/localhost.py', **environment):
        return rfm.Workplace(tmp_path, commands, config, CANNED_PROGRAMS=handed_out, **environment)
    return make


def run(place):
    done = place.reframe(*rfm.small(), checks=CHECK)
    return done, done.cases()['triad_traffic']


def test_traffic_that_agrees_with_the_model_passes(place, commands):
    done, case = run(place(commands, CANNED_TRAFFIC='1.03'))
    assert case['result'] == 'pass' or 'too few rounds in one state' in case['fail_reason'], done.out       # the machine's cores were moved meanwhile
    values = {metric['name']: metric['value'] for metric in case['plumbline']['metrics']}
    assert values == {'traffic.plain': pytest.approx(1.03, rel=1e-3), 'traffic.nt': pytest.approx(1.03, rel=1e-3)}


def test_traffic_that_the_model_does_not_explain_fails_and_each_run_has_its_own_counters(place, commands):
    told = place(commands, CANNED_TRAFFIC='1.5 1.4')
    done = told.reframe(*rfm.small(), '--max-retries=1', checks=CHECK)
    assert 'traffic.plain' in done.cases(0)['triad_traffic']['fail_reason'] and told.judge().code == 1
    for metric in done.cases()['triad_traffic']['plumbline']['metrics']:
        if 'states' in metric or 'set_aside' in metric:     # the machine's cores were moved meanwhile: what each run counted stands in each state
            samples = metric['samples'] + [one for other in metric.get('states', ()) for one in other['samples']]
            assert {round(one, 3) for one in samples} <= {1.4, 1.5}
        else:
            assert metric['samples'] == pytest.approx([1.5, 1.4], rel=1e-3)


@pytest.fixture(scope='module')
def without_counters(tmp_path_factory):
    folder = tmp_path_factory.mktemp('quiet')
    return likwid(folder, rfm.script(folder / 'likwid-perfctr', "[ \"$1\" = -i ] || echo 'No groups defined for nil'"))


def test_without_counters_it_is_not_measured_for_the_reason_that_likwid_gives(place, without_counters):
    done, case = run(place(without_counters))
    assert case['result'] == 'skip', done.out
    assert case['plumbline']['skipped'][0]['metric'] == 'traffic'
    assert 'LIKWID has no group for memory' in case['plumbline']['skipped'][0]['reason']


@pytest.mark.parametrize('features, result', [('likwid', 'skip'), ('likwid counters', 'fail')])
def test_counters_that_count_nothing_are_none(place, commands, features, result):
    done, case = run(place(commands, rfm.GUARDS / 'config.py', CANNED_FEATURES=features, CANNED_TRAFFIC='0'))
    assert case['result'] == result, done.out
    assert 'no memory traffic was counted' in (case['fail_reason'] or case['plumbline']['skipped'][0]['reason'])


def test_without_counters_that_the_site_has_promised_it_fails(place, without_counters):
    promised = place(without_counters, rfm.GUARDS / 'config.py', CANNED_FEATURES='likwid counters')
    done, case = run(promised)
    assert case['result'] == 'fail', done.out
    assert 'LIKWID has no group for memory' in case['fail_reason']
    assert 'made:cpu has the feature counters: fix that, or take it out of the site file' in case['fail_reason']
    judged = promised.judge()
    assert judged.code == 1 and 'has the feature counters' in ' '.join(judged.out.split()), judged.out

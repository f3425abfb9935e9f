'''The result of a check: what of it stands in the JSON, and that nobody can misspell it.'''

import copy
import json
from dataclasses import fields

import numpy as np
import pytest
from reframe.utility import jsonext

import made_report
import rfm
from plumbline import schemas
from plumbline.model import metrics
from plumbline.model.result import SCHEMA_VERSION, UNSET, Measured, Noted, OtherState, Process, Result, Skipped, known
from plumbline.references import Reference
from plumbline.rfm import evaluation

SCHEMA = json.loads((rfm.REPOSITORY / 'src/plumbline/schemas/result.json').read_text())


def example():
    '''A result with all that a check can set, some of it None.'''
    return made_report.result(
        made_report.metric(record=0, processes=[{'process': 0, 'n': 6, 'record': 0}, {'process': 2, 'n': 4, 'record': None}],
                           state={'core_to_core.0': 3e-8}, set_aside=3, rounds=None, sees=0.08, unjudged='made', limit=5.0,
                           expected={'deviation': 0.02, 'freedom': 9.5, 'measured': {'a': 990.0}},
                           states=[{'state': {'core_to_core.0': 1e-7}, 'value': 5.0, 'n': 1, 'spread': None, 'interval': [5.0, 5.0],
                                    'samples': [5.0], 'rounds': [7], 'processes': [{'process': 1, 'n': 1, 'record': 1}]}]),
        made_report.metric('of_limit', 0.9, '1', state=None),
        source='made', ranks=2, transport='shm', given={'largest': '4096'}, contention=[], cross_check=None, cross_check_reason='there is none',
        skipped=[{'metric': None, 'reason': 'made'}, {'metric': 'all in L3', 'reason': 'made', 'parts': ['L3']},
                 {'metric': 'all', 'reason': 'made', 'recorded': 3}, {'metric': 'x', 'reason': 'made', 'referenced': ['x']}],
        software={'spack': {'environment': 'e', 'lock_hash': '0' * 64, 'specs': ['gcc']}}, simd_width={'plain': '512'}, notes=['one', 'two'],
        noted=[{'about': 'caches', 'note': 'two'}], other_processors=['another'], command='true', rerun=None)


def test_the_example_goes_round():
    left = example()
    assert schemas.complaint('result', left) is None
    read = Result.of_json(left)
    assert read.as_json() == left and Result.of_json(read.as_json()) == read
    assert read.metrics[0].states[0].processes == [Process(1, 1, 1)] and read.skipped[1] == Skipped('all in L3', 'made', ['L3'])
    assert read.metrics[1].state is None and read.metrics[1].record is UNSET


@pytest.mark.parametrize('kind, of', [
    (Result, SCHEMA), (Measured, SCHEMA['$defs']['metric']), (OtherState, SCHEMA['$defs']['metric']['properties']['states']['items']),
    (Process, SCHEMA['$defs']['processes']['items']), (Skipped, SCHEMA['properties']['skipped']['items']),
    (Noted, SCHEMA['properties']['noted']['items'])])
def test_the_attributes_are_those_of_the_schema(kind, of):
    assert {field.name for field in fields(kind)} == set(of['properties'])
    assert {field.name for field in fields(kind) if field.default is not UNSET} == set(of.get('required', ()))


def test_what_is_not_set_is_left_out_and_none_is_not():
    assert Result().as_json() == {} and not UNSET
    assert Result(machine=None, records=[], timed_seconds=None).as_json() == {'records': [], 'machine': None, 'timed_seconds': None}
    assert Skipped(None, 'made').as_json() == {'metric': None, 'reason': 'made'}
    assert (known(UNSET), known(None), known(0)) == (None, None, 0)


@pytest.mark.parametrize('one', [Result(), Skipped('all', 'made'), Noted('caches', 'made'), Process(0, 1, None),
                                 OtherState(state=None, value=1.0, n=1, spread=None, interval=[1.0, 1.0])])
def test_what_is_misspelt_is_an_error(one):
    with pytest.raises(AttributeError):
        one.tiemd_seconds = 1.0
    with pytest.raises(AttributeError):
        one.tiemd_seconds       # noqa: B018
    with pytest.raises(TypeError):
        type(one)(tiemd_seconds=1.0)


def test_a_note_is_told_once_and_what_it_is_about_as_well():
    told = Result()
    for about in (None, 'caches', 'caches', None):
        told.note('L2: half of it is ours', about)
    told.note('another')
    assert told.as_json() == {'notes': ['L2: half of it is ours', 'another'], 'noted': [{'about': 'caches', 'note': 'L2: half of it is ours'}]}
    left = {'skipped': [{'metric': 'all', 'reason': 'made', 'further': 1}]}
    assert schemas.complaint('result', left) is None and Result.of_json(left).skipped == [Skipped('all', 'made')]


def test_reframe_copies_it_and_writes_its_json():
    '''As the value of a variable, and into run report, logs and database.'''
    left = copy.deepcopy(Result(timed_seconds=1.0))
    assert left.machine is UNSET
    left.skip(Skipped('all', 'made'))
    assert json.loads(jsonext.dumps({'plumbline': left})) == {'plumbline': {'timed_seconds': 1.0, 'skipped': [{'metric': 'all', 'reason': 'made'}]}}
    assert jsonext.encode_dict({'plumbline': {'a': left}}, recursive=True)['plumbline']['a'] == left.as_json()
    metric = metrics.Metric('bandwidth', 'plain', np.linspace(99.0, 101.0, 12), record={'index': 2})
    others = [evaluation.Case(metric, {'core_to_core.0': 1e-7}, rounds=[1, 2])]
    case = evaluation.Case(metric, {'core_to_core.0': 3e-8}, set_aside=12, rounds=list(range(12)), others=others, reference_from='made.yaml',
                           reference=Reference((100.0, -0.1, None)), processes=[Process(0, 6, 2), Process(1, 6, 3)])
    left = Result(schema=SCHEMA_VERSION, metrics=[evaluation.judged(case)]).as_json()
    assert schemas.complaint('result', left) is None
    assert list(left['metrics'][0]) == ['name', 'metric', 'subject', 'subsystem', 'value', 'unit', 'samples', 'n', 'spread', 'interval', 'reference',
                                        'reference_from', 'limit', 'verdict', 'reason', 'sees', 'record', 'processes', 'state', 'set_aside',
                                        'rounds', 'states']
    assert 'processes' not in left['metrics'][0]['states'][0] and Result.of_json(left).as_json() == left

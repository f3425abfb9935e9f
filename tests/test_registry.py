'''The registry of metrics: it holds what the checks yield, and all that knows units or directions agrees with it.'''

import re

import pytest

import rfm
from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import quantity, registry
from plumbline.model.metrics import Metric


@pytest.mark.parametrize('metric, subsystem, noise', [
    ('of_limit', 'memory, one thread', 'ratio of memory'), ('bandwidth', 'memory, all threads', 'memory'), ('bandwidth', 'L2', 'cache'),
    ('efficiency', 'L2', 'ratio of cache'), ('cpu_availability', 'CPU availability', 'share of CPU availability'), ('clock', 'core', 'cache'),
    ('of_topology', 'topology', 'count'), ('latency', 'latency', 'latency'), ('bandwidth', 'messages, shared memory', 'messages'),
    ('overhead', 'messages, shared memory', 'difference of messages'), ('of_median', 'messages, network', 'ratio of messages'),
    ('communication', 'none', 'ratio of none'), ('figure_of_merit', 'applications', 'applications')])
def test_a_metric_scatters_as_what_it_is_of(metric, subsystem, noise):
    assert registry.of_row({'metric': metric, 'subsystem': subsystem}) == (subsystem, noise)
    assert registry.kind_of(noise) == registry.find(metric).noise


@pytest.mark.parametrize('stated, level, threads, transport, subsystem', [
    ('core', 'memory', 'all', 'shm', 'core'), ('memory', 'L2', 'one', None, 'memory, one thread'), ('memory', 'L2', '4', None, 'memory, all threads'),
    ('levels', 'L2', 'one', None, 'L2'), ('levels', 'cache', 'all', None, 'L2'), ('levels', 'memory', '1', None, 'memory, one thread'),
    ('levels', None, None, None, 'memory, all threads'), ('levels', 'application', 'all', None, 'applications'),
    ('messages', None, None, 'shm', 'messages, shared memory'), ('messages', None, None, 'tcp', 'messages, network'),
    ('messages, network', None, None, 'shm', 'messages, network')])
def test_what_a_check_says_is_the_subsystem_or_says_what_decides_it(stated, level, threads, transport, subsystem):
    assert registry.subsystem('bandwidth', stated, level, threads, transport) == subsystem
    assert registry.subsystem('cpu_availability', stated, level, threads, transport) == 'CPU availability'      # the registry knows better


@pytest.mark.parametrize('row', [{'metric': 'gone', 'subsystem': 'L2'}, {'metric': 'bandwidth', 'subsystem': None},
                                 {'metric': 'bandwidth', 'subsystem': 'of a newer version'}])
def test_what_is_not_known_is_in_no_subsystem(row):
    assert registry.of_row(row) == (None, registry.ABSOLUTE)


def test_a_metric_takes_its_unit_from_the_registry_and_no_other_name_or_subsystem():
    assert Metric('latency', 'L1', [1.0]).unit == 'us'
    with pytest.raises(PlumblineError, match="metric 'bandwith' is not in the registry; enter it in src/plumbline/model/registry.py"):
        Metric('bandwith', None, [1.0])
    with pytest.raises(TypeError):
        Metric('bandwidth', None, [1.0], 'GB/s')
    assert Metric('capacity', 'L2', [1.0], subsystem='L2').subsystem == 'L2'
    with pytest.raises(PlumblineError, match="metric 'capacity.L2': subsystem 'L 2' is none; give one of core, L1, "):
        Metric('capacity', 'L2', [1.0], subsystem='L 2')


def yielded(pattern):
    files = [path for folder in ('checks', 'src/plumbline') for path in (rfm.REPOSITORY / folder).rglob('*.py')]
    return {name for path in files for name in re.findall(pattern, path.read_text())}


def test_what_the_checks_name_is_entered_in_units_that_the_schemas_know_and_the_report_scales():
    named = yielded(r"\bMetric\(\s*'(\w+)'") | yielded(r"(?:skip_metric|skip_test)\(f?'(\w+)[.']") - {'all'}
    assert len(named) > 25 and named <= set(registry.METRICS), named - set(registry.METRICS)
    units = {entry.unit for entry in registry.METRICS.values()}
    result, references = (schemas.validator(name).schema for name in ('result', 'references'))
    assert units == set(result['$defs']['metric']['properties']['unit']['enum']) == set(quantity.SCALES)
    kinds = references['$defs']['origin']['then']['properties']['metric']['enum']
    assert set(kinds) == {registry.of_other_suite(*bounds) for bounds in ((-0.1, None), (None, 0.1), (None, None))}
    assert all(map(registry.is_of_other_suite, kinds)) and not registry.is_of_other_suite('time')

'''The registry of metrics: it holds what the checks yield, and all that knows units or directions agrees with it.'''

import re

import pytest

import rfm
from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import quantity, registry
from plumbline.model.metrics import Metric
from plumbline.store import former

PLACES = [
    (('triad_memory', 'of_limit', 'plain', 'memory', 'one'), 'memory, one thread', 'ratio of memory'),
    (('triad_memory', 'bandwidth', 'plain', None, 'all'), 'memory, all threads', 'memory'),
    (('triad_curve', 'bandwidth', 'plain.L2', None, 'one'), 'L2', 'cache'),
    (('triad_scaling', 'efficiency', 'all', 'cache', 'all'), 'L2', 'ratio of cache'),
    (('node_speed', 'flops', 'L1', None, 'all'), 'L1', 'cache'),
    (('node_speed', 'cpu_availability', None, None, 'all'), 'CPU availability', 'share of CPU availability'),
    (('cores', 'clock', 'one', None, 'all'), 'core', 'cache'),
    (('cores', 'of_topology', 'pairs', None, 'all'), 'topology', 'count'),
    (('latency_curve', 'latency', 'memory.huge', None, 'one'), 'latency', 'latency'),
    (('tlb', 'tlb_entries', 'L1.4KiB', None, 'one'), 'latency', 'count'),
    (('fileio_modes', 'bandwidth', 'whole_stream.write', None, None), 'files', 'files'),
    (('pingpong', 'latency', 'standard.shm', None, None), 'messages, shared memory', 'messages'),
    (('pingpong', 'bandwidth', 'standard.tcp', None, None), 'messages, network', 'messages'),
    (('pingpong', 'overhead', 'standard.shm', None, None), 'messages, shared memory', 'difference of messages'),
    (('imb_mpi1', 'latency', 'PingPong.4B.shm', None, None), 'messages, shared memory', 'messages'),
    (('node_pairs', 'of_median', 'latency', None, None), 'messages, network', 'ratio of messages'),
    (('pingpong_nodes', 'latency', 'tcp.nodes', None, None), 'messages, network', 'messages'),
    (('network_patterns', 'bandwidth', 'alltoall.8', None, None), 'messages, network', 'messages'),
    (('network_patterns', 'of_pair', 'bisection', None, None), 'messages, network', 'ratio of messages'),
    (('network_patterns', 'link_errors', None, None, None), 'messages, network', 'count'),
    (('latency_simulated', 'communication', 'cg.16.1us', None, None), 'none', 'ratio of none'),
    (('site_gromacs', 'figure_of_merit', 'ns_per_day', 'application', 'all'), 'applications', 'applications'),
    (('site_stream', 'bandwidth', 'triad', 'memory', 'all'), 'memory, all threads', 'memory'),
    (('topology', 'memory', None, None, None), 'topology', 'count'),
    (('latency_curve', 'other_less', None, 'memory', 'one'), 'other suites', 'other suites'),
]


def former_row(check, metric, subject, level, threads, parameters=None):
    return {'check': check, 'metric': metric, 'subject': subject, 'level': level, 'threads': threads, 'parameters': parameters}


@pytest.mark.parametrize('where, subsystem, noise', PLACES)
def test_the_subsystem_of_an_older_row_is_told_by_its_names(where, subsystem, noise):
    row = former_row(*where)
    assert former.subsystem(row) == subsystem
    assert registry.of_row(row | {'subsystem': subsystem}) == (subsystem, noise)
    assert registry.kind_of(noise) == registry.find(row['metric']).noise


def test_of_an_older_row_a_parameter_tells_the_transport_where_the_subject_does_not():
    about = 'datatype_transpose', 'bandwidth', 'contiguous.2048', None, None
    assert former.subsystem(former_row(*about)) == former.subsystem(former_row(*about, '{"transport": "tcp"}')) == 'messages, network'
    assert former.subsystem(former_row(*about, '{"transport": "shm"}')) == 'messages, shared memory'
    assert former.subsystem(former_row('latency_sensitivity', 'slowdown', 'cg.5us', None, None)) == 'messages, shared memory'    # no parameter
    assert former.subsystem(former_row('latency_sensitivity', 'flops', 'cg', None, None)) == 'applications'
    assert former.subsystem(former_row('triad_curve', 'gone', 'plain.L2', None, 'one')) is None


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

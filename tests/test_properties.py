'''What holds of any text and any numbers: parsers refuse in one line what they cannot read, statistics keep their order.'''

import functools
import json
import math
import string

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import made_report
import rfm
import test_named
from plumbline import references
from plumbline.detect import pbs, slurm
from plumbline.errors import PlumblineError
from plumbline.imb import text as imb
from plumbline.likwid import bench, perfctr
from plumbline.model import baselines, burn, processor, records, spatter, subsystems, uncertainty
from plumbline.model.safe_text import masked, shown
from plumbline.report.public import without_paths
from plumbline.rfm import capacity
from plumbline.scheduler import schedule
from plumbline.simulation import network, predict
from plumbline.system import codegen, datasheet, dmi, topology, topology_file

settings.register_profile('here', max_examples=100, deadline=None, derandomize=True, database=None)
settings.load_profile('here')

POSITIVE = st.floats(1e-9, 1e12)
SAMPLES = st.lists(POSITIVE, min_size=1, max_size=40)
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
                    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part, max_size=3), max_leaves=8)


# --- parsers ------------------------------------------------------------------------------------------------------------

def of_text(parse, *more, **asked):
    '''A parser of a text, or of a file with it, and more.'''
    @functools.wraps(parse)
    def parser(text):
        return parse(text if isinstance(text, str) else text.read_text(errors='replace'), *more, **asked)
    return parser


#: Parser -> pieces of what it reads; between them stands anything.
PARSERS = {
    records.parse: (json.dumps(made_report.measurement()), '{"record":', '"seconds": [', '\n', '1e999'),
    spatter.parse: ('[{"kernel": "Gather", "pattern": "UNIFORM:8:1", "delta": 8, "length": 100}]', 'UNIFORM:', 'MS1:8:', ',', '"count"'),
    imb.parse: ('#----', '# Benchmarking PingPong', '# #processes = 2', '       #bytes #repetitions      t[usec]   Mbytes/sec', '\n', '  8  1000  0.25'),
    perfctr.parse_perfctr_csv: ('TABLE,Region triad,Group 1 Raw,MEM,2', 'STRUCT,Info,3', '\n', ',', 'CPU clock:,2.5 GHz', '0.5'),
    bench.parse_bench: ('Cycles:', 'Time:', 'MByte/s:', '\t\t', '\n', '12.5', 'Iterations:'),
    schedule.time_of: ('02', ':', '30'),
    capacity.given: ('L2=', '524288', ',', 'measured'),
    bench.parse_cross_check: ('plumbline-bench', 'L1', 'Cycles:', 'Time:', '\n', '0', 'exit'),
    perfctr.parse_groups: ('-' * 80, '\n', ' MEM\tMain memory bandwidth', '\t'),
    predict.parse: (predict.PREFIX, '{"predicted": "cg", "cells": []}', '{', '\n'),
    dmi.memory_slots: ('Memory Device\n', '\tSize: 16 GB\n', '\tConfigured Memory Speed: 3200 MT/s\n', '\n\n', 'Size:', 'Unknown'),
    of_text(topology_file.parse, 'the file'): (json.dumps({**dict.fromkeys(topology_file._KEYS, 1), 'processor': {'topology': {}}}), json.dumps(dict.fromkeys(topology_file._KEYS, 1)), '}'),
    of_text(burn.parse, 'the file'): ('{"record": "burn_start"}', '{"record": "burn_end"', '\n', '}'),
    processor.of_cpuinfo: ('vendor_id\t: GenuineIntel\n', 'cpu family\t: 6\n', 'model\t\t: 106\n', 'stepping\t: ', 'CPU part\t: 0xd0c\n', '6\n', '²\n'),
    of_text(codegen.widths_of, 'triad', [('plain', None)]): (
        '0000000000001000 <triad_plain>:\n', '    1000:\tc5 fd 58 c1\tvaddpd %ymm1,%ymm0,%ymm0\n', '    1004:\t75 fa\tjne    1000 <triad_plain>\n'),
    slurm.queues: ('main*|up|1-00:00:00', '|', '0/4/0/4', '|64|2|1000', '|(null)', '|n[1-4]\n', '\n'), slurm.seconds: ('1-', '02', ':', '30', '²'),
    pbs.size: ('131900292', 'kb', 'tb'),
}


@pytest.mark.parametrize('parser', PARSERS, ids=lambda parser: f'{parser.__module__.removeprefix("plumbline.")}.{parser.__name__}')
@given(data=st.data())
def test_a_parser_reads_or_refuses_in_one_line(parser, data):
    pieces = st.sampled_from(PARSERS[parser]) | st.text(max_size=12)
    text = ''.join(data.draw(st.lists(pieces, max_size=12)))
    try:
        parser(text)
    except PlumblineError as error:
        assert str(error) and '\n' not in str(error)


#: Loader of a file -> a file that it loads.
FILES = {
    references.load: rfm.REPOSITORY / 'config/references/portable.yaml',
    network.load: rfm.REPOSITORY / 'config/networks/t3e.yaml',
    datasheet.load: rfm.REPOSITORY / 'config/machines/example-epyc-9124.yaml',
    baselines.read: baselines.PATH,
    **{of_text(parse, **asked): rfm.REPOSITORY / 'tests/data/named' / name for name, parse, asked in test_named.READ.values()},
}


@pytest.mark.parametrize('loader', FILES, ids=lambda loader: loader.__module__.removeprefix('plumbline.'))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_that_somebody_edited_is_read_or_refused_in_one_line(loader, data, tmp_path):
    text = FILES[loader].read_text()
    lines = text.splitlines(keepends=True)
    begin = data.draw(st.integers(0, len(lines) - 1))
    text = ''.join(lines[:40]) if len(lines) > 80 and FILES[loader].suffix == '.yaml' else text     # a whole file of references takes a tenth of a second
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + data.draw(st.text(max_size=6) | st.sampled_from(['[', '{', '-1', '.inf', '1e999', ': ', '\t', '!!python/object:x', lines[begin]]))
    broken += text[at + data.draw(st.integers(0, 30)):]
    path = tmp_path / 'edited.yaml'
    path.write_bytes(broken.encode('utf-8', 'surrogatepass'))
    try:
        loader(path)
    except PlumblineError as error:
        assert str(error) and '\n' not in str(error)


@given(key=st.sampled_from(sorted(made_report.measurement())), value=JSON)
def test_a_record_with_one_wrong_value_is_refused_by_its_name(key, value):
    record = made_report.measurement(**{key: value})
    try:
        records.parse(json.dumps(record))
    except PlumblineError as error:
        assert '\n' not in str(error)


# --- text for people ------------------------------------------------------------------------------------------------------

@given(st.text(st.characters() | st.sampled_from('\x1b[]\x07\x9b;m0 '), max_size=40))
def test_nothing_that_a_terminal_obeys_is_left(text):
    seen = shown(text)
    assert not [one for one in seen if (ord(one) < 32 and one not in '\n\t') or 127 <= ord(one) < 160] and shown(seen) == seen


@given(st.text(string.ascii_letters + string.digits, min_size=6), st.sampled_from(['https://{}@host/', '--token {}', 'PASSWORD={} x', '{{"api_key": "{}"}}']))
def test_a_secret_is_masked_once_and_for_all(secret, form):
    text = masked(form.format(f'9{secret}9'))
    assert f'9{secret}9' not in text and masked(text) == text


@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=6), min_size=2, max_size=5))
def test_of_a_path_its_last_part_is_left(parts):
    assert without_paths(f'see /{"/".join(parts)}: 3 GB/s') == f'see {parts[-1]}: 3 GB/s'


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_of_cpus_says_which(cpus):
    ends = [[int(end) for end in part.split('-')] for part in topology.cpu_list(cpus).split(',')]
    assert {cpu for part in ends for cpu in range(part[0], part[-1] + 1)} == cpus


# --- statistics ------------------------------------------------------------------------------------------------------------

@given(SAMPLES, POSITIVE)
def test_a_summary_keeps_its_order_and_has_the_unit_of_its_samples(samples, unit):
    found, scaled = uncertainty.summary(samples), uncertainty.summary(np.array(samples) * unit)
    low, high = found.interval
    assert low <= found.value <= high and (len(samples) == 1 or (min(samples) <= low and high <= max(samples)))
    assert scaled.value == pytest.approx(found.value * unit) and scaled.interval == pytest.approx((low * unit, high * unit))


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=20))
def test_no_weight_is_more_than_that_of_the_median(deviations):
    weights = subsystems.weights(deviations)
    assert math.isclose(weights.sum(), 1)
    assert weights[np.array(deviations) <= np.median(deviations)] == pytest.approx(weights.max())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.2))
def test_what_is_certain_is_also_listed(chances, rate):
    '''Holm's rate of any false alarm is the stricter one, and neither passes over a smaller chance.'''
    certain, listed = subsystems.holm(chances, rate), subsystems.discoveries(chances, rate)
    assert all(other for one, other in zip(certain, listed) if one)
    for found in (certain, listed):
        assert all(a <= b for a, yes in zip(chances, found) if yes for b, also in zip(chances, found) if not also)

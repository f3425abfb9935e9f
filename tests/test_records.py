'''Records: what is read, and that nothing is repaired.'''

import json

import pytest

from made_report import MACHINE, measurement
from plumbline.errors import PlumblineError
from plumbline.model import quantity, records


def lines(*items):
    return '\n'.join(json.dumps(item) for item in items) + '\n'


def refused(text, *parts):
    with pytest.raises(PlumblineError) as error:
        records.parse(text)
    for part in parts:
        assert part in str(error.value)
    assert '\n' not in str(error.value)


def test_reads_records_among_lines_for_people():
    text = 'kernel  MB/s\n' + lines(MACHINE, measurement(), measurement(variant='nt')) + 'done\n'
    found = records.parse(text)
    assert found.machine['hostname'] == 'n1'
    assert [r['variant'] for r in found.measurements] == ['plain', 'nt']
    assert len(records.parse(lines(measurement()).rstrip()).measurements) == 1
    assert records.parse('hello\n') == records.Records(None, [])


@pytest.mark.parametrize('cut', [5, 9, 12, 300, -2])
def test_truncated_last_line_is_an_error(cut):
    whole = lines(measurement())
    refused(whole + whole[:cut], 'line 2')


def lacking(key):
    return lines({name: value for name, value in measurement().items() if name != key})


@pytest.mark.parametrize('text, parts', [
    (lines(measurement()).partition('"bytes"')[0], ['line 1', "'seconds'", 'truncated']),
    ('triad ' + lines(measurement()), ['line 1', 'does not begin its line']), (lines(measurement()).rstrip() + lines(measurement()), ['line 1', 'malformed']),
    (lines(measurement(schema=2)), ['line 1', "'schema'", 'version 2']), (lacking('schema'), ["'schema'", 'None']),
    (lacking('traffic'), ['line 1', "'traffic' is a required property"]), (lines({'record': 'weather', 'schema': 1}), ['record', 'weather']),
    (lines(MACHINE, MACHINE), ['line 2', 'a machine record of one process more than the 1']),
    *((lines(measurement(max_error=0.125)).replace('0.125', number), ['line 1', "'max_error'"]) for number in ('NaN', 'Infinity', '-Infinity', 'nan', '1e999'))])
def test_what_is_no_record_is_refused_by_line_and_field(text, parts):
    refused(text, *parts)


@pytest.mark.parametrize('changed, field', [
    ({'seconds': []}, 'seconds'), ({'seconds': [0.1, 0.0]}, 'seconds/1'),
    ({'seconds': [0.1, None]}, 'seconds/1'), ({'role': 'other'}, 'role'),
    ({'bytes': -1}, 'bytes'), ({'valid': 1}, 'valid'), ({'level': 'L9'}, 'level'),
    ({'colour': 'red'}, 'colour'), ({'threads': 0}, 'threads'),
    ({'huge_page_share': 1.5}, 'huge_page_share')])
def test_out_of_schema(changed, field):
    refused(lines(MACHINE, measurement(**changed)), 'line 2', field)


def test_source_is_named_and_rates_are_by_hand():
    with pytest.raises(PlumblineError, match='^rfm_job.out, line 1'):
        records.parse('{"record": }\n', source='rfm_job.out')
    record = measurement(seconds=[0.5, 1.0], bytes=1e9, traffic=1.25e9, flops=6e7)
    assert records.rate(record).tolist() == [2000.0, 1000.0]
    assert records.rate(record, 'traffic').tolist() == [2500.0, 1250.0]
    assert records.rate(record, 'flops').tolist() == [120.0, 60.0] and records.median_rate(record, 'flops') == 90.0
    assert records.per_pass(record).tolist() == [0.05, 0.1] and records.per_pass(record, 'flops') == 6e6
    assert (quantity.per_second(3e6, 2.0), quantity.microseconds(0.25)) == (1.5, 250000.0)


@pytest.mark.parametrize('changed', [{}, {'seconds': [0.001] * 10, 'clock_resolution': 1e-6}])      # 1000 ticks
def test_worth_reporting(changed):
    assert records.check_worth_reporting(measurement(**changed)) == []


@pytest.mark.parametrize('changed, text', [
    ({'seconds': [0.5] * 9}, '9 samples'), ({'clock_resolution': 1e-3}, 'more passes'),
    ({'clock_resolution': None}, 'unknown'), ({'valid': False}, 'wrong'),
    ({'max_error': 1e-9}, 'above the 0 that it allows'), ({'max_error': None}, 'finite'), ({'max_error': float('nan')}, 'finite')])
def test_not_worth_reporting(changed, text):
    complaint, = records.check_worth_reporting(measurement(**changed))
    assert text in complaint and complaint.startswith('triad.plain size 1000 threads 1')


@pytest.mark.parametrize('record, said', [
    (measurement(max_error=1e-3, tolerance=1e-2), None), ({'record': 'wrong', 'schema': 1, 'why': 'the system has collapsed'}, 'the system has collapsed'),
    (measurement(valid=False), 'it differs from the independent reference'), (measurement(max_error=None), 'is not a finite number'),
    (measurement(max_error=0.5), 'its error of 0.5 is above the 0 that it allows')])
def test_a_wrong_result_is_one_by_its_record_or_by_that_of_a_program_that_could_not_go_on(record, said):
    found = records.wrong_result(records.parse(lines(measurement(), record)))
    assert found == said or found.endswith(said)


def test_a_wrong_result_counts_though_its_program_ended_in_the_middle_of_a_line():
    text = lines(MACHINE, measurement(), measurement(valid=False)) + lines(measurement())[:40]
    with pytest.raises(PlumblineError):
        records.parse(text)
    glued = lines(measurement())[:40] + '{"record": "wrong", "schema": 1, "why": "of another rank"}\n'
    assert records.told_wrong(glued) == 'of another rank'
    assert 'wrong' in records.told_wrong(text) and records.told_wrong(lines(MACHINE, measurement()) + '{"rec') is None


def test_placement():
    record = measurement(threads=3, cpus=[0, 2, 4])
    assert records.check_placement(record, (0, 2, 4)) is None
    wrong = records.check_placement(record, [0, 2, 6])
    assert 'thread 2' in wrong and 'CPU 6' in wrong and 'CPU 4' in wrong
    assert '3 threads' in records.check_placement(record, [0, 2])


def test_records_of_several_processes_are_drawn_as_one():
    def of(process, passes, *seconds, **changed):
        return measurement(process=process, passes=passes, seconds=list(seconds), probes={}, **changed)

    stream = {'role': 'limit', 'kernel': 'streams'}
    found = records.pooled([
        of(0, 4, 1.0, 2.0), of(0, 1, 5.0, 6.0, variant='load_avx512', parts={'load': 1.0}, **stream), of(0, 1, 7.0, 7.0, variant='only here'),
        of(1, 2, 1.5, 1.0), of(1, 1, 8.0, 9.0, variant='load', parts={'load': 1.0}, **stream)])
    assert [(record['variant'], record['seconds']) for record in found] == [
        ('plain', [1.0, 2.0, 3.0, 2.0]), ('load_avx512', [5.0, 6.0, 8.0, 9.0])]
    assert not {'process', 'probes'} & found[0].keys()
    one = [of(3, 1, 1.0)]
    assert records.pooled(one) is one


@pytest.mark.parametrize('given, expected', [
    ('L1 L2 L3 memory', {'L2': 2**14 + 2**18, 'L3': 2**18 + 2**20, 'memory': 2**20}),
    ('L1 L2', {'L2': 2**14 + 2**18}), ('L1 memory', {'memory': 2**14})])
def test_growth_is_of_the_sets_of_its_level_and_of_the_one_below(given, expected):
    '''What another level of its test lacks, huge pages say, is nothing to it; all that is of the whole test is another metric without.'''
    levels, size = given.split(), {'L1': 2**14, 'L2': 2**18, 'L3': 2**20, 'memory': 2**28}
    of_level = [('latency', f'{level}.huge', measurement(working_set=size[level])) for level in levels]
    of_two = [('growth', f'{level}.huge', None) for level in levels[1:]]
    *found, of_all = records.sets_in_caches([*of_level, *of_two, ('efficiency', 'all', None)], None)[len(levels):]
    assert dict(zip(levels[1:], found)) == expected and of_all == sum(size[level] for level in levels if level != 'memory')

'''References: reading, merging as ReFrame looks them up, recording, refusing.'''

import itertools
import math
import types
from types import SimpleNamespace

import pytest
import yaml
from made_report import case, measurement, metric, result, write_report

from plumbline import archive, references
from plumbline.errors import PlumblineError
from plumbline.reference_recording import reference_of

PORTABLE = '''
Triad:
  $index: [$partition, $environ, threads]
  .*:
    .*:
      one:
        of_limit.plain: [1.0, -0.2, 0.1, '1']
        of_limit.nt: [1.0, -0.3, 0.1, '1']
      .*:
        of_limit.plain: [1.0, -0.4, 0.1, '1']
    clang.*:
      one:
        never: [1.0, -0.1, null, '1']
'''
SITE = '''
# what this comment says must stay
Triad:
  $index: [$partition, $environ, threads]
  made:cpu:
    gnu:
      one:
        bandwidth.plain: [25000.0, -0.1, null, MB/s]   # measured by hand
        of_limit.plain: [0.9, -0.05, 0.2, '1']
'''


def written(folder, text, name='made.yaml'):
    path = folder / name
    path.write_text(text)
    return path


def entry(leaf='[1.0, -0.1, null, MB/s]', index='[$environ]'):
    return f'Triad:\n  $index: {index}\n  gnu:\n    bandwidth: {leaf}\n'


# --- reading -------------------------------------------------------------------------------------

def test_load(tmp_path):
    found = references.load(written(tmp_path, PORTABLE))
    assert found['Triad']['.*']['.*']['one']['of_limit.nt'] == [1.0, -0.3, 0.1, '1']
    assert references.load(written(tmp_path, '', 'empty.yaml')) == {}


@pytest.mark.parametrize('leaf, message', [
    ('[1.0, -0.1, null]', 'is too short; a reference is'),
    ('[1.0, -0.1, null, MB/s, x]', 'a reference is'),
    ('[1e3, -0.1, null, MB/s]', 'YAML wants 1000.0'),
    ('[true, -0.1, null, MB/s]', "bandwidth/0: True is not of type 'number'"),
    ('[1.0, 0.1, null, MB/s]', 'bandwidth/1: .*0 or negative'),
    ('[1.0, null, -0.1, MB/s]', 'bandwidth/2: .*0 or positive'),
    ('[1.0, -0.1, null, GB/s]', "bandwidth/3: 'GB/s' is not one of"),
    ('[1.0, -0.1, null, 1]', "quote the unit '1'"),
    ('[1.0, null, null, MB/s]', 'neither bound is set'),
    ('[1.0, -1.5, null, MB/s]', 'below -1'), ('[.nan, -0.1, null, MB/s]', 'not a finite number'),
    ('[1.0, -.inf, null, MB/s]', 'not a finite number'), ('{}', 'should be non-empty'),
    ('{more: [1.0, -0.1, null, MB/s]}', r'bandwidth: expected a reference here; \$index'),
    ('3', "3 is not of type 'object'")])
def test_wrong_leaves(tmp_path, leaf, message):
    with pytest.raises(PlumblineError, match=message) as error:
        references.load(written(tmp_path, entry(leaf)))
    assert 'made.yaml: field Triad/gnu' in str(error.value) and '\n' not in str(error.value)


@pytest.mark.parametrize('text, message', [
    (entry(index='[$environ, threads]'), 'expected a mapping for the next key'),
    (entry(index='[$enviorn]'), r'name \$system, \$partition'), (entry(index='[]'), r'\$index'),
    (entry().replace('$index', 'index'), r'begins with \$index'),
    (entry().replace('gnu', '1'), "line 3: key 1 is not text; quote it: '1'"),
    (entry().replace('gnu', 'on'), "line 3: key True is not text; quote it: 'on'"),
    (entry() + '    bandwidth: [2.0, -0.1, null, MB/s]\n', "line 5: key 'bandwidth' .* twice"),
    (entry() + '   x: 1\n', 'line 5: '), ('Triad: [1', 'line [12]: '), ('- 1\n', r'\(top\)'),
    (entry().replace('gnu', "'g(nu'"), 'ReFrame takes keys for patterns'),
    (entry() + "$provenance:\n  Triad: {gnu: {bandwidth: {when: '2026'}}}\n",
     "'sessions' is a required property")])
def test_malformed_files(tmp_path, text, message):
    with pytest.raises(PlumblineError, match=message) as error:
        references.load(written(tmp_path, text))
    assert str(tmp_path / 'made.yaml') in str(error.value) and '\n' not in str(error.value)


def test_missing_file_and_folder(tmp_path, monkeypatch):
    with pytest.raises(PlumblineError, match='cannot read the references: No such file'):
        references.load(tmp_path / 'none.yaml')
    monkeypatch.setenv('PLUMBLINE_REFERENCES', str(tmp_path / 'none'))
    with pytest.raises(PlumblineError, match='set PLUMBLINE_REFERENCES'):
        references.directory()
    monkeypatch.setenv('PLUMBLINE_REFERENCES', str(tmp_path))
    assert references.directory() == tmp_path


def test_default_folder_is_the_repository(repository, monkeypatch):
    monkeypatch.delenv('PLUMBLINE_REFERENCES', raising=False)
    assert references.directory() == repository / 'config' / 'references'


# --- merging, held against ReFrame ---------------------------------------------------------------

@pytest.fixture
def files(tmp_path):
    return written(tmp_path, PORTABLE, 'portable.yaml'), written(tmp_path, SITE)


def reframe_test(monkeypatch, partition, environ, name='Triad', **attributes):
    '''A test of ReFrame's own type with just what the lookup of references asks for.'''
    from reframe.core import runtime
    from reframe.core.pipeline import RegressionTestPlugin
    monkeypatch.setattr(runtime, 'runtime',
                        lambda: SimpleNamespace(get_option=lambda *_: None))
    system = SimpleNamespace(name=partition.split(':')[0])
    test = types.new_class(name, (RegressionTestPlugin,))()
    test.__dict__.update(current_system=system, prefix='/nowhere', **attributes,
                         current_partition=SimpleNamespace(fullname=partition),
                         current_environ=SimpleNamespace(name=environ))
    return test


def reframe_lookup(path, test):
    from reframe.core.pipeline import _ReferenceDict
    found = _ReferenceDict({'$ref': path}, test=test)
    try:
        return {name: list(leaf) for name, leaf in found[test].items()}
    except KeyError:
        return {}


SITE_ONE = {'bandwidth.plain': [25000.0, -0.1, None, 'MB/s'],
            'of_limit.plain': [0.9, -0.05, 0.2, '1'], 'of_limit.nt': [1.0, -0.3, 0.1, '1']}
PORTABLE_ONE = {'of_limit.plain': [1.0, -0.2, 0.1, '1'], 'of_limit.nt': [1.0, -0.3, 0.1, '1']}
PORTABLE_ALL = {'of_limit.plain': [1.0, -0.4, 0.1, '1']}


@pytest.mark.parametrize('partition, environ, threads, expected', [
    ('made:cpu', 'gnu', 'one', SITE_ONE), ('made:cpu', 'gnu', 'all', PORTABLE_ALL),
    ('made:cpu', 'intel', 'one', PORTABLE_ONE), ('made:gpu', 'gnu', 'one', PORTABLE_ONE),
    ('other:cpu', 'gnu', 'all', PORTABLE_ALL)])
def test_merged_file_in_reframe(tmp_path, files, monkeypatch, partition, environ, threads,
                                expected):
    path = references.write_merged(tmp_path, 'made', folder=tmp_path)
    test = reframe_test(monkeypatch, partition, environ, threads=threads)
    assert reframe_lookup(path, test) == expected
    from_site = ('bandwidth.plain', 'of_limit.plain') if expected is SITE_ONE else ()
    assert references.applying(path, test) == {
        name: (tuple(leaf[:3]), 'made.yaml' if name in from_site else 'portable.yaml', None)
        for name, leaf in expected.items()}


def test_merging_agrees_with_looking_into_both():
    '''For all keys: the site's metrics, over what the portable file alone would give.'''
    leaf = {'a': [1.0, -0.1, None, '1'], 'b': [2.0, -0.1, None, '1']}
    portable = {'T': {'$index': ['x', 'y'], 'p1': {'.*': leaf}, 'p.*': {'q1': leaf, 'q.': leaf},
                      '.*': {'.*': {'c': [3.0, -0.1, None, '1']}}}}
    site = {'T': {'$index': ['x', 'y'], 'p1': {'q1': {'a': [9.0, -0.1, None, '1']}},
                  'p2': {'q1': {'d': [8.0, -0.1, None, '1']}}, 'z': {'q9': leaf}}}
    merged = references.merge(portable, site)
    for keys in itertools.product(['p1', 'p2', 'p3', 'z', 'zz'], ['q1', 'q2', 'q9', 'other']):
        expected = {**references.lookup(portable, 'T', keys),
                    **site['T'].get(keys[0], {}).get(keys[1], {})}
        assert references.lookup(merged, 'T', keys) == expected, keys


def test_one_file_missing(tmp_path, files, monkeypatch):
    test = reframe_test(monkeypatch, 'made:cpu', 'gnu', threads='one')
    path = references.write_merged(tmp_path, 'unknown', folder=tmp_path)
    assert reframe_lookup(path, test) == PORTABLE_ONE
    files[0].unlink()
    path = references.write_merged(tmp_path, 'unknown', folder=tmp_path)
    assert reframe_lookup(path, test) == references.applying(path, test) == {}


def test_only_one_test(tmp_path, files):
    written(tmp_path, SITE + 'Other' + SITE.partition('Triad')[2])
    path = references.write_merged(tmp_path, 'made', 'Triad', tmp_path)
    content = yaml.safe_load(open(path))
    assert set(content) == {'Triad', '$origin'}
    assert '&id' not in open(path).read()


def test_merge_refuses(tmp_path, files):
    portable, site = map(references.load, files)
    with pytest.raises(PlumblineError, match='make them equal'):
        references.merge(portable, {'Triad': {**site['Triad'], '$index': ['a', 'b', 'c']}})
    with pytest.raises(PlumblineError, match=r"'g\.\*' is a pattern"):
        references.merge(portable, {'Triad': {'$index': ['$partition', '$environ', 'threads'],
                                              'made:cpu': {'g.*': {}}}})


def test_stage_folder_that_cannot_be_written(tmp_path, files):
    with pytest.raises(PlumblineError, match='cannot write the references in force'):
        references.write_merged(tmp_path / 'none', 'made', folder=tmp_path)


@pytest.mark.parametrize('attributes, message', [({}, "'threads', which the test has not"),
                                                 ({'threads': 1}, '1 and not text')])
def test_index_that_the_test_cannot_answer(tmp_path, files, monkeypatch, attributes, message):
    test = reframe_test(monkeypatch, 'made:cpu', 'gnu', **attributes)
    with pytest.raises(PlumblineError, match=message):
        references.applying(references.write_merged(tmp_path, 'made', folder=tmp_path), test)


# --- recording -----------------------------------------------------------------------------------

def session(root, number, *cases):
    report = write_report(root / 'r.json', list(cases), start=1.8e9 + 86400 * number)
    archive.archive(report, root / 'archive')


def triad(*metrics, **changed):
    return case(plumbline=result(*metrics, level=None), **changed)


def record(root, **options):
    return references.record(root / 'archive', 'made', root / 'made.yaml', **options)


WHERE = 'Triad/made:cpu/gnu/one/'


@pytest.mark.parametrize('arguments, leaf', [
    (('bandwidth', 31237.0, 0.01), [31240.0, -0.05, None, 'MB/s']),
    (('bandwidth', 31237.0, 0.04), [31240.0, -0.12, None, 'MB/s']),
    (('bandwidth', 31237.0, 0.0401), [31240.0, -0.13, None, 'MB/s']),
    (('bandwidth', 31237.0, 0.4), [31240.0, -0.5, None, 'MB/s']),
    (('latency', 1.5, 0.01), [1.5, None, 0.05, 'us']),
    (('of_limit', 0.88, 0.01, (0.65, 1.1)), [0.88, -0.05, 0.25, '1']),
    (('of_limit', 1.1, 0.01, (0.65, 1.1)), [1.1, -0.05, 0.0, '1']),
    (('of_median', 0.997, 0.01, (0.5, 1.0)), [0.997, -0.05, 0.00301, '1']),     # 1 stays possible
    (('growth', 4.0, 0.01, (1.2, math.inf)), [4.0, -0.7, 0.05, '1']),           # a level is never as fast as the one below it
    (('communication', 0.2, 0.04), [0.2, None, 0.12, '1']), (('redundancy', 1.5, 0.0), [1.5, None, 0.05, '1']),
    (('speedup', 2.0, 0.02), [2.0, -0.06, None, '1']), (('split_over_fused', 1.5, 0.02), [1.5, -0.06, 0.06, '1']),
    (('work', 1.0, 0.0, (0.99, 1.02)), [1.0, -0.01, 0.02, '1'])])
def test_reference_of(arguments, leaf):
    assert reference_of(*arguments) == leaf


def test_record_into_a_new_file(tmp_path):
    for number, value in enumerate([990.0, 1000.0, 1010.0]):
        session(tmp_path, number, triad(metric(value=value)))
    found = record(tmp_path, sessions=2)
    assert found.sessions == ['20270116T080000Z-12345678', '20270117T080000Z-12345678']
    assert found.written == {WHERE + 'bandwidth.plain': [1005.0, -0.05, None, 'MB/s']}
    content = references.load(tmp_path / 'made.yaml')
    assert content['Triad']['$index'] == ['$partition', '$environ', 'threads']
    source = content['$provenance']['Triad']['made:cpu']['gnu']['one']['bandwidth.plain']
    assert source == {'when': '2027-01-17', 'sessions': 2, 'n': 20, 'spread': 0.01,
                      'compiler': 'gcc 12.2.0',
                      'machine': {'cpu_model': 'Made-up CPU', 'kernel': '6.1.0', 'governor': None,
                                  'microcode': None, 'huge_pages': 'madvise'}}
    assert list(content)[-1] == '$provenance'


def test_record_keeps_what_others_wrote(tmp_path):
    written(tmp_path, SITE + 'Zebra:\n  $index: [$environ]\n  gnu: {time: [1.0, null, 0.1, s]}\n')
    session(tmp_path, 0, triad(metric('bandwidth.nt', 1.5e-5, 's')),
            case('Copy %threads=one', result(metric(), level=None)))
    record(tmp_path)
    before = SITE.splitlines()
    lines = (tmp_path / 'made.yaml').read_text().splitlines()
    assert [line for line in before if line not in lines and line.strip()] == []
    content = references.load(tmp_path / 'made.yaml')
    assert list(content) == ['Copy', 'Triad', 'Zebra', '$provenance']
    assert list(content['Triad']['made:cpu']['gnu']['one']) == [
        'bandwidth.nt', 'bandwidth.plain', 'of_limit.plain']
    assert content['Triad']['made:cpu']['gnu']['one']['bandwidth.nt'][0] == 1.5e-5
    once = (tmp_path / 'made.yaml').read_text()
    record(tmp_path)
    assert (tmp_path / 'made.yaml').read_text() == once


def test_merged_record_is_found_by_reframe(tmp_path, monkeypatch):
    written(tmp_path, PORTABLE, 'portable.yaml')
    session(tmp_path, 0, triad(metric(), metric('of_limit.plain', 0.88, '1')))
    record(tmp_path)
    path = references.write_merged(tmp_path, 'made', folder=tmp_path)
    test = reframe_test(monkeypatch, 'made:cpu', 'gnu', threads='one')
    assert reframe_lookup(path, test) == {
        'bandwidth.plain': [1000.0, -0.05, None, 'MB/s'],
        'of_limit.plain': [0.88, -0.05, 0.25, '1'], 'of_limit.nt': [1.0, -0.3, 0.1, '1']}


def test_level_and_parameters_are_keys(tmp_path):
    session(tmp_path, 0, case('Triad %stride=8 %threads=one', result(metric(), level='L1')))
    assert record(tmp_path).written.keys() == {'Triad/made:cpu/gnu/one/L1/bandwidth.plain'}
    written(tmp_path, 'Triad:\n  $index: [$system, stride]\n', 'portable.yaml')
    (tmp_path / 'made.yaml').unlink()
    assert record(tmp_path).written.keys() == {'Triad/made/8/bandwidth.plain'}


def test_index_that_does_not_tell_tests_apart(tmp_path):
    session(tmp_path, 0, *(case(f'Triad %stride={n}', result(metric())) for n in (1, 8)))
    with pytest.raises(PlumblineError, match='stride=1 and .*stride=8 have the same keys'):
        record(tmp_path)
    written(tmp_path, 'Triad:\n  $index: [colour]\n', 'portable.yaml')
    with pytest.raises(PlumblineError, match="names 'colour', which the archive does not hold"):
        record(tmp_path)


def test_nodes_and_repeats_are_values_of_one_reference(tmp_path):
    session(tmp_path, 0, *(triad(metric(value=value), name=f'Triad %threads=one %.nid={node}')
                           for node, value in (('n1', 900.0), ('n2', 1000.0), ('n3', 1020.0))))
    assert record(tmp_path).written[WHERE + 'bandwidth.plain'] == [1000.0, -0.36, None, 'MB/s']


def test_what_is_not_recorded_is_listed(tmp_path):
    session(tmp_path, 0, triad(
        metric(), metric('bandwidth.noisy', spread=0.51),
        metric('bandwidth.nan', value=float('nan'), verdict='FAIL'),
        metric('efficiency.zero', value=0.0, unit='1', verdict='FAIL'),
        metric('bandwith.typo'), metric('flops.vm', unit='Mflop/s', verdict='NO REFERENCE',
                                               reason='not judged: quota'),
        metric('of_limit.plain', 0.5, '1', verdict='FAIL', reference_from='portable.yaml')))
    found = record(tmp_path)
    assert list(found.written) == [WHERE + 'bandwidth.plain']
    assert {what.rpartition('/')[2]: why.split(',')[0] for what, why in found.skipped} == {
        'bandwidth.noisy': 'noise 0.51 above 0.5',
        'bandwidth.nan': 'a value is missing or not a number',
        'efficiency.zero': 'not a positive finite value',
        'Triad %threads=one bandwith.typo in 20270115T080000Z-12345678': 'its metric is not in the registry',
        'flops.vm': 'not judged: quota', 'of_limit.plain': 'it fails the portable reference'}


def test_only_last_runs_that_passed_sanity_count(tmp_path):
    report = write_report(
        tmp_path / 'r.json', [triad(metric(value=1.0)), triad(metric(), name='Broken')],
        [triad(metric(value=2.0, verdict='FAIL'), result='fail', fail_phase='performance'),
         triad(metric(), name='Broken', result='fail', fail_phase='sanity', fail_reason='x')])
    archive.archive(report, tmp_path / 'archive')
    found = record(tmp_path)
    assert found.written == {WHERE + 'bandwidth.plain': [2.0, -0.05, None, 'MB/s']}
    assert found.skipped[0][1] == 'the test ended with fail in sanity'


def test_selection_by_name(tmp_path):
    session(tmp_path, 0, triad(metric()), case('Copy %threads=one', result(metric())))
    assert list(record(tmp_path, tests='^Triad').written) == [WHERE + 'bandwidth.plain']
    with pytest.raises(PlumblineError, match='no archived session of made .*Nothing'):
        record(tmp_path, tests='Nothing')
    with pytest.raises(PlumblineError, match='not a pattern'):
        record(tmp_path, tests='(')
    with pytest.raises(PlumblineError, match='at least one session'):
        record(tmp_path, sessions=0)


def test_nothing_to_record(tmp_path):
    session(tmp_path, 0, triad(metric(value=float('nan'), verdict='FAIL')))
    with pytest.raises(PlumblineError, match='nothing to record, all 1 metrics were skipped'):
        record(tmp_path)
    assert not (tmp_path / 'made.yaml').exists()


# --- refusing ------------------------------------------------------------------------------------

@pytest.mark.parametrize('wrong, peaks, message', [
    (metric('bandwidth.nt', 1300.0, limit=1000.0), None, "1300 MB/s is above 1100 MB/s, the most by the machine's own limit"),
    (metric('of_limit.nt', 1.2, '1'), None, '1.2 is above 1.1, the most that any hardware gives'),
    (metric('of_time', 1.01, '1'), None, '1.01 is above 1, the most'),
    (metric('bandwidth.memory', 1200.0), {'memory/one': 1100.0, 'memory': 5000.0},
     'above the hardware limit of memory/one, 1100 MB/s'),
    (metric('bandwidth.nt.memory', 1200.0), {'memory': 1100.0}, 'hardware limit of memory')])
def test_what_no_hardware_gives_is_left_out_alone(tmp_path, wrong, peaks, message):
    nt = measurement(variant='nt', traffic=1e9)
    session(tmp_path, 0, case('Triad %threads=one', result(metric(), wrong, level=None, records=[nt])))
    found = record(tmp_path, peaks=peaks)
    assert list(found.written) == [WHERE + 'bandwidth.plain']
    (what, why), = found.skipped
    assert what == WHERE + wrong['name'] and message in why and '\n' not in why


def test_a_machine_that_leaves_write_allocates_out_can_record(tmp_path):
    '''By the portable bounds, and without any by what the record says of its traffic.'''
    fill, plain = measurement(variant='fill', traffic=2e9, traffic_least=1e9), measurement(traffic=1.25e9, traffic_least=1e9)
    written(tmp_path, PORTABLE.replace('of_limit.plain: [1.0, -0.2, 0.1', 'of_limit.plain: [1.0, -0.2, 0.375'), 'portable.yaml')
    session(tmp_path, 0, case('Triad %threads=one', result(
        metric('of_limit.plain', 1.25, '1', record=1), metric('bandwidth.plain', 1000.0, limit=1000.0, record=1),
        metric('of_limit.fill', 1.9, '1', record=0), metric('of_limit.nt', 1.9, '1'), level=None, records=[fill, plain])))
    found = record(tmp_path)
    assert found.written == {WHERE + 'of_limit.plain': [1.25, -0.05, 0.1, '1'], WHERE + 'of_limit.fill': [1.9, -0.05, 0.1579, '1'],
                             WHERE + 'bandwidth.plain': [1000.0, -0.05, None, 'MB/s']}
    assert found.skipped == [(WHERE + 'of_limit.nt', '1.9 is above 1.1, the most that any hardware gives; the model, the '
                              'measurement or the peak is wrong')]
    references.check(tmp_path / 'made.yaml')


def test_reuse_in_cache_raises_the_limit(tmp_path):
    blocked = measurement(variant='blocked', bytes=3e9, traffic=1e9)
    session(tmp_path, 0, case('Triad %threads=one', result(
        metric('bandwidth.blocked', 2900.0, limit=1000.0), level=None, records=[blocked])))
    assert record(tmp_path).written


def test_check(tmp_path):
    path = written(tmp_path, SITE.replace('threads]', 'level]').replace('one', 'memory'))
    references.check(path)
    references.check(path, {'memory': 25000.0, 'memory/one': 1.0})
    with pytest.raises(PlumblineError, match='Triad/made:cpu/gnu/memory/bandwidth.plain 25000 '
                                             'MB/s is above the hardware limit of memory, 24999'):
        references.check(path, {'memory': 24999.0})
    for old, new, complaint in (('0.9,', '2.3,', 'is above 2.2, the most'), ('0.2, \'1\'', '0.2, us', 'is in us: of_limit is in 1'),
                               ('of_limit', 'of_limits', 'of a metric that is not in the registry')):
        with pytest.raises(PlumblineError, match=complaint):
            references.check(written(tmp_path, SITE.replace(old, new)))


def test_portable_file_is_not_recorded_into(tmp_path):
    with pytest.raises(PlumblineError, match='portable.yaml is written by hand'):
        references.record(tmp_path, 'made', tmp_path / 'portable.yaml')

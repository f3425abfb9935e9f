'''References: reading, merging as ReFrame looks them up, refusing.'''

import itertools
import types
from types import SimpleNamespace

import pytest
import yaml

from made_report import PORTABLE
from plumbline import references
from plumbline.errors import PlumblineError

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
    ('[1.0, -0.1, null, GB/s]', "bandwidth: the unit is 'GB/s'; the units are 1, MB/s, MHz, Mflop/s"),
    ('[1.0, -0.1, null, 1]', "quote the unit '1'"),
    ('[1.0, null, null, MB/s]', 'bandwidth: no bound is set, so any value'),
    ('[1.0, -1, null, MB/s]', 'bandwidth: the lower threshold -1 is a lower bound of 0, and no upper one is set, so any value'),
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
    (entry() + "$provenance:\n  Triad: {gnu: {bandwidth: {when: '2026'}}}\n", "'2026' is not of type .* what an older Plumbline wrote is not read: take it out"),
    (entry() + "$accepted:\n  '2026-01-01T00:00:00Z': {sessions: [a, b, c, d, e], false_alarms: 0.1, metrics: 1, machine: {cpu_model: Old}}\n",
     'without processors an older Plumbline wrote it: take its references out')])
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
    test.__dict__.update({'display_name': name, **attributes}, current_system=system, prefix='/nowhere',
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
        name: references.Known('made.yaml' if name in from_site else 'portable.yaml', [references.Reference(tuple(leaf[:3]))])
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


ACCEPTED = '''
$accepted:
  '2025-01-01T00:00:00Z': {sessions: [a, b, c, d, e], false_alarms: 0.005, metrics: 2, machine: {processors: [Old]}}
  '2026-01-01T00:00:00Z': {sessions: [a, b, c, d, e], false_alarms: 0.005, metrics: 2, machine: {processors: PROCESSORS}}
$provenance:
  Triad:
    made:cpu:
      gnu:
        one:
          bandwidth.plain: {accepted: '2026-01-01T00:00:00Z', n: 90, compiler: gcc 12, deviation: 0.02, freedom: 9.5, sees: 0.13,
                            measured: [25000.0, 25000.0, 25000.0, 25000.0, 25000.0]}
          of_limit.plain: {accepted: '2025-01-01T00:00:00Z', n: 25, compiler: null, deviation: 0.02, freedom: 9.5, sees: 0.13,
                           measured: [0.9, 0.9, 0.9, 0.9, 0.9]}
'''


@pytest.mark.parametrize('processors, model, kept, elsewhere', [
    ('[Old]', 'Old', {'bandwidth.plain', 'of_limit.plain'}, []), ('[Old]', 'New', set(), ['Old']), ('[Mine, New]', 'New', {'bandwidth.plain'}, ['Old']),
    ('[]', 'New', {'bandwidth.plain'}, ['Old']), ('[Old]', None, {'bandwidth.plain', 'of_limit.plain'}, []),
    ("['Old [A 1/2]']", 'Old [A 1/2]', {'bandwidth.plain', 'of_limit.plain'}, []), ("['Old [A 1/2]']", 'Old [A 1/3]',
     {'of_limit.plain'}, ['Old [A 1/2]']), ("['[0x41 0xd0c]']", '[0x41 0xd40]', {'of_limit.plain'}, ['[0x41 0xd0c]'])])
def test_references_of_another_processor_do_not_apply(tmp_path, files, monkeypatch, processors, model, kept, elsewhere):
    written(tmp_path, SITE + ACCEPTED.replace('PROCESSORS', processors))
    path = references.write_merged(tmp_path, 'made', 'Triad', tmp_path, model)
    found = references.applying(path, reframe_test(monkeypatch, 'made:cpu', 'gnu', threads='one'))
    assert {name for name, one in found.items() if one.file == 'made.yaml'} == kept and references.elsewhere(path) == elsewhere
    # What any machine must reach holds instead.
    assert 'of_limit.plain' in kept or found['of_limit.plain'] == references.Known('portable.yaml', [references.Reference((1.0, -0.2, 0.1))])


OF_NODE = '''Triad:
  $index: [$partition, $environ, threads]
  made:cpu:
    gnu:
      one:
        bandwidth.plain: [20000.0, -0.1, null, MB/s]
'''


@pytest.mark.parametrize('node, reference, file, expected', [
    ('n7', 20000.0, 'made@n7.yaml', None), ('n8', 25000.0, 'made.yaml', 0.02), (None, 25000.0, 'made.yaml', 0.02), ('../n7', 25000.0, 'made.yaml', 0.02)])
def test_references_of_a_node_go_before_those_of_the_system(tmp_path, files, monkeypatch, node, reference, file, expected):
    written(tmp_path, SITE + ACCEPTED.replace('PROCESSORS', '[]'))
    written(tmp_path, OF_NODE, 'made@n7.yaml')
    path = references.write_merged(tmp_path, 'made', 'Triad', tmp_path, node=node)
    found = references.applying(path, reframe_test(monkeypatch, 'made:cpu', 'gnu', threads='one'))
    plain, = found['bandwidth.plain'].references
    assert (plain.leaf[0], found['bandwidth.plain'].file) == (reference, file) and (plain.expected or {}).get('deviation') == expected
    assert found['of_limit.plain'].file == 'made.yaml' and found['of_limit.nt'].file == 'portable.yaml'     # of what its file has not


def test_one_test_is_merged_and_what_cannot_be_is_refused(tmp_path, files):
    written(tmp_path, SITE + 'Other' + SITE.partition('Triad')[2])
    path = references.write_merged(tmp_path, 'made', 'Triad', tmp_path)
    content = yaml.safe_load(open(path))
    assert set(content) == {'Triad', '$origin'}
    assert '&id' not in open(path).read()
    portable, site = map(references.load, files)
    with pytest.raises(PlumblineError, match='make them equal'):
        references.merge(portable, {'Triad': {**site['Triad'], '$index': ['a', 'b', 'c']}})
    with pytest.raises(PlumblineError, match=r"'g\.\*' is a pattern"):
        references.merge(portable, {'Triad': {'$index': ['$partition', '$environ', 'threads'],
                                              'made:cpu': {'g.*': {'one': {'bandwidth': [1.0, -0.1, None, 'MB/s']}}}}})
    with pytest.raises(PlumblineError, match='cannot write the references in force'):
        references.write_merged(tmp_path / 'none', 'made', folder=tmp_path)


@pytest.mark.parametrize('attributes, message', [({}, "'threads', which the test has not"),
                                                 ({'threads': None}, 'None and not text')])
def test_index_that_the_test_cannot_answer(tmp_path, files, monkeypatch, attributes, message):
    test = reframe_test(monkeypatch, 'made:cpu', 'gnu', **attributes)
    with pytest.raises(PlumblineError, match=message):
        references.applying(references.write_merged(tmp_path, 'made', folder=tmp_path), test)


# --- refusing ------------------------------------------------------------------------------------

def test_check(tmp_path):
    path = written(tmp_path, SITE.replace('threads]', 'level]').replace('one', 'memory'))
    references.check(path)
    references.check(path, {'memory': 25000.0, 'memory/one': 1.0})
    with pytest.raises(PlumblineError, match='Triad/made:cpu/gnu/memory/bandwidth.plain 25000 '
                                             'MB/s is above the hardware limit of memory, 24999'):
        references.check(path, {'memory': 24999.0})
    for old, new, complaint in (('0.9,', '2.3,', 'is above 2.2, the most'), ("0.2, '1'", '0.2, us', 'is in us: of_limit is in 1'),
                               ('of_limit', 'of_limits', 'of a metric that is not in the registry')):
        with pytest.raises(PlumblineError, match=complaint):
            references.check(written(tmp_path, SITE.replace(old, new)))


def test_what_a_test_that_is_skipped_has_references_of(tmp_path, monkeypatch):
    '''Those in force: a node's own count, those of another processor do not.'''
    monkeypatch.setenv('PLUMBLINE_REFERENCES', str(tmp_path))
    test = type('Triad', (), {})()
    test.current_system, test.current_partition, test.current_environ = (
        SimpleNamespace(name='made'), SimpleNamespace(fullname='made:cpu'), SimpleNamespace(name='gnu'))
    written(tmp_path, PORTABLE, 'portable.yaml')
    written(tmp_path, entry(), 'made@n1.yaml')
    assert references.of_site(test, node='n1') == ['bandwidth'] and references.of_site(test, node='n2') == references.of_site(test) == []
    at = '2026-01-01T00:00:00Z'
    written(tmp_path, f"$accepted:\n  '{at}': {{sessions: [a, b, c, d, e], false_alarms: 0.05, metrics: 1, machine: {{processors: [Older CPU]}}}}\n" + entry()
            + "$provenance:\n  Triad:\n    gnu:\n      "
            f"bandwidth: {{accepted: '{at}', compiler: gcc, n: 5, deviation: 0.01, freedom: 8.0, sees: 0.1, measured: [1.0, 1.0, 1.0, 1.0, 1.0]}}\n")
    assert references.of_site(test, 'Older CPU') == references.of_site(test) == ['bandwidth'] and references.of_site(test, 'Newer CPU') == []

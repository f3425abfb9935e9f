'''Archives, run reports and references that nothing of ours has written: one line each, never a stack trace.'''

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import made_report
import rfm
from plumbline import references, schemas
from plumbline.analysis import history
from plumbline.errors import PlumblineError
from plumbline.nodes import history as node_history
from plumbline.schemas import parsing
from plumbline.store import archive

FIRST, HOUR = 1.8e9, 3600


def sessions(place, count=6):
    '''Archive sessions; their files, oldest first.'''
    for number in range(count):
        metrics = [made_report.metric(f'bandwidth.v{other}', 1000.0 + 10 * number + other, verdict='PASS') for other in range(3)]
        path = made_report.write_report(place.folder / 'run.json', [made_report.case(plumbline=made_report.result(*metrics))],
                                        start=FIRST + 2 * HOUR * number, uuid=f'{number:08}-0')
        archive.archive(path, place.folder / 'reports/archive')
    return archive.sessions(place.folder / 'reports/archive')


SPOILT = {'empty': lambda path: path.write_bytes(b''), 'garbage': lambda path: path.write_bytes(b'garbage' * 100),
          'truncated': lambda path: path.write_bytes(path.read_bytes()[:2000]), 'dangling': lambda path: (path.unlink(), path.symlink_to('/nowhere'))}


@pytest.mark.parametrize('spoil', SPOILT.values(), ids=SPOILT)
def test_a_damaged_file_is_named_by_what_needs_it_and_keeps_nothing_else_away(tmp_path, spoil):
    place = rfm.Workplace(tmp_path)
    paths = sessions(place)
    system = archive.system_of(paths[0])
    first, damaged, last = paths[0].stem, paths[2], paths[-1].stem
    spoil(damaged)
    need_it = [['report', '--session', damaged.stem], ['compare', '--last', 6], ['compare', first, damaged.stem], ['variance', '--last', 4],
               ['references', 'propose', system]]
    do_not = [['report'], ['compare', '--last', 2], ['compare', first, last], ['history', 'bandwidth']]
    if spoil is not SPOILT['truncated']:        # all commands read by one function
        need_it, do_not = need_it[:1], []
    for words in need_it:
        done = place.plumbline(*words)
        assert done.code == 2 and f'{damaged}: cannot read the archive: ' in done.out and 'move the damaged file away' in done.out, words
        assert len(done.out.splitlines()) == 1, words
    for words in do_not:
        done = place.plumbline(*words)
        assert done.code == 0 and (words[0] == 'compare' or f'skipped:{damaged}:' in ''.join(done.out.split())), words


def test_a_file_with_a_hole_in_its_data_is_named_and_the_others_are_read(tmp_path):
    '''What it says of itself stands at its end, and is whole.'''
    place = rfm.Workplace(tmp_path)
    path, system = (paths := sessions(place, 3))[0], archive.system_of(paths[0])
    whole, named = path.read_bytes(), 0
    for begin in range(0, len(whole) - 512, 512):
        path.write_bytes(whole[:begin] + bytes(512) + whole[begin + 512:])
        found = history.read(place.folder / 'reports/archive', system)
        of_nodes = node_history.read(system, place.folder / 'reports/archive')
        assert found.sessions[-2:] == [one.stem for one in paths[1:]] and len(found.sessions) + len(found.damaged) == 3
        assert all(line.startswith(f'{path}: cannot read the archive: ') for line in found.damaged)
        assert {line for line in of_nodes.skipped if 'cannot read the archive' in line} <= set(found.damaged)
        if found.damaged:
            named, spoilt = named + 1, path.read_bytes()
    assert named > 3
    path.write_bytes(spoilt)
    done = place.plumbline('report')
    assert done.code == 0 and f'skipped:{path}:' in ''.join(done.out.split()), done.out


def test_a_folder_with_the_name_of_a_session_is_none(tmp_path):
    place = rfm.Workplace(tmp_path)
    paths = sessions(place)
    paths[-1].unlink()
    paths[-1].mkdir()
    assert place.plumbline('report').code == 0 and 'no session' in place.plumbline('report', '--session', paths[-1].stem).out
    done = place.plumbline('compare', '--last', 6)
    assert done.code == 2 and '5 sessions of ' in done.out and ', 6 asked for' in done.out


def test_nothing_to_compare(tmp_path):
    done = rfm.Workplace(tmp_path).plumbline('compare', '--last', 2)
    assert done.code == 2 and 'no session at all in the archive' in done.out and len(done.out.splitlines()) == 1


CASE = ('runs', 0, 'testcases', 0)


@pytest.mark.parametrize('where, value, code, told', [
    (('session_info', 'time_start_unix'), 1e12, 2, '1000000000000.0 s since 1970 is no time of a session'),
    (('session_info', 'time_start_unix'), float('nan'), 2, 'nan s since 1970 is no time'), (('session_info', 'time_start_unix'), -1e15, 2, 'is no time'),
    ((*CASE, 'name'), 'Triad \ud800y', 0, 'PASS'), ((*CASE, 'plumbline', 'metrics', 0, 'value'), 10**400, 1, 'FAIL'),
    ((*CASE, 'plumbline', 'machine', 'memory_kib'), '400 MB', 1, "machine/memory_kib: '400 MB' is not of type 'integer', 'null'"),
    ((*CASE, 'plumbline', 'machine', 'caches', 0, 'size'), 'much', 1, "caches/0/size: 'much' is not of type"),
    ((*CASE, 'plumbline', 'machine', 'caches', 0, 'shared_cpus'), True, 1, "caches/0/shared_cpus: True is not of type 'array'"),
    ((*CASE, 'plumbline', 'machine', 'caches'), [{'size': 5}], 1, "caches/0: 'level' is a required property"),
    ((*CASE, 'plumbline', 'machine', 'governor'), 5, 1, "machine/governor: 5 is not of type 'string', 'null'"),
    (('session_info', 'cmdline'), 5, 2, "session_info/cmdline: 5 is not of type 'string', 'null'"),
    ((*CASE, 'plumbline', 'metrics', 0, 'n'), 10**30, 1, 'FAIL'), ((*CASE, 'job_submit_time'), 'x', 2, "job_submit_time: 'x' is not of type"),
    ((*CASE, 'job_nodelist'), [None], 2, "job_nodelist/0: None is not of type 'string'"), ((*CASE, 'dependencies_actual'), [[]], 2, 'should be non-empty'),
    ((*CASE, 'time_run'), 'long', 2, "time_run: 'long' is not of type 'number', 'null'")])
def test_a_run_report_with_something_that_reframe_does_not_write(tmp_path, where, value, code, told):
    place = rfm.Workplace(tmp_path)
    result = made_report.result(made_report.metric('bandwidth.a', 1000.0, verdict='PASS'))
    path = made_report.write_report(tmp_path / 'run.json', [made_report.case(plumbline=result)])
    report = node = json.loads(path.read_text())
    for key in where[:-1]:
        node = node[key]
    node[where[-1]] = value
    path.write_text(json.dumps(report))
    done = place.plumbline('report', path)
    assert done.code == code and told in ' '.join(done.out.split()) and 'Traceback' not in done.out, done.out
    assert code < 2 or len(done.out.splitlines()) == 1


def test_a_folder_that_looks_like_markup(tmp_path):
    place = rfm.Workplace(tmp_path / 'x[/bold]y')
    sessions(place, 2)
    done = [place.plumbline(*words) for words in (
        ['report'], ['compare', '--last', 2], ['history', 'bandwidth'], ['variance', '--last', 2, '--output', place.folder / 'page'])]
    assert 'Traceback' not in ''.join(one.out for one in done) and f'report: {place.folder}/reports/latest/index.html' in done[0].out


@pytest.mark.parametrize('path', sorted(Path(schemas.__file__).parent.glob('*.json')), ids=lambda path: path.stem)
def test_our_schemas_are_schemas(path):
    validator = schemas.validator(path.stem)
    validator.check_schema(validator.schema)


@pytest.mark.parametrize('text, value', [
    ('on', 'on'), ('1:30', '1:30'), ('2026-11-27', '2026-11-27'), ('010', 10), ('0o10', 8), ('0x1F', 31), ('-3', -3), ('1e3', 1000.0), ('.5', 0.5),
    ('-.inf', float('-inf')), ('True', True), ('yes', 'yes'), ('~', None), ('', None), ("'1'", '1'), ('1_000', '1_000'), ('v1.2', 'v1.2')])
def test_scalars_are_those_of_yaml_1_2(text, value):
    found = parsing.parse(f'a: {text}')['a']
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize('text, told', [('a: 1\na: 2', "key 'a' stands here twice"), ('1: a', 'key 1 is not text'), ('a: &x [*x]', 'an alias')])
def test_yaml_that_is_read_in_two_ways_is_refused(tmp_path, text, told):
    (tmp_path / 'made.yaml').write_text(text)
    with pytest.raises(PlumblineError, match=f'made.yaml: not YAML: {told}'):
        schemas.read_yaml(tmp_path / 'made.yaml', 'network')


@pytest.mark.parametrize('text', ['a: 2026-13-45', f"a: {'9' * 5000}"], ids=['month', 'digits'])
def test_yaml_that_python_makes_nothing_of(tmp_path, text):
    (tmp_path / 'made.yaml').write_text(text)
    with pytest.raises(PlumblineError, match=r'made.yaml: .*; fix the YAML'):
        references.check(tmp_path / 'made.yaml', {})
    with pytest.raises(PlumblineError, match=r'made.yaml: (not YAML|field )'):
        schemas.read_yaml(tmp_path / 'made.yaml', 'network')


READ_ALL = '''
import sys
from pathlib import Path
from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.schemas import parsing
from plumbline.model import baselines
from plumbline.references import editing, files
from plumbline.simulation import network
from plumbline.system import datasheet
for read in (files.load, lambda path: editing.edit_file(path, dict), datasheet.load, network.load, baselines.read,
             lambda path: schemas.read_yaml(path, 'acceptance')):
    try:
        read(sys.argv[1])
    except PlumblineError as error:
        print(error)
'''


@pytest.mark.parametrize('text', ['[' * 10**5, '{a: ' * 10**5, '- ' * 10**5, '? ' * 10**5, '\n'.join(' ' * depth + 'a:' for depth in range(2000))],
                         ids=['lists', 'mappings', 'items', 'keys', 'lines'])
def test_yaml_that_is_nested_without_end(tmp_path, text):
    '''In a process of its own: the parser in C would end this one.'''
    path = tmp_path / 'made.yaml'
    path.write_text(text)
    done = subprocess.run([sys.executable, '-c', READ_ALL, path], capture_output=True, text=True)
    told = f'{path}, line {51 if chr(10) in text else 1}: more than 50 lists and mappings within each other, which nothing here means; fix the YAML'
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, '', [told] * 6)


@pytest.mark.parametrize('text, told', [
    ('Triad:\n  $index: [$partition]\n  cpu: {{bandwidth.a: [1{zeros}, -0.1, null, MB/s]}}\n', 'Triad/cpu/bandwidth.a: not a finite number'),
    ('Triad: &x\n  $index: [$partition]\n  cpu: *x\n', r', line 1: an alias \(\*name\) stands within what it names')],
    ids=['too large', 'recursive'])
def test_references_that_no_hardware_and_no_end_has(tmp_path, text, told):
    (tmp_path / 'made.yaml').write_text(text.format(zeros='0' * 400))
    with pytest.raises(PlumblineError, match=told):
        references.check(tmp_path / 'made.yaml', {})


@pytest.mark.parametrize('size', ['20k', '60k', '100k'])
def test_reframe_on_a_full_disk_says_so(tmp_path, built_already, size):
    '''It may be full at the build, at the run, or at what is logged of it.'''
    with rfm.small_disk(tmp_path / 'place/reports', size) as reports:
        place = rfm.Workplace(tmp_path / 'place', rfm.tools(tmp_path / 'bin', scripts=[rfm.GUARDS / 'cmake']), PLUMBLINE_REFERENCES=rfm.KNOWN)
        done = place.reframe('-n', 'Told%story=good', '-r')
        assert done.code == 1 and 'Traceback' not in done.out and '--- Logging error' not in done.out, done.out
        assert re.search(rf'Reason: .*(?i:no space left).* .?{reports}', done.out) and 'environment error' not in done.out, done.out
        assert place.judge().code == 2

'''What tests of other suites have measured becomes references, and judges them; made-up sessions.'''

import json
import shutil

import polars as pl
import pytest
from typer.testing import CliRunner

from made_report import MACHINE, case, metric, of_another_suite, result, write_report
from plumbline import references
from plumbline.cli import app
from plumbline.references import others
from plumbline.store import archive


class Place:
    '''A folder with an archive and references.'''

    def __init__(self, folder, count=0):
        self.folder, self.count = folder, count

    def plumbline(self, *arguments):
        env = {'PLUMBLINE_REFERENCES': str(self.folder), 'COLUMNS': '200'}
        return CliRunner().invoke(app, [*map(str, arguments), '--archive', str(self.folder / 'archive')], env=env)

    def run(self, *cases):
        '''Two hours after the one before: the path of its run report.'''
        self.count += 1
        return write_report(self.folder / 'r.json', list(cases), start=1.8e9 + 7200 * self.count)

    def session(self, *cases):
        '''A run and what is said of it: (report, rows).'''
        done = self.plumbline('report', self.run(*cases), '--destination', self.folder / 'page')
        return done, archive.load_session(self.folder / 'archive')


OURS = case(plumbline=result(metric()))
NAME = 'GROMACS %case=a[1 %smt=on %.nid=n1'      # what no pattern is, and what YAML 1.1 takes for no text


def steps(value, result='pass', unit='ns/day', **changed):
    return of_another_suite(('steps', [value, 100, -0.5, None, unit, result]), name=NAME, **changed)


@pytest.fixture(scope='module')
def six(tmp_path_factory):
    '''A folder with references of six sessions, in each of which other tests of that suite fail.'''
    place = Place(tmp_path_factory.mktemp('six'))
    built = of_another_suite(name='Build', fixture=True, result='fail', fail_phase='compile', fail_reason='no nvcc')
    needs = {'result': 'fail_deps', 'dependencies_actual': [['Build', 'made:cpu', 'gnu']]}
    broken = [built, of_another_suite(name='Kernel', **needs),
              of_another_suite(name='Driver', result='fail', fail_phase='sanity', fail_reason='no driver')]
    for value in (100, 101, 99, 100, 102, 98):
        others.archived(place.run(OURS, steps(value), *broken), root=place.folder / 'archive')
    done = place.plumbline('references', 'accept', 'made')
    assert done.exit_code == 0, done.output
    return place.folder


@pytest.fixture
def accepted(six, tmp_path):
    '''A :class:`Place` that goes on from there.'''
    return Place(shutil.copytree(six, tmp_path / 'place'), 6)


def theirs(rows):
    return rows.filter(pl.col('name') == 'steps').row(0, named=True)


@pytest.mark.slow
def test_what_fails_there_keeps_nobody_from_references(accepted):
    content = references.load(accepted.folder / 'made.yaml')
    assert set(content) == {'$accepted', '$provenance', 'Triad', 'GROMACS'} and content['GROMACS']['$index'] == ['$partition', '$environ', 'case', 'smt']
    assert [len(one['sessions']) for one in content['$accepted'].values()] == [6]
    done, rows = accepted.session(OURS, steps(100))
    assert done.exit_code == 0 and (theirs(rows)['verdict'], theirs(rows)['reference_from']) == ('PASS', 'made.yaml')


def test_a_loss_within_reframes_bounds_is_a_fail(accepted):
    done, rows = accepted.session(OURS, steps(60))
    row = theirs(rows)
    assert done.exit_code == 1 and row['verdict'] == 'FAIL' and '% less than the reference, by made.yaml' in row['reason']
    assert done.output.count(' FAIL') >= 2      # and the subsystem
    compared = accepted.plumbline('compare', '--last', '7')
    assert compared.exit_code == 1 and 'steps' in compared.output
    accepted.session(OURS, steps(100, result='fail'))
    row = theirs(accepted.session(OURS, steps(100, result='fail'))[1])
    assert row['verdict'] == 'FAIL' and row['reason'].startswith('100 is at least 50.00 ns/day, by ReFrame; 100 is at least ')


@pytest.mark.slow
def test_what_fails_by_its_references_is_not_made_healthy_by_forgetting_them(accepted):
    before = references.load(accepted.folder / 'made.yaml')['GROMACS']
    for _ in range(5):
        done, rows = accepted.session(OURS, of_another_suite(('steps', [60, 100, -0.5, None, 'ns/day', 'pass']), ('ratio', [2, 2, -0.5, None, '', 'pass']),
                                                             name=NAME))
        assert done.exit_code == 1 and theirs(rows)['verdict'] == 'FAIL'
    done = accepted.plumbline('references', 'accept', 'made', '--sessions', '5')
    assert done.exit_code == 0 and ' 0 vanishing' in done.output and 'no reference: GROMACS %case=a[1 %smt=on steps: FAIL in ' in done.output
    after = references.load(accepted.folder / 'made.yaml')['GROMACS']
    for key in ('made:cpu', 'gnu', 'a.1', 'on'):
        before, after = before[key], after[key]
    assert set(after) == {'ratio', 'steps'} and after['steps'] == before['steps']


def test_another_unit_or_a_figure_that_is_gone_is_no_pass(accepted):
    done, rows = accepted.session(OURS, steps(100, unit='ns/hour'))
    assert done.exit_code == 1 and theirs(rows)['reason'] == 'is in ns/hour, and its reference in made.yaml in ns/day: accept references again'
    done, rows = accepted.session(OURS, of_another_suite(name=NAME))
    assert done.exit_code == 1 and rows['reason'][-1] == 'not measured: steps of made.yaml: ReFrame only warns of what it cannot evaluate'
    done, _ = accepted.session(OURS, of_another_suite(name=NAME, result='skip'))
    assert done.exit_code == 3 and 'GROMACS/made:cpu/gnu, not measured (it was skipped, and the same command measured' in ' '.join(done.output.split())


def test_a_known_issue_is_named(accepted):
    path = accepted.folder / 'made.yaml'
    leaf = next(line for line in path.read_text().splitlines() if line.strip().startswith('steps: ['))
    path.write_text(path.read_text().replace(leaf, leaf.replace('steps: ', "steps: [$xfail, 'HPC-9: slow', ") + ']', 1))
    done, rows = accepted.session(OURS, steps(60))
    assert done.exit_code == 0 and (theirs(rows)['verdict'], theirs(rows)['reason'][:12]) == ('KNOWN ISSUE', 'HPC-9: slow:')


def test_references_of_another_processor_judge_nothing(accepted):
    ours = case(plumbline=result(metric(), machine={**MACHINE, 'cpu_model': 'Another CPU'}))
    row = theirs(accepted.session(ours, steps(60))[1])
    assert (row['verdict'], row['reference_from'], row['expected']) == ('PASS', 'ReFrame', None)
    done, rows = accepted.session(OURS, of_another_suite(('steps', [100, 100, -0.5, None, 'ns/day', 'pass']), name='GROMACS %input=a'))
    assert done.exit_code == 1 and "$index names 'case', which the archive does not hold; correct $index of GROMACS" in rows['reason'][-1]


def test_a_check_of_ours_that_has_its_name_keeps_its_references(tmp_path):
    place = Place(tmp_path)
    for value in (100, 101, 99, 100, 102):
        archive.archive(place.run(OURS, of_another_suite(('steps', [value, 0, None, None, 's', 'pass']), name='Triad')), tmp_path / 'archive')
    done = place.plumbline('references', 'accept', 'made')
    assert done.exit_code == 0 and 'no reference: Triad: of another suite, and a check of ours has the same name' in done.output
    done, rows = place.session(OURS, of_another_suite(('steps', [50, 0, None, None, 's', 'pass']), name='Triad'))
    assert done.exit_code == 0 and theirs(rows)['verdict'] == 'NO REFERENCE'


def test_a_suite_that_measures_nothing_is_healthy_only_alone(tmp_path):
    place, mounted = Place(tmp_path), of_another_suite(name='Mount')
    done, rows = place.session(mounted)
    assert done.exit_code == 0 and rows['verdict'].to_list() == ['PASS']
    skipped = case(plumbline=result(records=[], skipped=[{'metric': 'all', 'reason': 'one CPU'}]), result='skip')
    assert place.session(mounted, skipped)[0].exit_code == 2       # ours measured nothing
    assert place.session(mounted, of_another_suite(name='Quota', result='skip'))[0].exit_code == 2


def test_whom_to_ask_is_known_and_no_figure_of_ours_is_drawn_of_it(tmp_path):
    place = Place(tmp_path)
    done, rows = place.session(of_another_suite(('time', [50.0, 40, None, 0.1, 's', 'fail']), name='latency', maintainers=['user-support']))
    assert done.exit_code == 1 and json.loads(rows['detail'][0]) == {'maintainers': ['user-support']}


def test_the_document_of_acceptance_judges_a_run_report_as_plumbline_report_does(accepted):
    path = accepted.run(OURS, steps(50))
    signed = accepted.plumbline('acceptance', path, '--output', accepted.folder / 'a.html')
    said = accepted.plumbline('report', path, '--destination', accepted.folder / 'page')
    assert signed.exit_code == said.exit_code == 1 and signed.output.startswith('made: FAIL'), signed.output

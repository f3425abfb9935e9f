'''A test that has references and vanishes, and references that vanish: neither is a pass.'''

import json
import shutil

import pytest
from typer.testing import CliRunner

import rfm
from made_report import MACHINE, case, metric, result, write_report
from plumbline.analysis.session import Session
from plumbline.cli import app
from plumbline.comparison import sides
from plumbline.references import not_run, others
from plumbline.store import archive
from plumbline.sweep import node, results, state
from test_collect import PLAN

COMMAND = "reframe -C config/site.py -c checks -R --mode daily --report-file '{}' -r"
TRIAD, PINGPONG = {'name': 'Triad %threads=one'}, {'name': 'Pingpong %threads=one', 'environ': 'gnu-openmpi'}


class Nights:
    '''Sessions that one command ran, each two hours after the one before.'''

    def __init__(self, folder):
        self.folder, self.count = folder, 0

    def plumbline(self, *words):
        return CliRunner().invoke(app, [*map(str, words), '--archive', str(self.folder / 'archive')],
                                  env={'PLUMBLINE_REFERENCES': str(self.folder), 'COLUMNS': '300'})

    def run(self, *tests, command=COMMAND, judged=False, machine=MACHINE, config='site.py'):
        '''The run report of a session of some tests.'''
        self.count += 1
        its = metric('bandwidth.plain', 1000.0 + self.count % 3, **({} if judged else {'reference': None, 'reference_from': '', 'verdict': 'NO REFERENCE'}))
        cases = [case(**{'plumbline': result(its, machine=test.get('machine', machine)), 'job_nodelist': ['n1'], **test}) for test in tests]
        path = write_report(self.folder / 'run.json', cases, start=1.8e9 + 7200 * self.count)
        report = json.loads(path.read_text())
        report['session_info'] |= {'cmdline': command.format(f'run-{self.count}.json'), 'config_files': ['<builtin>', config]}
        path.write_text(json.dumps(report))
        return path

    def night(self, *tests, **changed):
        '''(exit code, output) of the report of one.'''
        done = self.plumbline('report', self.run(*tests, **{'judged': True, **changed}), '--destination', self.folder / 'page')
        return done.exit_code, ' '.join(done.output.split())


@pytest.fixture
def nights(tmp_path):
    '''Six of two tests, and references of them.'''
    made = Nights(tmp_path)
    for _ in range(6):
        others.archived(made.run(TRIAD, PINGPONG), root=tmp_path / 'archive')
    done = made.plumbline('references', 'accept', 'made')
    assert done.exit_code == 0, done.output
    return made


@pytest.mark.slow
def test_a_test_that_is_gone_is_no_pass_until_its_references_go_too(nights):
    assert nights.night(TRIAD, PINGPONG)[0] == 0
    last = archive.sessions(nights.folder / 'archive')[-1].stem
    for _ in range(2):      # the second night as the first
        code, said = nights.night(TRIAD)
        assert code == 3 and (f'NOT JUDGED: Pingpong/made:cpu/gnu-openmpi, not measured (it did not run, and the same command ran it in {last}: is its '
                              'environment still found, its partition still configured? references are recorded of 1 of its metrics)') in said
    skipped = {**PINGPONG, 'result': 'skip', 'plumbline': result(records=[], skipped=[{'metric': 'all', 'reason': 'one CPU', 'recorded': 1}])}
    assert 'Pingpong/made:cpu' not in nights.night(TRIAD, skipped)[1]      # it says why itself
    code, said = nights.night(TRIAD, {**PINGPONG, 'result': 'skip', 'plumbline': result(records=[], skipped=[{'metric': 'all', 'reason': 'one CPU'}])})
    assert code == 3 and (f'NOT JUDGED: Pingpong/made:cpu/gnu-openmpi, not measured (it was skipped, and the same command measured it in {last}; '
                          'references are recorded of 1 of its metrics)') in said
    site = nights.folder / 'made.yaml'
    before, _, after = site.read_text().partition('Pingpong:\n')
    site.write_text(before + after[after.index('\nTriad:') + 1:])
    assert nights.night(TRIAD)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize('command', [COMMAND.replace(' -r', " -n '^Triad' -r"), COMMAND.replace('daily', 'node'), COMMAND.replace(' -r', ' -p gnu$ -r'), ''])
def test_another_selection_lacks_nothing(nights, command):
    assert nights.night(TRIAD, command=command)[0] == 0


@pytest.mark.slow
def test_a_test_is_missed_once_the_command_of_today_has_run_it(nights):
    '''Whatever command the sessions of the references were of; also by the references of a node.'''
    today = COMMAND.replace(' -r', " -x '^nothing' -r")
    assert [nights.night(*tests, command=today)[0] for tests in ([TRIAD], [TRIAD, PINGPONG], [TRIAD])] == [0, 0, 3]
    (nights.folder / 'made.yaml').rename(nights.folder / 'made@n1.yaml')
    code, said = nights.night(TRIAD, command=today)
    assert code == 3 and 'NOT JUDGED: Pingpong/made:cpu/gnu-openmpi, not measured (it did not run' in said


@pytest.mark.slow
def test_a_run_report_that_is_not_archived_and_a_node_of_a_sweep_lack_it_as_well(nights, monkeypatch):
    '''The job of the node, which reads its run report first, has an empty archive.'''
    report = nights.run(TRIAD, judged=True)
    monkeypatch.setenv('PLUMBLINE_REFERENCES', str(nights.folder))
    root = nights.folder / 'archive'
    assert [one.label for one in Session(sides.load(report, root)).not_measured] == ['Pingpong/made:cpu/gnu-openmpi']
    monkeypatch.setattr(results, 'ARCHIVE', root)
    work = state.create(nights.folder / 's', PLAN, 'job')
    folder = work.folder / 'n1'
    (folder / 'claim').mkdir(parents=True)
    (folder / node.CPUS).write_text('2\n')
    shutil.copy(report, folder / node.REPORT)
    for left in (True, False):
        if left:
            results.prepare(folder, 'n1', 0)
        found, why = results.collect(work, work.nodes['n1'])
        assert why == '' and found['status'] == 3 and 'Pingpong/made:cpu/gnu-openmpi, not measured' in found['reason']
    assert Session(archive.load_session(root)).exit_status() == 3


def test_a_partition_of_another_name_lacks_all_that_the_former_one_had(nights):
    code, said = nights.night(*({**test, 'partition': 'new'} for test in (TRIAD, PINGPONG)))
    assert code == 3 and 'NOT JUDGED: Pingpong/made:cpu/gnu-openmpi, not measured (' in said and 'Triad/made:cpu/gnu, not measured (' in said


def test_a_partition_that_is_gone_is_missed_whatever_processor_it_had(tmp_path):
    nights, other = Nights(tmp_path), {**TRIAD, 'partition': 'gpu', 'machine': {**MACHINE, 'cpu_model': 'Another CPU'}}
    for _ in range(6):
        others.archived(nights.run(TRIAD, other), root=tmp_path / 'archive')
    assert nights.plumbline('references', 'accept', 'made').exit_code == 0
    assert nights.night(TRIAD, other)[0] == 0
    code, said = nights.night(TRIAD)
    assert code == 3 and 'NOT JUDGED: Triad/made:gpu/gnu, not measured (' in said


def test_configurations_of_other_partitions_miss_nothing_of_each_other(tmp_path):
    nights, of_gpu = Nights(tmp_path), {**TRIAD, 'partition': 'gpu'}
    for _ in range(4):
        others.archived(nights.run(TRIAD, PINGPONG, config='cpu.py'), root=tmp_path / 'archive')
        others.archived(nights.run(of_gpu, config='gpu.py'), root=tmp_path / 'archive')
    assert nights.plumbline('references', 'accept', 'made').exit_code == 0
    assert nights.night(TRIAD, PINGPONG, config='cpu.py')[0] == nights.night(of_gpu, config='gpu.py')[0] == 0
    code, said = nights.night(TRIAD, config='new.py')       # by another name, and without an MPI
    assert code == 3 and 'NOT JUDGED: Pingpong/made:cpu/gnu-openmpi, not measured (' in said and 'gpu' not in said


def test_on_another_processor_nothing_is_missed(nights):
    assert nights.night(TRIAD, machine={**MACHINE, 'cpu_model': 'Another CPU'})[0] == 0


@pytest.mark.slow
def test_references_that_are_gone_are_no_pass(nights):
    last, judged = nights.night(TRIAD, PINGPONG), archive.sessions(nights.folder / 'archive')[-1].stem
    (nights.folder / 'made.yaml').rename(nights.folder / 'aside')
    told = f'NOT JUDGED: what made.yaml judged in {judged} (no references of the system are found)'
    unjudged = {'judged': False}
    assert last[0] == 0
    for _ in range(2):
        code, said = nights.night(TRIAD, PINGPONG, **unjudged)
        assert code == 3 and told in said
    assert nights.night(TRIAD, PINGPONG, command='reframe -n Triad -r', **unjudged)[0] == 0
    assert nights.plumbline('references', 'accept', 'made').exit_code == 0
    assert nights.night(TRIAD, PINGPONG)[0] == 0
    (nights.folder / 'made.yaml').unlink()
    assert nights.night(TRIAD, machine={**MACHINE, 'cpu_model': 'Another CPU'}, **unjudged)[0] == 0


@pytest.mark.parametrize('one, other, alike', [
    ('reframe -c checks -Rrn ^triad', "reframe --name='^triad' --checkpath checks -r --report-file=x.json -R -v", True),
    ('reframe -c checks -R --mode daily -r', f'reframe -C a.py -c {rfm.REPOSITORY}/checks -R --mode daily -r', True),
    ('reframe -c checks -R --mode daily -r', 'reframe --mode daily -r', True), ('reframe -c other -R -r', 'reframe -r', False),
    ('reframe -n a -n b -r', 'reframe -n b -n a -r', True), ('reframe -n a -r', 'reframe -r', False), ('reframe -r', 'reframe -r --cpu-only', False),
    ('reframe -r', 'reframe -r -P threads=one', False), ('reframe -r', 'reframe -r --maintainer=me', False),
    ('reframe --mode daily -r -S a.samples=30', 'reframe --mode=daily -r -J p=debug', True)])
def test_what_a_command_line_chooses(one, other, alike):
    assert (not_run.selection(one) == not_run.selection(other)) is alike


@pytest.mark.parametrize('text', ["reframe -n 'a", 'reframe -n'])
def test_a_command_line_that_cannot_be_read_chooses_nothing_that_is_known(text):
    assert not_run.selection(text) is None

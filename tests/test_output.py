'''What commands do whose output has no room, or that nobody reads to its end.'''

import os
import subprocess
import sys

import pytest

from made_report import case, metric, result, write_report

COMMAND = [sys.executable, '-c', 'from plumbline.cli import main; main()']


NO_ROOM = 'plumbline: No space left on device: what was said or written is not whole\n'


@pytest.fixture(params=['', '1'], ids=['buffered', 'unbuffered'])
def on_a_full_disk(request):
    '''Function (words) -> exit code, standard error.'''
    def run(*given):
        with open('/dev/full', 'w') as full:
            done = subprocess.run([*COMMAND, *map(str, given)], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, 'PYTHONUNBUFFERED': request.param})
        return done.returncode, done.stderr
    return run


@pytest.mark.slow
@pytest.mark.parametrize('given', [('path', 'checks'), ('report', '--help')])
def test_a_full_disk_is_one_line(on_a_full_disk, given):
    assert on_a_full_disk(*given) == (2, NO_ROOM)


@pytest.mark.slow
def test_on_a_full_disk_a_pass_is_none(on_a_full_disk, tmp_path):
    run = write_report(tmp_path / 'run.json', [case(plumbline=result(metric()))])
    assert on_a_full_disk('report', run, '--archive', tmp_path / 'archive', '--destination', tmp_path / 'page') == (2, NO_ROOM)


@pytest.mark.slow
def test_an_error_is_told_where_the_output_has_no_room(on_a_full_disk, tmp_path):
    status, said = on_a_full_disk('report', tmp_path / 'none.json')
    assert status == 2 and 'none.json' in said and said.startswith('plumbline: ') and said.count('\n') == 1


@pytest.mark.slow
@pytest.mark.parametrize('words, status', [
    (['report', '--help'], 0), (['expectations', 'check', 'k.yaml'], 2),
    (['report', 'run.json', '--archive', 'archive', '--destination', 'page', '--notify', 'touch told'], 1)])
def test_a_reader_that_has_gone_changes_no_exit_code_and_is_no_error_to_tell(tmp_path, words, status):
    write_report(tmp_path / 'run.json', [case(plumbline=result(metric(verdict='FAIL')))])
    (tmp_path / 'k.yaml').write_text(f'schema: 1\nkind: k\nof: {{system.architecture: {os.uname().machine}}}\n'
                                     'expectations: {kernel.release: {is: "1.0", severity: drain}}\n')
    done = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    done.stdout.close()
    assert (done.wait(), done.stderr.read()) == (status, '')
    assert (tmp_path / 'told').exists() == ('--notify' in words)

'''The checks of benchmarks known by name, by the real ReFrame; the programs answer as the real ones have.'''

import os
import pathlib

import pytest

import rfm
from mpi_native import any_mpi
from native import CPUS
from plumbline.model import processor
from plumbline.named import fio

DATA = pathlib.Path(__file__).with_name('data') / 'named'
CHECKS = rfm.REPOSITORY / 'checks/named'


@pytest.fixture
def place(tmp_path):
    '''Function (name -> script) -> a workplace that has these programs in its PATH.

    :arg listed: file systems of the site, instead of the default ones.
    '''
    def made(listed=None, **scripts):
        (tmp_path / 'bin').mkdir()
        site = rfm.REPOSITORY / 'config/localhost.py'
        if listed:
            (tmp_path / 'site.py').write_text(
                f"import runpy\nsite_configuration = runpy.run_path({str(site)!r})['site_configuration']\n"
                f"site_configuration['systems'][0]['partitions'][0]['extras']['file_systems'] = {listed!r}\n")
            site = tmp_path / 'site.py'
        for name, script in scripts.items():
            (tmp_path / 'bin' / name).write_text(f'#!/bin/bash\n{script}\n')
            (tmp_path / 'bin' / name).chmod(0o755)
        return rfm.Workplace(tmp_path / 'place', f"{tmp_path / 'bin'}:{os.environ['PATH']}", config=site)
    return made


def cases(done):
    assert done.report, done.out
    return done.cases()


def test_fio_on_the_stage_folder_keeps_its_job_file(place, tmp_path):
    '''A fio that answers as the real one has; what it was given stays in the result, and nothing in the file system.'''
    done = place(fio=f'test $1 = --output-format=json || exit 1\ntouch "$folder/data" && grep -q folder plumbline.fio || exit 1\ncat {DATA}/fio.json').reframe(
        '-r', '-p', '^gnu$', '-S', 'repeat=2', '-S', f'fio.size={2**24}', checks=CHECKS / 'fio.py')
    case, = cases(done).values()
    assert case['result'] == 'pass', case['fail_reason']
    found = rfm.metrics_of(case)
    assert found['bandwidth.write.16MiB']['value'] == pytest.approx(2**24 / 0.015 / 1e6) and found['bandwidth.write.16MiB']['n'] == 2
    assert found['figure_of_merit.randread_iops.16MiB']['verdict'] == 'NO REFERENCE'
    assert {(one['metric'], one['reason']) for one in case['plumbline']['skipped']} >= {('bandwidth.write', '16MiB was asked for')}
    assert case['plumbline']['inputs'] == {'plumbline.fio': fio.job_file(2**24)} and 'plumbline.fio' in case['plumbline']['command']
    stage, = (done for done in tmp_path.rglob('output/**/rfm_job.sh'))
    assert 'trap' in stage.read_text() and not list(tmp_path.rglob('plumbline-*/data'))


def test_a_folder_of_its_own_is_no_other_s_and_where_none_can_be_made_that_is_said(place, tmp_path):
    '''One that is there already might be another node's, or hold somebody's links.'''
    listed = [{'name': 'local', 'path': str(tmp_path / 'local')}, {'name': 'gone', 'path': str(tmp_path / 'gone')}, {'name': 'unset', 'path': '$NOT_SET'}]
    (tmp_path / 'local').mkdir()
    found = cases(place(listed, fio=f'[ "$(stat -c %a "$folder")$(ls -A "$folder")" = 700 ] || exit 1\ncase $folder in {tmp_path}/local/plumbline-*) ;; *) exit 1 ;; esac\n'
                                    f'cat {DATA}/fio.json').reframe('-r', '-p', '^gnu$', '-S', 'repeat=2', '-S', f'fio.size={2**24}', checks=CHECKS / 'fio.py'))
    results = {name.partition('file_system=')[2].split(' ')[0]: case for name, case in found.items()}
    assert results['local']['result'] == 'pass', results['local']['fail_reason']
    assert not list((tmp_path / 'local').iterdir()) and not (tmp_path / 'gone').exists()
    assert "plumbline: gone: no folder for the test's files can be made in " in results['gone']['fail_reason'] and 'No such file' in results['gone']['fail_reason']
    assert "plumbline: unset: no folder for the test's files can be made in $NOT_SET" in results['unset']['fail_reason']
    assert 'NOT_SET: unbound variable' in results['unset']['fail_reason']


def test_what_is_not_there_is_said_with_how_to_get_it(place):
    mpi = any_mpi()
    found = cases(place().reframe('-r', '-p', f'^gnu-{mpi}$', checks=CHECKS / 'hpcg.py'))
    case, = found.values()
    assert case['result'] == 'skip'
    skipped, = case['plumbline']['skipped']
    assert 'HPCG is not in the PATH' in skipped['reason'] and 'with Spack: hpcg' in skipped['reason'] and "as 'hpcg' in the extras" in skipped['reason']


@pytest.mark.skipif(len(CPUS) < 2, reason='the output is of two processes')
def test_hpcc_is_given_its_problem_and_a_failed_residual_is_a_fail(place):
    '''By the MPI's own launcher, so that the binding is proved; rank 0 leaves the file.'''
    mpi = any_mpi()
    script = f'cat {DATA}/hpcc.txt {{}} > hpccoutf.txt.$$ && mv hpccoutf.txt.$$ hpccoutf.txt; exit 0'
    options = ('-r', '-p', f'^gnu-{mpi}$', '-n', 'hpcc', '-S', 'repeat=2', '-S', 'hpcc.order=3520')
    where = place(hpcc=script.format(''))
    case, = cases(where.reframe(*options, checks=CHECKS / 'linpack.py')).values()
    assert 'HPL_NB (HPCC takes sizes of its own' in case['fail_reason'] and 'is 80, and 192 was asked for' in case['fail_reason']
    if len(CPUS) != 2:
        return
    text = (DATA / 'hpcc.txt').read_text().replace(' 3520    80 ', ' 3520   192 ').replace('HPL_NB=80', 'HPL_NB=192')
    other = where.folder.parent / 'answer.txt'
    other.write_text(text)
    (where.folder.parent / 'bin/hpcc').write_text(f'#!/bin/bash\n{script.format("").replace(str(DATA / "hpcc.txt"), str(other))}\n')
    case, = cases(where.reframe(*options, checks=CHECKS / 'linpack.py')).values()
    assert case['result'] == 'pass', case['fail_reason']
    names = {metric['name'] for metric in case['plumbline']['metrics']}
    assert {'flops.hpl.2.n3520', 'latency.random_ring.2.n3520'} < names and '3520 Ns' in case['plumbline']['inputs']['hpccinf.txt'] and case['plumbline']['ranks'] == 2
    # Else references that were recorded on another processor would judge it.
    assert case['plumbline']['machine'] == processor.of_cpuinfo(pathlib.Path('/proc/cpuinfo').read_text())
    # Wrong in the first run, dead in the second one, right in all of a second job.
    (where.folder.parent / 'wrong.txt').write_text(text.replace('...... PASSED', '...... FAILED'))
    hpcc, ran = where.folder.parent / 'bin/hpcc', 'ran.${OMPI_COMM_WORLD_RANK-$PMI_RANK}'
    hpcc.write_text('#!/bin/bash\ncase $PWD in *_retry*) answer=answer.txt ;; *) answer=wrong.txt\n'
                    f'[ ! -e {ran} ] || exit 1; touch {ran} ;; esac\n{hpcc.read_text().replace(str(other), f"{where.folder.parent}/$answer")}')
    done = where.reframe(*options, '--max-retries=1', checks=CHECKS / 'linpack.py')
    wrong = 'HPC Challenge, run 1: the residual is 0.0027348, FAILED: the solution is wrong, and no rate counts'
    for run, told in ((0, 'the job ended with exit code 1'), (1, f'in an earlier run of this session: {wrong}')):
        case, = done.cases(run).values()
        assert case['result'] == 'fail' and told in case['fail_reason']

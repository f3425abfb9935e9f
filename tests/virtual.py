'''The virtual Slurm cluster (``cluster/``), for tests: where it cannot be, they are skipped.'''

import re

import pytest

import cluster


def needs_cluster(database=False):
    '''Skip the test where no cluster can be started, or none with accounting.'''
    if why := cluster.missing(database):
        pytest.skip(f'no virtual cluster: {why}')


def cluster_in(folder, **options):
    '''A cluster with its files in a folder; not started yet.

    :arg options: of :class:`cluster.Cluster`.
    '''
    needs_cluster(options.get('database', False))
    return cluster.Cluster(folder, **options)


def batch(slurm, *words):
    '''Submit a job; its exit code and signal (``1:0``) once it has ended.  (``sbatch --wait`` looks after 2, 10 and 42 s.)'''
    job = slurm.must(['sbatch', '--parsable', *words]).strip()

    def told():
        return slurm.must(['scontrol', 'show', 'job', '-o', job])
    slurm.until(lambda: not re.search('JobState=(PENDING|CONFIGURING|RUNNING|COMPLETING)', told()), 300, f'job {job} does not end')
    return re.search(r'ExitCode=(\S+)', told())[1]

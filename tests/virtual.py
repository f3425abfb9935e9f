'''The virtual Slurm cluster (``cluster/``), for tests: where it cannot be, they are skipped.'''

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

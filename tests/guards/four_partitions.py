'''A login node and three types of nodes, nobody's machine: what four partitions need of a configuration, and no more.

``CANNED_SCHEDULER`` and ``CANNED_LAUNCHER`` say what starts jobs and programs on the nodes, ``CANNED_TIME`` how long they may take, ``CANNED_L3``
the bytes of each of the four L3 (0: the kernel tells no sizes of caches), ``CANNED_MEMORY`` the GiB of a node.
'''

import json
import os
from pathlib import Path

from plumbline import settings

PROCESSOR = json.loads((Path(settings.ROOT) / 'config/topologies/example-slurm-cpu.json').read_text())['processor']
L3 = int(os.environ.get('CANNED_L3') or 2**24)
for cache in PROCESSOR['topology']['caches']:
    cache['size'] = L3 if cache['type'] == 'L3' else cache['size'] * bool(L3)


def partition(name):
    limit = os.environ.get('CANNED_TIME')
    return {'name': name, 'scheduler': os.environ.get('CANNED_SCHEDULER', 'slurm'), 'launcher': os.environ.get('CANNED_LAUNCHER', 'srun'),
            'environs': ['gnu', 'llvm', 'gnu-openmpi'], 'processor': PROCESSOR, 'features': ['likwid'], **({'time_limit': limit} if limit else {}),
            'extras': {'exclusive': 'CANNED_SHARED' not in os.environ, 'node': {'allowed_cpus': list(range(PROCESSOR['num_cpus'])), 'cpu_quota': None,
                                'memory': int(os.environ.get('CANNED_MEMORY') or 64) * 2**30}}}


site_configuration = settings.site(
    systems=[{'name': 'four', 'hostnames': ['.*'], 'partitions': [
        {'name': 'login', 'scheduler': 'local', 'launcher': 'local', 'environs': ['gnu'], 'processor': PROCESSOR},
        *map(partition, ('rome', 'milan', 'spr'))]}],
    environments=[{'name': 'gnu', 'cc': 'gcc', 'ftn': 'gfortran', 'features': ['openmp', 'fortran'], 'extras': {'toolchain': 'gnu'}},
                  {'name': 'llvm', 'cc': 'clang', 'features': ['openmp'], 'extras': {'toolchain': 'llvm'}},
                  {'name': 'gnu-openmpi', 'cc': 'mpicc', 'features': ['mpi', 'openmpi'], 'extras': {'toolchain': 'gnu'}}])

'''An example to start from, and nobody's machine: PBS, environment-modules, one kind of nodes.

See ``example-slurm.py`` for what the topology is from.
'''

from plumbline import settings

site_configuration = settings.site(
    systems=[{
        'name': 'example-pbs', 'descr': 'an example', 'hostnames': [r'pbs-login\d+'], 'modules_system': 'envmod',
        'partitions': [{
            'name': 'compute', 'scheduler': 'pbs', 'launcher': 'mpiexec', 'time_limit': '1h', 'max_jobs': 8,
            'access': ['-q workq', '-l place=scatter:exclhost'],
            'environs': ['gnu', 'gnu-openmpi'],
            'extras': {'machine': str(settings.ROOT / 'config/machines/example-epyc-72f3.yaml'), 'cpus': 8}}]}],
    environments=[
        {'name': 'gnu', 'cc': 'gcc', 'ftn': 'gfortran', 'modules': ['gcc'], 'features': ['openmp', 'fortran'],
         'extras': {'toolchain': 'gnu'}},
        {'name': 'gnu-openmpi', 'cc': 'mpicc', 'modules': ['gcc', 'openmpi'], 'features': ['mpi', 'openmpi'],
         'extras': {'toolchain': 'gnu', 'launcher': ['mpirun']}}])

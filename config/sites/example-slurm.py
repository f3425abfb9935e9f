'''An example to start from, and nobody's machine: Slurm, Lmod, two kinds of nodes.

The topologies of its nodes, ``config/topologies/example-slurm-*.json``, were written from datasheets; on a real machine
the check ``topology`` writes them in a job.
'''

from plumbline import settings


def partition(name, machine, cpus, environs):
    return {
        'name': name, 'scheduler': 'slurm', 'launcher': 'srun', 'time_limit': '1h', 'max_jobs': 20,
        'access': [f'--partition={name}', '--account=operations', '--exclusive', '--mem=0'],
        'environs': environs, 'features': ['likwid', 'counters'],
        'extras': {'machine': str(settings.ROOT / f'config/machines/{machine}.yaml'), 'cpus': cpus,
                   'file_systems': [{'name': 'scratch', 'path': '/scratch/$USER'}, {'name': 'local', 'path': '/tmp'}]}}


site_configuration = settings.site(
    systems=[{
        'name': 'example-slurm', 'descr': 'an example', 'hostnames': [r'slurm-login\d+'], 'modules_system': 'lmod',
        'partitions': [partition('cpu', 'example-epyc-9124', 16, ['gnu', 'aocc', 'gnu-openmpi']),
                       partition('himem', 'example-xeon-8462y', 64, ['gnu'])]}],
    environments=[
        {'name': 'gnu', 'cc': 'gcc', 'ftn': 'gfortran', 'modules': ['gcc/13.2'], 'features': ['openmp', 'fortran'],
         'extras': {'toolchain': 'gnu'}},
        {'name': 'aocc', 'cc': 'clang', 'ftn': 'flang', 'modules': ['aocc/4.2'], 'features': ['openmp', 'fortran'],
         'extras': {'toolchain': 'aocc'}},
        {'name': 'gnu-openmpi', 'cc': 'mpicc', 'modules': ['gcc/13.2', 'openmpi/5.0'], 'features': ['mpi', 'openmpi'],
         'extras': {'toolchain': 'gnu', 'imb': '/opt/imb/openmpi/bin'}}])

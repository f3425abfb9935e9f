'''The virtual cluster of ``make cluster``: nodes on this host, with its processor and compilers.'''

import shutil

from plumbline import settings, toolchains
from plumbline.mpi import environments
from reframe.utility.cpuinfo import cpuinfo

compilers = toolchains.found()
environments = [*compilers, *environments.found(compilers)]

site_configuration = settings.site(
    systems=[{
        'name': 'virtual', 'descr': 'nodes of tests/cluster', 'hostnames': ['.*'],
        'partitions': [{
            # Without slurmdbd there is no sacct, which ReFrame's scheduler `slurm` asks.
            'name': 'all', 'scheduler': 'squeue', 'launcher': 'local', 'access': ['--partition=all'],
            'environs': [environment['name'] for environment in environments],
            'processor': cpuinfo(),
            'features': ['likwid'] if shutil.which('likwid-pin') else []}]}],
    environments=environments)

'''The virtual cluster of ``make cluster``: nodes on this host, with its processor and compilers.'''

import os
import shutil

from reframe.utility.cpuinfo import cpuinfo

from plumbline import settings
from plumbline.mpi import environments
from plumbline.system import toolchains

compilers = toolchains.found()
environments = [*compilers, *environments.found(compilers, as_root=True)]

site_configuration = settings.site(
    systems=[{
        'name': 'virtual', 'descr': 'nodes of tests/cluster', 'hostnames': ['.*'],
        'partitions': [{
            # Without slurmdbd there is no sacct, which ReFrame's scheduler `slurm` asks.
            'name': 'all', 'scheduler': 'squeue', 'launcher': 'local', 'access': ['--partition=all', '--exclusive'],
            'environs': [environment['name'] for environment in environments],
            'processor': cpuinfo(),
            # Four nodes share the CPUs of this host; one is what each has at least.
            'extras': {'node': {'allowed_cpus': [min(os.sched_getaffinity(0))], 'cpu_quota': None, 'memory': None},
                       'binding': 'scheduler'},
            'features': ['likwid'] if shutil.which('likwid-pin') else []}]}],
    environments=environments)

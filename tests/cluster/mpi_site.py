'''The virtual cluster as a site for MPI: the partition ``one`` is a node of two CPUs, ``spread`` are nodes of one CPU each.

``MADE_CPUS`` are the CPUs of the first node, with a comma.  The nodes of ``spread`` allow different CPUs: there the
scheduler binds.
'''

import os

from reframe.core.schedulers.slurm import SqueueJobScheduler
from reframe.utility.cpuinfo import cpuinfo

from plumbline import settings
from plumbline.mpi import environments

SqueueJobScheduler.SQUEUE_DELAY = 0.5       # seconds after a submission: here no job is in the queue late

cpus = [int(cpu) for cpu in os.environ['MADE_CPUS'].split(',')]
mpi = [environment for environment in environments.found(as_root=True) if environment['name'].startswith('gnu-')]
# MPICH once more, started by srun.
mpi += [{**environment, 'name': 'gnu-mpich-srun', 'extras': {},
         'env_vars': [*environment['env_vars'], ['SLURM_MPI_TYPE', 'pmi2']]}
        for environment in mpi if 'mpich' in environment['features']]


def partition(name, allowed, **extras):
    return {'name': name, 'scheduler': 'squeue', 'launcher': 'srun', 'access': [f'-p {name}'], 'max_jobs': 8,
            'environs': [environment['name'] for environment in mpi], 'processor': cpuinfo(),
            'extras': {'node': {'allowed_cpus': allowed}, **extras}}


site_configuration = settings.site(
    general=[{'poll_rate_max': 4, 'poll_rate_min': 4}],     # a site's own looks at its queue less often
    systems=[{'name': 'made', 'hostnames': ['.*'],
              'partitions': [partition('one', cpus), partition('spread', cpus[:1], binding='scheduler')]}],
    environments=mpi)

'''A machine that nobody has: a core for each CPU that may be used, or what the test says.

``CANNED_SCHEDULER`` and ``CANNED_LAUNCHER`` choose another batch system, ``CANNED_ACCESS`` the options that its partition
asks for, ``CANNED_FEATURES`` and
``CANNED_ENVIRONS`` name features and environments, ``CANNED_CPUS`` is the number of CPUs that the
topology claims, ``CANNED_DOMAINS`` makes each a NUMA domain, ``CANNED_OVERLAP`` allows jobs to overlap, ``CANNED_HOSTNAMES`` are its hosts,
``CANNED_GRAYLOG`` is where ReFrame sends its performance log, too; ``CANNED_STORAGE`` has it keep its results.
'''

import os

from reframe.core.schedulers.slurm import SqueueJobScheduler

from plumbline import settings

SqueueJobScheduler.SQUEUE_DELAY = 0.2       # seconds after a submission: here no job is in the queue late

KIB, MIB = 2**10, 2**20


def processor(cpus):
    '''A processor of which each core has an L1 and an L2, and all have one L3.'''
    each, together = [hex(1 << cpu) for cpu in cpus], hex(sum(1 << cpu for cpu in cpus))
    return {'arch': 'zen3', 'platform': 'x86_64', 'num_cpus': len(cpus), 'num_cpus_per_core': 1,
            'num_cpus_per_socket': len(cpus), 'num_sockets': 1,
            'topology': {'numa_nodes': each if 'CANNED_DOMAINS' in os.environ else [together], 'sockets': [together], 'cores': each,
                         'caches': [{'type': level, 'size': size, 'linesize': 64,
                                     'associativity': 0, 'num_cpus': len(cpus) // len(sets),
                                     'cpusets': sets}
                                    for level, size, sets in (('L1', 32 * KIB, each),
                                                              ('L2', 512 * KIB, each),
                                                              ('L3', 16 * MIB, [together]))]}}


claimed, scheduler = os.environ.get('CANNED_CPUS'), os.environ.get('CANNED_SCHEDULER', 'local')
jobs = {'max_jobs': 8} if 'CANNED_OVERLAP' in os.environ else {}
cpus = range(int(claimed)) if claimed else sorted(os.sched_getaffinity(0))

site_configuration = settings.site(
    systems=[{
        'name': 'made',
        'hostnames': os.environ.get('CANNED_HOSTNAMES', '.*').split(),
        'partitions': [{
            'name': 'cpu',
            'scheduler': scheduler,
            'launcher': os.environ.get('CANNED_LAUNCHER', 'local'),
            'access': os.environ.get('CANNED_ACCESS', '').split(),
            'environs': os.environ.get('CANNED_ENVIRONS', 'gnu').split(),
            'features': os.environ.get('CANNED_FEATURES', '').split(),
            'processor': processor(list(cpus)),
            **jobs,
        }],
    }],
    environments=[
        {'name': 'gnu', 'cc': 'gcc', 'features': ['openmp']},
        {'name': 'other', 'cc': 'gcc', 'features': ['openmp']},
    ],
    logging=[{'handlers_perflog': [{'type': 'graylog', 'address': os.environ['CANNED_GRAYLOG']}]}] if 'CANNED_GRAYLOG' in os.environ else [],
    **({'storage': [{'enable': True, 'sqlite_db_file': os.environ['CANNED_STORAGE']}]} if 'CANNED_STORAGE' in os.environ else {}),
)

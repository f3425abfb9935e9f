'''What a job finds on its node: ``python -m plumbline.detect.node`` prints it as one line of JSON.

The processor as ``reframe --detect-host-topology`` writes it, by the same function, and what ReFrame does not look at:
the CPUs that a job may use, and how much memory there is.  Nothing is downloaded, and no configuration is read.
'''

import json
import os

from reframe.utility.cpuinfo import cpuinfo

from plumbline.settings import NODE
from plumbline.system import cgroup
from plumbline.system.topology_file import MARK


def found():
    '''The contents of a topology file (:mod:`plumbline.system.topology_file`).'''
    allowed, quota = cgroup.allowed_cpus()
    memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    return {'schema': 1, 'node': NODE, 'allowed_cpus': sorted(allowed), 'cpu_quota': quota, 'memory': memory,
            'processor': cpuinfo()}


if __name__ == '__main__':
    print(MARK + json.dumps(found()))

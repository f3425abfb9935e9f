'''What a job finds on its node: ``python -m plumbline.detect.node`` prints it as one line of JSON.

The processor as ``reframe --detect-host-topology`` writes it, by the same function, and what ReFrame does not look at:
the CPUs and the memory that a job may use.  Nothing is downloaded, and no configuration is read.
'''

import json

from reframe.utility.cpuinfo import cpuinfo

from plumbline.settings import NODE
from plumbline.system import cgroup
from plumbline.system.topology_file import MARK


def found():
    '''The contents of a topology file (:mod:`plumbline.system.topology_file`).'''
    allowed, quota = cgroup.allowed_cpus()
    return {'schema': 1, 'node': NODE, 'allowed_cpus': sorted(allowed), 'cpu_quota': quota, 'memory': cgroup.memory(), 'processor': cpuinfo()}


if __name__ == '__main__':
    print(MARK + json.dumps(found()))

'''What runs on one node: the CPUs that it may use, and the sizes that fit its caches.'''

from reframe.core.builtins import run_after, variable

from plumbline.errors import in_one_line
from plumbline.rfm.job import Job
from plumbline.rfm.variables import Size
from plumbline.system import cgroup, topology


def allocation(partition):
    '''What a job may use of a node: CPUs, a cgroup's quota in CPUs, memory in bytes; None for what is not known.

    Of a partition with a scheduler it is what the topology job has found (:mod:`plumbline.system.topology_file`).
    '''
    if partition.scheduler.registered_name == 'local':
        return *cgroup.allowed_cpus(), cgroup.memory()
    node = partition.extras.get('node', {})
    return node.get('allowed_cpus'), node.get('cpu_quota'), node.get('memory')


def cores_of(partition):
    '''What a job may use of a node: one hardware thread of each core, socket by socket, as many as a quota lets run; the quota in CPUs, and
    memory in bytes, None for what is not known.

    :raises PlumblineError: where the topology is not known, or has none of the CPUs that are allowed.
    '''
    allowed, quota, memory = allocation(partition)
    order = topology.cpu_order(partition.processor, allowed)
    return order[:max(1, int(quota))] if quota is not None else order, quota, memory


class OnNode(Job):
    '''What runs on one node, on CPUs that are chosen and known.'''

    #: Working set of the cases that are meant for memory, bytes; 0 for what the topology asks for.
    memory_bytes = variable(Size, value=0, loggable=False)

    @run_after('setup')
    def choose_cpus(self):
        with in_one_line():
            self.all_cpus, self.quota, self.memory = cores_of(self.current_partition)
        if self.num_tasks in (None, 1):
            self.num_cpus_per_task = len(self.all_cpus)

    def ours(self):
        '''Level -> bytes of each of its caches that are ours, where that is less than the topology says.'''
        return {}

    def working_sets(self, cpus):
        '''(level -> bytes, level -> why it cannot be measured) for threads on these CPUs.'''
        sizes, skipped = topology.working_sets(self.current_partition.processor, cpus, self.memory, self.ours())
        if self.memory_bytes:
            sizes['memory'] = self.memory_bytes
        return sizes, skipped

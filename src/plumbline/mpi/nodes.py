'''Which nodes of a partition a job may get, by what the scheduler says.'''

from dataclasses import dataclass

from ClusterShell.NodeSet import NodeSet

#: States of a node that jobs run on sooner or later, as ReFrame reads them from Slurm; in any other it is lost, or kept back.
_RUNS_JOBS = {'IDLE', 'ALLOCATED', 'MIXED', 'COMPLETING', 'PLANNED', 'CLOUD', 'DYNAMIC_NORM', 'POWER_DOWN', 'POWERED_DOWN',
              'POWERING_DOWN', 'POWERING_UP'}


@dataclass(frozen=True)
class Nodes:
    '''The nodes of a partition.

    :attr usable: those that run jobs, busy or not.
    :attr others: those that are down, drained, reserved ...
    '''
    usable: NodeSet
    others: NodeSet


def nodes_of(job):
    '''The nodes that a job may get with the partition's options; None where the scheduler does not list nodes.

    :arg job: ReFrame's.
    '''
    try:
        found = job.scheduler.filternodes(job, job.scheduler.allnodes())
    except NotImplementedError:
        return None
    usable = [node for node in found if getattr(node, 'states', set()) <= _RUNS_JOBS]
    return Nodes(NodeSet.fromlist([node.name for node in usable]),
                 NodeSet.fromlist([node.name for node in found if node not in usable]))

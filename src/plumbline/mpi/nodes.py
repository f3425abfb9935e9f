'''Which nodes of a partition a job may get, by what the scheduler says.'''

from dataclasses import dataclass

from ClusterShell.NodeSet import NodeSet

#: States of a node that jobs run on sooner or later, as ReFrame reads them from Slurm; in any other it is lost, or kept back.  Of reserved
#: nodes, which those in maintenance must be, ReFrame has left those of the job's own reservation.
_RUNS_JOBS = {'IDLE', 'ALLOCATED', 'MIXED', 'COMPLETING', 'PLANNED', 'CLOUD', 'DYNAMIC_NORM', 'POWER_DOWN', 'POWERED_DOWN',
              'POWERING_DOWN', 'POWERING_UP', 'RESERVED', 'MAINTENANCE', 'MAINT'}


@dataclass(frozen=True)
class Nodes:
    '''The nodes of a partition.

    :attr usable: those that run jobs and are in the state that was asked for.
    :attr busy: those that run jobs and are in another.
    :attr others: those that are down, drained, reserved ...
    '''
    usable: NodeSet
    busy: NodeSet
    others: NodeSet


def nodes_of(job, state='all'):
    '''The nodes that a job may get with the partition's options; None where the scheduler does not list nodes.

    :arg state: ``all`` or a state, as of ReFrame's ``--flex-alloc-nodes``.
    '''
    try:
        found = job.scheduler.filternodes(job, job.scheduler.allnodes())
    except NotImplementedError:
        return None
    runs = lambda its: its <= _RUNS_JOBS and ('RESERVED' in its or its.isdisjoint({'MAINTENANCE', 'MAINT'}))
    running = [node for node in found if runs(getattr(node, 'states', set()))]
    usable = running if state == 'all' else job.scheduler.filternodes_by_state(running, state)
    if state == 'idle':     # with whatever else is said of it; and our own last job's node is on its way there
        usable = [node for node in running if node in usable or 'IDLE' in getattr(node, 'states', ())
                  or ('COMPLETING' in getattr(node, 'states', ()) and node.states.isdisjoint({'MIXED', 'ALLOCATED'}))]
    return Nodes(*(NodeSet.fromlist([node.name for node in part]) for part in (
        usable, [node for node in running if node not in usable], [node for node in found if node not in running])))

'''The second measurement: outliers, and nodes that lack a test or a part of one, are named when they are so again, beside nodes that were in order.

It is a sweep of its own, ``again`` in the folder of the first, with the programs of the first.
'''

from plumbline.sweep import node as job, outliers, state
from plumbline.sweep.slurm import Slurm

#: Of each kind of node so many that were in order are measured again, as far as there are: some may be disturbed, and what
#: the others have drifted by must be known as well as the outlier.
PEERS = 6

#: Pattern of the names of second measurements that were set aside (:func:`state.set_aside`).
ASIDE = f'{outliers.AGAIN}.*'


def measured_again(folder, which=f'{outliers.AGAIN}*'):
    '''The second measurements of a sweep, those included that were set aside, as :class:`state.Sweep`.

    :arg folder: of the first; :arg which: pattern of their names.
    '''
    return [state.load(file.parent) for file in folder.glob(f'{which}/sweep.json')]


def _limits(work):
    '''What a second measurement is limited by, and what was spent before it.'''
    before = [work, *measured_again(work.folder, ASIDE)]
    return {'limits': work.plan.get('limits', {}), 'spent': sum(one.seconds for one in before)}


def _end(again):
    '''Take the jobs of a second measurement out of the queue.

    :raises PlumblineError: if Slurm does not answer.
    '''
    left = again.within(state.QUEUED, state.SUBMITTING)
    if left:
        slurm = Slurm(again.plan['access'])
        if live := [number for number, found in slurm.jobs(again.prefix).items() if not found.is_over]:
            slurm.cancel(live)
        again.begin()
        for node in left:
            again.record(node, state.OVER, state='cancelled', reason='there are more outliers since', **again.times(node, node.minutes))


def prepare(work):
    '''The second sweep, as far as it has come; :obj:`None` if no node is an outlier or lacks something.

    :arg work: :class:`state.Sweep`, over.
    '''
    found, folder = outliers.look(work.folder), work.folder / outliers.AGAIN
    suspects = list(dict.fromkeys([*found.odd['node'], *found.lacking]))
    if not suspects:
        return None
    if folder.exists():
        again = state.load(folder) if (folder / 'sweep.json').exists() else None
        if again and set(suspects) <= again.nodes.keys():
            again.plan |= _limits(work)
            return again
        if again:
            _end(again)
        state.set_aside(folder)     # there are more of them since
    names = [*suspects, *outliers.peers_in_order(found.ranked, suspects, PEERS)]
    number = len(list(work.folder.glob(ASIDE))) or ''        # jobs of those may still be ending
    plan = {**work.plan, **_limits(work), 'id': f'{work.name}-again{number}', 'nodes': {name: work.plan['nodes'][name] for name in names}}
    again = state.create(folder, plan, job.script(plan['id'], folder, plan['partition'], plan['command']))
    (folder / 'builds').symlink_to(work.folder / 'builds')
    return again

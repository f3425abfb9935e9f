'''The second measurement: outliers are named when they are so again, beside nodes that were in order.

It is a sweep of its own, ``again`` in the folder of the first, with the programs of the first.
'''

from plumbline.sweep import node as job, outliers, state

#: Of each kind of node so many that were in order are measured again: of three, one may be disturbed.
PEERS = 3


def prepare(work):
    '''The second sweep, as far as it has come; :obj:`None` if no node is an outlier.

    :arg work: :class:`state.Sweep`, over.
    '''
    found, folder = outliers.look(work.folder), work.folder / outliers.AGAIN
    if found.odd.is_empty():
        return None
    limits = {'limits': work.plan.get('limits', {}), 'spent': sum(node.seconds for node in work.nodes.values())}
    if folder.exists():
        again = state.load(folder) if (folder / 'sweep.json').exists() else None
        if again and set(found.odd['node']) <= again.nodes.keys():
            again.plan |= limits
            return again
        state.set_aside(folder)     # there are more of them since
    names = [*found.odd['node'].unique(maintain_order=True), *outliers.peers_in_order(found.ranked, found.odd, PEERS)]
    plan = {**work.plan, **limits, 'id': f'{work.name}-again', 'nodes': {name: work.plan['nodes'][name] for name in names}}
    again = state.create(folder, plan, job.script(plan['id'], folder, plan['partition'], plan['command']))
    (folder / 'builds').symlink_to(work.folder / 'builds')
    return again

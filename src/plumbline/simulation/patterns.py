'''What a described network gives each node in a pattern of messages: the program ``patterns``, simulated.'''

from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.model import quantity
from plumbline.simulation import network, program

#: Each message so often: where others begin a little later, that is a part of the time of a single one.
_REPEATS = 4


def built(folder=program.FOLDER):
    '''The simulated program; built anew where something has changed.

    :raises PlumblineError: where SimGrid is not there, or the build fails.
    '''
    return program.build(Path(folder) / 'build').with_name('simulated-patterns')


def bandwidth(simulated, where, variant, nodes, per_node, size, folder, *, rounds, streams, seed):
    '''MB/s of a node, as :func:`plumbline.mpi.patterns.bandwidth` has it: what it sends, or what the target of an incast gets.

    The nodes are the first ones of the network, in their order.

    :arg simulated: what :func:`built` returned.
    :arg where: a :class:`network.Network`; how many processes share a node is as ``per_node`` says.
    :arg size: of a message, bytes.
    :arg folder: for the platform, one folder for each run.
    :raises PlumblineError: where the network has too few nodes, or the run fails.
    '''
    what, words = f'{variant} of {size} bytes on {nodes} simulated nodes', [variant, *map(str, (per_node, size, _REPEATS, rounds, streams, seed))]
    found = program.printed(what, where.changed(processes_per_node=per_node), nodes * per_node, 1.0, Path(folder), [simulated, *words])
    if found['wrong']:
        raise PlumblineError(f"{variant} on {nodes} simulated nodes: {found['wrong']} bytes are not those that were sent: the simulation proves "
                             'nothing')
    return quantity.per_second(len(found['seconds']) * found['bytes'], sum(found['seconds']))


class Expected:
    '''The same of the patterns of one job, each simulated once.

    :arg path: network file.
    :arg most: nodes, at most: more take too long.
    :arg options: those of :func:`bandwidth` that the patterns have in common.
    :raises PlumblineError: where there is no such file, or it says what cannot be.
    '''

    def __init__(self, path, most, **options):
        self.where, self.most, self.options, self._found = network.load(path), most, options, {}

    def of(self, variant, nodes, folder):
        '''(MB/s of a node, None), or (None, why there is no such number).

        '''
        if nodes > self.most:
            return None, f'{nodes} nodes take long to simulate: -S network_patterns.simulated_nodes={nodes} does it'
        if (variant, nodes) not in self._found:
            try:
                rate = bandwidth(built(), self.where, variant, nodes, folder=Path(folder) / f'{variant}-{nodes}', **self.options)
                self._found[variant, nodes] = rate, None
            except PlumblineError as error:
                self._found[variant, nodes] = None, str(error)
        return self._found[variant, nodes]

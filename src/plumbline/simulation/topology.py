'''A network as a graph: nodes on switches, and links between switches.

A message goes the shortest way in links.  Parallel links between two switches are one of their common bandwidth: what
adaptive routing makes of them at best.
'''

import itertools
import math
from dataclasses import dataclass

from plumbline.errors import PlumblineError


@dataclass(frozen=True)
class Graph:
    '''Nodes and switches.

    :attr switch_of: the switch of each node: a list of names.
    :attr links: pairs of switches, each once, with how many links they have in common: (from, to, count).
    '''
    switch_of: list
    links: list

    @property
    def switches(self):
        '''All switches, those with nodes first, in the order of their nodes.'''
        named = [*self.switch_of, *(end for link in self.links for end in link[:2])]
        return list(dict.fromkeys(named))


def nearest_cube(nodes, dimensions):
    '''The torus of so many dimensions, just large enough, that is nearest to a cube, longest side first.

    :returns: list of sides.  Their product is ``nodes`` where that has such factors; else the next number that has.
    '''
    sides = []
    for left in range(dimensions, 1, -1):
        side = math.ceil(round(nodes ** (1 / left), 9))
        divisor = next((d for d in range(side, 2 * side + 1) if nodes % d == 0), side)
        sides.append(divisor)
        nodes = -(-nodes // divisor)
    return sorted([*sides, nodes], reverse=True)


def torus(nodes, dimensions):
    '''A switch for each node; neighbours along each dimension, the last and the first as well.'''
    sides = nearest_cube(nodes, dimensions) if isinstance(dimensions, int) else dimensions
    places = list(itertools.product(*(range(side) for side in reversed(sides))))    # the first dimension fastest
    name = {place: 'switch-' + '-'.join(map(str, reversed(place))) for place in places}
    links = []
    for place in places:
        for axis, side in enumerate(reversed(sides)):
            if side == 1 or (side == 2 and place[axis] == 1):    # two neighbours have one link between them
                continue
            neighbour = (*place[:axis], (place[axis] + 1) % side, *place[axis + 1:])
            links.append((name[place], name[neighbour], 1))
    return Graph([name[place] for place in places][:nodes], links), math.prod(sides)


def fat_tree(nodes, nodes_per_leaf, leaves_per_pod=None, uplinks=None, pod_uplinks=None):
    '''Leaf switches, below one core or below middle switches which are below it.'''
    leaves = -(-nodes // nodes_per_leaf)
    switch_of = [f'leaf-{node // nodes_per_leaf}' for node in range(nodes)]
    uplinks = uplinks or nodes_per_leaf
    if leaves == 1:
        return Graph(switch_of, [])
    if leaves_per_pod is None or leaves <= leaves_per_pod:
        return Graph(switch_of, [(f'leaf-{leaf}', 'core', uplinks) for leaf in range(leaves)])
    pods = -(-leaves // leaves_per_pod)
    links = [(f'leaf-{leaf}', f'pod-{leaf // leaves_per_pod}', uplinks) for leaf in range(leaves)]
    links += [(f'pod-{pod}', 'core', pod_uplinks or uplinks * leaves_per_pod) for pod in range(pods)]
    return Graph(switch_of, links)


def dragonfly(nodes_per_router, routers_per_group, groups, global_links=1):
    '''All routers of a group are linked, and all groups, each by as many routers as there are links.'''
    def router(group, index):
        return f'router-{group}-{index % routers_per_group}'

    switch_of = [router(group, index) for group in range(groups) for index in range(routers_per_group) for _ in range(nodes_per_router)]
    links = [(router(group, a), router(group, b), 1) for group in range(groups) for a, b in itertools.combinations(range(routers_per_group), 2)]
    used = [0] * groups     # links that a group's routers have to other groups, dealt out in turn
    count: dict[tuple[int, int], int] = {}
    for a, b in itertools.combinations(range(groups), 2):
        for _ in range(global_links):
            ends = router(a, used[a]), router(b, used[b])
            count[ends] = count.get(ends, 0) + 1
            used[a] += 1
            used[b] += 1
    return Graph(switch_of, links + [(*ends, number) for ends, number in count.items()])


def of_network(network, nodes):
    '''The graph of a network of which so many nodes are used, filled from the first one on.

    :returns: :class:`Graph`, with that many nodes.
    :raises PlumblineError: where the network has fewer.
    '''
    given = {key: value for key, value in network.topology.items() if key != 'kind'}
    kind = network.topology['kind']
    limit = given.pop('nodes', nodes)
    if kind == 'switch':
        graph = Graph(['switch'] * nodes, [])
    elif kind == 'torus':
        graph, size = torus(nodes, given['dimensions'])
        limit = size if size < nodes else limit
    elif kind == 'fat-tree':
        graph = fat_tree(nodes, **given)
    else:
        graph = dragonfly(**given)
        limit = len(graph.switch_of)
    if limit < nodes:
        raise PlumblineError(f'{network.path}: field topology: the {kind} has {limit} nodes, {nodes} are needed; give fewer '
                             'processes, or a larger network')
    return Graph(graph.switch_of[:nodes], graph.links)

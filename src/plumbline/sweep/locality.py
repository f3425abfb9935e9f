'''What odd nodes share: a rack, or a switch.'''

import re
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.model.grouping import by_key
from plumbline.sweep.slurm import folded
from plumbline.system.commands import node_set

#: So likely may chance put as many of the odd nodes into one of the places, all places together.
CHANCE = 0.01


def by_pattern(nodes, pattern):
    '''Node -> rack, from its name.

    :arg pattern: regular expression; its group ``rack``, or its first group, is the rack: ``r(?P<rack>\\d+)n\\d+``.
    :raises PlumblineError: if it is none, has no group, or fits no node.
    '''
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise PlumblineError(f'racks {pattern!r}: not a regular expression: {error}') from None
    if not compiled.groups:
        raise PlumblineError(f"racks {pattern!r}: has no group: write (?P<rack>...) around the rack's part of a name")
    group = 'rack' if 'rack' in compiled.groupindex else 1
    found = {node: f'rack {match[group]}' for node in nodes if (match := compiled.fullmatch(node)) and match[group]}
    if nodes and not found:
        raise PlumblineError(f'racks {pattern!r}: fits no node: {folded(nodes)}')
    return found


def by_switch(nodes, file):
    '''Node -> leaf switch, from Slurm's ``topology.conf``.

    :raises PlumblineError: if it cannot be read, or names none of the nodes.
    '''
    try:
        text = Path(file).read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, 'strerror', None) or error
        raise PlumblineError(f'{file}: cannot be read as a topology.conf: {why}') from None
    found: dict[str, str] = {}
    for line in text.replace('\\\n', ' ').splitlines():
        fields = {key.lower(): value for key, value in re.findall(r'(\w+)=(\S+)', line.split('#')[0])}
        if fields.keys() >= {'switchname', 'nodes'}:
            try:
                found |= dict.fromkeys(node_set(fields['nodes']), f"switch {fields['switchname']}")
            except PlumblineError as error:
                raise PlumblineError(f'{file}: {error}') from None
    if nodes and not found.keys() & set(nodes):
        raise PlumblineError(f'{file}: names none of the nodes {folded(nodes)} in a line SwitchName=... Nodes=...')
    return {node: place for node, place in found.items() if node in nodes}


def shared(places, odd):
    '''Places whose nodes are odd more often than chance would have it, or all of them.

    Of N nodes K are odd; the probability that a place of n nodes holds k of them or more is hypergeometric.

    :arg places: node -> place, for all nodes that were measured.
    :arg odd: some of them.
    :returns: list of (place, its odd nodes, how many nodes it has), those that chance explains least first.
    '''
    from scipy import stats  # here: importing it takes long
    members = by_key((place, node) for node, place in places.items())
    odd = set(odd) & places.keys()
    found = []
    for place, nodes in members.items():
        here = sorted(odd.intersection(nodes))
        chance = stats.hypergeom.sf(len(here) - 1, len(places), len(odd), len(nodes))
        if len(here) >= 2 and len(members) > 1 and (chance * len(members) <= CHANCE or len(here) == len(nodes)):
            found.append((chance, place, here, len(nodes)))
    return [(place, here, size) for _, place, here, size in sorted(found)]

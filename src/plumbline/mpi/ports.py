'''What the ports of the nodes counted while a program ran: errors of links, and what tells of congestion.  Pure functions on the
records ``ports`` of the program ``patterns``.
'''

from collections import Counter
from dataclasses import dataclass

from ClusterShell.NodeSet import NodeSet

from plumbline.model import quantity

#: Counters of InfiniBand ports, and of network devices (``rx_``, ``tx_``, ``carrier_``), that only a fault of a link makes grow.
ERRORS = ('symbol_error', 'link_error_recovery', 'link_downed', 'port_rcv_errors', 'port_rcv_remote_physical_errors',
          'local_link_integrity_errors', 'excessive_buffer_overrun_errors', 'rx_errors', 'tx_errors', 'carrier_down_count', 'gone')

#: ... and those that congestion, or a full buffer, does.
WAITS = ('port_xmit_wait', 'port_xmit_discards', 'rx_dropped', 'tx_dropped', 'rx_missed_errors')

#: What the name of a counter ends with that cannot grow any more.
FULL = '_full'

#: Wrong bits of those received that a link within its specification has at most (InfiniBand Architecture, volume 2), and how often
#: that is allowed here: symbol errors come in bursts.
_BIT_ERRORS, _BURSTS = 1e-12, 10

#: Bits of a unit of port_rcv_data.
_WORD = 32


@dataclass(frozen=True)
class Counted:
    '''Sums over the processes of a test.

    :attr ports: how many ports could be read.
    :attr unread: nodes that have none.
    :attr errors: (node, port, counter) -> how often, beyond what a link within its specification has; the most first.
    :attr within: the same of symbol errors within it.
    :attr waits: the same of :data:`WAITS`.
    '''
    ports: int
    unread: list
    errors: dict
    within: dict
    waits: dict


def counted(found):
    '''What was counted, from the records ``ports``, one for each process of the test.'''
    ports, unread = set(), []
    sums: Counter[tuple[str, str, str]] = Counter()
    for record in found:
        for node in record['nodes']:
            ports |= {(node['host'], port) for port in node['ports']}
            unread += [] if node['ports'] else [node['host']]
            sums.update({(node['host'], port, name): grown for port, counters in node['ports'].items() for name, grown in counters.items()})
    errors, waits = ({key: grown for key, grown in sums.most_common() if key[2].removesuffix(FULL) in names} for names in (ERRORS, WAITS))
    within = {key: grown for key, grown in errors.items() if grown <= _allowed(key, sums)}
    beyond = {key: grown for key, grown in errors.items() if key not in within}
    return Counted(len(ports), sorted(set(unread)), beyond, within, waits)


def _allowed(key, sums):
    '''How often a counter may grow on a healthy link.'''
    node, port, name = key
    return max(1, _BURSTS * _BIT_ERRORS * _WORD * sums[node, port, 'port_rcv_data']) if name == 'symbol_error' else 0


def told(counts, most=5):
    '''``symbol_error 12 on n3 mlx5_0/1, ...``, the most first.'''
    return ', '.join(quantity.at_most([f'{name} {grown} on {node} {port}' for (node, port, name), grown in counts.items()], most))


def notes(found):
    '''Lines: what does not fail.'''
    if any(name.endswith(FULL) for _, _, name in found.errors):
        yield 'counters that are full count no more: clear them (perfquery -R), and measure again'
    if found.within:
        yield f'symbol errors within what a link is specified for: {told(found.within)}'
    if found.waits:
        yield f'ports waited, or dropped packets: {told(found.waits)}'
    if found.ports and found.unread:
        yield f'no port whose counters can be read: {NodeSet.fromlist(found.unread)}'

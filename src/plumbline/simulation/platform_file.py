'''SimGrid's platform file, host file and settings for a network.

A node's link carries the latency, half at either end, so that the time from node to node does not depend on how a topology
is drawn; links between switches carry what a further hop adds.  Both directions are links of their own.
'''

import xml.etree.ElementTree as tree

from plumbline.simulation import topology


def _routes(zone, a, b, bandwidth, latency):
    for source, destination in ((a, b), (b, a)):
        name = f'{source}_{destination}'
        tree.SubElement(zone, 'link', id=name, bandwidth=f'{bandwidth:.17g}MBps', latency=f'{latency:.17g}us')
        route = tree.SubElement(zone, 'route', src=source, dst=destination, symmetrical='NO')
        tree.SubElement(route, 'link_ctn', id=name)


def _latency_of_nodes(network):
    '''Latency of a node's link, us.  In a torus neighbours are on two switches: that hop is part of the network's latency.'''
    first = network.hop_latency if network.topology['kind'] == 'torus' else 0
    return max(network.latency - first, 0) / 2


def platform_xml(network, nodes, compute_rate):
    '''The platform file.

    :arg compute_rate: Mflop/s of a process.
    '''
    graph = topology.of_network(network, nodes)
    root = tree.Element('platform', version='4.1')
    zone = tree.SubElement(root, 'zone', id='network', routing='DijkstraCache')
    for node in range(nodes):
        tree.SubElement(zone, 'host', id=f'node-{node}', speed=f'{compute_rate:.17g}Mf', core=str(network.processes_per_node))
    for switch in graph.switches:
        tree.SubElement(zone, 'router', id=switch)
    for node, switch in enumerate(graph.switch_of):
        _routes(zone, f'node-{node}', switch, network.bandwidth, _latency_of_nodes(network))
    for a, b, count in graph.links:
        _routes(zone, a, b, network.link_bandwidth * count, network.hop_latency)
    zone[:] = sorted(zone, key=lambda child: ('host', 'router', 'link', 'route').index(child.tag))       # so SimGrid's format wants them
    tree.indent(root)
    return ('<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n' + tree.tostring(root, encoding='unicode') + '\n')


def host_file(network, processes):
    '''The host file: nodes are filled one after the other.'''
    return ''.join(f'node-{process // network.processes_per_node}\n' for process in range(processes))


def settings(network):
    '''Options of SimGrid under which time is what the network file says, and nothing else.

    No factors on latency and bandwidth and no windows of a transport protocol (those of SimGrid's own models are measured
    on Ethernet); computation is not timed; a message leaves when it is sent, whether its receiver waits for it or not.
    '''
    overhead = f'0:{network.overhead * 1e-6:.17g}:0'
    latency, bandwidth = network.memory or (0, 1e6)
    values = {
        'network/model': 'CM02', 'network/latency-factor': 1, 'network/bandwidth-factor': 1, 'network/weight-S': 0,
        'network/TCP-gamma': 0, 'network/crosstraffic': 0,
        'network/loopback-lat': f'{latency * 1e-6:.17g}', 'network/loopback-bw': f'{bandwidth * 1e6:.17g}',
        'smpi/simulate-computation': 'no', 'smpi/wtime': 0,
        'smpi/os': overhead, 'smpi/ois': overhead, 'smpi/or': overhead,
        'smpi/async-small-thresh': 10**9, 'smpi/send-is-detached-thresh': 10**9,
        'contexts/stack-size': 1024,     # KiB of each process
        'surf/precision': 1e-12,
    }
    return [f'--cfg={name}:{value}' for name, value in values.items()]

'''The network file: what of a site's network and nodes a simulation needs (``schemas/network.json``).

::

  schema: 1
  source: where the values are from
  topology: {kind: torus, dimensions: 3}    # or switch, fat-tree, dragonfly
  latency: 1.0              # us, process to process on neighbouring nodes, without the overhead
  hop_latency: 0.1          # us for each further link between switches; default 0
  bandwidth: 350            # MB/s of a node's link, each way
  link_bandwidth: 350       # MB/s of a link between switches; default: bandwidth
  overhead: 0.5             # us of the processor for each message, at its sender and at its receiver; default 0
  copy_rate: 537            # MB/s at which buffers of row segments (sp) are filled and emptied; default: that takes no time
  processes_per_node: 1     # default 1
  memory: {latency: 0.5, bandwidth: 5000}   # within a node; needed where a node has several processes
  compute_rate: 39          # Mflop/s of a process; or {cg: 39, sp: 60}
'''

import math
from dataclasses import dataclass, replace

from plumbline import schemas
from plumbline.errors import PlumblineError


@dataclass(frozen=True)
class Network:
    '''A network file, with what it does not say: its keys, in its units; ``memory`` as (us, MB/s), ``copy_rate`` infinite for none.

    :attr delay: us that an application's routines wait before each message but those of scalar sums; never of the file.
    :attr sum_delay: us that they wait before each scalar sum.
    '''
    path: str
    topology: dict
    latency: float
    hop_latency: float
    bandwidth: float
    link_bandwidth: float
    overhead: float
    processes_per_node: int
    memory: tuple | None
    compute_rate: float | dict
    copy_rate: float = math.inf
    delay: float = 0
    sum_delay: float = 0

    def rate_of(self, application):
        '''Mflop/s of a process in an application.

        :raises PlumblineError: where the file has rates, but not of this one.
        '''
        if not isinstance(self.compute_rate, dict):
            return float(self.compute_rate)
        if application not in self.compute_rate:
            raise PlumblineError(f'{self.path}: field compute_rate: has no {application}; there are '
                                 f"{', '.join(sorted(self.compute_rate))}: add its Mflop/s")
        return float(self.compute_rate[application])

    def changed(self, **values):
        '''The same network but for some attributes.

        :raises PlumblineError: for a negative time.
        '''
        for name in ('latency', 'hop_latency', 'overhead', 'delay', 'sum_delay'):
            if values.get(name, 0) < 0:
                raise PlumblineError(f'{name.replace("_", " ")} {values[name]:g} us: a time cannot be negative; give 0 or more')
        return replace(self, **values)


def load(path):
    '''Read a network file.

    :returns: a :class:`Network`.
    :raises PlumblineError: if it cannot be read or says what cannot be.
    '''
    given = schemas.read_yaml(path, 'network', 'give a network file, such as those in config/networks')
    per_node = given.get('processes_per_node', 1)
    memory = given.get('memory')
    if per_node > 1 and memory is None:
        raise PlumblineError(f'{path}: field memory: {per_node} processes share a node, and nothing is said of messages '
                             'within it; add memory: {latency: us, bandwidth: MB/s}')
    return Network(
        path=str(path), topology=given['topology'], latency=float(given['latency']),
        hop_latency=float(given.get('hop_latency', 0)), bandwidth=float(given['bandwidth']),
        link_bandwidth=float(given.get('link_bandwidth', given['bandwidth'])), overhead=float(given.get('overhead', 0)),
        processes_per_node=per_node, memory=(float(memory['latency']), float(memory['bandwidth'])) if memory else None,
        compute_rate=given['compute_rate'], copy_rate=float(given.get('copy_rate', math.inf)))

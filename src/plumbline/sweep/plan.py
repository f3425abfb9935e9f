'''What a sweep is to do: the partition of the site file, its nodes, ReFrame's command line.'''

import datetime
import os
import re
import secrets
import subprocess
from dataclasses import dataclass

from plumbline.errors import PlumblineError
from plumbline.sweep import node as job
from plumbline.sweep.slurm import Slurm, nodes_named

#: ReFrame may need so long to list the checks that a sweep would run, seconds.
_LISTING = 300


@dataclass(frozen=True)
class Partition:
    '''
    :attr name: ``SYSTEM:PARTITION``.
    :attr access: the scheduler's options for its jobs.
    :attr racks: pattern of its nodes' names (:func:`places.by_pattern`), or None.
    '''
    name: str
    access: list
    racks: str | None


def seconds(text):
    '''A duration such as ``1h30m``, ``90s`` or ``0.5s``.

    :raises PlumblineError: if it is none.
    '''
    parts = re.findall(r'([0-9.]+)([dhms])', text)
    try:
        if ''.join(map(''.join, parts)) == text and text:
            return sum(float(number) * {'d': 86400, 'h': 3600, 'm': 60, 's': 1}[unit] for number, unit in parts)
    except ValueError:      # 1.2.3s
        pass
    raise PlumblineError(f'{text!r} is not a duration: write 30m, 1h30m or 90s')


def partition(configurations, name):
    '''The partition ``SYSTEM:PARTITION`` of ReFrame's configuration files.

    :raises PlumblineError: if ReFrame cannot read them, if there is none, or if its jobs are not Slurm's.
    '''
    from reframe.core.config import load_config
    from reframe.core.exceptions import ReframeError
    os.environ['RFM_SYSTEM'] = name     # this host need not be one of the system's
    try:
        systems = load_config(*map(str, configurations))['systems']
    except (ReframeError, OSError) as error:
        raise PlumblineError(f"{', '.join(map(str, configurations))}: {' '.join(str(error).split())}") from None
    found = {f"{system['name']}:{part['name']}": part for system in systems for part in system['partitions']
             if system['name'] != 'generic'}
    if name not in found:
        raise PlumblineError(f"no partition {name} in the configuration (it has {', '.join(found) or 'none'})")
    scheduler = found[name]['scheduler']
    if scheduler not in ('slurm', 'squeue'):
        raise PlumblineError(f'partition {name} has the scheduler {scheduler}: a sweep needs Slurm (slurm or squeue)')
    return Partition(name, found[name].get('access', []), found[name].get('extras', {}).get('racks'))


def refuse_nothing(command, name):
    '''Ask ReFrame, as on a node, which checks a command line selects; a thousand jobs without a test are not a sweep.

    :returns: how many.
    :raises PlumblineError: if there are none, or if ReFrame does not accept it.
    '''
    try:
        done = subprocess.run([*command, '-l'], capture_output=True, text=True, errors='replace', timeout=_LISTING,
                              stdin=subprocess.DEVNULL, env={**os.environ, 'PLUMBLINE_ON_NODE': name})
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlumblineError(f'reframe -l: {error}') from None
    found = re.search(r'^Found (\d+) check', done.stdout, re.M)
    if done.returncode or not found:
        said = [line for line in (done.stdout + done.stderr).splitlines() if re.search('error|plumbline: ', line, re.I)]
        why = said[-1].strip() if said else f'exit code {done.returncode}'
        raise PlumblineError(f'ReFrame refuses the selection: {why}')
    if found[1] == '0':
        raise PlumblineError(f'no check of this selection runs in partition {name}: see what reframe -l lists')
    return int(found[1])


def chosen(nodes, wanted):
    '''The nodes of a sweep, those first that can begin at once.

    :arg nodes: of :meth:`slurm.Slurm.nodes`.
    :arg wanted: ``all``, ``idle`` or names in Slurm's short form.
    :returns: list of :class:`slurm.Node`.
    :raises PlumblineError: if a name is not in the partition, or none is left.
    '''
    if wanted == 'idle':
        found = [node for node in nodes.values() if node.idle]
    elif wanted == 'all':
        found = list(nodes.values())
    else:
        names = nodes_named(wanted)
        unknown = [name for name in names if name not in nodes]
        if unknown:
            raise PlumblineError(f"{', '.join(unknown)}: not in the partition, or excluded by its access options")
        found = [nodes[name] for name in names]
    if not found:
        states = sorted({node.state for node in nodes.values()})
        raise PlumblineError(f"no node of the partition is {wanted} (they are {', '.join(states)})")
    return sorted(found, key=lambda node: not node.idle)


def make(configurations, name, wanted, options):
    '''The plan of a new sweep (``sweep.json``), and what was left out: (plan, nodes, all nodes).

    :arg options: ReFrame's, which choose the checks.
    '''
    part = partition(configurations, name)
    command = job.reframe(name, configurations, options)
    nodes = Slurm(part.access).nodes()
    found = chosen(nodes, wanted)
    checks = refuse_nothing(command, name)
    begun = datetime.datetime.now(datetime.timezone.utc)
    plan = {'schema': 1, 'id': f'{begun:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}', 'partition': name,
            'access': part.access, 'racks': part.racks, 'command': command, 'checks': checks,
            'nodes': {node.name: node.hardware for node in found}}
    return plan, found, nodes

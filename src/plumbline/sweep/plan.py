'''What a sweep is to do: the partition of the site file, its nodes, ReFrame's command line.'''

import os
import re
import secrets
import subprocess
import time
from dataclasses import asdict, dataclass

from plumbline.errors import PlumblineError
from plumbline.model import stamp
from plumbline.sweep import node as job
from plumbline.sweep.selection import chosen
from plumbline.sweep.slurm import Slurm

#: ReFrame may need so long to list the checks that a sweep would run, seconds.
_LISTING = 300

#: A duration is less, seconds: no computer lasts as long.
_LONGEST = 1e9


@dataclass(frozen=True)
class Partition:
    '''
    :attr name: ``SYSTEM:PARTITION``.
    :attr access: the scheduler's options for its jobs.
    :attr racks: pattern of its nodes' names (:func:`.locality.by_pattern`), or None.
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
        total = sum(float(number) * {'d': 86400, 'h': 3600, 'm': 60, 's': 1}[unit] for number, unit in parts)
        if ''.join(map(''.join, parts)) == text and text and total < _LONGEST:
            return total
    except ValueError:      # 1.2.3s
        pass
    raise PlumblineError(f'{text!r} is not a duration: write 30m, 1h30m or 90s')


#: How a job on one node is asked for.
_BY_HAND = {**dict.fromkeys(('pbs', 'pbspro'), 'qsub -l select=1:host=NODE'), 'torque': 'qsub -l nodes=NODE',
            'flux': 'flux batch -N1 --requires=host:NODE'}


def _instead(scheduler):
    '''What to do with a scheduler that no sweep can ask, in words.'''
    if scheduler not in _BY_HAND:
        return ''
    return (f", and ReFrame's --distribute lists no nodes of {scheduler} either: submit a job for each node by hand ({_BY_HAND[scheduler]}), "
            'in which ReFrame runs as docs/howto/nodes.rst shows')


def partition(configurations, name):
    '''The partition ``SYSTEM:PARTITION`` of ReFrame's configuration files.

    :raises PlumblineError: if ReFrame cannot read them, if there is none, or if its jobs are not Slurm's.
    '''
    from reframe.core.config import load_config
    from reframe.core.exceptions import ReframeError
    try:
        systems = load_config(*map(str, configurations))['systems']
    except (ReframeError, OSError) as error:
        raise PlumblineError(f"{', '.join(map(str, configurations))}: {' '.join(str(error).split())}") from None
    found = {f"{system['name']}:{part['name']}": part for system in systems for part in system['partitions'] if system['name'] != 'generic'}
    if name not in found:
        raise PlumblineError(f"no partition {name} in the configuration (it has {', '.join(found) or 'none'})")
    scheduler = found[name]['scheduler']
    if scheduler not in ('slurm', 'squeue'):
        raise PlumblineError(f'partition {name} has the scheduler {scheduler}: a sweep needs Slurm (slurm or squeue){_instead(scheduler)}')
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


def make(configurations, name, selection, limits, minutes, options, history):
    '''The plan of a new sweep (``sweep.json``), and what was left out: (plan, nodes, all nodes).

    :arg selection: :class:`selection.Selection`; :arg limits: :class:`selection.Limits`.
    :arg options: ReFrame's, which choose the checks.
    :arg history: of :func:`selection.chosen`.
    '''
    selection = selection.checked()
    part = partition(configurations, name)
    command = job.reframe(name, configurations, options)
    slurm = Slurm(part.access)
    reservation = usable(slurm, limits, minutes)
    nodes = slurm.nodes()
    found = chosen(nodes, selection, reservation, history)
    checks = refuse_nothing(command, name)
    plan = {'schema': 1, 'id': f'{stamp.of(time.time())}-{secrets.token_hex(2)}', 'partition': name,
            'access': part.access, 'racks': part.racks, 'command': command, 'checks': checks,
            'selection': asdict(selection), 'limits': asdict(limits), 'nodes': {node.name: node.hardware for node in found}}
    return plan, found, nodes


def usable(slurm, limits, minutes):
    '''The :class:`slurm.Reservation` of these limits, or None if they have none.

    :raises PlumblineError: if the limits leave no job of so many minutes.
    '''
    if limits.node_hours and 60 * limits.node_hours < minutes:
        raise PlumblineError(f'--node-hours {limits.node_hours:g} are less than one job may take ({minutes} min): give jobs less with --time-limit')
    if limits.scavenge:
        slurm.refuse_hidden_jobs()
    return slurm.usable_reservation(limits.reservation, minutes) if limits.reservation else None

'''``plumbline detect``: the site file of the system whose login node this is.

Every source of knowledge is a module here, and none of them changes or submits anything: the schedulers (:mod:`slurm`, :mod:`pbs`, :mod:`flux`),
:mod:`modules`, :mod:`mpis`, :mod:`file_systems`.  :mod:`node` runs in the topology job.
'''

import datetime
import os
import re
import shutil
import socket
import string
from pathlib import Path

from ClusterShell.NodeSet import NodeSetException

from plumbline.detect import file_systems, flux, modules, mpis, pbs, slurm
from plumbline.detect.site_file import Entry, Found, Partition, is_name, name_of, remark, render
from plumbline.errors import PlumblineError, saying_why
from plumbline.likwid import pin
from plumbline.model.quantity import several
from plumbline.mpi import environments
from plumbline.settings import HOME
from plumbline.system import toolchains
from plumbline.system.commands import NoAnswer, ask

#: In this order: Slurm has commands of PBS's names, and Flux may run within a job of another scheduler.
SCHEDULERS = {'slurm': slurm, 'pbs': pbs, 'flux': flux}
TITLES = {'slurm': 'Slurm', 'pbs': 'PBS', 'flux': 'Flux'}

#: Schedulers that ReFrame knows and this does not.
_OTHERS = {'bsub': 'LSF', 'oarsub': 'OAR', 'qconf': 'Grid Engine'}


_NONE_FOUND = 'DECIDE: no scheduler was found (Slurm, PBS, Flux): the checks run on the host that ReFrame is started on'
_NOT_KNOWN = 'DECIDE: {} is here, which is not known to `plumbline detect`: write its partitions by hand'
_HOSTS = 'DECIDE: the hosts that ReFrame is started on, as patterns; this one is {}'


class _Expression:
    '''What stands in the site file as it is.'''

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def _local(remarks):
    entries = [Entry('descr', 'this machine'), Entry('scheduler', 'local'), Entry('launcher', 'local'), Entry('processor', _Expression('cpuinfo()'))]
    return Found(None, 'no scheduler', [Partition('default', entries)], remarks=remarks, local=True)


def scheduled(name=None):
    '''What the scheduler says.

    :arg name: a key of :data:`SCHEDULERS`, ``'local'`` for none; None for the first whose commands are there.
    :raises PlumblineError: if it does not answer.
    '''
    present = [known for known, module in SCHEDULERS.items() if module.present()]
    if name is None and not present:
        others = [title for command, title in _OTHERS.items() if shutil.which(command)]
        return _local([_NOT_KNOWN.format(', '.join(others)) if others else _NONE_FOUND])
    if name == 'local':
        return _local([])
    chosen = name or present[0]
    if chosen not in SCHEDULERS:
        raise PlumblineError(f"{chosen!r} is no scheduler that is known here: {', '.join(SCHEDULERS)}, local")
    if chosen not in present:
        raise PlumblineError(f'{TITLES[chosen]} was asked for, but its commands are not in PATH')
    try:
        found = SCHEDULERS[chosen].detect()
    except NoAnswer as error:
        raise PlumblineError(f'{TITLES[chosen]} is here but does not answer: {error}; try again once it does, or leave '
                             'it out with --scheduler local') from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, NodeSetException) as error:
        raise PlumblineError(f'{TITLES[chosen]} answers in a form that is not known here ({error!r}): leave it out with --scheduler local, and '
                             'write its partitions by hand') from None
    if not found.partitions:
        why = '; '.join(found.remarks) or 'it names none'
        raise PlumblineError(f'{TITLES[chosen]} has no partition to run on: {why}')
    found.remarks += [f'DECIDE: {TITLES[other]} is here as well: `plumbline detect --scheduler {other}` would ask it'
                      for other in present if other != chosen and name is None]
    return found


def _compilers():
    '''Of each compiler in PATH that is known (``data/toolchains.yaml``) an environment and a remark that says what it is.'''
    for environment in toolchains.found():
        try:
            said = ask([environment['cc'], '--version']).strip().splitlines()[:1]
            yield environment, f"{shutil.which(environment['cc'])}: {' '.join(said)}"
        except NoAnswer as error:
            yield environment, f'DECIDE: leave it out? {error}'


def _described(environment, said, pmi):
    '''The lines of an environment.'''
    launch = ''
    if 'mpi' in environment['features']:
        environment, launch = mpis.with_launcher(environment, pmi)
    remarks = [remark(text) for text in (said, launch) if text]
    return remarks + [Entry(key, value) for key, value in environment.items() if value not in ('', [], {})]


def _environments(pmi):
    '''(:class:`modules.Modules`, environments as lists of entries, their names).'''
    in_path = list(_compilers())
    found = modules.detect([environment for environment, _ in in_path])
    known = {environment['name']: (environment, said) for environment, said in found.environments}
    for environment, said in in_path + [(one, '') for one in environments.found([one for one, _ in in_path])]:
        other, before = known.setdefault(environment['name'], (environment, said))
        if other is not environment and said:
            known[other['name']] = (other, f'{before}; skipped, because it is not a module: {said}'.lstrip('; '))
    return found, [_described(environment, said, pmi) for environment, said in known.values()], list(known)


def _features(local):
    path, broken = pin.found()
    if broken:
        return [remark(f'{broken}: not used')]
    asked = '' if local else f"likwid-pin is at {path} here; is it on the nodes? Add 'counters' if jobs may read them"
    return [Entry('features', ['likwid'], asked, decide=not local)] if path else []


def _finished(partition, names, local, listed, remarks):
    '''The entries of a partition with all that is the same for each.'''
    extras = next((entry for entry in partition.entries if entry.key == 'extras'), Entry('extras', {}))
    rest = [entry for entry in partition.entries if entry is not extras]
    if listed:
        extras = Entry('extras', {**extras.value, 'file_systems': listed}, extras.remark)
    files = [remark(text) for text in remarks]
    return [Entry('name', partition.name), *rest, Entry('environs', names), *_features(local), *files, *([extras] if extras.value else [])]


def site_file(name=None, scheduler=None):
    '''(name of the system, text of its site file).

    :arg name: ReFrame's name of the system; None for that which the scheduler, or else the host, has.
    :arg scheduler: see :func:`scheduled`.
    :raises PlumblineError: if ReFrame does not take the name, or the scheduler does not answer.
    '''
    if name is not None and not is_name(name):
        raise PlumblineError(f'{name!r} is no name for ReFrame: letters, digits, _ and -, no digit first; for example {name_of(name)}')
    found = scheduled(scheduler)
    host = socket.gethostname().partition('.')[0]
    name = name or name_of(found.system or host)
    described, environments, names = _environments(found.pmi)
    stem = host.rstrip(string.digits)
    alike = re.escape(stem) + '[0-9]+' if stem and stem != host else re.escape(host)
    system = [Entry('name', name), Entry('descr', found.title), Entry('hostnames', [alike], _HOSTS.format(host))]
    if described.kind:
        system.append(Entry('modules_system', described.kind))
    system += [remark(text) for text in described.remarks + found.remarks]
    listed, remarks = file_systems.detect()
    partitions = [_finished(partition, names, found.local, listed, remarks) for partition in found.partitions]
    title = f"{name}: {found.title}, {several(len(partitions), 'partition')}"
    return name, render(title=title, host=host, date=datetime.date.today().isoformat(), local=found.local,
                          system=system, partitions=partitions, environments=environments)


def refuse_existing(output):
    ''':raises PlumblineError: if there is such a file: it may have been decided on.'''
    if output is not None and os.path.lexists(output):
        raise PlumblineError(f'{output} is there already and stays as it is; name another file with --output')


def write(text, output):
    '''Write a site file; an existing one stays.

    :raises PlumblineError: if there is a file, or it cannot be written.
    '''
    refuse_existing(output)
    with saying_why(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        with open(output, 'x', encoding='utf-8') as file:
            file.write(text)


def next_steps(output, text):
    '''What a person does with the file, a line each.'''
    yield f"{output}: written; {several(text.count('# DECIDE: '), 'line')} to decide on (DECIDE)"
    if 'cpuinfo()' not in text:
        yield f'then: reframe -C {output} -c checks -R -r -t topology     # a job on each partition looks at its node'
    yield f'then: reframe -C {output} -c checks -R -r --mode daily'


def default_output(name):
    '''Where the site file of a system belongs.'''
    return Path(os.path.relpath(HOME / 'config/sites' / f'{name}.py'))

'''What differs between MPIs, read from ``data/mpi.yaml``.'''

import functools
import itertools
import re
import signal
from dataclasses import dataclass, field

from plumbline.errors import PlumblineError
from plumbline.schemas.parsing import shipped


@dataclass(frozen=True)
class Settings:
    '''Options of the launcher and variables of the environment that together have one effect.'''
    options: list = field(default_factory=list)
    env: dict = field(default_factory=dict)

    def filled(self, **values):
        '''The same with ``{cpus}``, ``{ranks}``, ``{per_node}`` or ``{value}`` replaced.'''
        return Settings([word.format(**values) for word in self.options], {name: text.format(**values) for name, text in self.env.items()})

    def __add__(self, other):
        return Settings(self.options + other.options, self.env | other.env)


@dataclass(frozen=True)
class Family:
    '''One MPI and its relatives with the same launcher: an entry of ``data/mpi.yaml``, which says what the attributes are.  ``name`` is a feature of
    its environments.'''
    name: str
    title: str
    library: str
    header: str
    wraps: dict
    as_root: dict
    start: Settings
    nodes: Settings
    bind: Settings
    rank_file: dict | None
    unbound: Settings
    transports: dict
    eager: Settings
    parameter: str
    single_copy: dict | str
    shared: Settings | str
    died: str

    def bind_commands(self, cpus, nodes=1):
        '''Shell commands that must run before the launcher, in its folder.'''
        lines = ' '.join(f'"{line}"' for line in self.rank_lines(cpus, nodes))
        return [f"printf '%s\\n' {lines} > {self.rank_file['name']}"] if self.rank_file else []

    def rank_lines(self, cpus, nodes=1):
        '''The lines of the file of ranks; none where it needs none.'''
        if not self.rank_file:
            return []
        host = self.rank_file['alone' if nodes == 1 else 'several']
        return [self.rank_file['line'].format(rank=rank, host=host.format(node=node), cpu=cpu)
                for rank, (node, cpu) in enumerate(itertools.product(range(nodes), cpus))]

    def deaths(self, said, processes):
        '''Who died, from what the launcher said.

        :arg said: standard error and output of the job.
        :arg processes: of the machine's record: a list of host and process number, by rank; None where it was not written yet.
        :returns: list of (rank or None, signal number), those that the launcher itself has killed left out where there are others.
        '''
        rank_of = {process['pid']: rank for rank, process in enumerate(processes or ())}
        found = []
        for match in re.finditer(self.died, said):
            groups = match.groupdict()
            rank = groups.get('rank')
            rank = int(rank) if rank else rank_of.get(int(groups.get('pid') or 0))
            found.append((rank, int(groups['signal'])))
        return [death for death in found if death[1] != signal.SIGKILL] or found


def name_of(number):
    '''``SIGSEGV`` for 11.'''
    try:
        return signal.Signals(number).name
    except ValueError:
        return f'signal {number}'


def obituary(deaths):
    '''One line on who died of what; None where nobody did.'''
    if not deaths:
        return None
    ranks = sorted({rank for rank, _ in deaths if rank is not None})
    causes = ', '.join(sorted({f'{name_of(number)} (signal {number})' for _, number in deaths}))
    who = 'a rank' if not ranks else f'rank {ranks[0]}' if len(ranks) == 1 else f"one of the ranks {', '.join(map(str, ranks))}"
    return f'{who} died of {causes}'


def _family(name, known):
    eager, single, shared = dict(known['eager']), known['single_copy'], known['shared']
    if not isinstance(single, str):
        single = {when: Settings(**single[when]) for when in ('never', 'from')}
    return Family(name, known['title'], known['library'], known['header'], known['wraps'], known.get('as_root', {}), Settings(known['start']),
                  Settings(**known['nodes']), Settings(**known['bind']), known.get('rank_file'), Settings(**known['unbound']),
                  {transport: Settings(**how) for transport, how in known['transports'].items()},
                  parameter=eager.pop('parameter'), eager=Settings(**eager),
                  single_copy=single, shared=shared if isinstance(shared, str) else Settings(**shared), died=known['died'])


@functools.cache
def families():
    '''Name -> :class:`Family`.'''
    return {name: _family(name, known) for name, known in shipped('mpi').items()}


def _own(name, own, environment):
    '''A relative of a family, as the extra ``mpi`` of its environment says: the keys of ``data/mpi.yaml`` that differ; of
    ``transports`` those that do, and None for one that it has not.'''
    known = shipped('mpi')[name]
    unknown = sorted(set(own) - set(known) - {'rank_file', 'as_root'}) if isinstance(own, dict) else [own]
    if unknown:
        raise PlumblineError(f"the extra 'mpi' of the environment {environment} has {unknown[0]!r}: it says what differs from {name}, by the "
                             f"keys of src/plumbline/data/mpi.yaml ({', '.join(known)})")
    try:
        transports = {**known['transports'], **own.get('transports', {})}
        return _family(name, {**known, **own, 'transports': {key: how for key, how in transports.items() if how is not None}})
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise PlumblineError(f"the extra 'mpi' of the environment {environment} cannot be read ({error}): write it like an entry of "
                             'src/plumbline/data/mpi.yaml') from None


def family_of(environment):
    '''The family of a ReFrame environment, named by a feature of it; a relative of one says in the extra ``mpi`` what differs.

    :raises PlumblineError: if it names none, or several, or if the extra is none.
    '''
    named = [family for name, family in families().items() if name in environment.features]
    if len(named) != 1:
        raise PlumblineError(f"the environment {environment.name} has the feature 'mpi': it must also have exactly one of {', '.join(families())}")
    own = environment.extras.get('mpi')
    return named[0] if own is None else _own(named[0].name, own, environment.name)

'''Which nodes a sweep is of, and within which limits: what the command's options say, kept in the plan.'''

import random
import secrets
from dataclasses import dataclass

from plumbline.errors import PlumblineError
from plumbline.sweep.slurm import satisfies
from plumbline.system.commands import node_set


@dataclass(frozen=True)
class Selection:
    '''
    :attr nodes: ``all``, ``idle`` or names in Slurm's short form.
    :attr exclude: names in Slurm's short form; :attr feature: Slurm's expression of features.
    :attr random: so many of them, drawn with :attr seed; :attr due: so many that are due (:meth:`plumbline.nodes.history.Node.due`).
    '''
    nodes: str = 'all'
    exclude: str | None = None
    feature: str | None = None
    random: int | None = None
    seed: int | None = None
    due: int | None = None

    def checked(self):
        '''The same with a seed where one is needed.

        :raises PlumblineError: if the options contradict each other.
        '''
        if self.random and self.due:
            raise PlumblineError('--random and --due choose nodes in two ways: give one of them')
        if self.seed is not None and not self.random:
            raise PlumblineError('--seed is that of --random: give both')
        if self.random and self.seed is None:
            return Selection(**{**self.__dict__, 'seed': secrets.randbelow(2**32)})
        return self


@dataclass(frozen=True)
class Limits:
    '''
    :attr reservation: its name.
    :attr node_hours: of all jobs of the sweep together.
    :attr scavenge: only idle nodes, and jobs that have not started are given back where others wait; :attr give_running: those that run, too.
    '''
    reservation: str | None = None
    node_hours: float | None = None
    scavenge: bool = False
    give_running: bool = False

    @property
    def options(self):
        '''Those of sbatch.'''
        return [*([f'--reservation={self.reservation}'] if self.reservation else []), *([f'--nice={_NICE}'] if self.scavenge else [])]


#: After all others' jobs.
_NICE = 1_000_000


def chosen(nodes, selection, reservation, history):
    '''The nodes of a sweep, those first that can begin at once, or that are due.

    :arg nodes: of :meth:`slurm.Slurm.nodes`.
    :arg selection: :class:`Selection`, checked.
    :arg reservation: :class:`slurm.Reservation`, or None.
    :arg history: function without arguments: :class:`plumbline.nodes.history.History`.
    :returns: list of :class:`slurm.Node`.
    :raises PlumblineError: if a name is not in the partition, or no node is left.
    '''
    def is_idle(node):
        return node.idle or (reservation is not None and node.is_reserved)

    for names in filter(lambda names: names not in (None, 'all', 'idle'), (selection.nodes, selection.exclude)):
        unknown = [name for name in node_set(names) if name not in nodes]
        if unknown:
            raise PlumblineError(f"{', '.join(unknown)}: not in the partition, or excluded by its access options")
    left, told = list(nodes.values()), [f'{len(nodes)} in the partition']

    def keep(what, wanted):
        nonlocal left
        left = [node for node in left if wanted(node)]
        told.append(f'{len(left)} of them {what}')

    if reservation:
        keep(f'in reservation {reservation.name}', lambda node: node.name in reservation.nodes)
    if selection.nodes not in ('all', 'idle'):
        named = {name: place for place, name in enumerate(node_set(selection.nodes))}
        keep(f'among {selection.nodes}', lambda node: node.name in named)
        left.sort(key=lambda node: named[node.name])
    if selection.exclude:
        excluded = set(node_set(selection.exclude))
        keep(f'not excluded ({selection.exclude})', lambda node: node.name not in excluded)
    if selection.feature:
        keep(f'with {selection.feature}', lambda node: satisfies(selection.feature, node.features))
    if selection.nodes == 'idle':
        keep(f"idle (they are {', '.join(sorted({node.state for node in left})) or 'none'})", is_idle)
    if selection.random or selection.due:
        keep('in service', lambda node: not node.trouble)
    if not left:
        raise PlumblineError(f"no node is left: {', '.join(told)}")
    if selection.random:
        drawn = set(random.Random(selection.seed).sample(sorted(node.name for node in left), min(selection.random, len(left))))
        left = [node for node in left if node.name in drawn]
    if selection.due:
        known = history()
        return sorted(left, key=lambda node: known.of(node.name).due())[:selection.due]
    return sorted(left, key=lambda node: not is_idle(node))

'''What a sweep may submit now, by its own limits: a reservation that ends, node-hours, and nodes that nobody else waits for.'''

import functools
import math
import time

from plumbline.sweep.remeasure import measured_again
from plumbline.sweep.slurm import folded, when
from plumbline.sweep.state import QUEUED, SKIPPED, SUBMITTING, WAITING


class Allowance:
    '''
    :arg sweep: :class:`state.Sweep`; :arg slurm: :class:`slurm.Slurm`; :arg pace: :class:`driver.Pace`; :arg say: function of a line for people.

    :attr over: (state, reason) of the nodes that get no job any more; None while there may be more.
    :attr paused: whether to submit nothing for now; :attr idle: names of the nodes that a job may be for now; None: all.
    :attr ended: why jobs that were running may have been ended, in words; empty if there is no such reason.
    '''

    def __init__(self, sweep, slurm, pace, say):
        self._sweep, self._slurm, self._pace, self._say, self._limits = sweep, slurm, pace, say, sweep.limits
        self.over, self.paused, self.idle, self.ended = None, False, None, ''
        self._reservation, self._stalled, self._told = None, None, None
        self._live = None       # names of the jobs that are not over, once somebody has looked

    def refresh(self):
        '''Ask what becomes of the reservation.

        :raises NoAnswer: if Slurm does not answer.
        '''
        name = self._limits.reservation
        if name:
            self._reservation = self._slurm.reservation(name)
            if self._reservation is None:
                self.ended = f'reservation {name} is gone'
            elif self._reservation.end <= time.time():
                self.ended = f'reservation {name} ended at {when(self._reservation.end)}'

    def look(self, jobs):
        '''(Nodes whose jobs are to be given back, whether those that run are meant, too).

        :arg jobs: of :meth:`slurm.Slurm.jobs`.
        :raises NoAnswer: if Slurm does not answer.
        '''
        self._live = {job.name for job in jobs.values() if not job.is_over}
        queued, waiting = self._sweep.within(QUEUED), self._sweep.within(WAITING, SUBMITTING)
        pending = [node for node in queued if node.job in jobs and jobs[node.job].is_waiting]
        self.over = self._over(queued, waiting)
        if self._limits.reservation and self.over and self.over[0] != SKIPPED:
            return pending, False
        if not self._limits.scavenge or not queued + waiting:
            return [], False
        return self._scavenge(queued, waiting, pending)

    def _over(self, queued, waiting):
        minutes = self._pace.minutes
        if self._limits.reservation and self.ended:
            return 'not submitted', self.ended
        if self._reservation and self._reservation.end < time.time() + 60 * minutes:
            return 'not submitted', (f'reservation {self._reservation.name} ends at {when(self._reservation.end)}, before a job of {minutes} min '
                                     'could end')
        if self._limits.node_hours and waiting and not queued and self.spare() < (waiting[0].phase == WAITING):
            return SKIPPED, (f'{self._spent() / 3600:.2f} of {self._limits.node_hours:g} node-hours are spent, and a job may take {minutes} min')
        return None

    def _spent(self):
        again = (node.spent if self._may_run(one, node) else one.times(node, self._pace.minutes)['spent'] for one, node in self._again)
        return self._sweep.plan.get('spent', 0.0) + self._sweep.seconds + sum(sum(spent.values()) for spent in again)

    @functools.cached_property
    def _again(self):
        '''The nodes of second measurements of a sweep that is resumed, each after its sweep: they spend of its limit, and nobody drives them now.'''
        return [(again, node) for again in measured_again(self._sweep.folder) for node in again.nodes.values()]

    def _may_run(self, again, node):
        return node.phase in (QUEUED, SUBMITTING) and (self._live is None or again.job_name(node) in self._live)

    def spare(self):
        '''How many more jobs than are in the queue may take their whole time; below 0 if not even those may.'''
        if not self._limits.node_hours:
            return math.inf
        minutes = self._pace.minutes        # jobs that an earlier driver has submitted may have another limit
        taken = [node.minutes or minutes for node in self._sweep.within(QUEUED)]
        taken += [max(node.minutes, minutes) for node in self._sweep.within(SUBMITTING)]
        taken += [node.minutes for again, node in self._again if self._may_run(again, node)]
        return (3600 * self._limits.node_hours - self._spent() - 60 * sum(taken)) // (60 * minutes)

    def _scavenge(self, queued, waiting, pending):
        others = self._slurm.others_waiting(self._sweep.nodes)
        self.paused = others > 0
        back = (queued if self._limits.give_running else pending) if self.paused else []
        if self.paused != bool(self._told):
            self._told = self.paused
            gave = f'; given back: {folded(node.name for node in back)}' if back else ''
            self._say(f'jobs of others that wait for nodes: {others}; nothing is submitted{gave}' if self.paused else
                      'no other job waits: the sweep goes on')
        self.idle = {name for name, node in self._slurm.nodes().items() if node.idle or (self._reservation and node.is_reserved)}
        if queued or not waiting:
            self._stalled = None
        else:
            self._stalled = self._stalled or time.monotonic()
            if time.monotonic() - self._stalled > self._pace.patience:
                why = 'jobs of others wait' if self.paused else 'not idle'
                self.over = SKIPPED, f'{why}, for more than {self._pace.patience:g} s'
        return back, self._limits.give_running

'''The loop of a sweep: submit, look, collect, until every node is over.'''

import re
import time
from dataclasses import dataclass

from plumbline.errors import PlumblineError
from plumbline.sweep import node as job, results
from plumbline.sweep.allowance import Allowance
from plumbline.sweep.slurm import NodeRefused, Refused
from plumbline.sweep.state import MEASURED, OVER, QUEUED, SUBMITTING, WAITING, set_aside
from plumbline.system.commands import NoAnswer

#: Longest pause between two questions to a scheduler that does not answer, seconds.
_LONGEST_PAUSE = 60

#: A file that a node has written may be seen later elsewhere; and a node that does not answer may do so again; seconds.
_SETTLE = 60

#: So long, the others wait for the first node's programs before they build for themselves; seconds.
_HEAD_START = 900

#: Slurm's state of a job -> state of the node; all others: failed.
_WORDS = {'TIMEOUT': 'timed out', 'DEADLINE': 'timed out', 'CANCELLED': 'cancelled', 'PREEMPTED': 'cancelled'}

#: Why a job waits that will never start.
_NEVER_STARTS = re.compile('Partition(Time|Node)Limit|MaxWall|BadConstraints|Invalid(Account|QOS)|NotAllowed')


@dataclass(frozen=True)
class Pace:
    '''
    :attr at_once: jobs in the queue at a time.
    :attr pause: between two submissions, seconds.
    :attr poll: between two looks at the queue, seconds.
    :attr patience: how long a scheduler may refuse or keep silent, seconds.
    :attr wait: how long a job may wait for its start, seconds.
    :attr minutes: time limit of a job.
    '''
    at_once: int
    pause: float
    poll: float
    patience: float
    wait: float
    minutes: int


class GaveUp(PlumblineError):
    '''The scheduler was silent for longer than the patience.'''


class _Patience:
    '''With one thing that Slurm is asked again and again.'''

    def __init__(self, pace, say, again):
        self._pace, self._say, self._again = pace, say, again
        self._since, self._failures, self._complaint, self._next = None, 0, '', 0.0

    @property
    def pausing(self):
        return time.monotonic() < self._next

    def answered(self):
        if self._failures:
            self._say(f'Slurm {self._again} again')
        self._since, self._failures, self._complaint = None, 0, ''

    def is_over(self, error):
        '''Count a failure; whether there have been failures, and nothing else, for too long.'''
        now = time.monotonic()
        self._since = self._since or now
        self._next = now + min(_LONGEST_PAUSE, self._pace.poll * 2 ** min(self._failures, 10))
        self._failures += 1
        if str(error) != self._complaint:
            self._complaint = str(error)
            self._say(f'{error}; trying again for {self._pace.patience:g} s')
        return now - self._since > self._pace.patience


class Driver:
    '''
    :arg sweep: :class:`state.Sweep`, begun.
    :arg say: function of a line for people.
    '''

    def __init__(self, sweep, slurm, pace, say):
        self.sweep, self.slurm, self.pace, self.say = sweep, slurm, pace, say
        self._queue, self._submission = _Patience(pace, say, 'answers'), _Patience(pace, say, 'takes jobs')
        self._odd_since = {}        # (node, what is odd) -> when it was first seen
        self._sorted_out = False
        self._states = None         # of the nodes, once a look has asked for them
        self._withdrawn = set()     # numbers of jobs that were given back
        self.allowance = Allowance(sweep, slurm, pace, say)

    def run(self):
        '''Until all nodes are over.

        :raises GaveUp: if the scheduler keeps silent for too long; the sweep can be resumed.
        '''
        while True:
            if not self._queue.pausing:
                try:
                    self._look()
                    self.sweep.sync()
                    self._queue.answered()
                except NoAnswer as error:
                    if self._queue.is_over(error):
                        raise GaveUp(f'{error}, for more than {self.pace.patience:g} s') from None
            if all(node.phase == OVER for node in self.sweep.nodes.values()):
                return
            time.sleep(self.pace.poll)

    def _look(self):
        jobs, self._states = self.slurm.jobs(self.sweep.prefix), None
        self.allowance.refresh()
        if not self._sorted_out:
            self._sort_out(jobs)
            self._sorted_out = True
        self._look_after(jobs)
        self._keep_limits(jobs)
        if not self._submission.pausing and not self.allowance.paused:
            self._submit()

    def _keep_limits(self, jobs):
        '''Give back what the sweep's limits say, and be done with the nodes that they leave no job for.'''
        back, running = self.allowance.look(jobs)
        if back:
            self._withdrawn |= {node.job for node in back}
            self.slurm.cancel([node.job for node in back], pending=not running)
        if self.allowance.over:
            for node in self.sweep.within(WAITING, SUBMITTING):
                self.over(node, *self.allowance.over)

    def _nodes(self):
        self._states = self._states or self.slurm.nodes()
        return self._states

    def _lasts(self, node, what, seconds):
        '''Whether something odd about a node has been so for a while.'''
        first = self._odd_since.setdefault((node.name, what), time.monotonic())
        return time.monotonic() - first >= min(seconds, self.pace.patience)

    # --- at the begin ----------------------------------------------------------------------------------------

    def _sort_out(self, jobs):
        '''Which nodes are to be run: those in service, of which there is no result yet.'''
        states = self._nodes()
        named = {found.name: number for number, found in jobs.items() if not found.is_over}
        for node in self.sweep.within(WAITING, QUEUED, OVER):
            number, known = named.get(self.sweep.job_name(node)), states.get(node.name)
            if node.phase == QUEUED:        # a job of the driver before this one
                found = jobs.get(node.job)
                if found is None or (found.is_over and found.state != 'COMPLETED'):
                    self._collect(node, found.state if found else '')
            if node.phase == QUEUED or node.measured:
                continue
            if number is not None:
                self.sweep.record(node, QUEUED, job=number)
            elif node.phase == OVER and self._finished(node) and self._measured(node):
                continue
            elif known is None or known.lasting_trouble:
                self._out_of_service(node, known)
            elif node.phase == OVER:
                self.sweep.record(node, WAITING, state='', reason='')

    def _out_of_service(self, node, known):
        if known is None:
            self.over(node, 'gone', 'no longer in the partition')
        else:
            self.over(node, known.trouble, known.reason)

    # --- jobs in the queue -----------------------------------------------------------------------------------

    def _look_after(self, jobs):
        for node in self.sweep.within(SUBMITTING):
            self._find(node, jobs)
        pending = []
        for node in self.sweep.within(QUEUED):
            found = jobs.get(node.job)
            if found and not found.is_over:
                self._odd_since.pop((node.name, 'no result'), None)
                if found.is_waiting:
                    pending.append((node, found))
                elif found.state == 'COMPLETING' and self._finished(node):
                    self._collect(node, found.state)
            elif self._finished(node) or (found and found.state != 'COMPLETED'):
                self._collect(node, found.state if found else '')
            elif self._lasts(node, 'no result', _SETTLE):
                self._collect(node, '')
        if pending:
            self._look_after_pending(pending)

    def _finished(self, node):
        return all((self.sweep.of(node) / name).exists() for name in (job.ENDED, job.REPORT))

    def _find(self, node, jobs):
        '''The job of a node whose submission has no known end.'''
        name = self.sweep.job_name(node)
        named = [number for number, found in jobs.items() if found.name == name and number != node.job]
        number = self.sweep.claimed(node) or max(named, default=None)
        if number is not None:
            self.sweep.record(node, QUEUED, job=number)

    def _look_after_pending(self, pending):
        '''A job for a node that has gone out of service would wait for ever.'''
        states = self._nodes()
        for node, found in pending:
            known = states.get(node.name)
            waits_in_vain = _NEVER_STARTS.search(found.reason)
            if known and not known.trouble:
                self._odd_since.pop((node.name, 'trouble'), None)
            elif self._lasts(node, 'trouble', _SETTLE):
                self.slurm.cancel([node.job])
                self._out_of_service(node, known)
                continue
            if time.time() - node.since > self.pace.wait or (waits_in_vain and self._lasts(node, 'in vain', _SETTLE)):
                self.slurm.cancel([node.job])
                self.over(node, 'never started', f'{found.reason}, after {time.time() - node.since:.0f} s')

    def over(self, node, state, reason='', **more):
        '''A node is done with, for now.'''
        self.sweep.record(node, OVER, state=state, reason=reason, **self.sweep.times(node, self.pace.minutes), **more)
        self.say(f'{node.name}: {state}: {node.told} ({self.sweep.left} to go)')

    def _measured(self, node):
        '''Take what a node has measured; whether it has.'''
        try:
            found, why = results.collect(self.sweep, node)
        except PlumblineError as error:
            found, why = None, str(error)
        if found:
            reason = '; '.join(filter(None, (found['reason'], self.sweep.wrong_clock(node))))
            self.over(node, MEASURED, **{**found, 'reason': reason})
        else:
            self.over(node, 'failed', why)
        return node.measured

    def _collect(self, node, state):
        '''What became of a node whose job is over.

        :arg state: Slurm's of the job; empty if it is no longer known.
        '''
        claimed = self.sweep.claimed(node)
        if claimed not in (None, node.job):     # submitted twice: this one did nothing
            self.sweep.record(node, QUEUED, job=claimed)
        elif self._finished(node):
            self._measured(node)
        elif node.job in self._withdrawn and state in ('CANCELLED', ''):
            self.sweep.record(node, WAITING, **self.sweep.times(node, self.pace.minutes))
        elif self.allowance.ended and state in ('TIMEOUT', 'CANCELLED', 'DEADLINE', ''):
            self.over(node, 'interrupted', f'{self.allowance.ended} while its job ran')
        elif _WORDS.get(state) == 'timed out':
            self.over(node, 'timed out', f'not ready after {node.minutes or self.pace.minutes} min')
        else:
            # Of the other states the output knows no more, and nodes with the same reason share a line.
            why = f': {job.last_words(self.sweep.of(node))}' if state in ('FAILED', 'COMPLETED', '') else ''
            known = self._nodes().get(node.name)
            lost = known is not None and known.lasting_trouble      # as after a prolog that failed: Slurm cancels the job
            why += f'; the node is {lost}: {known.reason}' if lost else ''
            self.over(node, 'failed' if lost else _WORDS.get(state, 'failed'), f"job {state or 'vanished'}{why}")

    # --- submission ------------------------------------------------------------------------------------------

    def _submit(self):
        room, spare = self.pace.at_once - len(self.sweep.within(QUEUED)), self.allowance.spare()
        roles = {}
        for node in self.sweep.within(SUBMITTING, WAITING):
            if room <= 0:
                return None
            if self.allowance.idle is not None and node.name not in self.allowance.idle:
                continue
            more = node.phase == WAITING       # the others may have a job, which is counted
            if spare < more:
                return None     # a job that ends early leaves hours for another
            if node.hardware not in roles:
                roles[node.hardware] = self._role(node.hardware)
            role = roles[node.hardware]
            if role is None:
                continue
            try:
                self._submit_one(node, role)
                self._submission.answered()
            except NodeRefused as error:
                self.over(node, 'failed', str(error))
                continue
            except Refused as error:
                return self._give_up_submission(error)
            except NoAnswer as error:
                if self._submission.is_over(error):
                    self._give_up_submission(error)
                return None
            if role == job.PILOT:
                roles[node.hardware] = None
            room, spare = room - 1, spare - more
            time.sleep(self.pace.pause)

    def _role(self, hardware):
        '''What a job on such a node is told when it is submitted now; None: not now.'''
        alike = [node for node in self.sweep.nodes.values() if node.hardware == hardware]
        begun = [node for node in alike if node.phase in (QUEUED, OVER)]
        if any(node.measured or (self.sweep.of(node) / job.BUILT).exists() for node in begun):
            return ''
        queued = [node.since for node in begun if node.phase == QUEUED]
        if not queued:
            return job.PILOT
        return '' if time.time() - min(queued) > _HEAD_START else None

    def _submit_one(self, node, role):
        folder = self.sweep.of(node)
        if node.phase == WAITING and folder.exists():       # of an earlier attempt
            set_aside(folder)
        folder.mkdir(exist_ok=True)
        self.sweep.record(node, SUBMITTING, minutes=self.pace.minutes)
        number = self.slurm.submit(self.slurm.submission(
            self.sweep.job_name(node), node.name, self.pace.minutes, folder / job.OUTPUT, self.sweep.script,
            node.name, role, options=self.sweep.limits.options))
        self.sweep.record(node, QUEUED, job=number)

    def _give_up_submission(self, error):
        '''Those nodes that have a job are waited for, the others have none.'''
        self.say(str(error))
        for node in self.sweep.within(WAITING, SUBMITTING):
            self.over(node, 'not submitted', str(error))

'''Where a program's time went that it did not get: named, because a slow node and a disturbed one look alike.

A *contention* record (``schemas/record.json``) says, in seconds of all threads together and since the program began to measure: ``throttled``, kept
from running by a cgroup's quota (``cpu.stat``); ``waited``, ready but not running, for whatever reason, the quota included (``schedstat``), and
``waited_most``, of the thread that did the longest: all of a team wait for it; ``stolen``, taken by the hypervisor (``/proc/stat``).
'''

from collections.abc import Sequence

from plumbline.model.quantity import percent, several

#: What is lost to one cause is worth a remark from this share on; a quiet node loses less than one per cent.
WORTH_TELLING = 0.02

#: Seconds that one of many threads may wait without a word: a tick, or two processes' turns.
_TURN = 0.02

#: Share of the time that the threads must have had the CPUs for, so that what is missing can be the cores'.
ENOUGH = 0.9

#: The causes: what a job was not allowed, what its owner can send away, and what lies outside the machine.
QUOTA, OTHERS, HYPERVISOR = 'a cgroup that throttles', 'other processes', 'the hypervisor'


def team(found: Sequence[dict]) -> int:
    '''The largest number of threads of the programs of one check; 0 where they do not tell.'''
    return max((record['threads'] for record in found), default=0)


def _of_all(found: Sequence[dict], key: str) -> float | None:
    '''Share of the threads' time, or :obj:`None` if one of the programs does not know.'''
    parts = [record[key] for record in found]
    if not parts or None in parts:
        return None
    return sum(parts) / sum(record['elapsed'] * record['threads'] for record in found)


def _of_slowest(found: Sequence[dict]) -> float:
    '''Share of its time that the one thread of each program that waited the longest did; 0 where older records do not tell.  For a quota
    it may wait twice as long as the mean.'''
    return sum(max(0.0, (record.get('waited_most') or 0.0) - _TURN) for record in found) / sum(record['elapsed'] for record in found)


def causes(found: Sequence[dict]) -> dict[str, float]:
    '''Cause -> share of the threads' time that was lost to it, to others of that of the slowest; without those that are not known.'''
    throttled, waited, stolen = (_of_all(found, key) for key in ('throttled', 'waited', 'stolen'))
    others = None if waited is None else max(0.0, waited - (throttled or 0.0), _of_slowest(found) - 2 * (throttled or 0.0))
    shares = {QUOTA: throttled, OTHERS: others, HYPERVISOR: stolen}
    return {cause: share for cause, share in shares.items() if share is not None}


def time_given(found: Sequence[dict]) -> float | None:
    '''Share of its threads' time that the system gave to the program, 0 .. 1; :obj:`None` if that cannot be read.'''
    if _of_all(found, 'waited') is None:
        return None
    return max(0.0, 1 - sum(causes(found).values()))


def too_little(found: Sequence[dict], least: float) -> float | None:
    '''The share of :func:`time_given` where it is known, and below so much; else :obj:`None`.'''
    given = time_given(found)
    return given if given is not None and given < least else None


def time_left_by_quota(found: Sequence[dict]) -> float | None:
    '''Share of its threads' time that no cgroup's quota took, 0 .. 1; :obj:`None` if that cannot be read.'''
    throttled = _of_all(found, 'throttled')
    return None if throttled is None else max(0.0, 1 - throttled)


def notes(found: Sequence[dict], machine: dict | None) -> list[str]:
    '''What people should know of it, a text for each cause.'''
    quota = (machine or {}).get('cpu_quota')
    threads = team(found) or 1
    return ([by_quota(quota, threads)] if quota else []) + [took(cause, share) for cause, share in causes(found).items() if share >= WORTH_TELLING]


def by_quota(quota: float, threads: int) -> str:
    '''A text: how few CPUs a team has.'''
    return f"a cgroup's quota is {several(f'{quota:g}', 'CPU')} for {several(threads, 'thread')}"


def took(cause: str, share: float) -> str:
    '''A text: how much of the threads' time was lost to a cause.'''
    return f"{cause} took {percent(share, 0)} of the time of {'a thread' if cause == OTHERS else 'the threads'}"

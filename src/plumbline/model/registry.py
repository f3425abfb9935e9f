'''The registry of metrics: of each name its unit, which way is better, how much of it there can be, and what it says.

A check yields no metric that is not entered here (:class:`plumbline.model.metrics.Metric`).  Everything that asks which way is worse,
which unit, whether a value is possible, or which metrics are pooled asks here; the page ``docs/reference/metrics.rst`` is made from it.
'''

from dataclasses import dataclass

from plumbline.errors import PlumblineError

#: Which way is better; of what has neither only a person can say, and a change to either side is one.
MORE, LESS, NEITHER = 1, -1, 0

#: What a metric scatters as: a ratio within one process, whose drift cancels; a rate or a time, with the subsystem that it is of; what is left when
#: one time is taken from another, with the noise of both; a count, the same in every run; or a share of time that the kernel has counted.
RATIO, ABSOLUTE, DIFFERENCE, COUNT, SHARE = 'ratio', 'absolute', 'difference', 'count', 'share'

#: Subsystems of a node and of what connects nodes.
CORE, L1, L2, L3, LATENCY, FILES = 'core', 'L1', 'L2', 'L3', 'latency', 'files'
MEMORY_ONE, MEMORY_ALL = 'memory, one thread', 'memory, all threads'
MESSAGES_SHM, MESSAGES_NETWORK = 'messages, shared memory', 'messages, network'
CPU_TIME, TOPOLOGY, APPLICATIONS, OTHER_SUITES, NO_MACHINE = 'CPU availability', 'topology', 'applications', 'other suites', 'none'
SUBSYSTEMS = (CORE, L1, L2, L3, MEMORY_ONE, MEMORY_ALL, LATENCY, FILES, MESSAGES_SHM, MESSAGES_NETWORK, CPU_TIME, TOPOLOGY, APPLICATIONS,
              OTHER_SUITES, NO_MACHINE)

#: What a check, or a metric, says instead where that decides which subsystem it is: the number of threads, the transport, and the level of the
#: check or else of the record, which is ``L1`` to ``L3``, ``memory`` (by the number of threads) or one of :data:`_OF_LEVELS`.
MEMORY, MESSAGES, LEVELS = 'memory', 'messages', 'levels'
#: ``cache``: the largest that a core has alone.
_OF_LEVELS = {'L1': L1, 'L2': L2, 'L3': L3, 'cache': L2, 'application': APPLICATIONS}

#: What the attribute ``subsystem`` of a check, and that of a metric, may be.
STATED = (CORE, L1, L2, L3, MEMORY, LEVELS, LATENCY, FILES, MESSAGES, MESSAGES_SHM, MESSAGES_NETWORK, APPLICATIONS, TOPOLOGY, NO_MACHINE)

#: What is asked: does the software get what this machine gives, is the machine as fast as it should be, did the measurement get the machine?
QUESTIONS = SOFTWARE, SPEED, MEASUREMENT = 'software', 'speed', 'measurement'

#: What is evidence for none of them: tests of other suites, simulations.
OTHERS = 'others'
EVIDENCE = (*QUESTIONS, OTHERS)

#: Subsystems of one question; elsewhere metrics decide.
OF_PARTS = {CPU_TIME: MEASUREMENT, TOPOLOGY: SPEED, OTHER_SUITES: OTHERS, NO_MACHINE: OTHERS}

#: Beside rates and times, what says how fast the machine is or what there is of it.
_OF_THE_MACHINE = {'of_peak', 'of_datasheet', 'of_baseline', 'of_base', 'of_median', 'of_pair', 'of_simulated', 'link_errors',
                   'clock_ratio', 'burn_errors', 'drift', 'of_start', 'throttled', 'machine_checks', 'memory_corrected',
                   'memory_uncorrected'}

#: What two measurements of one process that were taken together may differ by.
_TOLERANCE = 1.1


@dataclass(frozen=True)
class Entry:
    '''A metric.

    :attr unit: MB/s, Mflop/s, MHz, us, s, bytes, entries or 1.
    :attr better: :data:`MORE`, :data:`LESS` or :data:`NEITHER`.
    :attr text: what it says, for people.
    :attr upper: the most that any hardware gives, in ``unit``, tolerance included; None where there is no such number.
    :attr noise: :data:`RATIO`, :data:`ABSOLUTE`, :data:`DIFFERENCE`, :data:`COUNT` or :data:`SHARE`.
    :attr subsystem: None where the check, or what it says of the metric, decides.
    '''
    unit: str
    better: int
    text: str
    upper: float | None = None
    noise: str = RATIO
    subsystem: str | None = None


def _rate(unit: str, text: str, better: int = MORE, subsystem: str | None = None) -> Entry:
    return Entry(unit, better, text, None, ABSOLUTE, subsystem)


def _count(unit: str, text: str, better: int = NEITHER, subsystem: str | None = None) -> Entry:
    return Entry(unit, better, text, None, COUNT, subsystem)


#: Name -> :class:`Entry`.
METRICS = {
    # Rates and times.
    'bandwidth': _rate('MB/s', 'application bytes per second'),
    'flops': _rate('Mflop/s', 'floating-point operations per second'),
    'latency': _rate('us', 'time of one access, message or call', LESS),
    'cycles': Entry('1', LESS, 'clock cycles of one access', None, ABSOLUTE, LATENCY),
    'to_cover': Entry('1', NEITHER, 'floating-point operations that a core could do in the time of one access', None, ABSOLUTE, LATENCY),
    'latency_busy_target': _rate('us', 'time of a one-sided transfer whose target computes', LESS),
    'latency_tolerance': _rate('us', 'latency, added to every message, that costs a given share of the time', MORE),
    'overhead': Entry('us', LESS, 'what the MPI adds to handing over a cache line', None, DIFFERENCE),
    'time': _rate('s', 'elapsed time', LESS),
    'figure_of_merit': _rate('1', "an application's own figure, in its own unit, of which more is better"),
    'clock': _rate('MHz', 'clock of one core, and of all when all of them work', MORE, CORE),
    # Shares of what the machine can do.
    'of_limit': Entry('1', MORE, 'traffic rate over that of the best limit stream beside it', _TOLERANCE),
    'of_parts': Entry('1', MORE, 'time predicted from its parts over the time measured; above 1 they overlap'),
    'of_peak': Entry('1', MORE, "rate over the datasheet's", 1.02),
    'of_datasheet': Entry('1', MORE, "operations over those that the datasheet's highest clock allows", 1.02, subsystem=CORE),
    'of_baseline': Entry('1', MORE, 'what a core does per cycle over what its microarchitecture does', subsystem=CORE),
    'of_best': Entry('1', MORE, "rate by the site's compiler flags over that by the best set of options beside them", 1.02),
    'of_fma': Entry('1', MORE, 'DGEMM over the peak of fused multiply-adds', _TOLERANCE, subsystem=CORE),
    'cpu_availability': Entry('1', MORE, 'share of the time that the system gave to the threads', 1.0, SHARE, CPU_TIME),
    'of_steady': Entry('1', MORE, 'share of the samples that took no more than 1.5 times the median of their case', 1.0,
                       subsystem=CPU_TIME),
    'of_median': Entry('1', MORE, 'the worst core or node over the median one', 1.0),
    'of_pair': Entry('1', MORE, 'bandwidth of a node while all nodes send over that of two nodes alone: less where the network is oversubscribed'),
    'of_simulated': Entry('1', MORE, 'bandwidth of a node over that on the described network, simulated'),
    'of_topology': Entry('1', MORE, 'share of the pairs of cores that are as near as the topology says', 1.0, COUNT, TOPOLOGY),
    'as_expected': Entry('1', MORE, 'share of what is worth a drain, and could be read, that a node has as expected', 1.0, COUNT, TOPOLOGY),
    'of_contiguous': Entry('1', MORE, 'rate of a strided message over that of a contiguous one'),
    'of_base': Entry('1', MORE, "clock over the processor's base clock", subsystem=CORE),
    'of_own': Entry('1', MORE, 'best rate of a benchmark known by name over that of our kernel which does the same'),
    'clock_ratio': Entry('1', MORE, 'clock with all cores at work over that of one alone', subsystem=CORE),
    'drift': Entry('1', MORE, 'rate at the end of a burn over that at its beginning, by the slope of its logarithm'),
    'of_start': Entry('1', MORE, 'rate in the last tenth of a burn over that in its first'),
    'of_halves': Entry('1', MORE, 'bandwidth of a message over that of one of half its size, the least'),
    'of_flanks': Entry('1', MORE, 'along a curve of sizes the deepest dip: rate over that of the best smaller or larger one, the slower of the two'),
    'efficiency': Entry('1', MORE, 'rate of n threads over n times that of one, in caches per clock cycle'),
    'overlap': Entry('1', MORE, "share of a message's time that computing hides", 1.0),
    'progress': Entry('1', MORE, 'time of a one-sided transfer over that to a target which computes'),
    'communication': Entry('1', LESS, 'share of the time spent in communication'),
    'communication_fitted': Entry('1', NEITHER, 'the same, of the published cell that the simulation was fitted to',
                                  subsystem=NO_MACHINE),
    # One way against another.
    'speedup': Entry('1', MORE, 'rate over that of the usual way'),
    'rate': Entry('1', MORE, 'execution rate over that of the usual way'),
    'hump': Entry('1', NEITHER, 'bandwidth of messages that nobody touches over that of the same with the buffers changed over: above 1 a cache'),
    'slowdown': Entry('1', LESS, 'time over that of the undisturbed case'),
    'growth': Entry('1', LESS, 'latency of a level over that of the one below it', subsystem=LATENCY),
    'power_of_two': Entry('1', MORE, '``of_limit`` of a power of two over the mean of its neighbours'),
    'split_over_fused': Entry('1', NEITHER, 'rate of the split loop over that of the fused one'),
    'traffic': Entry('1', NEITHER, 'traffic counted over traffic by model'),
    'redundancy': _count('1', 'operations over those of the way with the fewest', LESS),
    'work': _count('1', 'operations counted over those counted by hand'),
    'equation': _count('1', 'relative rate over speed-up times relative work: 1 by definition'),
    'difference': _count('1', 'difference of the simulation from the published table: mean, largest, of the growth', LESS, NO_MACHINE),
    # Sizes and counts.
    'link_errors': _count('1', 'errors that the links of all nodes counted meanwhile, beyond those that a link is specified for', LESS),
    'capacity': _rate('bytes', 'how much of a cache is ours', MORE),
    'cores': _count('1', 'cores of the node', MORE, TOPOLOGY),
    'memory': _count('bytes', 'memory of the node', MORE, TOPOLOGY),
    'burn_errors': _count('1', 'results, words of memory and messages of a burn with a wrong bit', LESS, CORE),
    'throttled': _count('1', 'times that a core, or a socket, was throttled for its heat during a burn', LESS, CORE),
    'machine_checks': _count('1', 'machine checks during a burn', LESS, CORE),
    'memory_corrected': _count('1', 'errors that the memory controllers corrected during a burn', LESS, MEMORY_ALL),
    'memory_uncorrected': _count('1', 'errors that they could not correct', LESS, MEMORY_ALL),
    'knee': _count('1', 'streams beyond which the prefetcher gives up'),
    'half_window': _rate('1', 'messages outstanding that reach half the rate', NEITHER),
    'page_in_force': _count('bytes', 'memory that one translation covers', NEITHER, LATENCY),
    'tlb_entries': _count('entries', 'entries of a TLB', NEITHER, LATENCY),
    'tlb_reach': _count('bytes', 'memory that the entries of a TLB cover', NEITHER, LATENCY),
    # Of tests of other suites, whose own names are not here.
    'other_more': _rate('1', "a figure of another suite's test, in its own unit, of which more is better: ReFrame has a lower bound of it", MORE,
                        OTHER_SUITES),
    'other_less': _rate('1', 'the same, of which less is better: an upper bound', LESS, OTHER_SUITES),
    'other': _rate('1', 'the same with both bounds, or none: a change to either side is one', NEITHER, OTHER_SUITES),
}

_OTHERS = {MORE: 'other_more', LESS: 'other_less', NEITHER: 'other'}


def of_other_suite(lower: float | None, upper: float | None) -> str:
    '''The metric that a performance variable of another suite's test is, by the thresholds of its reference in ReFrame's form.'''
    return _OTHERS[NEITHER if (lower is None) == (upper is None) else MORE if upper is None else LESS]


def is_of_other_suite(metric: str | None) -> bool:
    '''Whether a metric is a performance variable of another suite's test.'''
    return metric in _OTHERS.values()


def find(name: str) -> Entry:
    '''The :class:`Entry` of a metric.

    :raises PlumblineError: if there is none.
    '''
    if name not in METRICS:
        raise PlumblineError(f'metric {name!r} is not in the registry; enter it in src/plumbline/model/registry.py, or yield one that is')
    return METRICS[name]


def better(name: str) -> int:
    '''Which way is better; of a metric that an archive has and the registry no longer, :data:`NEITHER`.'''
    return METRICS[name].better if name in METRICS else NEITHER


def is_absolute(name: str) -> bool:
    '''Whether a metric is a rate or a time, which no other of the same process says how large it should be.'''
    return name in METRICS and METRICS[name].noise in (ABSOLUTE, DIFFERENCE)


def question(subsystem: str | None, metric: str, foreign: bool = False) -> str:
    '''Which of :data:`QUESTIONS` a metric is evidence for, or :data:`OTHERS`; a test that failed without one says that the software did.

    :arg foreign: whether it is of another suite's test.
    '''
    if foreign:
        return OTHERS
    return OF_PARTS.get(subsystem or '') or (SPEED if is_absolute(metric) or metric in _OF_THE_MACHINE else SOFTWARE)


def subsystem(metric: str, stated: str, level: str | None = None, threads: str | int | None = None, transport: str | None = None) -> str:
    '''The part of the machine that a metric tells of, e.g. ``L2`` or ``memory, all threads``.

    :arg stated: of :data:`STATED`, what the check says of the metric, or of itself.
    :arg level: that of the check, or of the record.
    :arg threads: ``one``, ``all`` or a number; memory is that of all threads unless it is one.
    :arg transport: ``shm``, ``tcp``, ``default``, ...; messages are those of the network unless it is ``shm``.
    '''
    known = find(metric).subsystem or (_OF_LEVELS.get(level or '', MEMORY) if stated == LEVELS else stated)
    if known == MEMORY:
        return MEMORY_ONE if str(threads) in ('one', '1') else MEMORY_ALL
    if known == MESSAGES:
        return MESSAGES_SHM if transport == 'shm' else MESSAGES_NETWORK
    return known


def noise_class(metric: str, subsystem: str) -> str:
    '''The metrics that scatter alike, for pooling: ``count``, what a rate or a time is of (``memory``), ``ratio of memory``, ``share of CPU
    availability``, ``difference of messages``.'''
    return _CLASSES[find(metric).noise, subsystem]


def _class(kind: str, subsystem: str) -> str:
    part = {CORE: 'cache', L1: 'cache', L2: 'cache', L3: 'cache', MEMORY_ONE: MEMORY, MEMORY_ALL: MEMORY, MESSAGES_SHM: MESSAGES,
            MESSAGES_NETWORK: MESSAGES}.get(subsystem, subsystem)
    return COUNT if kind == COUNT else part if kind == ABSOLUTE else f'{kind} of {part}'


#: (what a metric scatters as, subsystem) -> :func:`noise_class`, and that -> what its metrics scatter as.
_CLASSES = {(kind, part): _class(kind, part) for kind in (RATIO, ABSOLUTE, DIFFERENCE, COUNT, SHARE) for part in SUBSYSTEMS}
_KINDS = {name: kind for (kind, _), name in _CLASSES.items()}


def kind_of(noise: str) -> str:
    ''':data:`RATIO`, :data:`ABSOLUTE`, :data:`DIFFERENCE`, :data:`COUNT` or :data:`SHARE`, of a :func:`noise_class`.'''
    return _KINDS.get(noise, ABSOLUTE)


def of_row(row: dict) -> tuple[str | None, str]:
    '''(subsystem, :func:`noise_class`) of a metric's row of the archive; of a name that the registry no longer has, (None, :data:`ABSOLUTE`).'''
    metric, part = row['metric'], row['subsystem']
    return (part, noise_class(metric, part)) if metric in METRICS and part in SUBSYSTEMS else (None, ABSOLUTE)

'''Which CPUs to use, how many, and how much memory to touch: pure functions of the topology.

``processor`` is everywhere ReFrame's processor information: the dictionary of its configuration (keys ``num_cpus``, ``num_sockets``, ``topology``:
hexadecimal masks of ``sockets``, ``numa_nodes``, ``cores``, and ``caches`` with ``type``, ``size`` in bytes and ``cpusets``), or an object that has
it as ``info``, as ``self.current_partition.processor`` does.

ReFrame's detection knows nothing of affinity and cgroups: a container with 2 of 128 CPUs is told
128.  What a process may really use comes from :func:`plumbline.system.cgroup.allowed_cpus`, on the node where it runs.
'''

import itertools
import math

from ClusterShell.RangeSet import RangeSet

from plumbline.errors import PlumblineError
from plumbline.model import quantity

#: Working set in memory: this many times what the threads hold of the last-level caches of the whole node, so that what
#: survives in them from one sweep to the next does not count.  (Once would be enough of caches that forget the oldest line first; many do not.)
MEMORY_OVER_CACHE = 4

#: ... but at least this much (bytes): small caches would else give samples that are too short.
MEMORY_AT_LEAST = 256 * 2**20

#: ... and at most this share of the memory that is there: triad_alignment, which holds the most, has six working sets and a tenth of each more.
WORKING_SET_SHARE = 0.125

#: A problem of a size of its own takes at most this share of the memory; the limit streams beside it take as much.
MEMORY_SHARE = 0.25

#: Below this multiple of the last-level caches a sweep is no longer one through memory.
MEMORY_OVER_CACHE_LEAST = 2

#: Memory is saturated before all cores of a node work; with fewer than this share of them a socket's memory may be missing, and the rest of the
#: cores, and of the turbo clock, may be other jobs'.
ENOUGH_CORES = 0.75

#: Where others work on the host, or the node, a part of it has this share of its fellows at least: they may take some of the memory's bandwidth,
#: and of the clock.
BESIDE_OTHERS = 0.7

#: A cache level is measured with this share of its capacity ...
CACHE_SHARE = 0.5

#: ... which must be at least this multiple of the level below, or most hits are hits there.
ABOVE_LOWER_LEVEL = 2

#: ... and where others use the same cache, no more than this one: lines that come round soon are not lost to them.  Medians of eight
#: processes, with an L2 of 1 MiB and a part of 32 MiB of L3: 3 MiB took 14.6 to 15.0 ns, 8 MiB 17 to 90.
ABOVE_LOWER_LEVEL_SHARED = 3

#: So much of a core's own level may be that: what is found of it depends on who chases beside us on the core, the latency of this does not.
CACHE_SHARE_OF_CORE = 0.75

#: Why a case of all CPUs is not compared with a case of one.
ONE_CPU = 'there is one CPU: nothing to add up'

#: Virtual machines for 64-bit Arm have such a kernel: it lists caches, without sizes.
_NO_CACHES = ('the kernel does not tell the sizes of the caches, and what is beyond them is not known: give `processor` of the partition in a site '
              'file, as `reframe --detect-host-topology=FILE` writes it, with the true `size` and `cpusets` of each cache')

_DETECT = ('let a job detect it: `reframe -C SITE -c checks -R -r -t topology` (or give what `reframe '
           '--detect-host-topology=FILE` writes there as `processor` of the partition in the site file)')


def _topology(processor):
    info = getattr(processor, 'info', processor) or {}
    return info.get('topology') or {}


def _cpus(mask):
    '''The CPUs of a hexadecimal mask, ascending.'''
    bits = int(mask, 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def _groups(processor, key):
    '''The CPU groups ``key`` of the topology, by ascending first CPU; groups without CPUs (memory on a device of its own) are left out.'''
    groups = [_cpus(mask) for mask in _topology(processor).get(key) or ()]
    return sorted(group for group in groups if group)


def _caches(processor):
    '''Dictionary ``'L1'`` ... -> list of (size in bytes, set of CPUs), one for each cache whose size is known.'''
    caches: dict[str, list[tuple[int, frozenset[int]]]] = {}
    for cache in _topology(processor).get('caches') or ():
        for mask in (cache.get('cpusets') or ()) if cache['size'] else ():
            caches.setdefault(cache['type'], []).append((cache['size'], frozenset(_cpus(mask))))
    return dict(sorted(caches.items()))


def last_level(processor):
    '''The largest level of caches whose size is known, ``'L3'``; None where there is none.'''
    return max(_caches(processor), default=None)


def line_of_l1(processor):
    '''Bytes of a line of the L1 cache; None where it is not known.'''
    return next((cache.get('linesize') or None for cache in _topology(processor).get('caches') or () if cache['type'] == 'L1'), None)


def _index_by_cpu(groups):
    return {cpu: i for i, group in enumerate(groups) for cpu in group}


def _last_level_groups(processor):
    caches = _caches(processor)
    return sorted(sorted(cpus) for _, cpus in caches[max(caches)]) if caches else []


def cpu_list(cpus):
    '''CPUs as people and tools write them, ascending: ``0-3,8``.'''
    return str(RangeSet.fromlist(map(str, cpus)))


def cpu_order(processor, allowed=None, smt=False):
    '''CPUs in the order in which to use them: one hardware thread of each core, socket by socket.

    A socket is filled before the next one is begun; within it, NUMA node by NUMA node, then by groups that share a last-level cache, then ascending.

    :arg allowed: CPUs that the process may use; :obj:`None` for all of them.
    :arg smt: append the cores' second (third, ...) hardware threads, in the same order of cores.
    :raises PlumblineError: if the topology is not known, or no CPU of it is allowed.
    '''
    cores = _groups(processor, 'cores')
    if not cores:
        raise PlumblineError(f'the topology of this partition is not known; {_DETECT}')
    if allowed is not None:
        cores = [[cpu for cpu in core if cpu in allowed] for core in cores]
        cores = [core for core in cores if core]
    if not cores:
        raise PlumblineError(f'none of the allowed CPUs {cpu_list(allowed)} is in the topology of '
                             f'this partition: it describes another machine; {_DETECT}')
    places = [_index_by_cpu(groups) for groups in (_groups(processor, 'sockets'), _groups(processor, 'numa_nodes'), _last_level_groups(processor))]
    cores.sort(key=lambda core: [place.get(core[0], 0) for place in places] + [core[0]])
    depth = max(map(len, cores)) if smt else 1
    return [core[i] for i in range(depth) for core in cores if i < len(core)]


def _shared_groups(processor):
    '''(name, groups of CPUs) of all that CPUs can share, the smallest first: ``core``, ``L2``, ``L3``, ``numa``, ``socket``.

    Where several NUMA nodes have one last-level cache, a node is nearer than the cache.
    '''
    found = [('core', _groups(processor, 'cores'))]
    found += [(name, [sorted(cpus) for _, cpus in caches]) for name, caches in _caches(processor).items() if name != 'L1']
    found += [('socket', _groups(processor, 'sockets')), ('numa', _groups(processor, 'numa_nodes'))]
    return sorted(((name, groups) for name, groups in found if groups), key=lambda item: max(map(len, item[1])))


def has_sockets_of_one_core(processor):
    '''Whether there are several sockets, each of one core: some virtual machines say so.'''
    return 1 < len(_groups(processor, 'sockets')) == len(_groups(processor, 'cores'))


def too_few(processor, cpus):
    '''Why others may work on a node, and its cores need not do what all of them do; None where its jobs have three quarters of them and more.

    :arg cpus: those that may be used, one of each core.
    '''
    cores = len(cpu_order(processor))
    return f"{len(cpus)} of the node's {cores} cores may be used" if len(cpus) < ENOUGH_CORES * cores else None


def parts(processor, kind, cpus):
    '''The parts of a node that can be compared: CPUs of each, as many in each NUMA domain of each.

    A part with a CPU less, which the system has for itself, is compared by as many CPUs as it has.

    :arg kind: ``cores``, ``caches`` (last-level), ``numa_domains`` or ``sockets``.
    :arg cpus: the CPUs that may be used, in the order of :func:`cpu_order`.
    :returns: (parts, left out), lists of lists of CPUs.  Left out are those in fewer NUMA domains than another, or with less than
        half of its CPUs in one.
    '''
    groups = {'cores': lambda: [[cpu] for cpu in cpus], 'caches': lambda: _last_level_groups(processor),
              'numa_domains': lambda: _groups(processor, 'numa_nodes'), 'sockets': lambda: _groups(processor, 'sockets')}[kind]()
    domain = _index_by_cpu(_groups(processor, 'numa_nodes'))
    ours = [[cpu for cpu in cpus if cpu in group] for group in groups]
    found = [[list(same) for _, same in itertools.groupby(part, key=domain.get)] for part in ours if part]
    fewest = [min(map(len, part)) if len(part) == max(map(len, found)) else 0 for part in found]
    alike = [n > 0 and 2 * n >= max(fewest) for n in fewest]
    each = min(itertools.compress(fewest, alike), default=0)
    return ([[cpu for same in part for cpu in same[:each]] for part in itertools.compress(found, alike)],
            [sum(part, []) for part, kept in zip(found, alike) if not kept])


def nearest_shared(processor, cpus):
    '''What each two CPUs share, by the topology.

    :returns: (names, index): the names of what can be shared, nearest first, the last of them ``node``; and for each pair the
        position of the nearest that both are in, n lists of n, -1 on the diagonal.
    '''
    groups = _shared_groups(processor)
    places = [_index_by_cpu(members) for _, members in groups]

    def nearest(a, b):
        shared = (at for at, place in enumerate(places) if a in place and place[a] == place.get(b))
        return next(shared, len(groups))

    index = [[-1 if a == b else nearest(a, b) for b in cpus] for a in cpus]
    return [name for name, _ in groups] + ['node'], index


def scattered(processor, cpus):
    '''Sockets, NUMA nodes and last-level caches of which these CPUs use more than they need.

    :returns: list of (name, how many they use, how many have room for them).
    '''
    core = _index_by_cpu(_groups(processor, 'cores'))
    count = len({core.get(cpu, -1 - cpu) for cpu in cpus})
    found = []
    for name, groups in (('sockets', _groups(processor, 'sockets')), ('NUMA nodes', _groups(processor, 'numa_nodes')),
                         ('last-level caches', _last_level_groups(processor))):
        used = sum(not set(group).isdisjoint(cpus) for group in groups)
        sizes = sorted((len({core.get(cpu, -1 - cpu) for cpu in group}) for group in groups), reverse=True)
        needed = next((n for n in range(1, len(sizes) + 1) if sum(sizes[:n]) >= count), len(sizes))
        if used > needed:
            found.append((name, used, needed))
    return found


def thread_counts(order, processor):
    '''Numbers of threads of a scaling curve: 1, 2, 4, ... in the first socket, then each socket filled.

    :arg order: the CPUs as :func:`cpu_order` gave them; n threads use the first n.
    :returns: ascending list that ends with ``len(order)``.
    :raises PlumblineError: if ``order`` is empty.
    '''
    if not order:
        raise PlumblineError('no CPU to run on: ask the scheduler for at least one')
    place = _index_by_cpu(_groups(processor, 'sockets'))
    # Of sockets of one CPU, as some virtual machines have them, each would be filled at once.
    filled = {n for n in range(2, len(order)) if place.get(order[n]) != place.get(order[n - 1]) == place.get(order[n - 2])} | {len(order)}
    powers = {2**i for i in range(min(filled).bit_length()) if 2**i < min(filled)}
    return sorted(powers | filled)


def levels(processor, cpu=None):
    '''The levels of the memory hierarchy that records know, which count a fourth cache as memory: for example ``['L1', 'L2', 'L3', 'memory']``.

    :arg cpu: only the caches that this CPU reaches; :obj:`None` for all of the node.
    '''
    caches = _caches(processor).items()
    return [level for level, of_level in caches if level <= 'L3' and (cpu is None or any(cpu in shared for _, shared in of_level))] + ['memory']


def private_level(processor):
    '''The largest level whose caches each belong to one core, and not the last if another does: a virtual machine may say so of it.

    :returns: for example ``'L2'``; :obj:`None` where cores share the caches of every level.
    :raises PlumblineError: if no caches are in the topology.
    '''
    caches, core = _caches(processor), _index_by_cpu(_groups(processor, 'cores'))
    if not caches:
        raise PlumblineError(_NO_CACHES)
    private = [level for level, of_level in caches.items() if all(len({core.get(cpu) for cpu in shared}) == 1 for _, shared in of_level)]
    return max(set(private) - {max(caches)} or private, default=None)


def capacity(processor, level, cpus=None):
    '''Bytes of the caches of ``level`` that ``cpus`` reach (:obj:`None`: all of the node), each cache counted once.

    :raises PlumblineError: if there is no such level, or ``cpus`` reach none of its caches.
    '''
    caches = _caches(processor)
    if not caches:
        raise PlumblineError(_NO_CACHES)
    if level not in caches:
        raise PlumblineError(f"no caches {level} in the topology of this partition, which has {', '.join(caches)}; {_DETECT}")
    size = sum(size for size, shared in caches[level] if cpus is None or not shared.isdisjoint(cpus))
    if size <= 0:
        raise PlumblineError(f'CPUs {cpu_list(cpus or ())} reach no {level} of the topology of this partition; {_DETECT}')
    return size


def last_level_share(processor, cpus):
    '''Bytes that each of these CPUs has of the largest caches when all of them work.

    :raises PlumblineError: if no caches are in the topology, or ``cpus`` reach none of the largest.
    '''
    return capacity(processor, max(_caches(processor), default='L1'), cpus) // len(cpus)


def reduced(processor, ours):
    '''The processor's information with the size of each cache no larger than what is ours of it.

    :arg ours: level -> bytes of each cache (:meth:`plumbline.rfm.capacity.MeasuredCaches.ours`).
    '''
    known = _topology(processor)
    caches = [{**cache, 'size': min(cache['size'], ours.get(cache['type'], cache['size']))} for cache in known.get('caches') or ()]
    return {'topology': {**known, 'caches': caches}}


def sizes_text(ours):
    '''Level -> bytes as the programs' option ``--capacity`` takes it, for example ``'L2=524288,L3=4718592'``.'''
    return ','.join(f'{level}={size}' for level, size in sorted(ours.items()))


def _cache_working_set(processor, level, cpus, ours):
    there = reduced(processor, ours)
    known, held = _caches(processor), capacity(there, level, cpus)
    size = int(CACHE_SHARE * held)
    below = [lower for lower in known if lower < level]
    lower = capacity(there, below[-1], cpus) if below else 0
    if level in ours:       # what is ours of the lower level may be another part of it in the next session: by its claim
        usual = int(CACHE_SHARE * capacity(processor, level, cpus))
        usual = min(usual, ABOVE_LOWER_LEVEL_SHARED * capacity(processor, below[-1], cpus)) if below else usual
        size = usual if level != max(known) and usual <= CACHE_SHARE_OF_CORE * held else min(size, usual)
    if size < ABOVE_LOWER_LEVEL * lower:
        raise PlumblineError(
            f'{level} cannot be isolated: half of its capacity ({quantity.size(size)}) is below {ABOVE_LOWER_LEVEL} x {below[-1]} '
            f'({quantity.size(lower)}) of the same CPUs; leave {level} out, or use fewer of the cores that share it')
    return size


def _held(processor, level, cpus, ours):
    '''Bytes that threads on these CPUs hold at most of all caches of a level: each as much as the chase of one did, which may be more than
    the topology says.'''
    one = ours.get(level, math.inf)
    return sum(one if size < one < math.inf else min(size, one * max(1, len(shared.intersection(cpus))))
               for size, shared in _caches(processor).get(level, ()))


def _memory_working_set(processor, cpus, available, ours):
    last = max(_caches(processor), default='L1')
    cache = _held(processor, last, cpus, ours)
    size = max(MEMORY_OVER_CACHE * cache, capacity(processor, last), MEMORY_AT_LEAST)
    if available is None:
        return size
    size = min(size, int(WORKING_SET_SHARE * available))
    if size < MEMORY_OVER_CACHE_LEAST * cache:
        raise PlumblineError(
            f'memory cannot be measured: an eighth of it is {quantity.size(size)}, and the last-level caches hold {quantity.size(cache)}; ask for '
            f'{quantity.size(MEMORY_OVER_CACHE_LEAST / WORKING_SET_SHARE * cache)} of memory at least')
    return size


def working_set(processor, level, cpus, available=None, ours=None):
    '''How much memory to sweep through so that ``level`` serves it.

    A cache level: half of what ``cpus`` reach of it, which must be at least twice what they reach
    of the level below; where the cache may be others' too, no more than three times what the topology says of that.
    Of a core's own level it stays what it is by the topology while no more than three quarters of what is ours.

    Memory: four times what threads on ``cpus`` can hold of the last-level caches of the whole node (other cores' caches may hold lines too), and no
    less than all of them, since ours may become more; at least 256 MiB, at most an eighth of ``available``.  What is ours was measured by one thread,
    and more hold more: of an L3 of 300 MiB one held 37, and the streams of 16 through 300 MiB were 2.3 times as fast as through 1,200 and 4,800 (a
    virtual machine of an Emerald Rapids; one thread's were as fast).

    :arg cpus: the CPUs that the threads run on; the result is for all of them together.
    :arg available: memory of the node or of the job, bytes; :obj:`None` if unknown.
    :arg ours: level -> bytes of each of its caches that are ours, where that may be less than the topology says.
    :raises PlumblineError: if there is no such level, if it cannot be told from the level below, or if the memory is too small.
    '''
    if level == 'memory':
        return _memory_working_set(processor, cpus, available, ours or {})
    return _cache_working_set(processor, level, cpus, ours or {})


def working_sets(processor, cpus, available=None, ours=None):
    '''The working sets of all levels that can be measured with ``cpus``.

    :arg ours: as of :func:`working_set`.
    :returns: (sizes, skipped): dictionaries level -> bytes, and level -> why it cannot be.
    '''
    sizes, skipped, ours = {}, {}, ours or {}
    for level in levels(processor):
        try:
            sizes[level] = working_set(processor, level, cpus, available, ours)
        except PlumblineError as error:
            part = f'; {quantity.size(ours[level])} of each {level} are ours' if level in ours else ''
            skipped[level] = f'{error}{part}'
    return sizes, skipped

'''What a host was like while it was measured, as the rules of :mod:`plumbline.analysis.diagnosis` ask for it.

Each function gives (value, text) of the tests of a host, or (None, '') where it is not known.
'''

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from plumbline.model import contention, probes, processor, quantity, tlb
from plumbline.system import codegen

#: A clock below this share of the processor's base clock is held down; wide registers alone take some of it.
HELD_DOWN = 0.85

#: Programs whose registers are as wide as can be, for as long as they run: their clock is below the base clock of some processors.
_WIDE = ('peak_flops',)

#: Differences from what is expected of a node that are named.
_MOST_NAMED = 6

_UNKNOWN = (None, '')


def _the(choose):
    '''Of the (value, text) that a function yields the least (:func:`min`) or the most.'''
    return lambda find: lambda tests: choose(find(tests), default=_UNKNOWN)


def _records(tests, of_memory=False):
    '''(label, machine record, measurement record) of all kernels; of memory alone those whose data lie there, each thread's where it is.'''
    for line in tests:
        for record in line.detail.records or ():
            options = record.get('options') or {}
            if not of_memory or (record.get('level') == 'memory' and options.get('init', 'parinit') == 'parinit'):
                yield line.label, line.detail.of_machine, record


def _probed(tests):
    '''(line, what is left of a measurement record: its probes) of all kernels.'''
    for line in tests:
        known = line.detail.probes or {}
        for parts in zip(*(np.split(sides, begins, axis=1) for sides, begins in known.values())):
            yield line, {'probes': {name: dict(zip(('before', 'after'), part)) for name, part in zip(known, parts) if part.size}}


def _taken(cause):
    '''Share of the threads' time that was lost to a cause of :mod:`contention`.'''
    def find(tests):
        measured = [line for line in tests if line.detail.contention]
        share = contention.causes([one for line in measured for one in line.detail.contention]).get(cause)
        if share is None:
            return _UNKNOWN
        given = [(known, line.label) for line in measured if (known := contention.time_given(line.detail.contention)) is not None]
        least = min(given, default=None)
        worst = f'; the least had {least[1]}: {quantity.percent(least[0])} of its time' if least else ''
        return share, contention.took(cause, share) + worst
    return find


def _time_given(tests):
    given = [known for line in tests if (known := contention.time_given(line.detail.contention or ())) is not None]
    return (min(given), f'the least of all tests had {quantity.percent(min(given))} of its time') if given else _UNKNOWN


@_the(min)
def _quota_per_thread(tests):
    ran = [(line, contention.team(line.detail.contention or ())) for line in tests]
    for line, threads in ran:
        quota = line.detail.of_machine.get('cpu_quota')
        if threads and quota:
            if line.threads == 'all':       # the team is as small as the quota, which came in the middle where others were larger
                threads = max(team for other, team in ran if other.partition == line.partition)
            yield quota / threads, contention.by_quota(quota, threads)
        elif threads:
            yield 1.0, ''       # without a quota there is enough for each


def _threads_per_cpu(tests):
    found = []
    for label, machine, record in _records(tests):
        cpus, ranks = record.get('cpus') or (), machine.get('processes') or ()
        of_each = len(ranks) == len(cpus)
        taken = set(zip((rank['host'] for rank in ranks), cpus) if of_each else cpus)     # each node has a CPU 0
        if cpus and (of_each or len({rank['host'] for rank in ranks}) < 2):
            found.append((len(cpus) / len(taken), f"{label}: {len(cpus)} threads or ranks ran on {quantity.several(len(taken), 'CPU')}"))
    return max(found, key=lambda one: one[0], default=_UNKNOWN)


@_the(max)
def _on_one_core(tests):
    '''Share of the samples beside which two threads of a team were on one core, of the worst test.'''
    for line, record in _probed(tests):
        if (factors := probes.beside(record, probes.SHARING)) is not None and (known := factors[np.isfinite(factors)]).size:
            share = float(np.mean(known > probes.ON_ONE_CORE))
            yield share, f'{line.label}: beside {quantity.percent(share, 0)} of the samples'


def _others_on_core(tests):
    '''Share of the samples of all tests beside which somebody else worked on the other hardware thread of a core.'''
    of_one_kind = (record for line, record in _probed(tests) if not line.detail.of_machine.get('core_kinds'))      # others add otherwise
    found = [one for one in probes.beside_others(of_one_kind) if one is not None]
    if not found:
        return _UNKNOWN
    share = float(np.mean(np.concatenate(found)))
    return share, f'beside {quantity.percent(share, 0)} of the samples a core did fewer additions per cycle than it can'


@_the(min)
def _allowed_share(tests):
    '''Where a quota leaves no more CPUs than are used, their number is our own choice.'''
    for line in tests:
        machine = line.detail.of_machine
        node = {cpu for domain in machine.get('numa_nodes') or () for cpu in domain['cpus']}
        quota = machine.get('cpu_quota')
        if node and machine.get('allowed_cpus') and not (quota and int(quota) <= len(machine['allowed_cpus'])):
            yield len(machine['allowed_cpus']) / len(node), f"{len(machine['allowed_cpus'])} of the node's {len(node)} CPUs may be used"


def _clocks(tests):
    '''(label, MHz beside the samples over the base clock, base clock) of each test for which both are known.'''
    for line in tests:
        machine = line.detail.of_machine
        clock = None if machine.get('core_kinds') else machine.get('base_clock')      # several kinds have several
        # What the driver says may have been lowered; without turbo it is all that there is.
        base = clock and (clock.get('nominal_mhz', clock['mhz']) if clock.get('turbo') else clock['mhz'])
        if base and line.check not in _WIDE:
            found = [probes.beside(record, probes.CLOCK) for _, record in _probed([line])]
            mhz = np.concatenate([one for one in found if one is not None] or [np.empty(0)]) * 1e-6
            if (mhz := mhz[np.isfinite(mhz)]).size:
                yield line.label, mhz / base, base


def _held_down(of_all):
    '''Share of the samples beside which the clock was below :data:`HELD_DOWN` of the base clock: of all, or of the worst test.'''
    def find(tests):
        clocks = list(_clocks(tests))
        if not clocks:
            return _UNKNOWN
        low = {label: float(np.mean(ratios < HELD_DOWN)) for label, ratios, _ in clocks}
        share = float(np.mean(np.concatenate([ratios for _, ratios, _ in clocks]) < HELD_DOWN))
        label, ratios, base = max(clocks, key=lambda one: low[one[0]])
        return share if of_all else low[label], (
            f'the clock was below {quantity.percent(HELD_DOWN)} of the base clock ({base:.0f} MHz) beside {quantity.percent(share)} of the '
            f'samples, most in {label}: {quantity.percent(low[label])}, down to {ratios.min() * base:.0f} MHz')
    return find


#: Of these drivers powersave is the usual governor, and goes up to the highest clock under load (Linux, admin-guide/pm/intel_pstate and amd-pstate).
_CHOOSE_THEMSELVES = ('intel_pstate', 'amd-pstate-epp')


def _governor(tests):
    '''Its name; ``usual`` for a powersave that does not hold the clock down.'''
    found = {}
    for machine in (machine for line in tests if 'governor' in (machine := line.detail.of_machine)):
        name, driver = machine.get('governor') or 'unknown', machine.get('scaling_driver')
        found[f'{name} of {driver}' if driver else name] = 'usual' if (name, driver in _CHOOSE_THEMSELVES) == ('powersave', True) else name
    return (' '.join(found.values()), f"frequency governor {', '.join(found)}") if found else _UNKNOWN


def _other_processors(tests):
    others = sorted({other for line in tests for other in line.detail.other_processors or ()})
    names = {processor.name(line.detail.of_machine): None for line in tests if line.detail.other_processors}
    return len(others), f"they are of {', '.join(others)}; this one is {', '.join(map(str, names))}"


@_the(min)
def _simd_width_kept(tests):
    '''Width of a loop's code over that when its reference was measured, the least.'''
    for line in tests:
        for variant, before in (line.detail.simd_width_of_references or {}).items():
            if now := (line.detail.simd_width or {}).get(variant):
                yield codegen.bits(now) / codegen.bits(before), f'{line.label}, {variant}: the code is {now}, that of the references was {before}'


@_the(min)
def _simd_width_of_written(tests):
    '''Width of what the compiler made of a kernel's plain loop over that of the same with intrinsics, the least.'''
    loops: dict[tuple, dict] = defaultdict(dict)
    for line in tests:
        for variant, width in (line.detail.simd_width or {}).items():
            kernel = next((record['kernel'] for record in line.detail.records or () if record['variant'] == variant), None)
            loops[line.environ, kernel].setdefault(variant, width)
    for (environ, kernel), one in loops.items():
        if kernel and {'plain', 'simd'} <= set(one):
            yield (codegen.bits(one['plain']) / codegen.bits(one['simd']),
                   f"{kernel}, {environ}: the compiler's code is {one['plain']}, that with intrinsics {one['simd']}")


def _huge_page_share(tests):
    found = [(record['huge_page_share'], label) for label, machine, record in _records(tests, of_memory=True)
             if (record.get('options') or {}).get('pages') == 'huge' and record.get('huge_page_share') is not None
             and not tlb.larger_than(record, machine)]
    if not found:
        return _UNKNOWN
    share, label = min(found)
    chosen = next((known for line in tests if (known := line.detail.of_machine.get('huge_pages'))), None)
    return share, (f'{label}: {quantity.percent(share, 0)} of the memory for which huge pages were asked has them (transparent huge pages: '
                   f"{chosen or 'not readable'})")


def _pages_and_threads(tests):
    '''(label, shares of the pages by domain, shares of the threads by domain) of data in memory, of nodes with several domains.'''
    for label, machine, record in _records(tests, of_memory=True):
        domains = machine.get('numa_nodes') or ()
        if len(domains) > 1 and record.get('numa_nodes') and record.get('cpus'):
            where = {cpu: str(domain['node']) for domain in domains for cpu in domain['cpus']}
            threads: dict[str | None, float] = defaultdict(float)
            for cpu in record['cpus']:
                threads[where.get(cpu)] += 1 / len(record['cpus'])
            if None not in threads:
                yield f"{label}, {record['variant']}", record['numa_nodes'], threads


def _misplaced(count: Callable, text: str):
    @_the(max)
    def find(tests):
        for label, pages, threads in _pages_and_threads(tests):
            share = sum(count(share, threads.get(domain, 0.0)) for domain, share in pages.items())
            yield share, f'{label}: {quantity.percent(share, 0)} of the pages {text}'
    return find


@_the(min)
def _cache_ours(tests):
    '''Of a level of cache what is ours over what the topology says, the least.'''
    for line in tests:
        machine = line.detail.of_machine
        for cache in machine.get('caches') or ():
            ours = (machine.get('capacity') or {}).get(f"L{cache['level']}")
            if ours and cache.get('size'):
                yield ours / cache['size'], f"of L{cache['level']} {quantity.size(ours)} of {quantity.size(cache['size'])} are ours"


def _not_as_expected(tests):
    '''How many facts of the node are not as its expectations say, and still no reason to drain it.'''
    found = [note for line in tests for note in line.detail.notes_about('expectations')]
    return (len(found), '; '.join(quantity.at_most(found, _MOST_NAMED))) if found else _UNKNOWN


#: These are of one test, and say nothing of another: they are asked of those that have something out of bounds.
OF_A_TEST = {'on_one_core'}

#: Name of a state -> function (a line of each test of a host) -> (value, text).
STATES: dict[str, Callable[[Sequence], tuple]] = {
    'throttled': _taken(contention.QUOTA), 'others': _taken(contention.OTHERS), 'stolen': _taken(contention.HYPERVISOR), 'time_given': _time_given,
    'quota_per_thread': _quota_per_thread, 'threads_per_cpu': _threads_per_cpu, 'on_one_core': _on_one_core, 'others_on_core': _others_on_core,
    'allowed_share': _allowed_share, 'held_down': _held_down(of_all=True), 'held_down_of_a_test': _held_down(of_all=False), 'governor': _governor,
    'other_processors': _other_processors, 'simd_width_kept': _simd_width_kept, 'simd_width_of_written': _simd_width_of_written,
    'huge_page_share': _huge_page_share, 'cache_ours': _cache_ours, 'not_as_expected': _not_as_expected,
    'remote_pages': _misplaced(lambda pages, threads: 0.0 if threads else pages, 'lay in NUMA domains in which none of its threads ran'),
    'misplaced_pages': _misplaced(lambda pages, threads: max(0.0, pages - threads), 'lay in another NUMA domain than its threads'),
}

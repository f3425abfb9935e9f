'''What is to be known before a verdict is read: references of another processor, CPUs that others had, a clock that was held down.'''

import numpy as np

from plumbline.model import contention, probes, quantity

#: A clock below this share of the processor's base clock is held down; wide registers alone take some of it.
HELD_DOWN = 0.85

#: Told where it is so in this share of a host's samples, or in half of those of one test.
WORTH_TELLING, OF_A_TEST = 0.02, 0.5

#: Programs whose registers are as wide as can be, for as long as they run: their clock is below the base clock of some processors.
_WIDE = ('peak_flops',)


def warnings(lines):
    '''What is to be known before a verdict is read, a sentence each.'''
    tests = {line.case: line for line in lines}.values()
    return [*_of_other_processors(tests), *_disturbed(tests), *_held_down(tests)]


def _of_other_processors(tests):
    systems: dict[str, dict[str, str | None]] = {}
    for line in tests:
        for other in line.detail.get('other_processors') or ():
            systems.setdefault(line.system, {})[other] = (line.detail.get('machine') or {}).get('cpu_model')
    return [f"The references of {system} are of another processor ({', '.join(sorted(others))}; this one is {next(iter(others.values()))}) and judge "
            'nothing here: measure sessions and accept them (plumbline references accept)' for system, others in systems.items()]


def _disturbed(tests):
    """What took CPU time from the session's threads, a sentence for each host where that is worth telling.

    It is the first thing to look at where others are slow: what did not have the CPUs for itself was not measured alone.
    """
    hosts, told = _by_host(line for line in tests if line.detail.get('contention')), []
    for host, tests in hosts.items():
        # A quota may have come in the middle of the session.
        limited = [line.detail['machine'] for line in tests if (line.detail.get('machine') or {}).get('cpu_quota')]
        causes = contention.notes([one for line in tests for one in line.detail['contention']], min(limited, key=_quota, default=None))
        if causes:
            least = min(((contention.time_given(line.detail['contention']), line.label) for line in tests
                         if contention.time_given(line.detail['contention']) is not None), default=None)
            worst = f'; the least had {least[1]}: {quantity.percent(least[0])} of its time' if least else ''
            told.append(f"{f'{host}: ' if len(hosts) > 1 else ''}{', '.join(causes)}{worst}")
    return [f'The threads did not have the CPUs to themselves, and what is slow may be slow for that: {text}' for text in told]


def _quota(machine):
    return machine['cpu_quota']


def _by_host(tests):
    hosts: dict[str | None, list] = {}
    for line in tests:
        hosts.setdefault(line.hostname, []).append(line)
    return hosts


def _held_down(tests):
    '''On which host the clock, as the teams measured it beside their samples, was below the base clock, and when.

    A processor that is hot, capped or told to save power is so in the middle of a session as well, after what looks at the clock has run.
    '''
    told, hosts = [], _by_host(line for line in tests if line.check not in _WIDE and _base_clock(line))
    for host, its in hosts.items():
        clocks = {line.label: (_clocks(line) / _base_clock(line), _base_clock(line)) for line in its}
        of_all = np.concatenate([ratios for ratios, _ in clocks.values()])
        share = float(np.mean(of_all < HELD_DOWN)) if of_all.size else 0.0
        of_test, label = max(((float(np.mean(ratios < HELD_DOWN)), label) for label, (ratios, _) in clocks.items() if ratios.size),
                             default=(0.0, ''))
        if share >= WORTH_TELLING or of_test >= OF_A_TEST:
            ratios, base = clocks[label]
            told.append(f"{f'{host}: ' if len(hosts) > 1 else ''}the clock was below {quantity.percent(HELD_DOWN)} of the base clock "
                        f'({base:.0f} MHz) beside {quantity.percent(share)} of the samples, most in {label}: {quantity.percent(of_test)}, '
                        f'down to {ratios.min() * base:.0f} MHz')
    return [f'The processor was throttled, capped, or told to save power, and what is slow may be slow for that: {text}' for text in told]


def _base_clock(line):
    '''MHz; None where it is not known, or cores of several kinds have several.'''
    machine = line.detail.get('machine') or {}
    return None if machine.get('core_kinds') else (machine.get('base_clock') or {}).get('mhz')


def _clocks(line):
    '''MHz beside all samples of a test.'''
    found = [probes.beside(record, probes.CLOCK) for record in line.detail.get('records') or ()]
    known = np.concatenate([clock for clock in found if clock is not None] or [np.empty(0)]) * 1e-6
    return known[np.isfinite(known)]

'''What a core of a microarchitecture does in a clock cycle (``data/microarchitectures.yaml``): predictions with bounds of their own, by
which a machine is judged on its first day, before it has any references.

Cycles are those of the clock that was measured beside the samples, so neither turbo nor a hypervisor that hides the clock matters.  A
baseline is of the very microarchitecture: relatives are no evidence.
'''

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import probes
from plumbline.model.metrics import Metric

PATH = Path(__file__).parents[1] / 'data' / 'microarchitectures.yaml'

#: Where references are from that no site has recorded: what any machine must reach of its own limits, and what a core does in a cycle.
PORTABLE = 'portable.yaml'
SHIPPED = (PORTABLE, PATH.name)

#: What the clock beside the samples may be off from that of the samples themselves, and room for the interval of a value: 0.995 with
#: 0.96 to 1.03 on a quiet machine.  What a core can lose is far more: one of two units, a cycle of four.
CLOCK = 0.08

VIRTUAL = 'inside a virtual machine cores and memory may be shared with others, and cores be moved, or be others than their name says'
PERHAPS_VIRTUAL = f'whether this is a virtual machine is not known: {VIRTUAL}'
NO_CLOCK = 'not judged: no clock was measured beside the samples'


@dataclass(frozen=True)
class Baseline:
    '''A quantity per cycle: operations, or the cycles of one access.

    :attr value: what is published; the metric is 1 there.
    :attr least, most: of a core in order.
    :attr better: 1 where more is better, -1 where less is.
    '''
    value: float
    least: float
    most: float
    better: int = 1

    def share(self, measured: ArrayLike) -> np.ndarray:
        '''What the core does over what its microarchitecture does.'''
        return (np.asarray(measured) / self.value) ** self.better

    @property
    def leaf(self) -> tuple[float, float, float]:
        '''(reference, lower, upper) of :meth:`share`.'''
        low, high = sorted((self.least, self.most), key=self.share)
        return 1.0, float(self.share(low)) * (1 - CLOCK) - 1, float(self.share(high)) * (1 + CLOCK) - 1


def read(path: str | Path) -> dict[str, dict]:
    '''The content of a file of microarchitectures.

    :raises PlumblineError: in one line, if it is wrong.
    '''
    content = schemas.read_yaml(path, 'microarchitectures')
    for name, known in content.items():
        for level, given in known.get('latency', {}).items():
            if not given['least'] <= given['cycles'] <= given['most']:
                raise PlumblineError(f'{path}: field {name}/latency/{level}: cycles lie between least and most')
        if known.get('fma', {}).get('least', 0) > known.get('fma', {}).get('units', 0):
            raise PlumblineError(f'{path}: field {name}/fma/least: is more than units')
    return content


@functools.cache
def microarchitectures() -> dict[str, dict]:
    '''archspec's name -> what is known of it.'''
    return read(PATH)


def known_as(arch: str | None, cpuid: dict | None) -> str | None:
    '''The microarchitecture of a processor.

    :arg arch: archspec's name, by the flags: where a hypervisor hides one of them, that of a level (``x86_64_v4``), or of a relative.
    :arg cpuid: dictionary of ``vendor``, ``family``, ``model``, ``stepping``; None where there are none.
    :returns: a name that has a baseline, or else ``arch``; the processor's numbers where they contradict that.
    '''
    if not cpuid:
        return arch
    named = next((name for name, known in microarchitectures().items() if 'cpuid' in known and _is(known['cpuid'], cpuid)), None)
    if named is None and 'cpuid' in microarchitectures().get(arch or '', {}):
        return '{vendor} family {family} model {model} stepping {stepping}'.format(**cpuid)
    return named or arch


def _is(known: dict, cpuid: dict) -> bool:
    least, most = known.get('steppings', (0, 255))
    return ((known['vendor'], known['family']) == (cpuid['vendor'], cpuid['family']) and least <= cpuid['stepping'] <= most
            and any(first <= cpuid['model'] <= last for first, last in known['models']))


def unknown(arch: str | None, what: str = 'baseline') -> str:
    '''Why there is no baseline.'''
    return f"not judged: no {what} of {arch or 'an unknown microarchitecture'} in {PATH.name}"


def fma(arch: str | None, bits: int, chains: int) -> tuple[Baseline, None] | tuple[None, str]:
    '''Double-precision operations per cycle with fused multiply-adds of a width: (:class:`Baseline`, None), or (None, why not).

    :arg chains: that a program has, each of multiply-adds that need the result of the one before.
    '''
    known = microarchitectures().get(arch or '', {}).get('fma')
    if known is None:
        return None, unknown(arch)
    if 'latency' not in known:
        return None, unknown(arch, 'latency of fused multiply-adds')
    if chains < known['latency'] * known['units']:
        return None, f"not judged: {chains} chains keep fewer than the {known['units']} units of {arch} busy"
    most = 2 * known['units'] * min(bits, known['bits']) / 64
    # A processor of this name may have fewer units of the full width, and has all of the narrower ones.
    few = known['least'] / known['units'] if 'least' in known and bits >= known['bits'] else 1
    return Baseline(most, few * most, most), None


def latency(arch: str | None, level: str) -> tuple[Baseline, None] | tuple[None, str]:
    '''Cycles of a load that needs the result of the one before: (:class:`Baseline`, None), or (None, why not).'''
    known = microarchitectures().get(arch or '', {}).get('latency', {}).get(level)
    if known is None:
        return None, unknown(arch, f'latency of {level}' if arch in microarchitectures() else 'baseline')
    return Baseline(known['cycles'], known['least'], known['most'], better=-1), None


def virtual(machine: dict | None) -> str | None:
    '''Why what is seen need not be the machine's own doing; None of one that is known to be real.

    :arg machine: the machine record; of one without ``virtual`` (written before December 2026) nobody knows.
    '''
    return {'yes': VIRTUAL, 'no': None}.get((machine or {}).get('virtual', ''), PERHAPS_VIRTUAL)


def doubt(record: dict, arch: str | None, machine: dict | None) -> str | None:
    '''Why what is out of bounds need not be the core's doing, or None.'''
    if why := virtual(machine):
        return why
    adders, additions = microarchitectures().get(arch or '', {}).get('adders'), probes.beside(record, probes.ADDITIONS)
    if adders and additions is not None and np.nanmedian(additions) < probes.OWN * adders['units']:
        return f"something else works on the core: {np.nanmedian(additions):.1f} additions per cycle beside the samples, of {adders['units']}"
    return None


def of_baseline(subject: str, found: Baseline, measured: ArrayLike, record: dict, arch: str | None, machine: dict | None,
                unjudged: str | None = None) -> Metric:
    '''The metric, judged by the prediction's own bounds unless a site has recorded references.

    :arg found: :class:`Baseline`.
    :arg measured: shape (n,), in its unit.
    '''
    return Metric('of_baseline', subject, found.share(measured), unjudged=unjudged, record=record, baseline=found.leaf,
                  doubt=doubt(record, arch, machine))

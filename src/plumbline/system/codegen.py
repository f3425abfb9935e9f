'''What the compiler made of a loop: read from the program's disassembly, not assumed.'''

import re

import numpy as np

from plumbline.model import uncertainty

_ARITHMETIC = re.compile(r'\tv?(?:f[n]?m(?:add|sub)\d*|add|sub|mul)(?P<kind>[ps])[sd]\s+(?P<operands>.*)')
_STORE = re.compile(r'\tv?mov(?:(?:u|a|nt)p|s)[sd]\s+%[xyz]mm\d+,[^%]*\((?P<where>[^)]*)\)')
_JUMP = re.compile(r'\tj\w+\s+(?P<target>[0-9a-f]+) ')
_INSTRUCTION = re.compile(r'\s*(?P<address>[0-9a-f]+):\t(?P<text>.*)')
_PADDING = re.compile(r'(?:cs |data16 )*nop|xchg +%ax,%ax')
_WIDTH = {'z': 512, 'y': 256, 'x': 128}

#: A loop that takes this many times as long as another is slower; below it is noise, and where the code happens to lie.
EFFECT = 1.1


def functions(disassembly):
    '''The functions of ``objdump -d``: dictionary name -> lines.'''
    result: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in disassembly.splitlines():
        match = re.match(r'[0-9a-f]+ <(\w+)(?:\.\w+)*>:$', line)
        if match:
            lines = result.setdefault(match[1], [])
        else:
            lines.append(line)
    return result


def innermost_loops(lines):
    '''The loops of a function that hold no other loop: a list of lines of each.'''
    at = {match['address']: i for i, line in enumerate(lines) if (match := _INSTRUCTION.match(line))}
    ends = [(at[match['target']], i) for i, line in enumerate(lines) if (match := _JUMP.search(line)) and at.get(match['target'], i + 1) <= i]
    return [lines[first:last + 1] for first, last in ends if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in ends)]


def _arithmetic(lines):
    return [match for line in lines if (match := _ARITHMETIC.search(line))]


def _left_scalar(lines):
    '''Whether a scalar loop stores to more arrays than any vectorised one: then it is not the remainder of one, nor what
    is run in its place where arrays overlap.'''
    stores: dict[bool, list[int]] = {True: [], False: []}
    for loop in innermost_loops(lines):
        if found := _arithmetic(loop):
            # A loop that is unrolled stores to the same array again, at another displacement.
            arrays = {match['where'] for line in loop if (match := _STORE.search(line))}
            stores[any(match['kind'] == 'p' for match in found)].append(len(arrays))
    return bool(stores[True]) and max(stores[False], default=0) > max(stores[True])


def bits(width):
    '''The number of a width (:func:`vector_width`): ``256-bit`` is 256, ``scalar`` 64; half of it where one of several loops was left scalar.'''
    known = re.match(r'\d+', width)
    return (int(known[0]) if known else 64) / (2 if width.endswith(' in part') else 1)


def vector_width(lines):
    '''Width of the widest packed floating-point arithmetic of a function.

    Remainders, and what is run where arrays overlap, are scalar in vectorised code too; so a width does not say that all iterations used it.

    :returns: ``'512-bit'``, ``'256-bit'``, ``'128-bit'``, the same with ``' in part'`` where one of several loops was
        left scalar, ``'scalar'``, or :obj:`None` where there is no such arithmetic (another processor family than x86, too).
    '''
    found = _arithmetic(lines)
    widths = [_WIDTH[register] for match in found if match['kind'] == 'p' for register in re.findall(r'%([xyz])mm', match['operands'])]
    if widths:
        return f"{max(widths)}-bit{' in part' if _left_scalar(lines) else ''}"
    return 'scalar' if found else None


def widths_of(disassembly, kernel, cases):
    '''The SIMD width of the variants of a kernel.

    :arg cases: pairs (variant, instruction set or None); the loop is the function ``kernel_variant`` or ``kernel_variant_isa``.
    :returns: dictionary variant -> :func:`vector_width`, of the variants that were found.
    '''
    known = functions(disassembly)
    result = {}
    for variant, isa in cases:
        for name in (f'{kernel}_{variant}', f"{kernel}_{variant}_{(isa or '').removesuffix('f')}"):
            if name in known and (width := vector_width(known[name])):
                result[variant] = width
    return result


def same_code(disassembly, *names):
    '''Whether functions consist of the same instructions, wherever they lie; :obj:`None` if one of them is not in the disassembly.'''
    known = functions(disassembly)
    if not all(known.get(name) for name in names):
        return None
    first, *others = (_instructions(known[name]) for name in names)
    return all(other == first for other in others)


def _instructions(lines):
    texts = [match['text'] for line in lines if (match := _INSTRUCTION.match(line))]
    # Addresses depend on where a function lies, and so does what fills up to an aligned one.
    return [re.sub(r'\b[0-9a-f]+ <.*>|\S+\(%rip\).*', '@', text).strip() for text in texts if not _PADDING.match(text)]


def why_split(as_written, told, widths):
    '''Why a split loop is faster than the fused one: vectorisation lost to aliasing, or too many streams.

    A compiler that cannot rule out that arrays overlap may vectorise short loops, with a check at run time, and give up
    on the long one that has too many pairs of arrays to check (gcc: ``vect-max-version-for-alias-checks``).  Told that
    nothing overlaps it vectorises both; what is left of the difference then is not its doing.

    :arg as_written: samples of time of the fused loop / time of the split one, arrays that may overlap.
    :arg told: the same, the compiler told that they do not.
    :arg widths: :func:`vector_width` of ``fused``, ``fused_restrict`` and ``split3_restrict``; missing where not known.
    :returns: a text that begins with one of ``'undecided'``, ``'no gain'``, ``'lost to aliasing'``, ``'lost to aliasing,
        and too many streams'``, ``'too many streams'``, ``'not vectorised'``.
    '''
    fused, fused_told, split_told = map(widths.get, ('fused', 'fused_restrict', 'split3_restrict'))
    ratios = (f'split is {np.median(as_written):.2f} x as fast as fused as written, {np.median(told):.2f} x with restrict')
    code = f"fused is {fused or 'of unknown width'} as written, {fused_told or 'of unknown width'} with restrict"
    gains = _slower(as_written), _slower(told)
    if None in gains:
        return f'undecided: {ratios}, with an interval around {EFFECT:g}'
    if gains == (False, False):
        return f'no gain: {ratios}; {code}'
    if not gains[1]:
        how = 'the two are compiled alike: the check at run time fails or costs' if fused == fused_told else code
        return f"lost to aliasing: {ratios}; {how if fused and fused_told else 'the code is not known'}"
    if fused_told is None or split_told is None:
        return f'undecided: {ratios}; the code is not known'
    if fused_told != split_told:
        return f'not vectorised: {ratios}; even with restrict, fused is {fused_told} and split {split_told}'
    more = np.median(as_written) > EFFECT * np.median(told)
    return f"{'lost to aliasing, and ' if more else ''}too many streams: {ratios}; {code}, as split is then"


def _slower(ratios):
    '''Whether ratios of times are above :data:`EFFECT`; None where their interval lies on both sides.'''
    low, high = uncertainty.median_interval(ratios)
    return True if low > EFFECT else False if high <= EFFECT else None

'''What the compiler made of a loop: read from the program's disassembly, not assumed.'''

import re

_ARITHMETIC = re.compile(r'\tv?(?:f[n]?m(?:add|sub)\d*|add|sub|mul)(?P<kind>[ps])d\s+(?P<operands>.*)')
_WIDTH = {'z': 512, 'y': 256, 'x': 128}


def functions(disassembly):
    '''The functions of ``objdump -d``: dictionary name -> lines.'''
    result, lines = {}, []
    for line in disassembly.splitlines():
        match = re.match(r'[0-9a-f]+ <(\w+)(?:\.\w+)*>:$', line)
        if match:
            lines = result.setdefault(match[1], [])
        else:
            lines.append(line)
    return result


def vector_width(lines):
    '''Width of the widest packed arithmetic in double precision of a function.

    :returns: ``'512-bit'``, ``'256-bit'``, ``'128-bit'``, ``'scalar'``, or :obj:`None` where there
        is no such arithmetic (another processor family than x86, too).
    '''
    found = [match for line in lines if (match := _ARITHMETIC.search(line))]
    widths = [_WIDTH[register] for match in found if match['kind'] == 'p'
              for register in re.findall(r'%([xyz])mm', match['operands'])]
    if widths:
        return f'{max(widths)}-bit'
    return 'scalar' if found else None


def widths_of(disassembly, kernel, cases):
    '''What the variants of a kernel were compiled to.

    :arg disassembly: text of ``objdump -d`` of the program.
    :arg cases: pairs (variant, instruction set or None); the loop is the function ``kernel_variant`` or
        ``kernel_variant_isa``.
    :returns: dictionary variant -> :func:`vector_width`, of the variants that were found.
    '''
    known = functions(disassembly)
    result = {}
    for variant, isa in cases:
        for name in (f'{kernel}_{variant}', f"{kernel}_{variant}_{(isa or '').removesuffix('f')}"):
            if name in known and (width := vector_width(known[name])):
                result[variant] = width
    return result

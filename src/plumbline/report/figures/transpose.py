'''The transpose.'''

from functools import partial

from plumbline.report import drawing
from plumbline.report.figures.common import Draw, bars, each_team
from plumbline.report.readings import grouped, limit_of, quartiles, rates


def transpose_memory(details):
    '''Variants side by side; one figure for another matrix as the result, one for the same.'''
    for place, told in (('out', 'into another matrix'), ('in', 'in place')):
        those = [d for d in details if any(r['options'].get('place') == place for r in d.get('records') or [])]
        if those:
            yield from bars(those, f'Ways to transpose a matrix in memory, {told}', 'anderson1997, section 3.3.3')


@each_team('Transpose at powers of two and beside them')
def transpose_sizes(at, detail, records):
    '''Bandwidth at powers of two and beside them; one figure per thread count.'''
    kernels = [r for r in records if r['role'] == 'kernel']
    panels: dict[str, dict[str, dict]] = {}
    for (level, variant), members in grouped(kernels, lambda r: (r['level'], r['variant'])):
        for record in sorted(members, key=lambda r: r['size']):
            panels.setdefault(level, {}).setdefault(f"n = {record['size']}", {})[variant] = quartiles(rates(record))
    if panels:
        yield f'Transpose at powers of two and beside them{at}', _caption(records), drawing.log_dots(list(panels.items()))


def _caption(records):
    limits = {level: limit_of(members) for level, members in grouped(records, lambda r: r['level'])}
    told = ', '.join(f'{level} {drawing.gigabytes(limit[0])}' for level, limit in limits.items() if limit)
    sentences = [
        'Application bandwidth (16 bytes per element) of B(j,i)=A(i,j), median; whiskers: quartiles of the samples. Where '
        'the dimension n is a power of two, the lines that a strided walk comes back to fall into a few sets of the caches, '
        'unless padding moves them or non-temporal stores of whole lines need none to wait.',
        f"The machine's own limits of traffic, to which write-allocates count: {told}." if told else '',
        'After anderson1997, section 3.3.3, and byna2003, section 3.',
    ]
    return ' '.join(filter(None, sentences))


FIGURES: dict[str, Draw] = {'transpose_memory': transpose_memory, 'transpose_sizes': transpose_sizes,
                            'transpose_table6': partial(bars, title='Transpose of a 1025 x 1025 matrix', source='anderson1997, table 6')}

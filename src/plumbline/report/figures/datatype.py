'''The matrix transpose as a message: bandwidths, and what its time is made of.'''

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.mpi import memory_logp
from plumbline.report import drawing
from plumbline.report.figures.common import not_drawn, where
from plumbline.report.readings import grouped, measured, quartiles, rates

#: Part of a message's time -> (its name, colour, hatching for print in grey-scale), from the axis outwards.
PARTS = {
    'copy': ('o: contiguous copy', '#0072b2', ''),
    'network': ('L: network', '#56b4e9', '/'),
    'packing': ('l_p: packing', '#e69f00', 'x'),
    'middleware': ('l_m: middleware', '#009e73', '.'),
}

_SPLIT = (
    "Nanoseconds per element of 8 bytes, medians of the rounds; the diamond is the message itself, its whiskers the quartiles. o: the C library's "
    'copy of as many contiguous bytes. L: a contiguous message less o. l_p: packing without a message, less o. l_m: the rest; where it lies left of '
    'zero the message took less time than its parts one after the other, because packing and sending overlap. After byna2003, section 4 and figure 2.'
)

_BANDWIDTH = (
    'Bytes of the message per second, over the dimension n of the matrix; line: median, band: quartiles of the samples. One '
    'message at a time, to and fro, received contiguously. After byna2003, figure 7.'
)


def datatype_transpose(details):
    '''Bandwidth over the size, and the Memory-LogP split, a figure of each for each environment and transport.'''
    for detail in details:
        records = measured([detail], 'kernel')
        at = f", {detail.get('transport') or 'transport unknown'}{where(detail, details)}"
        curves = {variant: {r['size']: quartiles(rates(r)) for r in members} for variant, members in grouped(records, lambda r: r['variant'])
                  if variant in memory_logp.PACKING or variant == 'contiguous'}
        title = f'Bandwidth of a matrix transpose as a message{at}'
        if any(len(points) > 1 for points in curves.values()):
            yield title, _BANDWIDTH, drawing.log_curves(420, curves, 'GB/s', 'n', 'bandwidth (GB/s)')
        else:
            yield not_drawn(title, 'there are no records at two or more sizes')
        yield _of_split(f'What the time of the message is made of{at}', records)


def _of_split(title, records):
    panels = []
    for _, group in grouped(records, lambda r: r['group']):
        size = group[0]['size']
        try:
            found = memory_logp.split(group)
        except PlumblineError as error:
            return not_drawn(title, str(error))
        to_element = 1e9 / size**2
        parts = {variant: {part: np.median(getattr(times, part)) * to_element for part in PARTS} for variant, times in found.items()}
        panels.append((f'n = {size}', parts, {variant: quartiles(times.total) * to_element for variant, times in found.items()}))
    if not panels:
        return not_drawn(title, 'there are no records of the program')
    return title, _SPLIT, drawing.stacked_bars(panels, PARTS, 'ns per element')


FIGURES = {'datatype_transpose': datatype_transpose}

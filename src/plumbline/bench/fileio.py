'''Fortran's ways to write an array against each other, then and now.'''

import tempfile

import numpy as np

from plumbline.bench.common import Figure
from plumbline.model import limits, records, sources

THEN = sources.io_modes()


def by_file_size(record, other):
    '''Paired ratio of the rates as the source has them, size of the file over time: text takes 25 bytes for an element of 8.'''
    return limits.paired_ratio(record, other, 'bytes') * record['options']['file_bytes'] / other['options']['file_bytes']



def figures(machine, pairs):
    '''Yield every :class:`Figure`: writes of 1 MB, interleaved in one process, in a folder of the scratch file system.'''
    with tempfile.TemporaryDirectory() as folder:
        found = machine.run('fileio', machine.cpus[:1], '--variants', ','.join(['c', *THEN]),
                            '--size', 125000, '--samples', max(10, pairs), '--directory', folder)
    case = {record['variant']: record for record in found}
    slowest = case['element_formatted']
    where = f"{slowest['options']['file_system']}, 1 MB written"
    for variant, then in THEN.items():
        if variant != 'element_formatted':
            yield Figure(f'{where}: {variant} / element_formatted, file size over time', by_file_size(case[variant], slowest),
                         remark=f"then {then / THEN['element_formatted']:.2f} (arsc2002, 2nd article)")
            yield Figure(f'{where}: {variant} / element_formatted, the same numbers', limits.paired_ratio(case[variant], slowest, 'bytes'), 1.0)
    best = limits.paired_ratio(case['whole_sequential'], case['c'], 'bytes')
    yield Figure(f'{where}: whole_sequential / write()', best,
                 remark=f"write() gives {np.median(records.rate(case['c'])):.0f} MB/s")

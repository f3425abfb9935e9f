'''Fortran's ways to write an array against each other, then and now.'''

import tempfile

import numpy as np

from plumbline.bench.common import Figure
from plumbline.model import limits, records

#: Ratio to element_formatted that the source measured: 1 MB to /scratch of an SGI O2 (arsc2002, second article).
THEN = {'element_sequential': 3.8, 'whole_formatted': 4.3, 'whole_sequential': 91.5}


def figures(machine, pairs):
    '''Yield every :class:`Figure`: writes of 1 MB, interleaved in one process, in a folder of the scratch file system.'''
    with tempfile.TemporaryDirectory() as folder:
        found = machine.run('fileio', machine.cpus[:1], '--variants', ','.join(['c', 'element_formatted', *THEN]),
                            '--size', 125000, '--samples', max(10, pairs), '--directory', folder)
    case = {record['variant']: record for record in found}
    slowest = case['element_formatted']
    where = f"{slowest['options']['file_system']}, 1 MB written"
    for variant, then in THEN.items():
        ratio = limits.paired_ratio(case[variant], slowest, 'bytes')
        yield Figure(f'{where}: {variant} / element_formatted', ratio, 1.0, remark=f'then {then} (arsc2002, 2nd article)')
    best = limits.paired_ratio(case['whole_sequential'], case['c'], 'bytes')
    yield Figure(f'{where}: whole_sequential / write()', best,
                 remark=f"write() gives {np.median(records.rate(case['c'])):.0f} MB/s")

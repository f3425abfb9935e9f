'''Gather: the pair of the source.  Against Spatter: :mod:`plumbline.bench.peers.patterns`.'''

from plumbline.bench.common import Figure
from plumbline.model import limits, metrics, sources

_THEN = sources.ratio('anderson1997-table5-data-motion', 'random_gather', 'random_gather', 'bypass', 'cached')


def figures(machine, _pairs):
    '''1000 random of 100000 elements: the way that is made for it over the ordinary one (anderson1997, table 5).'''
    found = machine.run('gather', machine.cpus[:1], '--variants', 'all', '--indices', 'random', '--span', 100, '--size', 1000,
                        '--samples', 200)
    by_variant = {record['variant']: record for record in metrics.kernels(found)}
    for variant in ('simd', 'prefetch'):
        if variant in by_variant:
            yield Figure(f'gather of 1000 random of 100000: {variant} / novec',
                         limits.paired_ratio(by_variant[variant], by_variant['novec'], 'bytes'),
                         remark=f'then {_THEN:.2f} (E-registers against cache; anderson1997, table 5)')

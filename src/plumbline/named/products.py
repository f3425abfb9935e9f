'''Where a site has its benchmarks, and how it gets them.'''

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    '''A benchmark as it is installed.

    :attr title: its name.
    :attr names: what its program may be called, the usual name first.
    :attr package: where to get it.
    :attr below: folders below the one that an environment's ``extras`` name where programs may be.
    '''
    title: str
    names: tuple
    package: str
    below: tuple = ()


_OSU = 'libexec/osu-micro-benchmarks/mpi/'

#: Entry of an environment's ``extras`` -> :class:`Product`.
PRODUCTS = {
    'stream': Product('STREAM', ('stream_c.exe', 'stream_c', 'stream'), 'with Spack: stream +openmp'),
    'hpl': Product('HPL', ('xhpl',), 'with Spack: hpl'),
    'hpcc': Product('HPC Challenge', ('hpcc',), 'Debian: hpcc, for Open MPI; with Spack: hpcc'),
    'hpcg': Product('HPCG', ('xhpcg',), 'with Spack: hpcg'),
    'npb': Product('NAS Parallel Benchmarks', (), 'with Spack: npb implementation=mpi', ('bin',)),
    'osu': Product('OSU micro-benchmarks', (), 'with Spack: osu-micro-benchmarks', (f'{_OSU}pt2pt', f'{_OSU}collective')),
    'ior': Product('IOR', ('ior',), 'with Spack: ior', ('bin',)),
    'mdtest': Product('mdtest', ('mdtest',), 'with Spack: ior, which brings it', ('bin',)),
    'fio': Product('fio', ('fio',), 'Debian and Spack: fio'),
}

'''y = A x by MKL's inspector-executor on a matrix like that of src/kernels/spmv, the hints given and optimised for.

Arguments: ``random`` or ``banded``; rows; nonzeros per row, on average; band; seconds; CPUs.
'''

import ctypes
import glob
import sys

import numpy as np

from .common import array, on_each, parts, print_samples

#: mkl_spblas.h
GENERAL, NON_TRANSPOSE, ZERO_BASED, AGGRESSIVE = 20, 10, 0, 81


class Description(ctypes.Structure):
    '''``struct matrix_descr``'''
    _fields_ = [('type', ctypes.c_int), ('mode', ctypes.c_int), ('diag', ctypes.c_int)]


def lengths_of_rows(rows, mean):
    '''As the generator of NPB's CG makes them: a row is in a random number of vectors of 12 nonzeros.'''
    return 12 * np.random.default_rng(1).poisson((mean - 1) / 12, rows) + 1


def columns_of(kind, rows, band, lengths, first):
    '''The columns of ``lengths`` nonzeros of the rows from ``first``, in ascending order in each row.'''
    row = np.repeat(np.arange(first, first + len(lengths)), lengths)
    drawn = np.random.default_rng(first)
    if kind == 'random':
        column = drawn.integers(0, rows, len(row))
    else:
        column = np.clip(row + drawn.integers(-2 * band, 2 * band + 1, len(row)), 0, rows - 1)
    return np.sort(row * rows + column) % rows


def main(kind, rows, mean, band, seconds, cpus):
    rows, cpus = int(rows), [int(cpu) for cpu in cpus.split(',')]
    lengths = lengths_of_rows(rows, float(mean))
    begin = np.concatenate([[0], np.cumsum(lengths)])
    nonzeros = int(begin[-1])
    pointer, column, value = array(rows + 1, np.int32), array(nonzeros, np.int32), array(nonzeros)
    x, y, expected = array(rows), array(rows), np.empty(rows)

    def touch(i):
        part = parts(rows, len(cpus))[i]
        inner = slice(begin[part.start], begin[part.stop])
        pointer[part], x[part], y[part] = begin[part], 1 + np.arange(part.start, part.stop) % 1024, np.nan
        column[inner] = columns_of(kind, rows, int(band), lengths[part], part.start)
        value[inner] = np.arange(inner.start, inner.stop) % 512 / 512
        return True
    on_each(cpus, touch)
    pointer[rows] = nonzeros
    for part in parts(rows, 64):      # whole numbers over 512: exact in any order
        inner = slice(begin[part.start], begin[part.stop])
        expected[part] = np.add.reduceat(value[inner] * x[column[inner]], begin[part] - begin[part.start])

    library = ctypes.CDLL(sorted(glob.glob(f'{sys.prefix}/lib/libmkl_rt.so*'))[-1])
    matrix, description = ctypes.c_void_p(), Description(GENERAL, 0, 0)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (pointer, pointer[1:], column, value)]

    def call(name, *arguments):
        status = getattr(library, name)(*arguments)
        if status:
            sys.exit(f'{name}: status {status}')
    call('mkl_sparse_d_create_csr', ctypes.byref(matrix), ZERO_BASED, rows, rows, *pointers)
    call('mkl_sparse_set_mv_hint', matrix, NON_TRANSPOSE, description, 100000)
    call('mkl_sparse_set_memory_hint', matrix, AGGRESSIVE)
    call('mkl_sparse_optimize', matrix)
    vectors = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]

    def product():
        call('mkl_sparse_d_mv', NON_TRANSPOSE, ctypes.c_double(1), matrix, description, vectors[0], ctypes.c_double(0), vectors[1])
    product()
    if not np.array_equal(y, expected):
        sys.exit('MKL: wrong result')
    print(f'nonzeros {nonzeros}')
    print_samples(product, float(seconds))


if __name__ == '__main__':
    main(*sys.argv[1:])

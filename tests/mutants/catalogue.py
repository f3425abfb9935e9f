'''The mutants of every kernel and of the limit streams.

A kernel that is changed here and there keeps its mutants; one whose text is gone fails its test, and is written anew.'''

from mutants import Mutant


def of(kernel, *mutants, **common):
    return [Mutant(kernel, *mutant[:5], **{**common, **(mutant[5] if len(mutant) > 5 else {})}) for mutant in mutants]


#: What makes every thread do the first one's part of the elements.
FIRST_PART = {'right': '{', 'wrong': '{ p->part = pl_part(c->n, 0, c->threads);'}


def part_twice(kernel, right='p->thread', wrong='0', function='plan', **others):
    '''Every thread does what is the first one's.'''
    return Mutant(kernel, "the first thread's part by all", function, right, wrong, '*', file=f'{kernel}.c', threads=2, **others)


AVX512, AVX2 = ({'isa': isa} for isa in ('avx512f', 'avx2'))
#: A loop that is written once for all widths.
ALL_WIDTHS = {'isa': 'avx512f avx2 sse2', 'file': 'simd_loops.h'}

LIMITS = [
    *of('limits',
        ('64 elements for ever', 'pl_load_plain', '(a[i + k] + b[i + k]) + (c[i + k] + d[i + k])',
         '(a[i % 64 + k] + b[i % 64 + k]) + (c[i % 64 + k] + d[i % 64 + k])', 'load'),
        ('one quarter four times', 'pl_load_plain', '(a[i + k] + b[i + k]) + (c[i + k] + d[i + k])',
         '(a[i + k] + a[i + k]) + (a[i + k] + a[i + k])', 'load'),
        ('last line skipped', 'pl_load_plain', 'i < 8 * lines; i += 8', 'i + 8 < 8 * lines; i += 8', 'load'),
        ('one line twice, the next never', 'pl_load_plain', 'a[i + k] + b', 'a[(i & ~(size_t)8) + k] + b', 'load'),
        ('one place twice, another never', 'pl_load_many', 'at < EACH * apart; at += apart', 'at < EACH * apart; at += 2 * apart', 'load_many'),
        ('what is left after the places skipped', 'pl_load_many', 'i = EACH * apart; i < 8', 'i = EACH * apart + 8; i < 8', 'load_many',
         {'size': 1000}),
        ('64 elements of a quarter for ever', 'pl_store_plain', 'part[q][i] = 1', 'part[q][i & 63] = 1', 'store'),
        ('wrong elements', 'pl_update_plain', '= -part[q][i]', '= -part[q][i & 63]', 'update'),
        ('one quarter twice', 'pl_copy_plain', 'd[i] = b[i]', 'd[i] = a[i]', 'copy'),
        ('one quarter twice', 'pl_triad_plain', 'c[i] * d[i]', 'c[i] * c[i]', 'triad'),
        ('first line skipped', 'pl_store_plain', 'size_t i = 0', 'size_t i = 8', 'store'),
        ('16 elements for ever', 'pl_triad_plain', 'd[i];', 'd[i & 15];', 'triad'),
        ("the first thread's part by all", 'plan', 'p->thread', '0', '*', {'threads': 2}),
        file='harness/streams.c'),
    *of('limits',
        ('64 elements for ever', 'pl_load_avx512', 'size_t i = 0;\n    for (; i + 16 <= 8 * lines; i += 16) {',
         'size_t i = 0, at = 0;\n    for (; at + 16 <= 8 * lines; at += 16, i = at % 64) {', 'load_avx512'),
        ('a quarter of the second half twice', 'pl_load_avx512', '_mm512_load_pd(d + i + 8)', '_mm512_load_pd(c + i + 8)',
         'load_avx512'),
        file='harness/streams_x86.c', isa='avx512f'),
    *of('limits',
        ('half a line twice', 'pl_load_avx2', '_mm256_load_pd(d + i + 4)', '_mm256_load_pd(d + i)', 'load_avx2'),
        ('64 elements for ever', 'pl_load_avx2', 's7, _mm256_load_pd(d + i + 4));',
         's7, _mm256_load_pd(d + i + 4)); if (i == 56 && lines > 8) i = 0, lines -= 8;', 'load_avx2'),
        file='harness/streams_x86.c', isa='avx2'),
    *of('limits',
        ('three quarters', 'NAME(pl_store)', 'q < 4', 'q < 3', 'store_avx512 store_avx2'),
        ('last line skipped', 'NAME(pl_update)', 'i < LINE * lines', 'i + LINE < LINE * lines', 'update_avx512 update_avx2'),
        ('64 elements for ever', 'NAME(pl_copy)', 'b + i + k', 'b + i % 64 + k', 'copy_avx512 copy_avx2'),
        ('64 elements for ever', 'NAME(pl_triad)', 'd + i', 'd + i % 64', 'triad_avx512 triad_avx2'),
        ('every other line', 'NAME(pl_store_nt)', 'i += LINE', 'i += 2 * LINE', 'store_nt_avx512 store_nt_avx2'),
        ('half of it', 'NAME(pl_copy_nt)', 'i < LINE * lines', 'i < LINE / 2 * lines', 'copy_nt_avx512 copy_nt_avx2'),
        ('wrong quarter', 'NAME(pl_triad_nt)', 'LOAD_ALIGNED(c', 'LOAD_ALIGNED(d', 'triad_nt_avx512 triad_nt_avx2'),
        file='harness/streams_x86.h', isa='avx512f avx2'),
    *of('limits',
        ('one register of a line twice', 'NAME(pl_store)', 'part[q] + i + k', 'part[q] + i + k / 8', 'store_avx2'),
        file='harness/streams_x86.h', isa='avx2'),
]

TRIAD = [
    *of('triad',
        ('wrong sign', 'triad_plain', '+ c[i]', '- c[i]', 'plain'),
        ('last element skipped', 'triad_plain', 'i < n', 'i + 1 < n', 'plain'),
        ('first element skipped', 'triad_plain', 'size_t i = 0', 'size_t i = 1', 'plain'),
        ('one element too many', 'triad_plain', 'i < n', 'i <= n', 'plain'),
        ('one element too early', 'triad_plain', '{', '{ a[-1] = 0;', 'plain'),
        ('no work', 'triad_plain', 'i < n', 'i < 0', 'plain'),
        ('256 elements for ever', 'triad_novec', 'b[i] + c[i] * d[i]', 'b[i & 255] + c[i & 255] * d[i & 255]', 'novec'),
        ('1024 elements of one array for ever', 'triad_novec', 'b[i]', 'b[i & 1023]', 'novec'),
        ('wrong neighbour', 'triad_novec', 'd[i]', 'd[i ^ 1]', 'novec'),
        ('the rest skipped', 'triad_prefetch', 'for (; i < n; i++)', 'for (; i < 0; i++)', 'prefetch')),
    *of('triad',
        ('64 elements for ever', 'NAME(triad_simd)', 'LOAD(d + i)', 'LOAD(d + i % 64)', 'simd simd_avx2'),
        ('every other line', 'NAME(triad_nt)', 'i += LINE', 'i += 2 * LINE', 'nt nt_avx2 preload'),
        ('the rest skipped', 'NAME(triad_simd)', 'for (; i < n', 'for (; i + 1 < n', 'simd simd_avx2'),
        ('one line twice, the next never', 'NAME(triad_nt)', 'd + i + k', 'd + (i & ~LINE) + k', 'nt nt_avx2 preload'),
        **ALL_WIDTHS),
    *of('triad',    # the input of all other variants is wrong as well
        ('input spoiled', 'triad_plain', '{', '{ *(double *)d += 1;', 'plain'),
        options=('--variants', 'plain')),
    *of('triad',
        ('last element skipped', 'triad_openmp', 'i < n', 'i < n - 1', 'openmp'),
        ('one block for ever', 'triad_preload_c', 'b + i, c + i, d + i, parameters', 'b, c + i, d + i, parameters', 'preload_c'),
        options=('--variants', 'openmp,preload_c')),
    part_twice('triad', **FIRST_PART),
]

MOTION = [
    *of('motion',
        ('last element skipped', 'motion_fill', 'i < n', 'i + 1 < n', 'fill'),
        ('first element skipped', 'motion_fill', 'size_t i = 0', 'size_t i = 1', 'fill'),
        ('64 elements for ever', 'motion_fill', 'y[i] =', 'y[i & 63] =', 'fill'),
        ('64 elements for ever', 'motion_load', 'x[i + k]', 'x[k]', 'load'),
        ('1024 elements for ever', 'motion_load', 'x[i + k]', 'x[(i & 1023) + k]', 'load'),
        ('last element skipped', 'motion_load', 'for (; i < n', 'for (; i + 1 < n', 'load'),
        ('stores nothing', 'motion_update', 'y[i] = -y[i]', '(void)y', 'update'),
        ('16 elements for ever', 'motion_copy', '= x[i]', '= x[i & 15]', 'copy'),
        ('one element too many', 'motion_copy', 'i < n', 'i <= n', 'copy'),
        ('the rest skipped', 'motion_fill_prefetch', 'for (; i < n', 'for (; i + 1 < n', 'fill_prefetch'),
        ('one element of a block', 'motion_load_prefetch', 'x[i + k]', 'x[i]', 'load_prefetch'),
        ('one of a block skipped', 'motion_update_prefetch', 'k < 64', 'k < 63', 'update_prefetch'),
        ('a block backwards', 'motion_copy_prefetch', '= x[i + k]', '= x[i + 63 - k]', 'copy_prefetch')),
    *of('motion',
        ('every other line', 'NAME(motion_fill_nt)', 'i += LINE', 'i += 2 * LINE', 'fill_nt'),
        ('64 elements for ever', 'NAME(motion_copy_nt)', 'x + i + k', 'x + i % 64 + k', 'copy_nt'),
        **ALL_WIDTHS),
    part_twice('motion', **FIRST_PART),
]

CONCURRENT = [
    *of('concurrent',
        ('two of 32 streams', 'concurrent_plain', 's < streams', 's < 2', 'plain'),
        ('two of 32 streams, 16 times each', 'concurrent_plain', 'x[s * part', 'x[s % 2 * part', 'plain'),
        ('64 elements of each stream for ever', 'concurrent_plain', 'part + i + k', 'part + i % 64 + k', 'plain'),
        ('last line of each stream skipped', 'concurrent_prefetch', 'i < part', 'i + CONCURRENT_LINE < part', 'prefetch'),
        ('one of 32 streams twice, another never', 'concurrent_prefetch', 'x[s * part', 'x[(s ? s : 1) * part', 'prefetch'),
        ('last element of the rest skipped', 'total', 'i < n', 'i + 1 < n', '*'),
        options=('--streams', '32')),
    part_twice('concurrent', ' + p->part.begin', '', 'run'),
]

STRIDED = [
    *of('strided',
        ('wrong neighbour', 'strided_read', '= x[i]', '= x[i ? i - 1 : i]', 'read'),
        ('one element for ever', 'strided_read', '= x[i]', '= x[first]', 'read'),
        ('one of two runs', 'strided_read', 'first += STRIDED_LINE', 'first += 8 * STRIDED_LINE', 'read'),
        ('one element for ever', 'strided_write', '*y++', '*y', 'write'),
        ('one too many', 'strided_read_prefetch', '*y++ = x[i];\n        }', '*y++ = x[i];\n        }\n    *y = 0;', 'read_prefetch'),
        ('what lies between', 'strided_write_prefetch', 'x[i] = *y++', 'x[i] = *y++, x[i + (i + 1 < n)] = 7', 'write_prefetch'),
        ('one element for ever', 'strided_read_nt', 'x + i,', 'x + first,', 'read_nt'),
        options=('--stride', '17')),
    part_twice('strided', **FIRST_PART),
]

EVERY_OTHER_ROW = 'i++, row = next(row, r)', 'i += i + 4 < r->last ? 2 : 1, row = i % r->wrap'
GATHER = [
    *of('gather',
        ('64 indices for ever', 'KERNEL(plain)', 'FROM(j)', 'FROM(j & 63)', 'plain sorted'),
        ('last element skipped', 'KERNEL(novec)', 'j < r->length', 'j + 1 < r->length', 'novec'),
        ('one of eight', 'KERNEL(unroll)', 'FROM(k)', 'FROM(j)', 'unroll'),
        ('the rest skipped', 'KERNEL(prefetch)', 'for (; j < r->length', 'for (; j + 1 < r->length', 'prefetch'),
        ('one vector of indices for ever', 'NAME(gather_simd)', 'INDICES(index + j)', 'INDICES(index)', 'simd', ALL_WIDTHS),
        ('not gathered', 'KERNEL(plain)', 'a[FROM(j)]', 'a[j]', 'plain sorted'),
        ('nothing read', 'KERNEL(novec)', 'a[FROM(j)]', '(double)FROM(j)', 'novec'),
        options=('--indices', 'random', '--span', '4')),
    *of('gather',
        ('one element for ever', 'KERNEL(plain)', 'a[FROM(j)]', 'a[0]', 'plain sorted'),
        ('first element skipped', 'KERNEL(novec)', 'size_t j = 0', 'size_t j = 1', 'novec'),
        ('one of eight', 'KERNEL(unroll)', 'TO(k)', 'TO(j)', 'unroll'),
        ('input spoiled', 'KERNEL(prefetch)', 'j + 8 <= inside; j += 8', 'j + 8 <= inside; ((double *)a)[j] = 7, j += 8', 'prefetch'),
        ('one vector of indices for ever', 'NAME(scatter_simd)', 'INDICES(index + j)', 'INDICES(index)', 'simd', ALL_WIDTHS),
        options=('--indices', 'random', '--span', '4', '--direction', 'scatter')),
    *of('gather',
        ('every other row', 'KERNEL(plain)', *EVERY_OTHER_ROW, 'plain sorted'), ('every other row', 'gather_columns', *EVERY_OTHER_ROW, 'columns'),
        ('every other row', 'NAME(gather_simd)', *EVERY_OTHER_ROW, 'simd', ALL_WIDTHS),
        ('rows that are overwritten skipped', 'KERNEL(novec)', 'i = r->first', 'i = r->last - r->wrap', 'novec'),
        ('rows asked whether they are overwritten', 'KERNEL(unroll)', 'i = r->first',
         'i = r->last - r->first > r->wrap ? r->last - r->wrap : r->first', 'unroll'),
        program='gather_patterns', options=('--pattern', '{folder}/patterns'), size=None),
    *of('gather',
        ('every other row', 'KERNEL(plain)', *EVERY_OTHER_ROW, 'plain sorted'),
        ('rows asked whether they are overwritten', 'KERNEL(novec)', 'i = r->first', 'i = r->delta ? r->first : r->last - 1', 'novec'),
        program='gather_patterns', options=('--pattern', '{folder}/patterns', '--config', '2'), size=None),
    *of('gather', ("the other list's places", 'KERNEL(plain)', 'FROM(j)', 'TO(j)', 'plain sorted'),
        program='gather_patterns', options=('--pattern', '{folder}/patterns', '--config', '3'), size=None),
    *of('gather', ('the inner list forgotten', 'KERNEL(plain)', 'FROM(j)', 'index[j]', 'plain'),
        program='gather_patterns', options=('--pattern', '{folder}/patterns', '--config', '4'), size=None),
    part_twice('gather', **FIRST_PART),
]
GATHER = [Mutant(**{**vars(m), 'file': 'rows.h' if 'KERNEL' in m.function else m.file}) for m in GATHER]

SPMV_OPTIONS = ('--nonzer', '3')
SPMV = [
    *of('spmv',
        ('last element of a row skipped', 'spmv_plain', 'k < a->ptr[i + 1]', 'k + 1 < a->ptr[i + 1]', 'plain'),
        ('old result added', 'spmv_plain', 'y[i] = sum', 'y[i] += sum', 'plain'),
        ('last row skipped', 'spmv_plain', 'i < part.end', 'i + 1 < part.end', 'plain'),
        ('not gathered', 'spmv_plain', 'x[a->column[k]]', 'x[k % 8]', 'plain'),
        ('64 elements of x for ever', 'spmv_unroll', 'x[a->column[k]]', 'x[a->column[k] & 63]', 'unroll'),
        ('one sum of four lost', 'spmv_unroll', '+ (sum2 + sum3)', '+ sum2', 'unroll'),
        ('what has no prefetch skipped', 'spmv_prefetch', 'k < end; k++', 'k < ahead; k++', 'prefetch'),
        ('the rest of a row skipped', 'spmv_stream', 'for (; k < a', 'for (; k + 1 < a', 'stream'),
        ('the rest of a row skipped', 'spmv_simd_avx512', 'k < end; k += 8', 'k + 8 < end; k += 8', 'simd', AVX512),
        ('the rest of a row skipped', 'spmv_simd_avx2', 'k < end; k++', 'k + 1 < end; k++', 'simd', AVX2),
        ('one row of a chunk for all', 'spmv_sell', 'a->value[k + r]', 'a->value[k]', 'sell'),
        ('last slot skipped', 'spmv_sell_stream', 'k < a->ptr[i + 1]', 'k + SPMV_CHUNK < a->ptr[i + 1]', 'sell_stream'),
        ('the order of the rows forgotten', 'NAME(spmv_sell_simd)', 'y[a->row[r]]', 'y[r]', 'sell_simd', ALL_WIDTHS),
        options=SPMV_OPTIONS, size=1003),
    *of('spmv',
        ('x spoiled', 'spmv_plain', 'y[i] = sum;', 'y[i] = sum, ((double *)x)[0] = 1;', 'plain'),
        ('one too early', 'spmv_plain', 'y[i] = sum;', 'y[i] = sum, y[i ? (int64_t)i : -1] = sum;', 'plain'),
        options=('--variants', 'plain', *SPMV_OPTIONS), size=1003),
    *of('spmv',
        ('another matrix', 'spmv_generated_row', '(uint64_t)(weight(vector, row) * weight(vector, j))', '(uint64_t)(weight(vector, row))', '*'),
        ('what falls together is lost', 'spmv_generated_row', 'value[count - 1] += term', 'value[count - 1] = term', '*'),
        options=SPMV_OPTIONS, size=1003, file='generator.c'),
    part_twice('spmv', options=SPMV_OPTIONS, size=1003),
]

JACOBI_OPTIONS = ('--block-rows', '5')
JACOBI = [
    *of('jacobi',
        ('wrong neighbour', 'jacobi_plain', '(u[i - 1] + u[i + 1])', '(u[i - 1] + u[i])', 'plain'),
        ('one plane twice', 'jacobi_plain', 'u[i - plane] + u[i + plane]', 'u[i - plane] + u[i - plane]', 'plain'),
        ('first row skipped', 'jacobi_plain', 'j = box->from;', 'j = box->from + 1;', 'plain'),
        ('last plane skipped', 'jacobi_plain', 'k < last', 'k + 1 < last', 'plain'),
        ('boundary written', 'jacobi_plain', 'i < n - 1', 'i < n', 'plain'),
        ('padding written', 'jacobi_plain', 'v[i] =', 'v[row - 1] = v[i] =', 'plain'),
        ('8 elements of a row for ever', 'jacobi_plain', 'JACOBI_CENTRE * u[i]', 'JACOBI_CENTRE * u[i & 7]', 'plain'),
        ('first block skipped', 'jacobi_blocked', 'size_t begin = box->from', 'size_t begin = box->from + box->block', 'blocked'),
        ('last row of the last block skipped', 'jacobi_blocked', 'begin + box->block, box->to)', 'begin + box->block, box->to - 1)', 'blocked'),
        options=JACOBI_OPTIONS, size=35),
    *of('jacobi',
        ('one vector for ever', 'NAME(row_nt)', 'u + i + k', 'u + 1', 'nt blocked_nt'),
        ('the rest of a row skipped', 'NAME(row_prefetch)', 'for (; i + 1 < box->n', 'for (; i + 2 < box->n', 'prefetch blocked_prefetch'),
        **ALL_WIDTHS, options=JACOBI_OPTIONS, size=35),
    *of('jacobi',
        ('input spoiled', 'jacobi_plain', 'v[i] =', '((double *)u)[i] += 1, v[i] =', 'plain'),
        options=('--variants', 'plain'), size=35),
    part_twice('jacobi', size=35),
]

LBM = [
    *of('lbm',
        ('a population from the wrong side', 'places', '- c[0]', '+ c[0]', '*'),
        ('momentum lost', 'collide', '(xy - yx)', '(xy + yx)', '*'),
        ('another viscosity', 'collide', 'keep * f0[i]', '(keep + 1e-9) * f0[i]', '*'),
        ('one population twice', 'collide', 'g[18 * apart + i] = keep * zy_m', 'g[18 * apart + i] = keep * zy_p', '*'),
        ('the last cell skipped', 'collide', 'i < cells', 'i + 1 < cells', '*'),
        ('no collision', 'lbm_split', 'collide(out', 'if (0) collide(out', 'split'),
        ('one population stays', 'lbm_split', 'int q = 0; q < Q; q++) {', 'int q = 1; q < Q; q++) {', 'split'),
        ('last row skipped', 'lbm_fused', 'row < last', 'row + 1 < last', 'fused'),
        ('not what has collided', 'write_plain', 'to[i] = from[i];', 'to[i] = from[i] + 1e-12;', 'buffered'),
        ('only whole chunks', 'by_chunks', 'i < box->n; i += CHUNK', 'i + CHUNK <= box->n; i += CHUNK', 'buffered nt'),
        size=19),
    *of('lbm',
        ('one vector for ever', 'NAME(write_nt)', 'from + i + k', 'from + k', 'nt'),
        ('the rest of a row skipped', 'NAME(write_nt)', 'for (; i < cells', 'for (; i + 1 < cells', 'nt'),
        **ALL_WIDTHS, size=19),
    part_twice('lbm', size=19),
]

NINEPOINT = [
    *of('ninepoint',
        ('AA: wrong sign', 'ninepoint_plain', '= -b;', '= b;', '*'),
        ('RY: wrong difference', 'ninepoint_plain', '- c * y_ij', '- c * x_ij', '*'),
        ('last point skipped', 'ninepoint_plain', 'i < to', 'i < to - 1', '*'),
        ('last column skipped', 'ninepoint_plain', 'j < last', 'j + 1 < last', '*'),
        ('boundary written', 'ninepoint_plain', 'i < to', 'i < to + 1', '*'),
        ('DD not stored', 'ninepoint_plain', 'dd[j * ld + i] = ', 'dd[j * ld + i] == ', '*'),
        ('128 rows for ever', 'ninepoint_plain', '- 2 * xc[i]', '- 2 * xc[i & 127]', '*'),
        ('input spoiled', 'ninepoint_plain', 'dd[j * ld + i]', '((double *)x)[j * ld + i] += 1, dd[j * ld + i]', '*'),
        size=203),
    part_twice('ninepoint', size=203),
]

FIRST_LOOP = 'for (size_t j'
FDTD = [
    *of('fdtd',
        ('wrong neighbour', 'fdtd_fused', 'hz[j - 1][i][k]', 'hz[j][i - 1][k]', 'fused distributed', {'file': 'fused.c'}),
        ('one statement of three left out', 'fdtd_fused', 'ez[j][i][k] = ', 'ez[j][i][k] == ', 'fused distributed', {'file': 'fused.c'}),
        ('wrong neighbour', 'fdtd_fused_restrict', 'hy[j][i][k - 1]', 'hy[j][i][k]', 'fused_restrict distributed_restrict', {'file': 'fused.c'}),
        ('wrong coefficient', 'fdtd_fused_restrict', 'caey *', 'caex *', 'fused_restrict distributed_restrict', {'file': 'fused.c'}),
        ('last point skipped', 'NAME(fdtd_split2)', 'k < n - 2', 'k < n - 3', 'split2 split2_restrict'),
        ('one point too many', 'NAME(fdtd_split2)', 'k < n - 2', 'k < n - 1', 'split2 split2_restrict'),
        ('first row skipped', 'NAME(fdtd_split2)', 'size_t i = from', 'size_t i = from + 1', 'split2 split2_restrict'),
        ('first point of a row too early', 'NAME(fdtd_split2)', 'size_t k = 1', 'size_t k = 0', 'split2 split2_restrict'),
        ('last plane skipped', 'NAME(fdtd_split3)', 'j < last', 'j + 1 < last', 'split3 split3_restrict'),
        ('one plane too many', 'NAME(fdtd_split3)', 'j < last', 'j <= last', 'split3 split3_restrict'),
        ('first plane skipped', 'NAME(fdtd_split3)', 'j = first', 'j = first + 1', 'split3 split3_restrict'),
        ('16 elements of a row for ever', 'NAME(fdtd_split3)', '- hz[j][i][k])', '- hz[j][i][k & 15])', 'split3 split3_restrict'),
        ('the rest of a row skipped', 'fdtd_fused_prefetch', 'k = begin; k < n - 2', 'k = begin; k < n - 3', 'fused_prefetch', {'file': 'prefetch.c'}),
        ('no number on the boundary', 'fdtd_fused_prefetch', FIRST_LOOP, f'ex[0][0][0] = 0.0F / 0.0F; {FIRST_LOOP}', 'fused_prefetch', {'file': 'prefetch.c'}),
        ('before the first', 'fdtd_fused_prefetch', FIRST_LOOP, f'((float *)ez)[-1] = 0; {FIRST_LOOP}', 'fused_prefetch', {'file': 'prefetch.c'}),
        ('behind the last', 'fdtd_fused_prefetch', FIRST_LOOP, f'ez[n - 1][0][0] = 0; {FIRST_LOOP}', 'fused_prefetch', {'file': 'prefetch.c'}),
        file='split.h', size=40),
    *of('fdtd',     # the input of all other variants is wrong as well
        ('input spoiled', 'fdtd_fused', FIRST_LOOP, f'((float *)hx)[n * n + 5] += 1; {FIRST_LOOP}', 'fused'),
        options=('--variants', 'fused'), file='fused.c', size=40),
    part_twice('fdtd', size=40),
]

TRANSPOSE = [
    *of('transpose',
        ('copied', 'transpose_rows', 'b[j * ld + i] = a[i * ld + j]', 'b[i * ld + j] = a[i * ld + j]', 'rows padded'),
        ('first column skipped', 'transpose_rows', 'j = 0', 'j = 1', 'rows padded'),
        ('first element of each row skipped', 'transpose_columns', 'i = 0', 'i = 1', 'columns'),
        ('last element of each row skipped', 'transpose_columns', 'i < n', 'i + 1 < n', 'columns'),
        ('last diagonal skipped', 'transpose_diagonals', 'at < band.end', 'at + n < band.end', 'diagonals'),
        ('last element elsewhere', 'transpose_blocked', 'b[j * ld + i] =', 'b[j * ld + i + (j + 1 == n && i + 1 == n)] =', 'blocked'),
        ('last element skipped', 'transpose_memcpy', 'sizeof *a)', 'sizeof *a - 8)', 'memcpy'),
        ('two columns exchanged', 'tile_avx512', 'quad[k + 4], 0x88)', 'quad[k + 4], 0xDD)', 'blocked_simd blocked_nt', AVX512),
        ('one of eight columns for all', 'transpose_blocked_simd_avx2', 'above[k]', 'above[0]', 'blocked_simd_avx2', AVX2),
        ('not shifted', 'shifted_avx2', '2 * (int)(head % HALF)', '0', 'blocked_nt_avx2', AVX2),
        size=67),
    *of('transpose', ('the diagonal beside', 'transpose_in_place_rows', 'part->inner.end, i)', 'part->inner.end, i ? i - 1 : 0)', 'rows padded'),
        options=('--variants', 'rows,padded,blocked', '--place', 'in'), size=67),
    part_twice('transpose', 'p->thread, c->threads, is', '0, c->threads, is', options=('--variants', 'rows,columns,blocked,blocked_simd,blocked_nt'), size=67),
]
TRANSPOSE = [Mutant(**{**vars(m), 'file': 'kernel_x86.c'}) if m.isa else m for m in TRANSPOSE]

TRAPEZOID = [
    *of('trapezoid',
        ('a step is missing', 'trapezoid_original', 'i = begin;', 'i = begin + 1;', 'original'),
        ('the left end is not moved', 'trapezoid_shared', '        left = right;\n', '', 'shared'),
        ('the rest is missing', 'trapezoid_vectorised', 'for (; i < end', 'for (; i + 1 < end', 'vectorised'),
        ('a point is missing', 'trapezoid_restructured', 'int i = begin + 1;', 'int i = begin + 2;', 'restructured'),
        ('the last point is missing', 'trapezoid_restructured', 'for (; i < end', 'for (; i + 1 < end', 'restructured'),
        ('another function', 'f', 'add(1, multiply(x, x))', 'add(1.0000001, multiply(x, x))', '*')),
    part_twice('trapezoid', '= (int)p->part.begin, end = (int)p->part.end', '= 0, end = (int)(p->part.end - p->part.begin)', 'run'),
]

CHASE = [
    *of('chase',
        ('half of the loads', 'chase_follow', 'i < loads; i++', 'i < loads; i += 2', '*'),
        ('no load', 'chase_follow', 'node = *(void **)node;', '__asm__ volatile("");', '*'),
        ('several cycles', 'chase_cycle', 'random_below(&state, i)', 'random_below(&state, i + 1)', '*'),
        size=101),
]

FILEIO = of('fileio',
            ('first element not written', 'fileio_c_write', 'done = 0', 'done = 8', 'c', {'options': ('--directory', '{folder}')}),
            ('same half twice', 'fileio_c_write', '(const char *)from + done, bytes - done)', '(const char *)from, (bytes - done) / 2 + 8)', 'c',
             {'options': ('--directory', '{folder}')}),
            ('nothing read', 'fileio_c_read', 'int wrong = 0;', 'int wrong = 0; close(file); return 0;', 'c',
             {'options': ('--directory', '{folder}', '--operation', 'read_warm')}),
            ('first element not read', 'fileio_c_read', 'done = 0', 'done = 8', 'c',
             {'options': ('--directory', '{folder}', '--operation', 'read_warm')}))

CORES = of('cores',
           ('no round', 'cores_together', 'round < pl_tournament_rounds(d->threads)', 'round < 0', 'handover'),
           ('one side leaves', 'cores_together', 'partner >= 0', 'partner > 0', 'handover'),
           ('no pair', 'cores_alone', 'k < cores_pairs_alone(d->threads)', 'k < 0', 'alone'),
           ('never all at once', 'cores_clock', 'd->all[thread] = measured();', '', 'clock', {'file': 'clocks.c'}),
           file='handovers.c', threads=2, size=100)

FLOPS = [
    *of('flops',
        ('one chain lost', 'flops_plain', 'k < FLOPS_PLAIN', 'k + 1 < FLOPS_PLAIN', 'plain'),
        ('one of two additions', 'flops_scalar', '__builtin_fma(-below, above, x[k])', 'x[k]', 'scalar', AVX2),
        ('half of the steps', 'flops_simd128', 'i < steps; i++', 'i < steps; i += 2', 'simd128', AVX2),
        ('the first chain for all', 'flops_simd256', '_mm256_fmadd_pd(s, s, x[k])', '_mm256_fmadd_pd(s, s, x[0])', 'simd256', AVX2),
        ('one multiply-add of two', 'flops_simd512', '_mm512_fnmadd_pd(below, above, x[k])', 'x[k]', 'simd512', AVX512),
        size=100),
    Mutant('flops', "the first thread's part by all", 'run', 'stream(c, p->thread)', 'stream(c, 0)', 'plain scalar simd128 simd256 simd512',
           file='flops.c', threads=2, size=200),
]

MD = [
    *of('md',
        ('last neighbour skipped', 'md_full', 'k < l->count[i]', 'k + 1 < l->count[i]', 'full'),
        ('a shorter cutoff', 'md_full', 'r2 < MD_CUTOFF * MD_CUTOFF', 'r2 < MD_CUTOFF', 'full'),
        ('no reaction', 'md_half', 'k < l->mutual[i]', 'k < 0', 'half'),
        ('one vector skipped', 'NAME(md_full_simd)', 'k = 0; k <', 'k = LANES; k <', 'simd', {'file': 'simd_loops.h', 'isa': 'avx512f avx2'}),
        ('half of the steps', 'run', 'is_half(c), &w, MD_STEPS', 'is_half(c), &w, MD_STEPS / 2', '*', {'file': 'md.c'}),
        ('ghosts stay where they were', 'follow', 'g < w->ghosts.end', 'g < w->ghosts.begin', '*', {'file': 'md.c'}),
        ('a layer of cells skipped', 'md_list', 'z <= MD_LAYERS', 'z < MD_LAYERS', '*', {'file': 'lists.c'}),
        size=6),
    *of('md', ('two of 20 steps', 'run', 'is_half(c), &w, MD_STEPS', 'is_half(c), &w, MD_STEPS - 2', '*', {'file': 'md.c'}), size=7),
    part_twice('md', 'pl_part(c->n, thread, threads)', 'pl_part(c->n, 0, threads)', 'worker', size=6),
]

PLANEWAVE = [      # of our own loops; the libraries are not there everywhere, and proved by the same waves
    *of('planewave',
        ('one direction left out', 'transform', 'planewave_line(w, x + j * n + k, n * n, back)', '(void)j', 'plain'),
        ('one product', 'planewave_products', 'a < w->bands', 'a < 1', 'plain'), size=6),
    part_twice('planewave', right='p->thread', wrong='0', size=6),
]

#: No result tells how many passes there were: the time does, which grows with them.
PASSES_LEFT_OUT = Mutant('limits', 'one pass, however many were asked for', 'timed_part', 'pass < passes', 'pass < 1', '*', file='harness/measure.c')

#: On a busy machine a thread may find no partner in the pass that is verified: it takes several runs.
HALF_OF_THE_HANDOVERS = Mutant('cores', 'half of the handovers', 'pl_hand_over', 'batch ? length.handovers', 'batch ? length.handovers / 2', 'handover',
                               file='harness/handover.c', size=10)

MUTANTS = [*LIMITS, *TRIAD, *MOTION, *CONCURRENT, *STRIDED, *GATHER, *SPMV, *JACOBI, *LBM, *NINEPOINT, *FDTD, *TRANSPOSE, *TRAPEZOID,
           *CHASE, *FILEIO, *CORES, *FLOPS, *MD, *PLANEWAVE]

#: Of the NAS kernels, which test_compiler_options.py builds as sets of options of their own.
NAS = [
    *of('mxm',
        ('a quarter of the columns left out', 'mxm_unchanged', ' + a(i, j + 3)*b(j + 3, k)', '', 'unchanged'),
        ('the last element of the sum left out', 'mxm_optimised', 'do j = 1, m\n', 'do j = 1, m - 1\n', 'optimised')),
    *of('cfft2d',
        ('turned the other way', 'cfft2d_unchanged', 'w(j*(n2/(2*half)))*', 'conjg(w(j*(n2/(2*half))))*', 'unchanged'),
        ('one transform left out', 'cfft2d_optimised', 'do first = 0, n1 - strip, strip', 'do first = strip, n1 - strip, strip', 'optimised')),
    *of('cholsky',
        ('the last system left out', 'cholsky_unchanged', 'do l = 1, systems\n          b(l, i, r)', 'do l = 1, systems - 1\n          b(l, i, r)', 'unchanged'),
        ('one element of the band less', 'cholsky_optimised', 'do p = 1, min(m, n - i)', 'do p = 1, min(m - 1, n - i)', 'optimised')),
    *of('btrix',
        ('one row less of a block', 'btrix_unchanged', 'do p = r + 1, 5', 'do p = r + 1, 4', 'unchanged'),
        ('the block before left out', 'btrix_optimised', 'do j = n - 1, 1, -1', 'do j = n - 2, 1, -1', 'optimised')),
    *of('gmtry',
        ('the last column not eliminated', 'gmtry_unchanged', 'do j = k + 1, n', 'do j = k + 1, n - 1', 'unchanged'),
        ('half of the distance along', 'gmtry_optimised', '4*along*along', '2*along*along', 'optimised')),
    *of('emit', ('one vortex left out', 'emit_unchanged', 'do v = 1, vortices', 'do v = 2, vortices', 'unchanged')),
    *of('vpenta',
        ('one right-hand side left out', 'vpenta_unchanged', ' - m(j, k, 5)*f(j + 2, k, 3)', '', 'unchanged'),
        ('the last line left out', 'vpenta_optimised', 'do h = 1, strips', 'do h = 1, strips - 1', 'optimised')),
]

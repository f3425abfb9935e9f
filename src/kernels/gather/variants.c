/* The variants, which are those of gather and of gather_patterns. */
#include <string.h>

#include "kernel.h"

#define PLAIN_C(function) PL_LOOP(function), .flags = GATHER_FLAGS

/* A variant is known by its gather. */
const pl_variant gather_variants[] = {
    {"plain", PLAIN_C(gather_plain), .about = "as the compiler makes it: some make gather instructions of it"},
    {"novec", PLAIN_C(gather_novec), .about = "plain, vectorisation forbidden: one load, one store at a time"},
    {"unroll", PLAIN_C(gather_unroll), .about = "novec, 8 elements between one branch and the next"},
    PL_WIDEST_AVX("simd", gather_simd, .about = "gather and scatter instructions; AVX2 has none that scatter")
    {"prefetch", PLAIN_C(gather_prefetch), .about = "unroll, software prefetch --distance ahead"},
    {"columns", PLAIN_C(gather_columns), .about = "plain, one index of a block of rows after the other"},
    {"sorted", .layout = 1, PLAIN_C(gather_plain), .about = "plain, the indices sorted beforehand"},
    {0},
};

static gather_loop *const loops[][GATHER_KINDS] = {
    {gather_plain, scatter_plain, gs_plain, multigather_plain, multiscatter_plain},
    {gather_novec, scatter_novec, gs_novec, multigather_novec, multiscatter_novec},
    {gather_unroll, scatter_unroll, gs_unroll, multigather_unroll, multiscatter_unroll},
    {gather_prefetch, scatter_prefetch, gs_prefetch, multigather_prefetch, multiscatter_prefetch},
    {gather_columns, scatter_columns, gs_columns, multigather_columns, multiscatter_columns},
#if defined(__x86_64__)
    {gather_simd_avx512, scatter_simd_avx512, gs_simd_avx512, multigather_simd_avx512, multiscatter_simd_avx512},
    {gather_simd_avx2, scatter_simd_avx2, gs_simd_avx2, multigather_simd_avx2, multiscatter_simd_avx2},
#endif
};

gather_loop *gather_loop_of(const pl_variant *v, gather_kind kind)
{
    size_t row = 0;
    while (v->loop != (pl_loop)loops[row][GATHER])
        row++;
    return loops[row][kind];
}

bool gather_is_sorted(const pl_variant *v) { return v->layout == 1; }

/* The triad as the runtime sees it: its table of variants, its data, its model, its verification. */
#include <math.h>
#include <string.h>

#include "kernel.h"

static const pl_variant variants[] = {
    {"plain", PL_LOOP(triad_plain), .about = "as the compiler makes it"},
    {"novec", PL_LOOP(triad_novec), .about = "plain, vectorisation forbidden"},
    PL_WIDEST("simd", triad_simd, .about = "intrinsics, as wide as the CPU has")
    PL_AVX2("simd_avx2", triad_simd, .about = "intrinsics, 256 bits also where there are 512")
    PL_WIDEST("nt", triad_nt, .nontemporal = true, .about = "simd, non-temporal stores")
    PL_AVX2("nt_avx2", triad_nt, .nontemporal = true, .about = "256 bits also where there are 512")
    {"prefetch", PL_LOOP(triad_prefetch), .about = "plain, software prefetch --distance ahead"},
    PL_WIDEST("preload", triad_preload, .nontemporal = true, .about = "nt, --block-size of B, C, D preloaded")
    PL_IN_FORTRAN("fortran", PL_FORTRAN_FLAGS, triad_fortran, .about = "plain, in Fortran")
    PL_IN_FORTRAN("preload_fortran", PL_FORTRAN_FLAGS, triad_preload_fortran, .about = "fortran, --block-size of B, C, D preloaded", .by_name = true)
    {"preload_c", PL_LOOP(triad_preload_c), .about = "plain, --block-size of B, C, D preloaded", .by_name = true},
#ifdef _OPENMP
    {"openmp", PL_LOOP(triad_openmp), .about = "plain, a parallel region for each pass", .by_name = true, .forks = true},
#else
    {"openmp", .about = "built without OpenMP"},
#endif
    {0},
};

static const pl_parameter parameters[] = {
    [TRIAD_DISTANCE] = {"distance", 512, 8, "prefetch distance in elements"},
    [TRIAD_BLOCK] = {"block-size", 512, 8, "elements of each array that preload brings at a time"},
    {0},
};

enum { A, B, C, D, ARRAYS };

static size_t footprint(const pl_case *c) { return pl_arrays_footprint(c, ARRAYS); }

static void *create(const pl_case *c) { return pl_arrays_create(c, ARRAYS); }

/* Small whole numbers: B + C * D is exact in double precision, fused or not, so the error allowed is zero.  Each has ten
 * of the bits of i: without a period, and cheap: verification should not take longer than the measurement. */
static double value_b(uint32_t bits_of_i) { return (double)(int)(bits_of_i & 1023); }
static double value_c(uint32_t bits_of_i) { return (double)((int)(bits_of_i >> 10 & 1023) - 511); }
static double value_d(uint32_t bits_of_i) { return (double)(int)((bits_of_i >> 20 & 1023) + 1); }

static void touch(const pl_case *c, int thread, int threads)
{
    const pl_arrays *x = c->data;
    const pl_range part = pl_part(c->n, thread, threads);
    for (size_t i = part.begin; i < part.end; i++) {
        const uint32_t bits = pl_mix(i);
        x->array[A][i] = 0;
        x->array[B][i] = value_b(bits);
        x->array[C][i] = value_c(bits);
        x->array[D][i] = value_d(bits);
    }
}

static void plan(const pl_case *c, pl_plan *p)
{
    for (int k = A; k <= D; k++)
        p->at[k] = ((const pl_arrays *)c->data)->array[k] + p->part.begin;
}

static void run(const pl_case *c, const pl_plan *p)
{
    ((triad_loop *)p->loop)(p->part.end - p->part.begin, p->at[A], p->at[B], p->at[C], p->at[D], c->parameters);
}

static pl_work work(const pl_case *c)
{
    const double n = (double)c->n;
    return (pl_work){.load_bytes = 24 * n, .store_bytes = 8 * n, .flops = 2 * n,
                     .source = "model: 3 loads and 1 store of 8 bytes per iteration (hager2004, section 3)"};
}

static double expected(size_t i)
{
    const uint32_t bits = pl_mix(i);
    return value_b(bits) + value_c(bits) * value_d(bits);
}

static void poison(const pl_case *c) { memset(((pl_arrays *)c->data)->array[A], 0xFF, c->n * sizeof(double)); }     /* not a number */

/* B, C and D are computed anew from the index, not read: a kernel that spoils its input is found as well.  Whether anything is
 * wrong comes first, which compilers vectorise. */
static double verify_part(const pl_case *c, int thread)
{
    const double *const a = ((const pl_arrays *)c->data)->array[A];
    const pl_range part = pl_part(c->n, thread, c->threads);
    double worst = 0;
    int wrong = 0;
    for (size_t i = part.begin; i < part.end; i++)
        wrong |= a[i] != expected(i);
    for (size_t i = part.begin; wrong && i < part.end; i++)
        worst = pl_worse(worst, fabs(a[i] - expected(i)));
    return worst;
}

static const pl_kernel triad = {
    .name = "triad", .title = "A(:) = B(:) + C(:) * D(:)", .variants = variants, .parameters = parameters, .arrays = true,
    .footprint = footprint, .create = create, .touch = touch, .plan = plan, .run = run, .work = work, .verify_part = verify_part,
    .poison = poison, .destroy = pl_arrays_destroy, .private_lines = true,
#ifdef PL_FORTRAN
    .allocate = fortran_allocate, .deallocate = fortran_deallocate,
#endif
};

int main(int argc, char **argv) { return pl_main(argc, argv, &triad); }

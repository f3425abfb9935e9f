/* DGEMM of the BLAS that the build has found, for each thread on matrices of its own, one call for one thread: StarDGEMM of the
 * HPC Challenge benchmark (Luszczek et al. 2005).  So placement, first touch and timing are the harness's, whatever the library
 * does with threads, and neither a product that is divided nor memory shared by the threads stands between it and the cores. */
#define _GNU_SOURCE
#ifdef PL_BLAS
#include <dirent.h>
#include <dlfcn.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif
#include <math.h>
#include <stdlib.h>

#include "openblas.h"
#include "kernel.h"

enum { A, B, C, MATRICES };

#ifdef PL_BLAS
void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const double *alpha, const double *a,
            const int *lda, const double *b, const int *ldb, const double *beta, double *c, const int *ldc, size_t, size_t);

/* OpenBLAS says which processor it has chosen its code for; of others the file is known. */
const char *dgemm_library(void)
{
    Dl_info found;
    if (openblas_get_config)
        return openblas_get_config();
    return dladdr((void *)(uintptr_t)dgemm_, &found) && found.dli_fname ? found.dli_fname : "not known";
}
/* Threads that the library has started when it was loaded: ours are not there yet; calls that it takes at once. */
static int tasks, most_calls;

__attribute__((constructor)) static void look(void)
{
    most_calls = openblas_calls_at_once();
    DIR *const folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        tasks += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
}

void dgemm_check(void)
{
    if (tasks > 1)
        pl_fail("dgemm: the BLAS has %d threads of its own beside ours: set OPENBLAS_NUM_THREADS=1, or what its manual says: %s",
                tasks - 1, dgemm_library());
}
int dgemm_calls_at_once(const pl_case *c) { return most_calls < c->threads ? most_calls : c->threads; }
#else
const char *dgemm_library(void) { return "none"; }
int dgemm_calls_at_once(const pl_case *c) { return c->threads; }
void dgemm_check(void) {}
#endif

/* Column-major, as in Fortran. */
static double *matrix(const pl_case *c, int which, int thread)
{
    const pl_buffers *set = c->data;
    size_t before = 0;
    for (int t = 0; t < thread; t++)
        before += flops_order(c, t) * flops_order(c, t);
    return (double *)set->at[which] + before;
}

static size_t bytes_of_one(const pl_case *c)
{
    size_t elements = 0;
    for (int thread = 0; thread < c->threads; thread++)
        elements += flops_order(c, thread) * flops_order(c, thread);
    return elements * sizeof(double);
}

size_t dgemm_footprint(const pl_case *c) { return MATRICES * bytes_of_one(c); }

void *dgemm_create(const pl_case *c)
{
    const size_t bytes[MATRICES] = {bytes_of_one(c), bytes_of_one(c), bytes_of_one(c)};
#ifdef _OPENMP
    omp_set_num_threads(1);     /* of the library's own, if it has OpenMP: our team is there already */
#endif
    return pl_buffers_create(c, MATRICES, bytes, NULL);
}

/* Whole numbers of at most 2^18: sums of 2^15 products of two are below 2^51. */
static double element(int which, int thread, size_t i)
{
    return (double)((int)(pl_mix(((uint64_t)thread * MATRICES + (uint64_t)which) << 32 | i) >> 13) - (1 << 18));
}

void dgemm_touch(const pl_case *c, int thread)
{
    const size_t n = flops_order(c, thread);
    for (int which = 0; which < MATRICES; which++) {
        double *const to = matrix(c, which, thread);
        for (size_t i = 0; i < n * n; i++)
            to[i] = element(which, thread, i);
    }
}

void dgemm_run(const pl_case *c, int thread)
{
#ifdef PL_BLAS
    const int n = (int)flops_order(c, thread);
    const double one = 1, *const a = matrix(c, A, thread), *const b = matrix(c, B, thread);
    double *const to = matrix(c, C, thread);
    if (dgemm_calls_at_once(c) < c->threads) {
#ifdef _OPENMP
#pragma omp critical(dgemm)
#endif
        dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &one, to, &n, 1, 1);
        return;
    }
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &one, to, &n, 1, 1);
#endif
}

/* y + M v modulo 2^64, where M is what the library was given, or what it left. */
static bool add_product(size_t n, const double *matrix, const uint64_t *v, uint64_t *y)
{
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++) {
            const double e = matrix[j * n + i];
            if (!(fabs(e) < 0x1p53) || e != floor(e))
                return false;
            y[i] += (uint64_t)(int64_t)e * v[j];
        }
    return true;
}

/* Freivalds: C v = C' v + A (B v), for a random v and the C' of before, in whole numbers modulo 2^64: each row that is
 * wrong is found but for a probability of 2^-12 at the most, since no error has 52 factors of 2.  (R. Freivalds, IFIP
 * Congress 1977.) */
static bool is_right(const pl_case *c, int thread)
{
    const size_t n = flops_order(c, thread);
    uint64_t *const v = pl_allocate(4 * n * sizeof *v, "the verification"), *const bv = v + n, *const right = bv + n,
                    *const found = right + n;
    const double *const a = matrix(c, A, thread), *const b = matrix(c, B, thread);
    for (size_t j = 0; j < n; j++)
        v[j] = pl_random_bits(j);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++)
            right[i] += (uint64_t)(int64_t)element(C, thread, j * n + i) * v[j];
    bool fine = add_product(n, b, v, bv) && add_product(n, a, bv, right) && add_product(n, matrix(c, C, thread), v, found) &&
                !memcmp(right, found, n * sizeof *v);
    for (size_t i = 0; i < n * n && fine; i++)
        fine = a[i] == element(A, thread, i) && b[i] == element(B, thread, i);
    free(v);
    return fine;
}

double dgemm_error(const pl_case *c)
{
    for (int thread = 0; thread < c->threads; thread++)
        if (!is_right(c, thread))
            return INFINITY;
    return 0;
}

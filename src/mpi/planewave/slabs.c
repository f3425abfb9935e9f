#include "slabs.h"

#include <math.h>
#include <stdlib.h>

#ifdef PL_FFTW
#include <fftw3.h>
#endif

pl_range slabs_part(size_t n, int rank, int ranks) { return pl_part(n, rank, ranks); }

static size_t length(pl_range part) { return part.end - part.begin; }

void slabs_open(slabs *s)
{
    const size_t n = s->waves.n, ranks = (size_t)s->app.ranks;
    const size_t planes = length(s->planes), rows = length(s->rows), most = planes > rows ? planes : rows;
    double complex **const buffers[] = {&s->lines, &s->packed, &s->arrived};
    int **const lists[] = {&s->count, &s->begin, &s->count_of_rows, &s->begin_of_rows};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (posix_memalign((void **)buffers[i], PL_LINE, (most * n * n + 1) * sizeof **buffers[i]))
            app_memory(NULL);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        *lists[i] = app_memory(calloc(ranks, sizeof **lists[i]));
    for (int rank = 0; rank < s->app.ranks; rank++) {
        const pl_range theirs = slabs_part(n, rank, s->app.ranks);      /* of planes, and of rows */
        s->count[rank] = (int)(2 * planes * length(theirs) * n);
        s->begin[rank] = (int)(2 * planes * theirs.begin * n);
        s->count_of_rows[rank] = (int)(2 * rows * length(theirs) * n);
        s->begin_of_rows[rank] = (int)(2 * rows * theirs.begin * n);
    }
#ifdef PL_FFTW
    for (int back = 0; back < 2; back++) {
        s->flat[back] = planewave_plan(&s->waves, 2, (int)planes, s->waves.h, s->waves.h, back);
        s->across[back] = planewave_plan(&s->waves, 1, (int)(rows * n), s->lines, s->lines, back);
    }
    s->waves.plans = (uint32_t)(uint64_t)pl_processes.reduce_sum(s->waves.plans);
#endif
}

void slabs_close(slabs *s)
{
#ifdef PL_FFTW
    for (int back = 0; back < 2; back++) {
        fftw_destroy_plan(s->flat[back]);
        fftw_destroy_plan(s->across[back]);
    }
#endif
    void *const all[] = {s->lines, s->packed, s->arrived, s->count, s->begin, s->count_of_rows, s->begin_of_rows};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void exchange(slabs *s, const int *count, const int *begin, const int *count_back, const int *begin_back)
{
    const double began = app_seconds();
    const size_t last = (size_t)s->app.ranks - 1, all = (size_t)(begin_back[last] + count_back[last]) / 2;
    for (size_t i = 0; s->app.proving && i < all; i++)
        s->arrived[i] = CMPLX(NAN, NAN);
    MPI_Alltoallv(s->packed, count, begin, MPI_DOUBLE, s->arrived, count_back, begin_back, MPI_DOUBLE, s->app.world);
    for (int rank = 0; rank < s->app.ranks; rank++)
        if (rank != s->app.rank)
            app_count(&s->app, (size_t)count[rank]);
    app_end(&s->app, began);
}

/* Between an element of own planes, of which each process's rows stand together, and its place in a message to that process. */
static void to_lines(slabs *s, const double complex *h)
{
    const size_t n = s->waves.n, planes = length(s->planes), rows = length(s->rows);
    double complex *to = s->packed;
    for (int rank = 0; rank < s->app.ranks; rank++) {
        const pl_range theirs = slabs_part(n, rank, s->app.ranks);
        for (size_t z = 0; z < planes; z++)
            for (size_t i = theirs.begin * n; i < theirs.end * n; i++)
                *to++ = h[z * n * n + i];
    }
    exchange(s, s->count, s->begin, s->count_of_rows, s->begin_of_rows);
    for (size_t z = 0; z < n; z++)
        for (size_t i = 0; i < rows * n; i++)
            s->lines[i * n + z] = s->arrived[z * rows * n + i];
}

static void to_planes(slabs *s, double complex *h)
{
    const size_t n = s->waves.n, planes = length(s->planes), rows = length(s->rows);
    for (size_t z = 0; z < n; z++)
        for (size_t i = 0; i < rows * n; i++)
            s->packed[z * rows * n + i] = s->lines[i * n + z];
    exchange(s, s->count_of_rows, s->begin_of_rows, s->count, s->begin);
    const double complex *from = s->arrived;
    for (int rank = 0; rank < s->app.ranks; rank++) {
        const pl_range theirs = slabs_part(n, rank, s->app.ranks);
        for (size_t z = 0; z < planes; z++)
            for (size_t i = theirs.begin * n; i < theirs.end * n; i++)
                h[z * n * n + i] = *from++;
    }
}

static void scale(slabs *s)
{
    const size_t points = length(s->rows) * s->waves.n * s->waves.n;
    for (size_t i = 0; i < points; i++)
        s->lines[i] *= s->waves.laplace[i];
}

static void sum_products(slabs *s)
{
    const double began = app_seconds();
    const int n = (int)(2 * s->waves.bands * s->waves.bands);
    MPI_Allreduce(MPI_IN_PLACE, s->waves.s, n, MPI_DOUBLE, MPI_SUM, s->app.world);
    app_end(&s->app, began);
}

static size_t own_points(const slabs *s) { return length(s->planes) * s->waves.n * s->waves.n; }

static void flat_by_matrix(slabs *s, double complex *h, bool back)
{
    const size_t n = s->waves.n;
    for (size_t z = 0; z < length(s->planes); z++)
        for (size_t i = 0; i < n; i++) {
            planewave_line(&s->waves, h + (z * n + i) * n, 1, back);
        }
    for (size_t z = 0; z < length(s->planes); z++)
        for (size_t i = 0; i < n; i++)
            planewave_line(&s->waves, h + z * n * n + i, n, back);
}

static void across_by_matrix(slabs *s, bool back)
{
    for (size_t i = 0; i < length(s->rows) * s->waves.n; i++)
        planewave_line(&s->waves, s->lines + i * s->waves.n, 1, back);
}

/* plain: loops of our own. */
void slabs_plain(slabs *s)
{
    for (size_t b = 0; b < s->waves.bands; b++) {
        double complex *const h = s->waves.h + b * s->waves.stride;
        memcpy(h, s->waves.psi + b * s->waves.stride, own_points(s) * sizeof *h);
        flat_by_matrix(s, h, false);
        to_lines(s, h);
        across_by_matrix(s, false);
        scale(s);
        across_by_matrix(s, true);
        to_planes(s, h);
        flat_by_matrix(s, h, true);
    }
    planewave_products((pl_range){0, s->waves.bands}, &s->waves, own_points(s));
    sum_products(s);
}

#ifdef PL_FFTW
/* fftw: the same by FFTW and the BLAS. */
void slabs_fftw(slabs *s)
{
    for (size_t b = 0; b < s->waves.bands; b++) {
        double complex *const h = s->waves.h + b * s->waves.stride;
        memcpy(h, s->waves.psi + b * s->waves.stride, own_points(s) * sizeof *h);
        fftw_execute_dft(s->flat[0], h, h);
        to_lines(s, h);
        fftw_execute(s->across[0]);
        scale(s);
        fftw_execute(s->across[1]);
        to_planes(s, h);
        fftw_execute_dft(s->flat[1], h, h);
    }
    planewave_multiply((pl_range){0, s->waves.bands}, &s->waves, own_points(s));
    sum_products(s);
}
#endif

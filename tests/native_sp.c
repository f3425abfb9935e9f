/* SP without the measuring runtime:
 *
 *     sp N STEPS VARIANT ROWS X Y Z [FILE]    X x Y x Z ranks (0: chosen); VARIANT 0 transposed, 1 pipelined
 *
 * Prints, as JSON, the residual of the first step; then, after STEPS steps, the error, a number made of all bits of the
 * solution, and what one step sends; writes the solution into FILE if there is one rank: component, z, y, x. */
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sp.h"

/* The same whatever the order of the points. */
static uint64_t all_bits(const sp *s)
{
    uint64_t sum = 0;
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (int z = 0; z < s->n[2]; z++)
            for (int y = 0; y < s->n[1]; y++)
                for (int x = 0; x < s->n[0]; x++) {
                    const int n = s->chosen.n, row = (m * n + s->first[2] + z) * n + s->first[1] + y;
                    const uint64_t place = (uint64_t)row * (uint64_t)n + (uint64_t)(s->first[0] + x);
                    uint64_t bits;
                    memcpy(&bits, sp_at(s, s->u, m, x, y, z), sizeof bits);
                    bits = (bits ^ place * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
                    sum += bits ^ bits >> 31;
                }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, s->app->world);
    return sum;
}

static double reduce_max(double x)
{
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return x;
}

static void write_solution(const sp *s, const char *path)
{
    FILE *const f = fopen(path, "wb");
    for (int m = 0; m < SP_COMPONENTS; m++)
        for (int z = 0; z < s->n[2]; z++)
            for (int y = 0; y < s->n[1]; y++)
                fwrite(sp_at(s, s->u, m, 0, y, z), sizeof(double), (size_t)s->n[0], f);
    fclose(f);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    app a;
    app_open(&a, MPI_COMM_WORLD);
    sp_options o = {.n = atoi(argv[1]), .pipelined = atoi(argv[3]), .rows = atol(argv[4]),
                    .ranks = {atoi(argv[5]), atoi(argv[6]), atoi(argv[7])}};
    char why[SP_WHY];
    if (!sp_choose(&o, a.ranks, why))
        app_fail(&a, "sp: %s", why);
    void *const memory = aligned_alloc(64, sp_bytes(&o, a.rank));
    sp *const s = sp_create(&a, &o, memory);
    sp_start(s);
    app_reset(&a);
    sp_step(s);
    app sent = a;
    sent.shortest = s->shortest;
    sent.longest = s->longest;
    const double residual = reduce_max(sp_residual(s)), bound = sp_residual_bound(s);
    const app_result r = app_result_of(&sent, 0, residual, bound);
    sp_start(s);
    for (int i = 0; i < atoi(argv[2]); i++)
        sp_step(s);
    const double error = reduce_max(sp_error(s));
    const uint64_t bits = all_bits(s);
    if (a.rank == 0)
        printf("{\"grid\": [%d, %d, %d], \"residual\": %.17g, \"residual_bound\": %.17g, \"error\": %.17g, "
               "\"error_bound\": %.17g, \"bits\": %llu, \"messages\": %.17g, \"bytes\": %.17g, \"shortest\": %g, \"longest\": %g, \"flops\": %.17g}\n",
               o.ranks[0], o.ranks[1], o.ranks[2], residual, bound, error, sp_error_bound(s), (unsigned long long)bits,
               r.messages, r.bytes, r.shortest, r.longest, r.flops * a.ranks);
    if (argc > 8 && a.ranks == 1)
        write_solution(s, argv[8]);
    sp_destroy(s);
    free(memory);
    MPI_Finalize();
    return 0;
}

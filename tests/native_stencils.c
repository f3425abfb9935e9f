/* The models and layouts of the stencils, on caches of any size: KERNEL is the file of one of them, without its runtime.
 *
 *     jacobi    VARIANT N THREADS LEVEL L1 L2 L3 PLANES BLOCK     load store flops fetched written block
 *     ninepoint VARIANT N THREADS LEVEL L1 L2 L3                  load store flops fetched written ld begin[0..6] */
#include <stdio.h>
#include <stdlib.h>

#define main main_of_the_kernel
#include KERNEL
#undef main

static size_t cache_share[4];

size_t pl_cache_share(const pl_case *c, int level) { return (void)c, cache_share[level]; }

int pl_main(int argc, char **argv, const pl_kernel *k) { return (void)argc, (void)argv, (void)k, 1; }
void *pl_allocate(size_t bytes, const char *what) { return (void)what, calloc(1, bytes); }
void pl_fail(const char *format, ...) { (void)format, exit(2); }
pl_buffers *pl_buffers_create(const pl_case *c, int n, const size_t *b, const size_t *o) { return (void)c, (void)n, (void)b, (void)o, NULL; }
pl_buffers *pl_data_buffers(const pl_case *c) { return c->data; }
pl_buffers *pl_first_buffers(const pl_case *c) { return c->data; }
void pl_buffers_destroy(void *b) { (void)b; }

#ifndef LAYOUTS
/* The first touch of all threads writes each element of the arrays, and none beyond. */
static bool touched_right(pl_case *c)
{
    const size_t n = bytes_of_array(c) / sizeof(double), beyond = n + box_of(c).plane;
    pl_buffers data = {.count = 2};
    bool right = true;
    for (int i = 0; i < 2; i++)
        data.at[i] = memset(pl_allocate(beyond * sizeof(double), ""), 0xFF, beyond * sizeof(double));
    c->data = &data;
    for (int thread = 0; thread < c->threads; thread++)
        touch(c, thread, c->threads);
    for (size_t i = 0; i < beyond; i++)
        right &= pl_untouched((double *)data.at[OUT] + i) == (i >= n);
    return right;
}
#endif

int main(int argc, char **argv)
{
    pl_case c = {.variant = variants, .n = strtoul(argv[2], NULL, 10), .threads = atoi(argv[3]), .level = atoi(argv[4])};
    while (strcmp(c.variant->name, argv[1]))
        c.variant++;
    for (int level = 1; level <= 3; level++)
        cache_share[level] = strtoul(argv[4 + level], NULL, 10);
    for (int i = 8; i < argc; i++)
        c.parameters[i - 8] = atol(argv[i]);
    const pl_work w = work(&c);
    printf("%.0f %.0f %.0f %.0f %.0f", w.load_bytes, w.store_bytes, w.flops, w.fetched_bytes, w.written_bytes);
#ifdef LAYOUTS
    const layout l = layout_of(&c);
    printf(" %zu", l.ld);
    for (int k = 0; k <= ARRAYS; k++)
        printf(" %zu", l.begin[k]);
#else
    printf(" %zu", block_of(&c));
    if (!touched_right(&c))
        return 3;
#endif
    printf("\n");
    return 0;
}

/* Where the arrays of kernels lie, and that their guards see what is written outside: says what is wrong, or nothing. */
#include <stdio.h>
#include <string.h>

#include "plumbline.h"

enum { PAGE = 4096, GUARD = 64 };

static int complaints;

static void expect(bool so, const char *what, const pl_case *c, int count, int i)
{
    if (so)
        return;
    fprintf(stderr, "%s: array %d of %d, n %zu, shift %zu, %s\n", what, i, count, c->n, c->shift,
            c->alloc == PL_STATIC ? "static" : c->alloc == PL_MALLOC ? "malloc" : "dynamic");
    complaints++;
}

static void check_layout(const pl_case *c, const pl_arrays *x)
{
    const unsigned char *end = x->base;
    for (int i = 0; i < x->count; i++) {
        const unsigned char *begin = (const unsigned char *)x->array[i];
        if (c->alloc == PL_DYNAMIC)
            expect((uintptr_t)begin % PAGE == (size_t)i * c->shift % PAGE, "alignment", c, x->count, i);
        else
            expect(begin - (const unsigned char *)x->array[0] == i * (ptrdiff_t)8000000, "not 8,000,000 bytes apart", c, x->count, i);
        expect(begin - GUARD >= end, "no room before", c, x->count, i);
        end = begin + c->n * sizeof(double) + GUARD;
    }
    expect(end <= x->base + x->mapped, "no room after", c, x->count, x->count - 1);
}

static void check_guards(const pl_case *c, pl_arrays *x)
{
    const ptrdiff_t n = (ptrdiff_t)c->n, outside[] = {-8, -1, n, n + 7};
    pl_arrays_set_guards(x);
    for (int i = 0; i < x->count; i++)
        memset(x->array[i], 0, c->n * sizeof(double));
    expect(pl_arrays_guards_intact(x), "writing inside breaks a guard", c, x->count, 0);
    for (int i = 0; i < x->count; i++)
        for (int k = 0; k < 4; k++) {
            x->array[i][outside[k]] = 0;
            expect(!pl_arrays_guards_intact(x), "writing outside is not seen", c, x->count, i);
            pl_arrays_set_guards(x);
            expect(pl_arrays_guards_intact(x), "a guard is not restored", c, x->count, i);
        }
}

int main(void)
{
    const size_t n[] = {1, 7, 8, 511, 512, 513, 100000}, shift[] = {0, 8, 32, 128, 1024, 4096 + 64};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        for (size_t s = 0; s < sizeof shift / sizeof *shift; s++)
            for (int alloc = PL_DYNAMIC; alloc <= PL_MALLOC; alloc++)
                for (int count = 1; count <= PL_MAX_ARRAYS; count++) {
                    const pl_case c = {.n = n[i], .shift = shift[s], .alloc = (pl_alloc)alloc, .pages = PL_BASE};
                    if (alloc != PL_DYNAMIC && shift[s])
                        continue;
                    pl_arrays *x = pl_arrays_create(&c, count);
                    if (alloc != PL_MALLOC)     /* anywhere */
                        check_layout(&c, x);
                    check_guards(&c, x);
                    pl_arrays_destroy(x);
                }
    return complaints != 0;
}

/* The electric field after many passes: what a timed loop works on.  Prints `variant passes checksum least largest`; all six
 * fields before the first loop's first pass, and after it, go to the file that is named. */
#include <stdio.h>

#include "internal.h"

#define main program_main
#include "fdtd.c"
#undef main

/* Every point that is computed, for a checksum that sees each bit, and the range of the magnitudes. */
static void report(const pl_case *c, long passes)
{
    unsigned long sum = 0;
    float least = INFINITY, largest = 0;
    for (int field = EX; field < HX; field++)
        for (size_t j = 1; j <= inner(c); j++)
            for (size_t i = 1; i <= inner(c); i++)
                for (size_t k = 1; k <= inner(c); k++) {
                    const float value = row_of(c, field, i, j)[k];
                    unsigned bits;
                    memcpy(&bits, &value, sizeof bits);
                    sum = sum * 31 + bits;
                    least = fabsf(value) < least || isnan(value) ? fabsf(value) : least;
                    largest = fabsf(value) > largest || isnan(value) ? fabsf(value) : largest;
                }
    printf("%s %ld %lx %g %g\n", c->variant->name, passes, sum, (double)least, (double)largest);
}

static void write_fields(const pl_case *c, FILE *file)
{
    const pl_buffers *x = c->data;
    for (int field = 0; field < FIELDS; field++)
        fwrite(x->at[field], 1, x->bytes[field], file);
}

int main(int argc, char **argv)
{
    FILE *fields = argc > 1 ? fopen(argv[1], "wb") : NULL;
    static const long counts[] = {1, 2, 10, 1000};
    for (const pl_variant *v = variants; v->name; v++) {
        if (!v->loop)
            continue;
        pl_case c = {.kernel = &fdtd, .variant = v, .n = 37, .threads = 1};
        c.data = create(&c);
        touch(&c, 0, 1);
        for (size_t p = 0; p < sizeof counts / sizeof *counts; p++) {
            const bool first = fields && v == variants && counts[p] == 1;
            poison(&c);
            if (first)
                write_fields(&c, fields);
            const pl_plan whole = pl_plan_of(&c, 0);
            for (long pass = 0; pass < counts[p]; pass++)
                run(&c, &whole);
            report(&c, counts[p]);
            if (first)
                write_fields(&c, fields);
        }
        pl_buffers_destroy(c.data);
    }
    return fields ? fclose(fields) : 1;
}

/* A kernel with teams of any size, their threads one after the other: PROGRAM run|balance VARIANT|all SIZE LARGEST [OPTION=VALUE...].
 *
 * run: the variant with 1 to LARGEST threads, from the first touch to the verification: `variant threads error`.
 * balance: only create()s the data: `variant threads balance`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static void run_pass(const pl_case *c, int thread)
{
    const pl_plan plan = pl_plan_of(c, thread);
    c->kernel->run(c, &plan);
}

static double run(pl_case *c)
{
    c->data = c->kernel->create(c);
    for (int thread = 0; thread < c->threads; thread++)
        c->kernel->touch(c, thread, c->threads);
    c->kernel->poison(c);
    pl_set_guards(c);
    for (int thread = 0; thread < c->threads; thread++)
        run_pass(c, thread);
    double error = pl_guards_intact(c) ? 0 : INFINITY;
    if (c->kernel->verify)
        error = pl_worse(error, c->kernel->verify(c));
    for (int thread = 0; c->kernel->verify_part && thread < c->threads; thread++)
        error = pl_worse(error, c->kernel->verify_part(c, thread));
    c->kernel->destroy(c->data);
    return error;
}

static void options_of(pl_case *c, int count, char **options)
{
    static const char *text[PL_MAX_STRINGS];
    c->text = text;
    for (int i = 0; c->kernel->parameters && c->kernel->parameters[i].name; i++) {
        c->parameters[i] = c->kernel->parameters[i].value;
        for (int k = 0; k < count; k++)
            if (!strncmp(options[k], c->kernel->parameters[i].name, strlen(c->kernel->parameters[i].name)))
                c->parameters[i] = atol(strchr(options[k], '=') + 1);
    }
    for (int i = 0; c->kernel->strings && c->kernel->strings[i].name; i++)
        for (int k = 0; k < count; k++)
            if (!strncmp(options[k], c->kernel->strings[i].name, strlen(c->kernel->strings[i].name)))
                text[i] = strchr(options[k], '=') + 1;
}

int pl_main(int argc, char **argv, const pl_kernel *kernel)
{
    const bool runs = !strcmp(argv[1], "run");
    for (const pl_variant *v = kernel->variants; v->name; v++) {
        pl_case c = {.kernel = kernel, .variant = v, .n = strtoul(argv[3], NULL, 10), .threads = 1};
        options_of(&c, argc - 5, argv + 5);
        if (!v->loop || !pl_cpu_has(v->isa) || (strcmp(argv[2], "all") && strcmp(argv[2], v->name)))
            continue;
        if (kernel->elements)
            c.n = kernel->elements(&c);
        if (!runs)
            c.data = kernel->create(&c);
        for (c.threads = 1; c.threads <= atoi(argv[4]); c.threads++)
            printf("%s %d %.17g\n", v->name, c.threads, runs ? run(&c) : pl_balance(&c));
        if (!runs)
            kernel->destroy(c.data);
    }
    return 0;
}

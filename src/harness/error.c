#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

void pl_tell_wrong(const char *why) { printf("{\"record\": \"wrong\", \"schema\": 1, \"why\": \"%s\"}\n", why); }

_Noreturn void pl_fail(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    /* What is wrong is mostly so on all processes: the first one says it and ends the others meanwhile. */
    if (pl_processes.rank > 0)
        sleep(2);
    /* In one piece: what an MPI or a launcher says would come in between. */
    char rank[32] = "";
    if (pl_processes.rank > 0)
        snprintf(rank, sizeof rank, "rank %d: ", pl_processes.rank);
    static char said[8192];
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    fprintf(stderr, "plumbline: %s%s\n", rank, said);
    pl_processes.stop(2);
    abort();
}

_Noreturn void pl_no_memory(const pl_case *c)
{
    pl_fail("no memory for %s with %zu elements: choose a smaller size", c->kernel->name, c->n);
}

void *pl_grow(void *old, size_t bytes, const char *what)
{
    void *p = realloc(old, bytes);
    if (!p)
        pl_fail("no memory for %s (%zu bytes)", what, bytes);
    return p;
}

void *pl_allocate(size_t bytes, const char *what)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        pl_fail("no memory for %s (%zu bytes): choose a smaller size or fewer samples", what, bytes);
    return p;
}

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

_Noreturn void pl_fail(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    /* What is wrong is mostly so on all processes: the first one says it and ends the others meanwhile. */
    if (pl_processes.rank > 0)
        sleep(2);
    fputs("plumbline: ", stderr);
    if (pl_processes.rank > 0)
        fprintf(stderr, "rank %d: ", pl_processes.rank);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    pl_processes.stop(2);
    abort();
}

void *pl_allocate(size_t bytes, const char *what)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        pl_fail("no memory for %s (%zu bytes): choose a smaller size or fewer samples", what, bytes);
    return p;
}

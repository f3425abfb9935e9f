#include <stdarg.h>
#include <stdlib.h>

#include "internal.h"

_Noreturn void pl_fail(const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs("plumbline: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

void *pl_allocate(size_t bytes, const char *what)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        pl_fail("no memory for %s (%zu bytes): choose a smaller size or fewer samples", what, bytes);
    return p;
}

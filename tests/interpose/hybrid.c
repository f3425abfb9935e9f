/* A kernel that knows cores of two kinds: what it says of them in /sys is read from the folder HYBRID instead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*original)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    char elsewhere[4096];
    snprintf(elsewhere, sizeof elsewhere, "%s", getenv("HYBRID"));
    for (const char *at = path; *at; at++)
        snprintf(elsewhere + strlen(elsewhere), 2, "%c", *at == '/' ? '.' : *at);
    FILE *const found = original(elsewhere, mode);
    if (found || strstr(path, "cpu_core/") || strstr(path, "cpu_atom/") || strstr(path, "cpu_capacity") || strstr(path, "cpuinfo_max_freq") ||
        strstr(path, "highest_perf"))
        return found;
    return original(path, mode);
}

/* LIKWID's marker API: one region per case.  It does nothing unless the program runs under likwid-perfctr -m. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#ifdef LIKWID_PERFMON
#include <likwid-marker.h>

static bool counting;   /* likwid-perfctr -m says where the counts go; without it LIKWID would complain, once per program */

/* Only letters, digits and - are safe in the region names of every output format of LIKWID. */
static void region(const pl_case *c, char *name, size_t length)
{
    int end = snprintf(name, length, "%s-%s-%zu-%d", c->kernel->name, c->variant->name, c->n, c->threads);
    if (c->init == PL_NOINIT)
        end += snprintf(name + end, length - (size_t)end, "-noinit");
    if (c->alloc != PL_DYNAMIC)
        end += snprintf(name + end, length - (size_t)end, "-%s", pl_allocs[c->alloc]);
    if (c->narrowed > 1)
        end += snprintf(name + end, length - (size_t)end, "-core");
    if (c->shift)
        end += snprintf(name + end, length - (size_t)end, "-shift%zu", c->shift);
    for (int i = 0; c->kernel->parameters && c->kernel->parameters[i].name && end < (int)length; i++)
        if (c->parameters[i] != c->kernel->parameters[i].value)
            end += snprintf(name + end, length - (size_t)end, "-%s%ld", c->kernel->parameters[i].name, c->parameters[i]);
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
}

static void mark(const pl_case *c, int (*act)(const char *))
{
    char name[200];
    if (!counting)
        return;
    region(c, name, sizeof name);
    act(name);
}

void pl_markers_open(void)
{
    counting = getenv("LIKWID_FILEPATH") != NULL;
    if (counting)
        likwid_markerInit();
}

void pl_markers_close(void)
{
    if (counting)
        likwid_markerClose();
}

void pl_marker_start(const pl_case *c) { mark(c, likwid_markerStartRegion); }
void pl_marker_stop(const pl_case *c) { mark(c, likwid_markerStopRegion); }

#else

void pl_markers_open(void) {}
void pl_markers_close(void) {}
void pl_marker_start(const pl_case *c) {}
void pl_marker_stop(const pl_case *c) {}

#endif

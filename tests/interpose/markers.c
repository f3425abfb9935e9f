/* Stands in for LIKWID's markers: says on standard error which region is left. */
#include <stdio.h>

void likwid_markerInit(void) {}
void likwid_markerClose(void) {}
int likwid_markerStartRegion(const char *region) { return region == NULL; }
int likwid_markerStopRegion(const char *region) { return fprintf(stderr, "left %s\n", region) < 0; }

/* Remote memory, files, processes that are started, and what MPI 4 has new: nothing is added to these, and the report says
 * how often they were called. */
#include "latency.h"

#define PASS(NAME, PARAMETERS, ARGUMENTS) OF_##NAME,
enum {
#include "passed.h"
    KINDS
};
#undef PASS

#define PASS(NAME, PARAMETERS, ARGUMENTS) "MPI_" #NAME,
static const char *const names[KINDS] = {
#include "passed.h"
};
#undef PASS

static _Atomic int64_t counts[KINDS];

int lat_passed_kinds(void) { return KINDS; }
const char *lat_passed_name(int kind) { return names[kind]; }
int64_t lat_passed_count(int kind) { return counts[kind]; }

#define PASS(NAME, PARAMETERS, ARGUMENTS) \
    int MPI_##NAME PARAMETERS             \
    {                                     \
        if (lat_set.on)                   \
            counts[OF_##NAME]++;          \
        return PMPI_##NAME ARGUMENTS;     \
    }
#include "passed.h"

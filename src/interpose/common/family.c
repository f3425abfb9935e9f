#include "family.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Intel MPI's mpi.h defines MPICH's macros as well, as do those of MPICH's other relatives, whose handles are MPICH's. */
#if defined(OPEN_MPI)
static const char *const built_for = "Open MPI";
#elif defined(I_MPI_VERSION)
static const char *const built_for = "Intel MPI";
#elif defined(MPICH_VERSION)
static const char *const built_for = "MPICH";
#else
static const char *const built_for = NULL;      /* an MPI that we cannot tell from others */
#endif

/* What the first line of MPI_Get_library_version of each holds. */
static const char *const holds[][2] = {
    {"Open MPI", "Open MPI"}, {"Intel(R) MPI", "Intel MPI"}, {"MPICH", "MPICH"}, {"MVAPICH", "MPICH"},
};

enum { LONGEST_VERSION = 16384 };       /* any MPI's: MPI_MAX_LIBRARY_VERSION_STRING is only that of the build */

/* Whether this is the first of the processes that the launcher has started on this node to come here: it alone can have a
 * name of their common parent's.  The name goes with the process. */
static bool first_on_node(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "plumbline-%d", (int)getppid());
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    return s < 0 || bind(s, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0
           || errno != EADDRINUSE;
}

_Noreturn void interpose_fail(const char *format, ...)
{
    va_list arguments;
    if (first_on_node()) {
        /* In one piece: what the MPI says of its own would come in between. */
        static char said[LONGEST_VERSION];
        va_start(arguments, format);
        vsnprintf(said, sizeof said, format, arguments);
        va_end(arguments);
        fprintf(stderr, "plumbline: %s\n", said);
        sleep(1);       /* the others come meanwhile, and find the name taken */
    } else {
        sleep(2);       /* launchers end all others when one process leaves: only after the line is out */
    }
    _Exit(2);
}

void interpose_check_family(const char *library)
{
    static char text[LONGEST_VERSION + 1];
    int length = 0;
    if (!built_for)
        return;
    /* The first of this name in the process is the one that the program calls: its own MPI's. */
    PMPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    const char *runs_with = text;
    for (size_t i = 0; i < sizeof holds / sizeof *holds; i++)
        if (strstr(text, holds[i][0])) {
            runs_with = holds[i][1];
            break;
        }
    if (strcmp(runs_with, built_for))
        interpose_fail("%s was built for %s, this program runs with %s: preload the library built with its mpicc", library,
                       built_for, runs_with);
}

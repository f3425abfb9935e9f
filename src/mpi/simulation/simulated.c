/* A mini-application on a simulated network:  smpirun ... simulated APPLICATION SIZE ITERATIONS
 *
 * The platform says what a message and a flop take.  Prints one line of JSON: app_print().  */
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "programs.h"

int main(int argc, char **argv)
{
    app a;
    MPI_Init(&argc, &argv);
    app_open(&a, MPI_COMM_WORLD);
    if (argc != 4)
        app_fail(&a, "usage: simulated APPLICATION SIZE ITERATIONS");
    const app_program *program = NULL;
    for (int i = 0; programs[i] && !program; i++)
        if (!strcmp(programs[i]->name, argv[1]))
            program = programs[i];
    if (!program)
        app_fail(&a, "%s: no such application", argv[1]);
    bool known = false;
    for (int i = 0; program->sizes[i]; i++)
        known |= !strcmp(program->sizes[i], argv[2]);
    if (!known)
        app_fail(&a, "%s of size %s: no such size", program->name, argv[2]);
    char *end;
    const long iterations = strtol(argv[3], &end, 10);
    if (*end || iterations < 1)
        app_fail(&a, "%s iterations: give a positive number", argv[3]);
    program->refuse(&a, argv[2]);
    const app_result result = program->run(&a, argv[2], iterations);
    app_print(&a, &result, program->name, argv[2], iterations);
    MPI_Finalize();
    return result.error <= result.tolerance ? 0 : 1;
}

/* A mini-application on a simulated network:  smpirun ... simulated APPLICATION SIZE ITERATIONS DELAY SUM_DELAY BYTE
 *
 * The platform says what a message and a flop take, the last three what the application's own routines add (app_simulated; s).
 * Prints one line of JSON: app_print().  */
#include <stdlib.h>
#include <string.h>

#include "app.h"

extern const app_program cg_program, cg_doubling_program, sp_program;

static const app_program *const programs[] = {&cg_program, &cg_doubling_program, &sp_program, NULL};

int main(int argc, char **argv)
{
    app a;
    MPI_Init(&argc, &argv);
    app_open(&a, MPI_COMM_WORLD);
    if (argc != 7)
        app_fail(&a, "usage: simulated APPLICATION SIZE ITERATIONS DELAY SUM_DELAY BYTE");
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
    double *const times[] = {&a.simulated.delay, &a.simulated.sum_delay, &a.simulated.byte};
    for (int i = 0; i < 3; i++)
        if (*times[i] = strtod(argv[4 + i], &end), *end || !(*times[i] >= 0))
            app_fail(&a, "%s s: give a time of 0 or more", argv[4 + i]);
    program->refuse(&a, argv[2]);
    const app_result result = program->run(&a, argv[2], iterations);
    app_print(&a, &result, program->name, argv[2], iterations);
    MPI_Finalize();
    return result.error <= result.tolerance ? 0 : 1;
}

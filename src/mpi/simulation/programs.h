/* The applications that can be simulated. */
#ifndef PLUMBLINE_SIMULATION_PROGRAMS_H
#define PLUMBLINE_SIMULATION_PROGRAMS_H

#include "app.h"

extern const app_program cg_program, cg_doubling_program, sp_program;

static const app_program *const programs[] = {&cg_program, &cg_doubling_program, &sp_program, NULL};

#endif

/* What is passed through and only counted: PASS(name, (parameters), (arguments)). */
#define COUNT int
#define DISPLACEMENT int
#define ONCE PASS
#define COUNTED PASS
#include "passed_calls.h"
#if MPI_VERSION >= 4
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define ONCE(NAME, PARAMETERS, ARGUMENTS)
#define COUNTED(NAME, PARAMETERS, ARGUMENTS) PASS(NAME##_c, PARAMETERS, ARGUMENTS)
#include "passed_calls.h"
#endif

/* The loops of fused.c, word for word, compiled with the compiler's loop distribution (src/cmake/flags.cmake). */
#define fdtd_fused fdtd_distributed
#define fdtd_fused_restrict fdtd_distributed_restrict
#include "fused.c"

! The loop of fused.F90, word for word, compiled with the compiler's loop distribution (src/cmake/flags.cmake).
#define fdtd_fortran_fused fdtd_fortran_distributed
#include "fused.F90"

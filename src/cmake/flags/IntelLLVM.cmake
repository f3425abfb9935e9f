# Intel oneAPI: icx, ifx.  Not run here; from Intel's documentation.
#   precise             no value changes with the order of operations; the compilers' own default is fast
include(${CMAKE_CURRENT_LIST_DIR}/LLVM.cmake)
set(C_flags "-O3 -xHost -fp-model=precise -mllvm -disable-loop-idiom-all")
set(Fortran_flags "-O3 -xHost -fp-model=precise")
# Its own vector functions (SVML) come with each; what they may be wrong by differs.
set(Fortran_sets "none=" "O2=-O2" "O3=-O3" "native=-O3 -xHost -fp-model=precise" "unroll=-O3 -xHost -fp-model=precise -unroll-aggressive"
    "lto=-O3 -xHost -fp-model=precise -ipo" "fast=-O3 -xHost -fp-model=fast=2" "low=-O3 -xHost -fp-model=fast=2 -fimf-precision=low")

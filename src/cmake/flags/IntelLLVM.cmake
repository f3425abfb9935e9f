# Intel oneAPI: icx, ifx.  Not run here; from Intel's documentation.
#   precise             no value changes with the order of operations; the compilers' own default is fast
include(${CMAKE_CURRENT_LIST_DIR}/LLVM.cmake)
set(C_flags "-O3 -xHost -fp-model=precise -mllvm -disable-loop-idiom-all")
set(Fortran_flags "-O3 -xHost -fp-model=precise")

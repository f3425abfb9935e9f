# Cray CCE: cc, ftn (CMake: CrayClang, before 3.28 Clang; Cray).  Not run here; from HPE's documentation.  The processor is
# that of the module craype-...; "pattern" replaces loops by calls of a library.
if(CMAKE_C_COMPILER_ID STREQUAL Cray)            # before CCE 9
  set(C_flags "-O3 -hnopattern")
else()
  include(${CMAKE_CURRENT_LIST_DIR}/LLVM.cmake)
  string(REPLACE " ${native}" "" C_flags "${C_flags}")
endif()
set(Fortran_flags "-O3 -hnopattern")
set(Fortran_distribute "")
set(Fortran_sets "none=" "O2=-O2" "O3=-O3" "unroll=-O3 -hunroll2" "lto=-O3 -hipa5" "fast=-O3 -hfp3" "precise=-O3 -hfp1")

# Enables Fortran.  Before release 17 LLVM's flang links only if it is told to, for CMake's own trials; our programs are linked
# by the C compiler.
set(linker_flags "${CMAKE_EXE_LINKER_FLAGS}")
execute_process(COMMAND ${CMAKE_Fortran_COMPILER} --version OUTPUT_VARIABLE version ERROR_QUIET)
if(version MATCHES "flang-new version 1[56]\\.")
  set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} -flang-experimental-exec")
endif()
enable_language(Fortran)
set(CMAKE_EXE_LINKER_FLAGS "${linker_flags}")

# Compiler flags, in one place: what the variants of one comparison share.  Set PLUMBLINE_C_FLAGS to override.
#   optimisation        as high as a user would go without changing results
#   -march=native       the build runs on the node that is measured
#   no loop patterns    a loop that stores or copies stays a loop: no call of memset or memcpy
set(id ${CMAKE_C_COMPILER_ID})
if(id STREQUAL GNU)
  set(flags "-O3 -march=native -fno-tree-loop-distribute-patterns")
elseif(id STREQUAL Clang OR id STREQUAL AppleClang)
  set(flags "-O3 -march=native -fno-builtin-memset -fno-builtin-memcpy -mllvm -disable-loop-idiom-all")
elseif(id STREQUAL IntelLLVM)  # not run here
  set(flags "-O3 -xHost -fp-model=precise -mllvm -disable-loop-idiom-all")
elseif(id STREQUAL NVHPC)      # not run here
  set(flags "-O3 -tp=host -Mnoidiom")
else()
  set(flags "-O3")
  message(WARNING "no flags are known for the C compiler ${id}: -O3 alone is used; set PLUMBLINE_C_FLAGS")
endif()
set(PLUMBLINE_C_FLAGS "${flags}" CACHE STRING "flags of all C files")

get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(Fortran IN_LIST languages)   # a compiler may be named although it is not wanted
  set(id ${CMAKE_Fortran_COMPILER_ID})
  if(id STREQUAL GNU OR id MATCHES "Flang$")
    set(flags "-O3 -march=native")
  elseif(id STREQUAL IntelLLVM)  # not run here
    set(flags "-O3 -xHost")
  elseif(id STREQUAL NVHPC)      # not run here
    set(flags "-O3 -tp=host")
  else()
    set(flags "-O3")
  endif()
  set(PLUMBLINE_Fortran_FLAGS "${flags}" CACHE STRING "flags of all Fortran files")
endif()

# The compiler's own loop distribution, which splits a loop with several statements: on, and off where it is on at -O3.
# Empty: there is no option for it.  For files that compare the two; what came of it is read from the program.
foreach(language C Fortran)
  set(PLUMBLINE_${language}_DISTRIBUTE "")
  set(PLUMBLINE_${language}_KEEP_FUSED "")
  if(CMAKE_${language}_COMPILER_ID STREQUAL GNU)
    set(PLUMBLINE_${language}_DISTRIBUTE "-ftree-loop-distribution")
    set(PLUMBLINE_${language}_KEEP_FUSED "-fno-tree-loop-distribution")
  elseif(CMAKE_${language}_COMPILER_ID MATCHES "Clang$|Flang$|^IntelLLVM$")  # Flang, IntelLLVM: not run here
    set(PLUMBLINE_${language}_DISTRIBUTE "-mllvm -enable-loop-distribute")
  endif()
endforeach()

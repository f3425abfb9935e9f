# Compiler flags, in one place: flags/COMPILER.cmake says for one maker's compilers
#   C_flags, Fortran_flags          what the variants of one comparison share: as high as a user would go without changing
#                                   results, for the node that builds, which is measured; a loop that copies stays a loop
#   C_warnings                      list
#   C_no_slp                        statements side by side are not made one vector instruction; for files whose loops are
#                                   forbidden to be vectorised, by makers whose compilers take the one for the other (gcc does not)
#   C_distribute, C_keep_fused, Fortran_...     the compiler's own loop distribution, which splits a loop with several
#                                   statements: on, and off where it is on at -O3; for files that compare the two
#   Fortran_sets                    list of NAME=FLAGS: sets of options that one compares (src/nas); O2 is among them, which stands for the
#                                   flags of a site that gives none
# Gives PLUMBLINE_C_FLAGS, PLUMBLINE_C_WARNINGS ..., of which the user may set the flags, and c_name and fortran_name for the
# records.

# CMake takes what is made from LLVM for LLVM: its --version says whose it is.
function(_plumbline_maker language result)
  set(id ${CMAKE_${language}_COMPILER_ID})
  set(other "")
  if(id MATCHES "^(Clang|Flang|LLVMFlang)$")
    execute_process(COMMAND ${CMAKE_${language}_COMPILER} --version OUTPUT_VARIABLE text ERROR_QUIET)
    string(REGEX MATCH "^[^\n]*" first "${text}")
    string(REGEX MATCH "AOCC|Cray" other "${first}")
  endif()
  if(other)
    set(id ${other})
  elseif(id MATCHES "^(Clang|AppleClang|Flang|LLVMFlang)$")
    set(id LLVM)
  elseif(id STREQUAL CrayClang)
    set(id Cray)
  endif()
  set(${result} ${id} PARENT_SCOPE)
endfunction()

get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
foreach(language C Fortran)
  if(NOT language IN_LIST languages)      # a compiler may be named although it is not wanted
    continue()
  endif()
  set(id ${CMAKE_${language}_COMPILER_ID})
  _plumbline_maker(${language} maker)
  foreach(what flags warnings no_slp distribute keep_fused sets)
    set(${language}_${what} "")           # of another language's maker
  endforeach()
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/flags/${maker}.cmake)
    include(${CMAKE_CURRENT_LIST_DIR}/flags/${maker}.cmake)
  else()
    set(${language}_flags "-O3")
    set(${language}_sets "none=" "O2=-O2" "O3=-O3")
    message(WARNING "no flags are known for the ${language} compiler ${id}: -O3 alone is used; set PLUMBLINE_${language}_FLAGS")
  endif()
  set(PLUMBLINE_${language}_FLAGS "${${language}_flags}" CACHE STRING "flags of all ${language} files")
  set(PLUMBLINE_${language}_WARNINGS ${${language}_warnings})
  set(PLUMBLINE_${language}_NO_SLP "${${language}_no_slp}")
  set(PLUMBLINE_${language}_DISTRIBUTE "${${language}_distribute}")
  set(PLUMBLINE_${language}_KEEP_FUSED "${${language}_keep_fused}")
  set(PLUMBLINE_${language}_SETS "${${language}_sets}" CACHE STRING "NAME=FLAGS of each set of options that is compared")
  string(TOLOWER ${language} name)
  set(${name}_name "${id} ${CMAKE_${language}_COMPILER_VERSION}")
  if(NOT maker STREQUAL id AND NOT maker STREQUAL LLVM)
    set(${name}_name "${maker} ${${name}_name}")
  endif()
endforeach()

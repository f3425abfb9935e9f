# What all CMake projects of src share, included after project(): the language, where things land, and the flags, which come
# from flags.cmake alone, so that the records can state them.  Gives c_flags and link_flags, as lists.
set(PLUMBLINE_SANITIZE "" CACHE STRING "sanitizers, for tests only: for example address,undefined")
option(PLUMBLINE_STRICT "what is switched on and not found is an error, not left out" OFF)
if(PLUMBLINE_STRICT)
  set(required REQUIRED)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE None)
endif()
set(CMAKE_C_STANDARD 11)       # C17 without its corrections of the text; CMake knows 17 since 3.21
set(CMAKE_C_EXTENSIONS ON)     # POSIX, asm
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

include(${CMAKE_CURRENT_LIST_DIR}/flags.cmake)
# The records state the flags, as text, with what CMake's build type and the user or ReFrame add.
string(TOUPPER ${CMAKE_BUILD_TYPE} build_type)
foreach(language C Fortran)
  set(PLUMBLINE_${language}_TARGET "" CACHE STRING "flags of another target than the building node: -march=x86-64-v3")
  if(PLUMBLINE_${language}_TARGET)
    string(REGEX REPLACE "(-march=|-mcpu=|-x|-tp=)(native|Host|host)" "${PLUMBLINE_${language}_TARGET}"
           PLUMBLINE_${language}_FLAGS "${PLUMBLINE_${language}_FLAGS}")
  endif()
  set(all "${CMAKE_${language}_FLAGS} ${CMAKE_${language}_FLAGS_${build_type}} ${PLUMBLINE_${language}_FLAGS}")
  string(REGEX REPLACE " +" " " all "${all}")
  string(STRIP "${all}" stated_${language}_flags)
endforeach()
separate_arguments(c_flags UNIX_COMMAND "${PLUMBLINE_C_FLAGS}")
set(link_flags "")
if(PLUMBLINE_SANITIZE)
  list(APPEND c_flags -g -fsanitize=${PLUMBLINE_SANITIZE} -fno-sanitize-recover=all)
  set(link_flags -fsanitize=${PLUMBLINE_SANITIZE})
endif()

# What all CMake projects of src share, included after project(): the language, where things land, and the flags, which come
# from flags.cmake alone, so that the records can state them.  Gives c_flags and link_flags, as lists.
set(PLUMBLINE_SANITIZE "" CACHE STRING "sanitizers, for tests only: for example address,undefined")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE None)
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)     # POSIX, asm
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

include(${CMAKE_CURRENT_LIST_DIR}/flags.cmake)
separate_arguments(c_flags UNIX_COMMAND "${PLUMBLINE_C_FLAGS}")
set(link_flags "")
if(PLUMBLINE_SANITIZE)
  list(APPEND c_flags -g -fsanitize=${PLUMBLINE_SANITIZE} -fno-sanitize-recover=all)
  set(link_flags -fsanitize=${PLUMBLINE_SANITIZE})
endif()

# plumbline_mpi_program(NAME source...): NAME with the measuring runtime, its processes those of MPI_COMM_WORLD.
string(STRIP "${CMAKE_C_FLAGS} ${PLUMBLINE_C_FLAGS}" stated_flags)
set(c_name "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
file(GLOB harness CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../harness/*.c)
set(runtime ${CMAKE_CURRENT_LIST_DIR}/../mpi/runtime)

add_library(mpi-runtime STATIC ${harness} ${runtime}/runtime.c ${runtime}/inject.c)
target_include_directories(mpi-runtime PUBLIC ${CMAKE_CURRENT_LIST_DIR}/../harness ${runtime})
# MPICH's MPI_STATUSES_IGNORE is the address 1, which gcc takes for an array without room for what is not written.
target_compile_options(mpi-runtime PUBLIC ${c_flags} -Wall -Wextra $<$<C_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
target_compile_definitions(mpi-runtime PRIVATE PL_COMPILER="${c_name}" PL_FLAGS="${stated_flags}")
target_link_libraries(mpi-runtime PUBLIC m ${CMAKE_DL_LIBS})
target_link_options(mpi-runtime PUBLIC ${link_flags})

function(plumbline_mpi_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE mpi-runtime)
endfunction()

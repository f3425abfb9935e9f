# plumbline_mpi_program(NAME source...): NAME with the measuring runtime, its processes those of MPI_COMM_WORLD.
file(GLOB harness CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../harness/*.c)
set(runtime ${CMAKE_CURRENT_LIST_DIR}/../mpi/runtime)

add_library(mpi-runtime STATIC ${harness} ${runtime}/runtime.c ${runtime}/inject.c ${runtime}/samples.c)
target_include_directories(mpi-runtime PUBLIC ${CMAKE_CURRENT_LIST_DIR}/../harness ${runtime})
target_compile_options(mpi-runtime PUBLIC ${c_flags} ${PLUMBLINE_C_WARNINGS})
target_compile_definitions(mpi-runtime PRIVATE PL_COMPILER="${c_name}" PL_FLAGS="${stated_C_flags}")
target_link_libraries(mpi-runtime PUBLIC m rt ${CMAKE_DL_LIBS})     # rt: shm_open, of a glibc before 2.34
target_link_options(mpi-runtime PUBLIC ${link_flags})

function(plumbline_mpi_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE mpi-runtime)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

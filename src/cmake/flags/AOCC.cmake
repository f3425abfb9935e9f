# AMD AOCC: clang, flang (CMake: Clang, Flang or LLVMFlang; --version says AOCC).  Not run here; from AMD's documentation.
include(${CMAKE_CURRENT_LIST_DIR}/LLVM.cmake)
if(CMAKE_Fortran_COMPILER_ID STREQUAL Flang)     # the older one is not LLVM's, and has no such pass
  set(Fortran_distribute "")
endif()

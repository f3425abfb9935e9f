# plumbline_link_fftw(TARGET...): FFTW and the BLAS that the user's programs would have, where both are found, and PL_FFTW; the BLAS's whole
# numbers must have 32 bits.
option(PLUMBLINE_FFTW "plane waves by FFTW and the BLAS, where both are found" ON)
option(PLUMBLINE_BLAS "DGEMM of the BLAS, where one is found" ON)
if(PLUMBLINE_FFTW)
  find_library(FFTW_LIBRARY NAMES fftw3 ${required})
  find_path(FFTW_INCLUDE fftw3.h ${required})
endif()
if(PLUMBLINE_FFTW AND PLUMBLINE_BLAS)
  find_package(BLAS ${required})
endif()
if(FFTW_LIBRARY AND FFTW_INCLUDE AND BLAS_FOUND)
  include(CheckCSourceRuns)
  set(CMAKE_REQUIRED_LIBRARIES ${FFTW_LIBRARY} ${BLAS_LIBRARIES} ${BLAS_LINKER_FLAGS} m)
  set(CMAKE_REQUIRED_INCLUDES ${FFTW_INCLUDE})
  check_c_source_runs("#include <complex.h>
    #include <fftw3.h>
    #include <stddef.h>
    void zgemm_(const char *, const char *, const int *, const int *, const int *, const double complex *, const double complex *,
                const int *, const double complex *, const int *, const double complex *, double complex *, const int *, size_t, size_t);
    int main(void)
    {
        const int n[] = {1, -1};
        const double complex one = 1, i = I;
        double complex x[2] = {1, 2}, c = 1;
        fftw_execute(fftw_plan_dft_1d(2, x, x, FFTW_FORWARD, FFTW_ESTIMATE));
        zgemm_(\"C\", \"N\", n, n, n, &one, &i, n, &i, n, &one, &c, n, 1, 1);
        return x[0] != 3 || c != 2;
    }" FFTW_USABLE)
endif()
function(plumbline_link_fftw)
  foreach(target IN LISTS ARGN)
    if(FFTW_USABLE AND TARGET ${target})
      target_compile_definitions(${target} PRIVATE PL_FFTW)
      target_include_directories(${target} PRIVATE ${FFTW_INCLUDE})
      target_link_libraries(${target} PRIVATE ${FFTW_LIBRARY} ${BLAS_LIBRARIES} ${BLAS_LINKER_FLAGS})
    endif()
  endforeach()
endfunction()

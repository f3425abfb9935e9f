# NVIDIA HPC: nvc, nvfortran.  Not run here; from NVIDIA's documentation.
set(C_flags "-O3 -tp=host -Mvect=simd,noidiom")
set(Fortran_flags "-O3 -tp=host -Mvect=simd,noidiom")

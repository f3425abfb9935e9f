# NVIDIA HPC: nvc, nvfortran.  Not run here; from NVIDIA's documentation.  Nor is the pragma that keeps novec from vectors (PL_NOVEC_LOOP).
set(C_flags "-O3 -tp=host -Mvect=simd,noidiom")
set(Fortran_flags "-O3 -tp=host -Mvect=simd,noidiom")
set(Fortran_sets "none=" "O2=-O2" "O3=-O3" "native=-O3 -tp=host" "unroll=-O3 -tp=host -Munroll" "fast=-fast -tp=host" "relaxed=-fast -tp=host -Mfprelaxed")

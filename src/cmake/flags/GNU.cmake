# GNU: gcc, gfortran.
#   no loop patterns    a loop that stores or copies stays a loop: no call of memset or memcpy
set(C_flags "-O3 -march=native -fno-tree-loop-distribute-patterns")
set(Fortran_flags "-O3 -march=native")
# Functions of one table have one signature, and not each needs all of it.
# MPICH's MPI_STATUSES_IGNORE is the address 1, which gcc takes for an array without room for what is not written.
set(C_warnings -Wall -Wextra -Wno-unused-parameter -Wno-stringop-overflow)
foreach(language C Fortran)
  set(${language}_distribute "-ftree-loop-distribution")
  set(${language}_keep_fused "-fno-tree-loop-distribution")
endforeach()
# Of the glibc's vector functions (libmvec) gfortran calls those of two numbers from -O2 on; with -march=native and -ffast-math wider ones.
set(Fortran_sets "none=" "O2=-O2" "O3=-O3" "native=-O3 -march=native" "unroll=-O3 -march=native -funroll-loops"
    "lto=-O3 -march=native -flto" "fast=-O3 -march=native -ffast-math")

# LLVM: clang, flang.  (-fno-builtin-memcpy would make clang call the library where a source file says memcpy of eight bytes.)
set(C_flags "-O3 -march=native -mllvm -disable-loop-idiom-all")
set(Fortran_flags "-O3 -march=native")
# Tables of options leave out what is zero; functions of one table have one signature, and not each needs all of it.
set(C_warnings -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# What a loop was forbidden, the eight statements that it is unrolled to are not.
set(C_no_slp "-fno-slp-vectorize")
set(C_distribute "-mllvm -enable-loop-distribute")
set(Fortran_distribute "-mllvm -enable-loop-distribute")
set(Fortran_sets "none=" "O2=-O2" "O3=-O3" "native=-O3 -march=native" "unroll=-O3 -march=native -funroll-loops"
    "lto=-O3 -march=native -flto" "fast=-O3 -march=native -ffast-math" "veclib=-O3 -march=native -ffast-math -fveclib=libmvec")

# LLVM: clang, flang.  (-fno-builtin-memcpy would make clang call the library where a source file says memcpy of eight bytes.)
# On 64-bit Arm clang refuses -march=native before release 15, and leaves SVE out of it later.
set(native -march=native)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(native -mcpu=native)
endif()
set(C_flags "-O3 ${native} -mllvm -disable-loop-idiom-all")
set(Fortran_flags "-O3 ${native}")
# Tables of options leave out what is zero; functions of one table have one signature, and not each needs all of it.
set(C_warnings -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# What a loop was forbidden, the eight statements that it is unrolled to are not.
set(C_no_slp "-fno-slp-vectorize")
set(C_distribute "-mllvm -enable-loop-distribute")
set(Fortran_distribute "-mllvm -enable-loop-distribute")
set(Fortran_sets "none=" "O2=-O2" "O3=-O3" "native=-O3 ${native}" "unroll=-O3 ${native} -funroll-loops"
    "lto=-O3 ${native} -flto" "fast=-O3 ${native} -ffast-math" "veclib=-O3 ${native} -ffast-math -fveclib=libmvec")

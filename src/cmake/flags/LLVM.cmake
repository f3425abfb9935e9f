# LLVM: clang, flang.  (With -fno-builtin-memcpy clang would also call the library where a source file says memcpy for eight bytes.)
set(C_flags "-O3 -march=native -mllvm -disable-loop-idiom-all")
set(Fortran_flags "-O3 -march=native")
# Tables of options leave out what is zero.
set(C_warnings -Wall -Wextra -Wno-missing-field-initializers)
set(C_distribute "-mllvm -enable-loop-distribute")
set(Fortran_distribute "-mllvm -enable-loop-distribute")

#!/bin/sh
# shellcheck disable=SC2086      # flags are words
# Do these compilers work?  The first that does not is named in one line on standard error, with its own complaint.
#   try_compilers.sh [c|openmp|fortran COMPILER]...         with CFLAGS, FFLAGS, LDFLAGS
folder=$(mktemp -d "$PWD/try-XXXXXX") || exit      # /tmp may forbid to run what lies there
trap 'rm -rf "$folder"' EXIT
printf 'int main(void) { return 0; }\n' > "$folder/c.c"
printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' > "$folder/openmp.c"
printf 'program probe\nend program probe\n' > "$folder/fortran.f90"

# The first line that complains, or where none does all that was said.
fail()
{
    said=$(grep -m 1 -iE 'error|not found|cannot' "$folder/said" ||
        tr -s '\n ' ' ' < "$folder/said" | sed 's/---*//g; s/^ *//' | cut -c 1-160)
    printf 'plumbline: %s: %s\n' "$1" "${said:-it says nothing}" | sed "s:$folder/::g" >&2
    exit 1
}

compile()
{
    $compiler "$@" > "$folder/said" 2>&1
}

while [ $# -gt 1 ]; do
    language=$1 compiler=$2
    shift 2
    if ! command -v "${compiler%% *}" > /dev/null; then
        printf "plumbline: %s: command not found in the job's PATH\n" "${compiler%% *}" >&2
        exit 127
    fi
    case $language in
        c) compile $CFLAGS "$folder/c.c" -o "$folder/c" $LDFLAGS || fail "$compiler cannot build a C program" ;;
        openmp)
            compile -fopenmp $CFLAGS "$folder/openmp.c" -o "$folder/openmp" $LDFLAGS || {
                mv "$folder/said" "$folder/first"       # NVIDIA's calls it -mp
                compile -mp $CFLAGS "$folder/openmp.c" -o "$folder/openmp" $LDFLAGS || {
                    mv "$folder/first" "$folder/said"
                    fail "$compiler cannot build an OpenMP program"
                }
            } ;;
        # Our programs are linked by the C compiler.
        fortran) compile $FFLAGS -c "$folder/fortran.f90" -o "$folder/fortran.o" || fail "$compiler cannot compile Fortran" ;;
    esac
    if [ -x "$folder/$language" ]; then
        "$folder/$language" > "$folder/said" 2>&1 || fail "what $compiler builds does not run"
    fi
done

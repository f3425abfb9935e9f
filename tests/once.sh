#!/bin/bash
# A launcher of compilers, once.sh FOLDER COMPILER ... -o OBJECT -c SOURCE, as CMake calls them: what one makes of a text by some flags is made once,
# for all builds of a test run.  OpenMP's flag makes nothing else where the text has no OpenMP.
folder=$1
shift
words=("$@")
command=("${words[@]::$#-4}") object=${words[-3]} source=${words[-1]} compiler=$folder/${1//\//_}
if [[ ${words[-4]} != -o || $source != *.c ]] || ! "${command[@]}" -E "$source" -o "$object.i"; then
    exec "$@"
fi
[[ -e $compiler ]] || "$1" -v 2>&1 | tail -n 1 > "$compiler"
openmp=$(grep -m1 'pragma omp' "$object.i")
flags=$(printf '%s\n' "${command[@]}" | grep '^-[OWfgmpsw]' | grep -ve "${openmp:+no }-fopenmp")
kept=$folder/$({ cat "$compiler"; echo "$flags"; grep -v '^# ' "$object.i"; } | md5sum | cut -c1-32).o
if [[ ! -e $kept ]]; then      # another build may be making it
    exec 9> "$kept.lock"
    flock 9
fi
if [[ -e $kept ]]; then
    exec cp "$kept" "$object"
fi
"$@" && cp "$object" "$kept.$$" && mv "$kept.$$" "$kept"

'''Mutants: kernels that do less, or something else, than they say.  Verification must find every one of them.'''

import fnmatch
import functools
import re
import shutil
from dataclasses import dataclass

from native import MEASURED, SOURCE, Build, alone_in, copied, output_of

#: Elements: more than a loop that reads the same few for ever would need, and no multiple of a vector.
SIZE = 20011


@dataclass(frozen=True)
class Mutant:
    '''One text of one function, replaced.

    :attr what: what is wrong with it.
    :attr function: the first occurrence of :attr:`right` after this name in the file is replaced.
    :attr variants: patterns of the variants that must be found wrong, all others staying right; ``'*'``: all.
    :attr file: within the kernel's folder, or ``harness/NAME``.
    :attr program: of that folder, where it is not the one of the kernel's name.
    :attr isa: the mutated function is that of this instruction set, or of these: elsewhere there is nothing to find.
    :attr options: of the program, besides :data:`SIZE` elements, 10 samples of one pass.
    '''
    kernel: str
    what: str
    function: str
    right: str
    wrong: str
    variants: str
    file: str = 'kernel.c'
    isa: str | None = None
    threads: int = 1
    options: tuple = ()
    size: int | None = SIZE
    program: str | None = None

    def __str__(self):
        return f'{self.kernel} {self.function}: {self.what}'.replace(' ', '_')

    @property
    def source(self):
        return SOURCE / self.file if self.file.startswith('harness/') else SOURCE / 'kernels' / self.kernel / self.file

    def apply(self, text):
        begin = re.search(rf'\b{re.escape(self.function)}\(', text)
        assert begin, f'{self}: no such function any more'
        at = text.find(self.right, begin.start())
        assert at >= 0, f'{self}: {self.right!r} stands there no more'
        return text[:at] + self.wrong + text[at + len(self.right):]

    def hits(self, variant):
        return any(fnmatch.fnmatchcase(variant, pattern) for pattern in self.variants.split())


class Program:
    '''Mutants of one kernel that are built and run together: none hits a variant of another.'''

    def __init__(self, number, first):
        self.suffix = f'-{number}'
        self.name = (first.program or first.kernel) + self.suffix
        self.mutants = [first]

    @property
    def kernel(self):
        return self.mutants[0].kernel

    def takes(self, mutant):
        other = self.mutants[0]
        same = ('kernel', 'program', 'threads', 'options', 'size')
        if any(getattr(mutant, key) != getattr(other, key) for key in same):
            return False
        if any('*' in patterns for m in (mutant, other) for patterns in m.variants.split()):
            return False
        return not any(set(mutant.variants.split()) & set(m.variants.split()) for m in self.mutants)

    def write(self, folder):
        '''The kernel's folder with its mutants, as one more kernel of that name.  A mutated file of the harness, or the one
        that includes it, is linked before the library that has the right one.'''
        shutil.copytree(SOURCE / 'kernels' / self.kernel, folder)
        for mutant in self.mutants:
            path = folder / mutant.source.name
            for source in mutant.source.parent.glob(f'{mutant.source.stem}.[ch]'):
                if not (folder / source.name).exists():
                    shutil.copy(source, folder)
            path.write_text(mutant.apply(path.read_text()))
        build = re.sub(rf'(?<=plumbline_program\()\w+|(?<=foreach\(program ){self.kernel}\b| {self.kernel}(?=-serial)',
                       rf'\g<0>{self.suffix}', (folder / 'CMakeLists.txt').read_text())
        of_harness = ' '.join(sorted({m.source.stem + '.c' for m in self.mutants if m.file.startswith('harness/')}))
        (folder / 'CMakeLists.txt').write_text(build.replace(f'{self.kernel}.c', f'{self.kernel}.c {of_harness}', 1))


def programs_of(mutants):
    programs = []
    for mutant in mutants:
        found = next((program for program in programs if program.takes(mutant)), None)
        if found:
            found.mutants.append(mutant)
        else:
            programs.append(Program(len(programs), mutant))
    return programs


#: An OpenBLAS that has threads of its own.
THREADED_BLAS = '''#include "cblas.h"
int openblas_get_parallel(void) { return OPENBLAS_THREAD; }
void cblas_domatcopy(int o, int t, int n, int m, double x, const double *a, int lda, double *b, int ldb) { b[1] = 3; }
'''
CBLAS = '''enum { CblasRowMajor, CblasTrans, OPENBLAS_THREAD = 1 };
int openblas_get_parallel(void);
void cblas_domatcopy(int, int, int, int, double, const double *, int, double *, int);
'''


class Mutated:
    '''All mutants, built once: without what they do not need, and hardly optimised; as a user may build, with flags of his own, without Fortran,
    although ReFrame's environment names a compiler of it, and with an OpenBLAS that cannot be used.'''

    def __init__(self, folder, mutants):
        self.files = folder
        self.programs = programs_of(mutants)
        with alone_in(folder):
            if not (folder / 'src').exists():
                self._write(folder)
        self.build = Build(folder / 'build', '-DPLUMBLINE_FORTRAN=OFF', f"-DCMAKE_Fortran_COMPILER={shutil.which('gfortran') or ''}",
                           '-DPLUMBLINE_LIKWID=OFF', '-DPLUMBLINE_BLAS=OFF', '-DPLUMBLINE_FFTW=OFF', f'-DOPENBLAS_LIBRARY={folder}/libopenblas.so',
                           f'-DOPENBLAS_INCLUDE={folder}', '-DCMAKE_C_FLAGS=-DMARK', '-DPLUMBLINE_C_FLAGS=-O1 -march=native -w',
                           source=folder / 'src', targets=[program.name for program in self.programs])
        self.outcome = functools.cache(self._outcome)

    def _write(self, folder):
        copied(folder / 'src')
        for program in self.programs:
            program.write(folder / 'src/kernels' / program.name)
        (folder / 'patterns').write_text('gather count=20011 wrap=2 delta=3 pattern=0,1,2,3,4,5,6,7,9,11\n'
                                         'scatter count=57 wrap=1 delta=0 pattern=0,24,48,72,96,120,144,168,192,216\n'
                                         'gs count=20 delta-gather=3 delta-scatter=5 pattern-gather=0,1,2,3 pattern-scatter=7,6,5,4\n'
                                         'multigather count=9 wrap=2 delta=8 pattern=5,6,7,100 pattern-gather=1,2,3,0\n')
        (folder / 'cblas.h').write_text(CBLAS)
        (folder / 'openblas.c').write_text(THREADED_BLAS)
        output_of('cc', '-shared', '-fPIC', folder / 'openblas.c', '-o', folder / 'libopenblas.so')

    def program_of(self, mutant):
        return next(program for program in self.programs if mutant in program.mutants)

    def _outcome(self, program):
        mutant = program.mutants[0]
        options = [option.format(folder=self.files) for option in mutant.options]
        variants = () if '--variants' in options else ('--variants', 'all')
        size = ('--size', mutant.size) if mutant.size else ()
        return self.build.run(program.name, *variants, *size, '--threads', mutant.threads, *MEASURED, *options)

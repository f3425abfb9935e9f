'''Verification itself: every mutant of a kernel is found, and nobody else is blamed for it.'''

import re
import subprocess

import pytest

from mutants import Mutated
from mutants.catalogue import HALF_OF_THE_HANDOVERS, MUTANTS, PASSES_LEFT_OUT
from native import KERNELS, MEASURED, QUICK, SOURCE, output_of, refused, two_cpus
from plumbline.system import toolchains


@pytest.fixture(scope='module')
def mutated(shared):
    return Mutated(shared('mutants'), [*MUTANTS, PASSES_LEFT_OUT, HALF_OF_THE_HANDOVERS])


def test_every_kernel_has_mutants():
    assert {mutant.kernel for mutant in MUTANTS} == set(KERNELS)


@pytest.mark.parametrize('mutant', MUTANTS, ids=str)
def test_mutant_is_found(mutated, mutant):
    program = mutated.program_of(mutant)
    found = mutated.outcome(program)
    records = {record['variant']: record for record in found.measurements}
    hit = [record for record in records.values() if mutant.hits(record['variant'])]
    if mutant.isa and not any(record['isa'] in mutant.isa.split() for record in hit):
        pytest.skip(f'this CPU runs no function of {mutant.isa} here')
    if found.code == 2 and 'do not use this build' in found.errors and mutant.variants == '*':
        return      # two threads on one part: it depends on their turns whether the atoms collide before the end, and it says which
    assert found.code == 1 and hit
    assert not [record['variant'] for record in hit if record['valid']], 'said to be valid'
    assert all(f"{record['kernel']} {record['variant']}, size {record['size']}, {record['threads']} threads: the result is wrong"
               in found.errors for record in hit)
    others = [v for v, record in records.items() if not record['valid'] and not any(m.hits(v) for m in program.mutants)]
    assert not others, 'wrong without a mutant'


def test_passes_that_take_no_time_are_refused(mutated):
    found = mutated.build.run(mutated.program_of(PASSES_LEFT_OUT).name, '--variants', 'copy', '--size', 1000)
    assert found.code == 2 and found.errors.startswith('plumbline: streams copy, size 1000: ')
    assert 'they cannot all have taken place' in found.errors


@two_cpus
@pytest.mark.alone
def test_half_of_the_handovers_is_found(mutated):
    command = mutated.program_of(HALF_OF_THE_HANDOVERS).name, '--threads', 2, '--size', 10, *MEASURED
    found = next((found for found in (mutated.build.run(*command) for _ in range(100)) if found.code), None)
    assert found and found.code == 1 and 'the result is wrong' in found.errors and found.measurements[0]['valid'] is False


def test_fewer_steps_of_conjugate_gradients_are_found(mpi_broken):
    found = mpi_broken.run(2, 'cg', '--class', 'S', '--variants', 'all', *QUICK)
    assert found.code == 1 and [record['valid'] for record in found.kernels()] == [False, False]


@pytest.mark.parametrize('flag', ['-ffast-math', '-ffinite-math-only'])
def test_flags_by_which_wrong_results_are_not_found_are_refused(flag):
    build = ['cc', '-O3', flag, '-fsyntax-only', '-x', 'c', SOURCE / 'harness/plumbline.h']
    done = subprocess.run(build, capture_output=True, text=True)
    complaint, = (line for line in done.stderr.splitlines() if 'error:' in line)
    assert done.returncode == 1 and 'leave it out of cflags' in complaint
    output_of(*build, '-fno-finite-math-only')


@pytest.mark.parametrize('target', ['x86_64', 'aarch64', 'powerpc64le', 'riscv64'])
def test_results_are_kept_in_registers_of_every_machine(target, tmp_path):
    found = toolchains.toolchains()['llvm'].found() or pytest.skip('clang is not there')
    macros = re.search(r'#if[^\n]*\n#define PL_IN_REGISTER.*#define PL_CONSUME[^\n]*', (SOURCE / 'harness/plumbline.h').read_text(), re.S)[0]
    (tmp_path / 'use.c').write_text(f'{macros}\nvoid use(double x) {{ PL_CONSUME(x); }}\n')
    output_of(found['cc'], f'--target={target}-linux-gnu', '-O3', '-c', tmp_path / 'use.c', '-o', tmp_path / 'use.o')


@pytest.mark.parametrize('kernel, variant, why', [('triad', 'fortran', 'built without a Fortran compiler'), ('fdtd', 'fortran_split2', 'built without a Fortran compiler'),
                                                  ('transpose', 'openblas', 'not in this build: built without OpenBLAS, or it has threads of its own'),
                                                  ('flops', 'dgemm', 'built without BLAS')])
def test_a_variant_that_was_not_built_is_refused(mutated, kernel, variant, why):
    program = next(program for program in mutated.programs if program.kernel == kernel)
    assert variant not in mutated.build.runnable(program.name)
    refused(mutated.build.run(program.name, '--variants', variant), variant, why)
    assert mutated.outcome(program).measurements[0]['flags'].startswith('-DMARK -O1')

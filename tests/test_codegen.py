import numpy as np
import pytest

from plumbline.system import codegen

DISASSEMBLY = '''
0000000000001000 <triad_plain>:
    1000:\tvmovupd (%rdx,%rax,1),%ymm1
    1005:\tvfmadd213pd (%rsi,%rax,1),%ymm0,%ymm1
    1010:\tvaddsd %xmm1,%xmm0,%xmm0
    1015:\tret

0000000000001020 <triad_novec>:
    1020:\tvmulsd (%rdx),%xmm0,%xmm0
    1025:\tvaddsd %xmm1,%xmm0,%xmm0

0000000000001030 <triad_nt_avx512>:
    1030:\tvfmadd213pd (%rsi,%rax,1),%zmm0,%zmm1
    1036:\tvmovntpd %zmm1,(%rdi)

0000000000001040 <main>:
    1040:\tmov %rax,%rbx
'''


def test_the_widest_packed_arithmetic_counts_and_scalar_code_is_called_scalar():
    cases = [('plain', None), ('novec', None), ('nt', 'avx512f'), ('fortran', None)]
    assert codegen.widths_of(DISASSEMBLY, 'triad', cases) == {
        'plain': '256-bit', 'novec': 'scalar', 'nt': '512-bit'}
    assert codegen.vector_width(['  10:\tmov %rax,%rbx']) is None


@pytest.mark.parametrize('instruction, width', [
    ('vsubps (%rdx,%rax,1),%zmm0,%zmm0', '512-bit'), ('vfmadd231ps %ymm1,%ymm2,%ymm0', '256-bit'),
    ('mulps  %xmm1,%xmm0', '128-bit'), ('addps  (%rax),%xmm0', '128-bit'), ('vsubss -0x4(%rdx),%xmm0,%xmm0', 'scalar'), ('mulss  %xmm1,%xmm0', 'scalar'),
    ('vfnmadd213ss (%rbx,%r12,1),%xmm5,%xmm0', 'scalar'), ('subsd  %xmm1,%xmm0', 'scalar'), ('add    %rax,%rbx', None),
    ('vpaddd %ymm0,%ymm1,%ymm1', None), ('subps', None),
])
def test_single_precision_counts_as_double_does(instruction, width):
    assert codegen.vector_width([f'  10:\t{instruction}']) == width


# --- loops -----------------------------------------------------------------------------------------------------------

def loop(first, *instructions, back=None):
    '''Lines of a loop that begins at an address; it jumps back to its beginning, or elsewhere.'''
    lines = [f'    {first + 4 * i:x}:\t{text}' for i, text in enumerate(instructions)]
    end = first + 4 * len(instructions)
    return [*lines, f'    {end:x}:\tjne    {first if back is None else back:x} <f+{first:#x}>']


SCALAR_TWO = loop(0x100, 'vaddss (%r8,%rax,4),%xmm0,%xmm0', 'vmovss %xmm0,(%rbx,%rax,4)',
                  'vsubss (%r9,%rax,4),%xmm1,%xmm1', 'vmovss %xmm1,(%rdi,%rax,4)')
SCALAR_ONE = loop(0x200, 'vaddss (%r8,%rax,4),%xmm0,%xmm0', 'vmovss %xmm0,(%rbx,%rax,4)')
SCALAR_ONE_TWICE = loop(0x300, 'vaddss (%r8,%rax,4),%xmm0,%xmm0', 'vmovss %xmm0,(%rbx,%rax,4)',
                        'vaddss 0x4(%r8,%rax,4),%xmm0,%xmm0', 'vmovss %xmm0,0x4(%rbx,%rax,4)')
PACKED_ONE = loop(0x400, 'vaddps (%r8,%rax,4),%zmm0,%zmm0', 'vmovups %zmm0,(%rbx,%rax,4)')
PACKED_TWO = loop(0x500, 'vaddps (%r8,%rax,4),%ymm0,%ymm0', 'vmovups %ymm0,(%rbx,%rax,4)',
                  'vsubps (%r9,%rax,4),%ymm1,%ymm1', 'vmovups %ymm1,(%rdi,%rax,4){%k1}')


@pytest.mark.parametrize('lines, width', [
    (SCALAR_TWO, 'scalar'),
    (PACKED_TWO, '256-bit'),
    (PACKED_TWO + SCALAR_TWO, '256-bit'),                       # the remainder, or for arrays that overlap
    (PACKED_ONE + SCALAR_ONE, '512-bit'),
    (PACKED_ONE + SCALAR_ONE_TWICE, '512-bit'),                 # a remainder that is unrolled
    (SCALAR_TWO + PACKED_ONE + SCALAR_ONE, '512-bit in part'),  # two loops in the source: one was left scalar
    (PACKED_ONE + PACKED_TWO + SCALAR_TWO, '512-bit'),
])
def test_a_loop_that_was_left_scalar_beside_a_vectorised_one_is_told(lines, width):
    assert codegen.vector_width(lines) == width


def test_innermost_loops():
    outer = ['    f0:\tmov    $0x1,%eax', *SCALAR_ONE_TWICE, *PACKED_ONE, '    4f0:\tjb     f0 <f+0x10>',
             '    4f4:\tjmp    4f8 <f+0x8>', '    4f8:\tret']
    assert codegen.innermost_loops(outer) == [SCALAR_ONE_TWICE, PACKED_ONE]
    none = ['    10:\tjmp    9000 <elsewhere>', '    12:\tje     14 <f+0x14>', '    14:\tret', '']
    assert codegen.innermost_loops(none) == []


SAME = '''
0000000000002000 <f>:
    2000:\tmov    0x2eb9(%rip),%eax        # 4ec0 <c>
    2006:\tnopw   0x0(%rax,%rax,1)
    200f:\tcs nopw 0x0(%rax,%rax,1)
    2010:\tvaddss (%r8,%rax,4),%xmm0,%xmm0
    2016:\tjne    2010 <f+0x10>
    2018:\txchg   %ax,%ax

0000000000002020 <g>:
    2020:\tmov    0x2e99(%rip),%eax        # 4ec0 <c>
    2026:\tvaddss (%r8,%rax,4),%xmm0,%xmm0
    202c:\tjne    2026 <g+0x6>

0000000000002030 <h>:
    2030:\tmov    0x2e89(%rip),%eax        # 4ec0 <c>
    2036:\tvsubss (%r8,%rax,4),%xmm0,%xmm0
    203c:\tjne    2036 <h+0x6>
'''


def test_same_code_wherever_it_lies():
    assert codegen.same_code(SAME, 'f', 'g') is True
    assert codegen.same_code(SAME, 'f', 'h') is False
    assert codegen.same_code(SAME, 'f', 'nowhere') is None
    assert codegen.same_code('', 'f', 'g') is None


# --- why a split loop is faster --------------------------------------------------------------------------------------

def around(value, width=0.01):
    return value + width * np.tile([-1, 0.5, 0, 1, -0.5], 5)


VERSIONED = {'fused': '512-bit', 'fused_restrict': '512-bit', 'split3_restrict': '512-bit'}
SCALAR = VERSIONED | {'fused': 'scalar'}
NEVER = VERSIONED | {'fused': 'scalar', 'fused_restrict': 'scalar'}


@pytest.mark.parametrize('as_written, told, widths, outcome, also', [
    (1.89, 1.0, SCALAR, 'lost to aliasing', 'fused is scalar as written, 512-bit with restrict'),
    (1.89, 1.0, VERSIONED, 'lost to aliasing', 'the check at run time fails or costs'),
    (1.89, 1.0, {}, 'lost to aliasing', 'the code is not known'),
    (1.3, 1.3, VERSIONED, 'too many streams', 'fused is 512-bit as written'),
    (1.3, 1.3, SCALAR, 'too many streams', 'fused is scalar as written'),       # scalar code that costs nothing
    (2.6, 1.25, SCALAR, 'lost to aliasing, and too many streams', 'as split is then'),
    (2.6, 1.25, VERSIONED, 'lost to aliasing, and too many streams', 'fused is 512-bit as written'),
    (2.0, 2.0, NEVER, 'not vectorised', 'even with restrict, fused is scalar and split 512-bit'),
    (1.3, 1.3, {}, 'undecided', 'the code is not known'),
    (1.0, 1.0, VERSIONED, 'no gain', 'fused is 512-bit as written'),
    (1.0, 1.0, SCALAR, 'no gain', 'fused is scalar as written, 512-bit with restrict'),
    (0.8, 0.9, {}, 'no gain', 'of unknown width'),
])
def test_why_a_split_loop_is_faster(as_written, told, widths, outcome, also):
    text = codegen.why_split(around(as_written), around(told), widths)
    assert text.split(':')[0] == outcome and also in text
    assert f'split is {as_written:.2f} x as fast as fused as written, {told:.2f} x with restrict' in text


@pytest.mark.parametrize('as_written, told', [(around(1.1, 0.2), around(1.0)), (around(2), around(1.1, 0.2))])
def test_what_noise_hides_is_not_decided(as_written, told):
    assert codegen.why_split(as_written, told, SCALAR).startswith('undecided: ')

from plumbline import codegen

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


def test_a_function_without_arithmetic_has_no_width():
    assert codegen.vector_width(['  10:\tmov %rax,%rbx']) is None

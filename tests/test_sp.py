'''SP: right whatever the ranks, the variant and the messages; second order; its model; the source's message lengths.'''

import contextlib
import ctypes
import itertools
import json
import subprocess

import numpy as np
import pytest

from mpi_native import mpirun, needs_mpi, refused, variables
from native import QUICK, SOURCE, needs, output_of

TESTS = SOURCE.parent / 'tests'
SP, APPS, CLOCK = SOURCE / 'mpi/sp', SOURCE / 'mpi/apps', SOURCE / 'harness/clock.c'
FILES = ['grid', 'create', 'sp', 'lines', 'messages', 'problem', 'proof']
MPI = 'openmpi'


def compiled(folder, *options, sources=SP):
    '''The program of native_sp.c.'''
    needs_mpi(MPI)
    output_of('mpicc.openmpi', '-std=gnu17', '-g', *options, '-I', sources, '-I', APPS, TESTS / 'native_sp.c', APPS / 'app.c', CLOCK,
              *(sources / f'{name}.c' for name in FILES), '-lm', '-o', folder / 'sp', env=variables(MPI))
    return folder / 'sp'


@pytest.fixture(scope='module')
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp('sp'), '-O3', '-march=native')


@pytest.fixture(scope='module')
def sanitized_program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp('sp-sanitized'), '-O1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all')


@pytest.fixture(scope='module')
def kernel(mpi_programs):
    '''The native program, with the measuring runtime.'''
    return mpi_programs(MPI)


def solved(program, ranks, n, steps=1, variant=0, rows=5, grid=(0, 0, 0), file=()):
    found = mpirun(MPI, ranks, [program, n, steps, variant, rows, *grid, *file], ASAN_OPTIONS='detect_leaks=0')
    assert found.code == 0, found.errors
    return json.loads(found.text)


def is_right(found):
    return found['residual'] <= found['residual_bound'] and found['error'] <= found['error_bound']


# --- against the serial result, and against a solver that shares nothing with it ------------------------------------

@pytest.fixture(scope='module')
def alone(program):
    return solved(program, 1, 12, steps=4)


@pytest.mark.parametrize('ranks, grid, rows', [(2, (1, 1, 2), 5), (4, (4, 1, 1), 1), (3, (0, 0, 0), 16), (8, (2, 2, 2), 7), (6, (0, 0, 0), 1000)])
def test_all_bits_are_those_of_one_rank(program, alone, ranks, grid, rows):
    '''Of either variant, with whole and broken buffers.'''
    assert is_right(alone)
    for variant in (0, 1):
        found = solved(program, ranks, 12, steps=4, variant=variant, rows=rows, grid=grid)
        assert is_right(found)
        assert {key: found[key] for key in ('bits', 'error', 'flops')} == {key: alone[key] for key in ('bits', 'error', 'flops')}


@pytest.mark.parametrize('variant', [0, 1])
def test_sanitizers_find_nothing(sanitized_program, variant):
    '''Blocks no wider than the edges they share; lines that cannot be shared out equally; a last, broken buffer.'''
    for ranks, n, grid, rows in ((1, 3, (0, 0, 0), 5), (8, 6, (2, 2, 2), 4), (4, 8, (4, 1, 1), 3), (3, 9, (0, 0, 0), 100)):
        assert is_right(solved(sanitized_program, ranks, n, steps=2, variant=variant, rows=rows, grid=grid))


#: Of problem.c, as the header states the problem: sound, viscosity, fourth difference, frequency; waves and phase of each.
SOUND, VISCOSITY, FOURTH, FREQUENCY = 1, 0.05, 0.02, 2
WAVES = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1)]
PHASE = [(1, 0), (0.8, 0.6), (0, 1), (-0.6, 0.8), (-0.8, -0.6)]


def flow(x, y, z):
    return (0.5 + 0.3 * np.sin(np.pi * x) * np.cos(np.pi * y), -0.4 + 0.2 * np.cos(np.pi * (x + z)),
            0.3 * np.sin(2 * np.pi * y) + 0.2 * np.cos(np.pi * z))


def exact(m, at, t):
    cosine, sine = PHASE[m]
    return np.prod([np.sin(np.pi * k * x) for k, x in zip(WAVES[m], at)], axis=0) * (
        cosine * np.cos(FREQUENCY * t) + sine * np.sin(FREQUENCY * t))


@pytest.fixture(scope='module')
def loops(tmp_path_factory):
    '''The problem and the choice of a grid, in a shared library.'''
    path = tmp_path_factory.mktemp('loops') / 'loops.so'
    needs_mpi(MPI)
    output_of('mpicc.openmpi', '-std=gnu17', '-O2', '-shared', '-fPIC', '-I', APPS, SP / 'grid.c', SP / 'problem.c', '-lm',
              '-o', path, env=variables(MPI))
    return ctypes.CDLL(path)


def forces(loops, m, at):
    cosine, sine = ctypes.c_double(), ctypes.c_double()
    loops.sp_force(m, (ctypes.c_double * 3)(*at), ctypes.byref(cosine), ctypes.byref(sine))
    return cosine.value, sine.value


def test_forcing_is_what_the_equations_leave_of_the_solution(loops):
    '''By differences of the sixth order of the exact solution, at points chosen at random.'''
    weights, h = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}, 1e-2
    second = {0: -49 / 18, 1: 3 / 2, 2: -3 / 20, 3: 1 / 90}

    def d(f):
        return sum(w * (f(k * h) - f(-k * h)) for k, w in weights.items()) / h

    def dd(f):
        return (second[0] * f(0) + sum(w * (f(k * h) + f(-k * h)) for k, w in second.items() if k)) / h**2

    def along(m, axis, at, t):
        return lambda s: exact(m, [x + s * (a == axis) for a, x in enumerate(at)], t)

    rng = np.random.default_rng(13)
    for *at, t in rng.random((20, 4)):
        for m in range(5):
            right = d(lambda s: exact(m, at, t + s))
            for axis in range(3):
                right += flow(*at)[axis] * d(along(m, axis, at, t)) - VISCOSITY * dd(along(m, axis, at, t))
                if m == 0:
                    right += SOUND * d(along(1 + axis, axis, at, t))
                if m == 1 + axis:
                    right += SOUND * d(along(0, axis, at, t))
            cosine, sine = forces(loops, m, at)
            assert cosine * np.cos(FREQUENCY * t) + sine * np.sin(FREQUENCY * t) == pytest.approx(right, abs=1e-7)


def test_steps_against_full_matrices(program, loops, tmp_path):
    '''The scheme as the header states it, with a full matrix of all components of each line: three steps on 5^3 points.'''
    n, steps = 5, 3
    h = 1 / (n + 1)
    dt = h / 2
    first = (np.eye(n, k=1) - np.eye(n, k=-1)) / (2 * h)
    second = (np.eye(n, k=1) - 2 * np.eye(n) + np.eye(n, k=-1)) / h**2
    fourth = (np.eye(n, k=2) - 4 * np.eye(n, k=1) + 6 * np.eye(n) - 4 * np.eye(n, k=-1) + np.eye(n, k=-2)) / h
    fourth[0, 0] = fourth[-1, -1] = 5 / h       # odd about the walls
    z, y, x = np.meshgrid(*[np.arange(1, n + 1) * h] * 3, indexing='ij')       # arrays are [component, z, y, x]

    def along(axis, values):
        '''[line, component and place on it]'''
        return np.moveaxis(np.moveaxis(values, 3 - axis, 3), 0, 2).reshape(n * n, 5 * n)

    def back(axis, values):
        return np.moveaxis(np.moveaxis(values.reshape(n, n, 5, n), 2, 0), 3, 3 - axis)

    operators = []
    for axis in range(3):
        speed = along(axis, np.broadcast_to(flow(x, y, z)[axis], (5, n, n, n)))[:, :n]
        a = np.zeros((n * n, 5, n, 5, n))
        for m in range(5):
            a[:, m, :, m, :] = -speed[:, :, None] * first + VISCOSITY * second - FOURTH * fourth
        a[:, 0, :, 1 + axis, :] = a[:, 1 + axis, :, 0, :] = -SOUND * first
        operators.append(a.reshape(n * n, 5 * n, 5 * n))
    force = np.array([[forces(loops, m, p) for p in zip(x.ravel(), y.ravel(), z.ravel())] for m in range(5)]).reshape(5, n, n, n, 2)
    u = np.array([exact(m, (x, y, z), 0) for m in range(5)])
    for step in range(steps):
        t = FREQUENCY * (step + 0.5) * dt
        change = dt * (force[..., 0] * np.cos(t) + force[..., 1] * np.sin(t))
        for axis, a in enumerate(operators):
            change += dt * back(axis, np.einsum('lij,lj->li', a, along(axis, u)))
        for axis, a in enumerate(operators):
            change = back(axis, np.linalg.solve(np.eye(5 * n) - dt / 2 * a, along(axis, change)[..., None])[..., 0])
        u = u + change
    solved(program, 1, n, steps=steps, file=[tmp_path / 'u'])
    np.testing.assert_allclose(np.fromfile(tmp_path / 'u').reshape(u.shape), u, rtol=0, atol=1e-13)


def test_second_order(program):
    '''Half the distance and half the time step, the same time: a quarter of the error.'''
    errors = [solved(program, 1, n, steps=n + 1)['error'] for n in (7, 15, 31)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)
    for n in (6, 12):
        found = solved(program, 1, n, steps=5000)
        assert found['error'] <= found['error_bound']


# --- the model -------------------------------------------------------------------------------------------------------

def test_flops_by_counting(tmp_path):
    '''The loops compiled with numbers that count what is done to them.'''
    needs_mpi(MPI)
    needs('mpicxx.openmpi')
    output_of('mpicxx.openmpi', '-std=c++20', '-fpermissive', '-w', '-I', SP, '-I', APPS, TESTS / 'native_sp_count.cpp',
              '-o', tmp_path / 'count', env=variables(MPI))
    counted, declared = (line.split() for line in output_of(tmp_path / 'count').splitlines())
    right, coupled, forth, back, added = (round(float(number), 1) for number in counted)
    assert (right, coupled, forth, back, added) == (28, 16, 69, 24, 5)
    assert list(map(int, declared)) == [5 * 28 + 16, 69, 24, 5, 156 + 3 * 93 + 5]


def test_messages_by_hand(program):
    '''12^3 on 2 x 2 ranks, blocks of 6 x 6 x 12.  Edges: one message each to a neighbour along x and one along y, 2 x 5 x 72
    words.  Transposed: along x, a rank has parts of 6 points of 72 lines and solves 36 of them; 36 messages of 5 x 6
    words there, 36 back; the same along y.  Pipelined: 12 rows of 6 lines; half of the ranks send 12 x 22 row segments, the
    others 12 x 10, in messages of five: 53 and 24.'''
    found = solved(program, 4, 12)
    edges = 2 * 720 * 8
    assert (found['messages'], found['bytes']) == (2 + 4 * 36, edges + 4 * 36 * 5 * 6 * 8)
    assert (found['shortest'], found['longest']) == (240, 240)
    assert found['flops'] == 440 * 12**3
    found = solved(program, 4, 12, variant=1)
    assert (found['messages'], found['bytes']) == (2 + 53 + 24, edges + (264 + 120) * 6 * 8)
    assert (found['shortest'], found['longest']) == (4 * 6 * 8, 240)


class Options(ctypes.Structure):
    _fields_ = [('n', ctypes.c_int), ('ranks', ctypes.c_int * 3), ('pipelined', ctypes.c_bool), ('rows', ctypes.c_long)]


def chosen(loops, n, ranks, *grid):
    options, why = Options(n, (ctypes.c_int * 3)(*grid)), ctypes.create_string_buffer(512)
    loops.sp_choose.restype = ctypes.c_bool
    fits = loops.sp_choose(ctypes.byref(options), ranks, why)
    return tuple(options.ranks) if fits else why.value.decode()


def test_grids_and_lengths_of_the_source(loops):
    '''anderson1997, table 13: the message lengths of 64^3 points on 16 ... 256 processors, five row segments each.'''
    lengths = {16: {640}, 32: {640, 320}, 64: {320}, 128: {320, 160}, 256: {160}}
    for ranks, found in lengths.items():
        x, y, z = chosen(loops, 64, ranks)
        assert z == 1 and {5 * 64 // x * 8, 5 * 64 // y * 8} == found
    assert [chosen(loops, 12, ranks) for ranks in (1, 2, 6, 36)] == [(1, 1, 1), (1, 2, 1), (2, 3, 1), (6, 6, 1)]
    assert chosen(loops, 12, 72) == (6, 6, 2)       # two points along each axis at least
    assert chosen(loops, 12, 6, 3, 0, 0) == (3, 2, 1) and chosen(loops, 12, 8, 0, 0, 2) == (2, 2, 2)
    assert chosen(loops, 12, 7) == ('7 ranks cannot share 12^3 points, in blocks of equal size with at least 2 points along a '
                                    'cut axis: give another number of ranks (3, 4, 6, 8, 9, 12) or of points')
    assert chosen(loops, 12, 4, 3, 0, 0) == ('4 ranks cannot stand as asked along x, y, z (3, 0, 0; 0: any) on 12^3 points: '
                                             'possible are 4 x 1 x 1, 2 x 2 x 1, 1 x 4 x 1, 2 x 1 x 2, 1 x 2 x 2, 1 x 1 x 4')
    for n in (1, 12, 60, 64, 511, 512):     # never too long for its line
        for ranks in (7, 13, 97, 1009):
            assert isinstance(chosen(loops, n, ranks), tuple) or len(chosen(loops, n, ranks)) < 300


# --- the native program ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize('ranks', [1, 2, 4])
def test_records(kernel, ranks):
    found = kernel.measured(ranks, 'sp', '--variants', 'all', '--size', '12,16', '--rows', '5,16', *QUICK).kernels()
    assert {(r['variant'], r['size'], r['options']['rows']) for r in found} == set(itertools.product(
        ('transposed', 'pipelined'), (12, 16), (5, 16)))
    grid = {1: '1x1x1', 2: '1x2x1', 4: '2x2x1'}[ranks]
    for record in found:
        options = record['options']
        assert record['valid'] and record['max_error'] < 1e-14 and options['grid'] == grid and record['ranks'] == ranks
        assert record['flops'] == 440 * record['size']**3 == options['flops_declared']
        assert all(0 <= spent < total for spent, total in zip(record['communication'], record['seconds'], strict=True))
        if ranks > 1:
            longest = options['rows'] * record['size'] / 2 * 8
            assert 0 < options['message_shortest'] <= options['message_longest'] <= 2 * longest
        else:
            assert options['messages'] == options['message_longest'] == 0


def test_bad_input_is_refused_by_one_line(kernel):
    refused(kernel, 'sp', (7, '', 'plumbline: sp: 7 ranks cannot share 64^3 points'), (2, '--rows 0', 'plumbline: --rows 0'),
            (2, '--ranks-x 2 --ranks-y 2', 'plumbline: sp: 2 ranks cannot stand as asked along x, y, z (2, 2, 0; 0: any)'),
            (1, '--size 513', 'plumbline: --size 513: these are the points along an edge of the cube: give at most 512'))


# --- wrong results are found -----------------------------------------------------------------------------------------

#: File, what stands in it, what breaks it, and the variants that see it.
BROKEN = [
    ('create', '2.5 * fourth', '3 * fourth', (0, 1)),                       # a line's ends
    ('messages', '-SP_EDGE, s->face', '-SP_EDGE + 1, s->face', (0, 1)),     # an edge lands one point off
    ('messages', 'last[2 * outwards] = -*last', 'last[2 * outwards] = *last', (0, 1)),
    ('messages', 'copy_segments(s, x, back, first_in, from, at', 'copy_segments(s, x, back, first_in, x->rank, at', (0,)),
    ('messages', 'i < count; i++)\n        to[', 'i + 1 < count; i++)\n        to[', (0,)),
    ('sp', 'hand_on(&out, &b, 0, false', 'hand_on(&out, &b, 1, false', (1,)),
    ('sp', 'hand_on(&in, &b, -SP_EDGE, true', 'hand_on(&in, &b, -SP_EDGE, false', (1,)),
    ('lines', 'm == 1 + axis ? BACK', 'm == 2 ? BACK', (0, 1)),
    ('lines', 'k->beside, beyond', 'k->beside * 1.0001, beyond', (0, 1)),
    ('sp', 'sum += far * farther', 'sum += 0.999 * far * farther', (0, 1)),
]


@pytest.fixture(scope='module')
def objects(tmp_path_factory):
    '''The parts of native_sp.c's program.'''
    needs_mpi(MPI)
    folder = tmp_path_factory.mktemp('objects')
    output_of('mpicc.openmpi', '-std=gnu17', '-O1', '-c', '-I', SP, '-I', APPS, TESTS / 'native_sp.c', APPS / 'app.c', CLOCK,
              *(SP / f'{name}.c' for name in FILES), env=variables(MPI), cwd=folder)
    return folder


def built_with(objects, folder, file, right, wrong):
    text = (SP / f'{file}.c').read_text()
    assert text.count(right) == 1, right
    (folder / 'other.c').write_text(text.replace(right, wrong))
    parts = [objects / f'{name}.o' for name in ['native_sp', 'app', 'clock', *FILES] if name != file]
    output_of('mpicc.openmpi', '-std=gnu17', '-O1', '-I', SP, '-I', APPS, folder / 'other.c', *parts, '-lm', '-o',
              folder / 'sp', env=variables(MPI))
    return folder / 'sp'


@pytest.mark.parametrize('file, right, wrong, variants', BROKEN)
def test_what_is_broken_does_not_pass(objects, tmp_path, file, right, wrong, variants):
    program = built_with(objects, tmp_path, file, right, wrong)
    for variant in variants:        # waiting for a message that does not come is no pass either
        with contextlib.suppress(subprocess.TimeoutExpired):
            found = mpirun(MPI, 2, [program, 12, 1, variant, 5, 2, 1, 1], timeout=100)
            assert found.code != 0 or not is_right(json.loads(found.text))


def test_a_wrong_forcing_is_found_by_the_exact_solution(objects, tmp_path):
    '''Both sides of the residual take the forcing from the same function: the error does not.'''
    program = built_with(objects, tmp_path, 'problem', 'add(m, sp_viscosity *', 'add(m, 2 * sp_viscosity *')
    found = solved(program, 1, 24, steps=12)
    assert found['residual'] <= found['residual_bound'] and found['error'] > found['error_bound']


def test_the_program_says_that_a_result_is_wrong(kernel, tmp_path):
    text = (SP / 'lines.c').read_text().replace('k->beside, beyond', 'k->beside * 1.0001, beyond')
    (tmp_path / 'lines.c').write_text(text)
    parts = [SP / f'{name}.c' for name in ['kernel', *FILES] if name != 'lines']
    output_of('mpicc.openmpi', '-std=gnu17', '-O1', '-I', SP, '-I', APPS, '-I', SOURCE / 'harness', '-I', SOURCE / 'mpi/runtime',
              tmp_path / 'lines.c', *parts, APPS / 'app.c', kernel.folder / 'libmpi-runtime.a', '-lm', '-o', tmp_path / 'sp',
              env=variables(MPI))
    found = mpirun(MPI, 2, [tmp_path / 'sp', '--size', 12, *QUICK])
    assert found.code == 1 and 'the result is wrong' in found.errors and not found.kernels()[0]['valid']

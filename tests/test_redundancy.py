'''The trapezoidal integral in four ways: right, of the work that is counted, and its check.'''

import ctypes
import itertools
import math
import re

import numpy as np
import pytest
from scipy import integrate

import rfm
from native import CPUS, QUICK, SOURCE, Build, copied, linked, output_of, refused, x86_only
from plumbline.report.figures import redundancy as figures

THREADS = ['1', '2', '3'][:len(CPUS)]
WAYS = ('original', 'shared', 'vectorised', 'restructured')


def test_every_way_is_right(build):
    sizes = [1, 2, 3, 31, 32, 33, 34, 64, 65, 66, 1009]
    found = build.measured('trapezoid', '--variants', 'all', '--size', ','.join(map(str, sizes)), '--threads', ','.join(THREADS), *QUICK).measurements
    assert sorted((r['variant'], r['size'], r['threads']) for r in found) == sorted(itertools.product(WAYS, sizes, map(int, THREADS)))
    assert all(r['valid'] and r['max_error'] <= r['tolerance'] < 1e-12 for r in found)


@pytest.fixture(scope='module')
def loops(tmp_path_factory):
    path = tmp_path_factory.mktemp('loops') / 'loops.so'
    sources = [SOURCE / 'kernels/trapezoid' / name for name in ('kernel.c', 'count.c')]
    output_of('cc', '-O3', '-march=native', '-shared', '-fPIC', '-I', SOURCE / 'harness', *sources, '-o', path)
    return ctypes.CDLL(path)


def call(loops, name, begin, end, a, h):
    function = getattr(loops, name)
    function.restype = ctypes.c_double
    return function(begin, end, ctypes.c_double(a), ctypes.c_double(h))


def test_loops_against_scipy(loops):
    rng = np.random.default_rng(2002)
    for way, prefix in itertools.product(WAYS, ('trapezoid', 'counted')):
        for steps in (1, 2, 3, 32, 33, 100, 1000):
            begin, a, h = int(rng.integers(0, 50)), rng.uniform(-2, 2), rng.uniform(0.001, 0.1)
            x = a + h * np.arange(begin, begin + steps + 1)
            expected = integrate.trapezoid(4 / (1 + x * x), dx=h)
            assert call(loops, f'{prefix}_{way}', begin, begin + steps, a, h) == pytest.approx(expected, rel=1e-12)


#: Additions, multiplications and divisions by hand, without the 31 additions of partial sums.  An evaluation of f has 2, 2
#: and 1: a + i h, x x, 1 + ., 4 / ..  A step of the first two ways adds two values and the sum, and multiplies by h and 1/2.
BY_HAND = {
    ('original', 1): (6, 6, 2), ('original', 2): (12, 12, 4), ('original', 3): (18, 18, 6),
    ('shared', 1): (6, 6, 2), ('shared', 2): (10, 10, 3), ('shared', 3): (14, 14, 4),
    ('vectorised', 1): (6, 6, 2), ('vectorised', 2): (12, 12, 4), ('vectorised', 3): (18, 18, 6),
    # Two ends, added, halved, added to the sum, times h; and each inner point once, with one addition.
    ('restructured', 1): (6, 6, 2), ('restructured', 2): (9, 8, 3), ('restructured', 3): (12, 10, 4),
}


def test_work_is_counted_as_by_hand(programs):
    found = programs.measured('trapezoid', '--variants', 'all', '--size', '1,2,3', *QUICK).measurements
    assert len(found) == len(BY_HAND)
    for record in found:
        adds, multiplies, divides = BY_HAND[record['variant'], record['size']]
        adds += 31 if record['variant'] in ('vectorised', 'restructured') else 0
        assert [record['options'][k] for k in ('adds', 'multiplies', 'divides')] == [adds, multiplies, divides]
        assert record['flops'] == adds + multiplies + divides
        assert record['bytes'] == record['traffic'] == 0


@x86_only
def test_the_compiler_leaves_the_redundancy(programs):
    '''Original divides twice a step; vectorised twice as often as restructured, and packed.'''
    if 'GNU' not in programs.measured('trapezoid', '--size', 8, *QUICK).measurements[0]['compiler']:
        pytest.skip('what is expected of the instructions is written for gcc')
    text = output_of('objdump', '-d', '--no-show-raw-insn', programs.path('trapezoid'))
    code = dict(re.findall(r'^[0-9a-f]+ <trapezoid_(\w+)>:\n(.*?)(?:\n\n|\Z)', text, re.MULTILINE | re.DOTALL))
    divisions = {way: tuple(len(re.findall(rf'\tv?div{kind}\b', code[way])) for kind in ('sd', 'pd')) for way in WAYS}
    assert divisions['original'] == (2, 0)
    assert divisions['shared'] == (2, 0)        # one of them before the loop
    assert divisions['vectorised'][1] == 2 * divisions['restructured'][1] > 0


# --- what is wrong is found --------------------------------------------------------------------------

def test_a_missing_point_is_no_rounding(programs):
    '''The tolerance grows as the root of the size: at the largest that may be, the last point, 2 / n, is still more.'''
    small, large = programs.measured('trapezoid', '--variants', 'restructured', '--size', '10000,1000000', *QUICK).measurements
    most = 2**30
    assert large['tolerance'] < 11 * small['tolerance'] and large['tolerance'] * (most / 1000000)**0.5 < 2 / most
    refused(programs.run('trapezoid', '--size', 2**31), '--size 2147483648: ', 'at most')


OPTIONS = ('-r', '--exec-policy=serial', '-S', 'samples=10', '-S', 'processes=1', '-n', '^redundancy')


@pytest.fixture(scope='module')
def run(measuring, tmp_path_factory):
    done = measuring(tmp_path_factory.mktemp('run')).reframe(*OPTIONS, checks=rfm.REPOSITORY / 'checks/apps/redundancy.py')
    assert done.report, done.out
    return done


def test_check_proves_the_equation(run):
    case, = run.cases().values()
    found = rfm.metrics_of(case)
    for way in WAYS:
        assert (found[f'work.{way}']['value'], found[f'work.{way}']['verdict']) == (1, 'PASS')
        assert found[f'redundancy.{way}']['value'] == pytest.approx(
            {'original': 14 / 6, 'shared': 9 / 6, 'vectorised': 14 / 6, 'restructured': 1}[way], rel=1e-4)
    for way in WAYS[1:]:
        assert found[f'equation.{way}']['verdict'] == 'PASS'
        assert found[f'rate.{way}']['value'] == pytest.approx(
            found[f'speedup.{way}']['value'] * found[f'redundancy.{way}']['value'] / found['redundancy.original']['value'])
    # On a noisy machine a speed-up may miss its floor; nothing else may go wrong.
    assert case['result'] == 'pass' or 'speedup' in case['fail_reason']


def test_figures(run):
    detail = [{**case['plumbline'], 'hostname': 'h'} for case in run.cases().values()]
    (_, caption, figure), (_, _, table) = figures.FIGURES['redundancy'](detail)
    assert figure is not None and 'speed-up x redundancy' in caption
    assert [row[0] for row in table.rows] == list(WAYS)
    assert [row[1] for row in table.rows] == ['14.0', '9.00', '14.0', '6.00']


def test_work_that_is_not_the_count_by_hand_fails(programs, measuring, tmp_path):
    '''A right integral for more work than the way is to have: f once more in every step.'''
    source = copied(tmp_path / 'src', 'kernels/trapezoid')
    kernel = source / 'kernels/trapezoid/kernel.c'
    text = kernel.read_text()
    assert text.count('add(left, right)') == 1
    kernel.write_text(text.replace('add(left, right)', 'add(left, f(after(i), a, h))'))
    broken = Build(tmp_path / 'build', '-DPLUMBLINE_FORTRAN=OFF', '-DPLUMBLINE_LIKWID=OFF', source=source, targets=['trapezoid'])
    folder = linked(tmp_path / 'bin', programs.path('triad'), broken.path('trapezoid'))
    done = measuring(tmp_path / 'place').reframe(*OPTIONS, checks=rfm.REPOSITORY / 'checks/apps/redundancy.py', CANNED_PROGRAMS=folder)
    case, = done.cases().values()
    found = rfm.metrics_of(case)
    assert case['result'] == 'fail' and found['work.shared']['verdict'] == 'FAIL'
    assert found['work.shared']['value'] == pytest.approx(14 / 9, rel=1e-4)
    assert math.isclose(found['equation.shared']['value'], 1)

'''What is made of a burn's records: whether rates hold, who is slow, its parts together, the figures.'''

import contextlib
import json
import os
import runpy
import signal
import subprocess
import time
import types

import numpy as np
import pytest

import rfm
from hung import hung
from native import environment, output_of
from plumbline.errors import PlumblineError
from plumbline.model import baselines, burn as model, uncertainty
from plumbline.references import Reference, files
from plumbline.report import figures
from plumbline.rfm import evaluation
from test_burn import QUICK


def series(rounds, lost=0.0, noise=0.01, seed=0, correlated=0.0):
    '''(Seconds, rates) of a phase that loses a share of its rate on the way.'''
    rng = np.random.default_rng(seed)
    errors = rng.normal(0, noise, rounds)
    for i in range(1, rounds):
        errors[i] = correlated * errors[i - 1] + np.sqrt(1 - correlated**2) * errors[i]
    done = 50.0 * np.arange(1, rounds + 1)
    return done, 1000 * np.exp(np.log1p(-lost) * done / done[-1] + errors)


@pytest.mark.parametrize('rounds', [12, 13, 577])
@pytest.mark.parametrize('noise, correlated', [(0.0, 0), (0.02, 0), (0.02, 0.5)])
@pytest.mark.parametrize('lost', [0.0, 0.05, -0.03])
def test_a_drift_is_within_its_interval(rounds, noise, correlated, lost):
    inside = 0
    for seed in range(20):
        done, rates = series(rounds, lost, noise, seed, correlated)
        samples = model.drift(done, rates)
        low, high = uncertainty.median_interval(samples)
        true = (1 - lost) ** ((done[-1] - done[0]) / done[-1])
        inside += low - 1e-9 <= true <= high + 1e-9
        assert noise or np.median(samples) == pytest.approx(true)
    assert inside >= 16


def test_a_loss_of_five_per_cent_is_told_from_noise_of_two():
    for seed in range(40):
        assert uncertainty.median_interval(model.drift(*series(480, 0.05, 0.02, seed)))[1] < 1
        assert uncertainty.median_interval(model.of_start(series(480, 0.05, 0.02, seed)[1]))[1] < 1
    done, rates = series(240, noise=0.005)
    rates[::9] *= 0.3
    assert np.median(model.drift(done, rates)) == pytest.approx(1, abs=0.01)
    done, rates = series(240, noise=0.005)
    rates[200:] *= 0.8
    low, high = uncertainty.median_interval(model.of_start(rates))
    assert 0.79 < low < high < 0.81 and len(model.of_start(rates)) == 24 and len(model.of_start(rates[:13])) == 6


def found_of(*rates, phase='dgemm'):
    return [{'phase': phase, 'rates': row} for row in rates]


def test_the_slow_one_is_named_among_its_fellows():
    cpu, shares = model.slowest(found_of([100, 101, 80, 99], [102, 100, 82, 20]), [4, 5, 6, 7])
    assert cpu == 7 and shares == pytest.approx([99 / 100, 20 / 100])       # by its median over the rounds
    cpu, shares = model.slowest(found_of(*[[100, 101, 80, 99]] * 3), [4, 5, 6, 7])
    assert cpu == 6 and shares == pytest.approx([0.8] * 3)
    late = [[100, 101, 99, 100]] * 20 + [[100, 101, 99, 40]] * 16
    cpu, shares = model.slowest(found_of(*late), [4, 5, 6, 7])
    assert cpu == 7 and shares == pytest.approx([0.4] * 12)     # in its last third
    assert model.slowest(found_of([100, 50]), [0, 1]) is None
    assert model.slowest(found_of([100, 101, 99, 50, 49, 51]), [0, 1, 2, 3, 4, 5], [[0, 1, 2], [3, 4, 5]])[1] > 0.95
    assert model.slowest(found_of([100, 101, 50, 49]), [0, 1, 2, 3], [[0, 1], [2, 3]]) is None


START = {'record': 'burn_start', 'schema': 1, 'time': 1.0, 'hostname': 'n1', 'minutes': 1, 'slice': 1, 'threads': 1, 'cpus': [0], 'phases': ['fma'],
         'memory': 0, 'cache': 1, 'dgemm': None, 'fma': None, 'done': 0, 'round': 1, 'flip': False, 'not_readable': {}}


def phase_of(number, done, **changes):
    clock = {'min': 2900.0, 'median': 3000.0, 'max': 3100.0, 'slowest_cpu': 0}
    return {'record': 'burn_phase', 'schema': 1, 'time': 2.0, 'round': number, 'phase': 'fma', 'elapsed': 1, 'done': done, 'seconds': 1.0,
            'unit': 'Mflop/s', 'rate': {'total': 100.0 + number % 2, 'min': 1, 'median': 1, 'max': 1, 'slowest_cpu': 0}, 'rates': [100.0],
            'clock': clock, 'temperature': {'coretemp': 60.0 + number}, 'power': {'package-0': 200.0}, 'memory_corrected': 0, 'memory_uncorrected': None,
            'machine_checks': 0, 'throttled': number, 'errors': 0, 'total_errors': 0, **changes}


def text_of(*found):
    return ''.join(json.dumps(record) + '\n' for record in found)


def test_parts_are_put_together():
    burn = model.parse(text_of(START, phase_of(1, 1), phase_of(2, 2), START, phase_of(3, 3)) + '{"cut', 'file')
    assert burn.counted('throttled') == 2 + 3 and burn.counted('memory_uncorrected') is None and burn.end is None and burn.done == 3 and burn.unended == 1


ERROR = {'record': 'burn_error', 'schema': 1, 'time': 2.0, 'round': 2, 'phase': 'fma', 'thread': 0, 'cpu': 0, 'buffer': 'sums', 'offset': 0,
         'address': '0x10', **{name: f'0x{word:016x}' for name, word in (('expected', 1), ('seen', 3), ('bits', 2), ('again', 3))}, 'from_thread': None}


def test_an_error_of_a_phase_that_was_never_ended_counts():
    assert model.parse(text_of(START, phase_of(1, 1), ERROR, START, phase_of(2, 2)), 'file').total_errors == 1
    assert model.parse(text_of(START, ERROR, phase_of(1, 1, errors=5, total_errors=5), ERROR), 'file').total_errors == 5


@pytest.mark.parametrize('torn, errors', [
    (lambda line: line[:137] + line, 0),                                # half a record, and the next one behind it
    (lambda line: line[:137] + '\n' + line, 0), (lambda line: 'x\n' + line, 0), (lambda line: '\0' * 4096 + line, 0),
    (lambda line: text_of(ERROR)[:40] + line, 1), (lambda line: text_of(ERROR)[-40:] + line, 1), (lambda line: line[:137] + text_of(ERROR) + line, 1)])
def test_a_torn_line_is_named_and_hides_no_error(torn, errors):
    def of(*behind):
        return model.parse(text_of(START, phase_of(1, 1)) + torn(text_of(phase_of(2, 2))) + text_of(*behind), 'file')
    for burn in (of(), of(phase_of(3, 3)), of(START, phase_of(3, 3)), of(phase_of(3, 3), START, phase_of(4, 4))):
        assert (burn.torn, burn.total_errors, [record['round'] for record in burn.phases][:2]) == ([3], errors, [1, 2])
    assert of(phase_of(3, 3)).unaccounted == of(phase_of(3, 3), START, phase_of(4, 4)).unaccounted == []
    assert model.parse(text_of(START, phase_of(1, 1)) + '{"torn\n' + text_of(START, phase_of(2, 2)), 'file').unaccounted == [3]


# --- judged by the references that are shipped ------------------------------------------------------------------------

def measured(text, virtual='no'):
    '''Metric -> how it stands in the result, and the notes, of the check with these records.'''
    check, found, notes = runpy.run_path(str(rfm.REPOSITORY / 'checks/site/burn.py'))['burn'], model.parse(text, 'file'), []
    case = types.SimpleNamespace(measurements=[{'burn': found}], burns=[found], note=notes.append, skip_metric=lambda *_: None, all_cpus=CORES,
                                 plumbline=types.SimpleNamespace(of_machine={'virtual': virtual}),
                                 measured_by=types.SimpleNamespace(plumbline=types.SimpleNamespace(contention=())))
    case.tell, case.of_phase = types.MethodType(check.tell, case), types.MethodType(check.of_phase, case)
    bounds = files.lookup(files.load(rfm.REPOSITORY / 'config/references/portable.yaml'), 'burn', ['default', 'gnu'])
    return {metric.name: evaluation.judged(evaluation.Case(metric, reference=Reference(tuple(bounds[metric.name][:3])) if metric.name in bounds else None,
                                                           reference_from='portable.yaml')) for metric in check.evaluate(case)}, notes


def judged(text):
    '''Metric -> its verdict, and the notes.'''
    found, notes = measured(text)
    return {name: one.verdict for name, one in found.items()}, notes


CORES = [0, 1, 2, 3]
END = {'record': 'burn_end', 'schema': 1, 'time': 3.0, 'ended': 'complete', 'round': 24, 'done': 120.0, 'phases': 120, 'errors': 0, 'errors_of': {},
       'lost_records': 0, 'most_waiting': 1, 'write_error': None}


def burnt(lost=0.0, slow=1.0, **changes):
    '''Lines of 24 rounds that lose a share of all rates on the way, the last core at ``slow``.'''
    lines = [START | {'threads': 4, 'cpus': CORES, 'phases': list(model.PHASES)}]
    for place in range(120):
        rates = [round(rate * (1 - lost * place / 119), 3) for rate in (100.0, 101.0, 99.0, 100.0 * slow)]
        lines.append(phase_of(place // 5 + 1, place + 1.0, phase=model.PHASES[place % 5], rates=rates, throttled=0, memory_uncorrected=0))
        lines[-1]['rate'] = {**lines[-1]['rate'], 'total': sum(rates)}
        lines[-1].update(changes)
    return [*lines, END]


SHARES = {f'{name}.{phase}' for name in ('drift', 'of_start') for phase in model.PHASES}


@pytest.mark.slow
@pytest.mark.parametrize('changes, failing', [
    ({}, set()), ({'memory_corrected': 1000}, set()), ({'memory_corrected': 1001}, {'memory_corrected'}), ({'memory_uncorrected': 1}, {'memory_uncorrected'}),
    ({'machine_checks': 1}, {'machine_checks'}), ({'throttled': 1}, {'throttled'}), ({'total_errors': 1}, {'burn_errors'}), ({'lost': 0.2}, SHARES),
    ({'slow': 0.6}, {f'of_median.{phase}' for phase in model.PHASES[:-1]})])
def test_portable_references_fail_what_must_not_happen(changes, failing):
    verdicts, notes = judged(text_of(*burnt(**changes)))
    referenced = {*model.COUNTS, 'burn_errors', *SHARES, *(f'of_median.{phase}' for phase in model.PHASES[:-1])}
    assert {name: verdicts[name] for name in referenced} == {name: 'FAIL' if name in failing else 'PASS' for name in referenced}
    assert not any('torn' in note or 'the file system' in note for note in notes)


@pytest.mark.parametrize('virtual', ['yes', 'not known'])
def test_what_a_hypervisor_may_have_done_is_not_judged(virtual):
    found, _ = measured(text_of(*burnt(lost=0.2, slow=0.6)), virtual)
    assert {name for name, one in found.items() if one.verdict == 'FAIL'} == {f'{name}.{phase}' for name in ('drift', 'of_start')
                                                                              for phase in model.PHASES if phase not in ('memory', 'message')}
    assert found['of_median.fma'].unjudged == found['of_start.memory'].unjudged == baselines.virtual({'virtual': virtual})


def test_a_burn_with_torn_lines_is_no_silent_pass():
    lines = burnt()
    whole, after = text_of(*lines[:50]), text_of(*lines[50:])
    verdicts, notes = judged(whole + '{"record": "burn_ph\n' + after)
    assert verdicts['burn_errors'] == 'PASS' and notes[0].endswith('torn lines of burn.jsonl, of which what is whole was read: 51')     # the later ones count all errors
    assert judged(whole + '{"record": "burn_ph\n' + text_of(lines[0]) + after)[0]['burn_errors'] == 'NO REFERENCE'
    wrong = measured(whole + '{"record": "burn_error"\n' + text_of(lines[0]) + after)[0]['burn_errors']
    assert wrong.verdict == 'FAIL' and 'no whole record says where' in wrong.reason
    assert 'for a while (it hung): 1 waited, 7 were lost' in ' '.join(judged(text_of(*burnt()[:-1], END | {'lost_records': 7}))[1])


def test_what_was_counted_stays_counted():
    def counted(*parts):
        return model.parse(text_of(*(record for part in parts for record in (START, *(
            phase_of(number, number, memory_uncorrected=count) for number, count in enumerate(part, 1))))), 'file').counted('memory_uncorrected')

    assert counted([3, None]) == counted([3, 0]) == counted([3], [None]) == counted([1], [2]) == 3
    assert counted([0, None]) is None and counted([0], [None]) is None and counted([None, 0]) == 0


@pytest.mark.parametrize('text, told', [
    ('', 'no record of a burn'), (text_of(phase_of(1, 1)), 'before any burn_start'), ('x\n', 'no record of a burn'),
    (text_of(START, phase_of(1, 1, seconds=-1)), 'field seconds'), (text_of(START, phase_of(1, 1, power={'package-0': -1.0})), 'field power'),
    (text_of(START, {**START, 'schema': 2}), 'field schema'),
    (text_of(START, phase_of(1, float('nan'))), 'line 2: no record: NaN')])
def test_what_is_no_record_is_named(text, told):
    with pytest.raises(PlumblineError, match=told):
        model.parse(text, 'file')


@pytest.mark.slow
def test_figures():
    burn = model.parse(text_of(START, *(phase_of(number, number) for number in range(1, 1001))), 'file')
    points = model.thinned(burn)
    assert len(points) == model.MOST_POINTS and points[-1]['throttled'] == 1000 and points[-1]['hours'] == pytest.approx(1000 / 3600)
    assert points[0]['temperature'] == {'coretemp': 65.0} and points[0]['lowest_clock'] == 2900
    drawn = figures.of_check('burn', [{'check': 'burn', 'hostname': 'n1', 'series': points}])
    titles = [title for title, _, figure in drawn if figure is not None]
    assert titles == ['Rates over a burn', 'Clock over a burn', 'Temperature over a burn', 'Power over a burn', 'What must not happen in a burn']
    assert '100' in drawn[0][1] and 'errors that they could not correct' in drawn[-1][1]
    assert max(drawn[0][2].data[0].y) == pytest.approx(1, abs=0.01)
    quiet = [{**point, 'throttled': 0, 'temperature': {}} for point in points]
    drawn = {title: (caption, figure) for title, caption, figure in figures.of_check('burn', [{'check': 'burn', 'series': quiet}])}
    assert drawn['Temperature over a burn'][1] is None and drawn['What must not happen in a burn'][0].startswith('None in 16 min 40 s')
    (_, caption, figure), = figures.of_check('burn', [{'check': 'burn', 'hostname': 'n1'}])
    assert figure is None and caption == 'Not drawn: there are no records.'


# --- a file that comes back --------------------------------------------------------------------------------------------

#: A file handle dies twice, half a line written, as of a server that is gone: the second time it comes back without the end of that half.
STALE = r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t write(int file, const void *text, size_t length)
{
    static int calls;
    if (file <= 2 || (++calls != 5 && calls != 15))
        return syscall(SYS_write, file, text, length);
    const ssize_t half = syscall(SYS_write, file, text, length / 2);
    if (calls == 15 && ftruncate(file, lseek(file, 0, SEEK_END) - 10) != 0)
        return -1;
    dup2(open("/dev/null", O_RDONLY), file);
    return half;
}
'''


def test_a_file_whose_handle_is_stale_is_opened_again(programs, tmp_path):
    file, library = tmp_path / 'burn.jsonl', tmp_path / 'stale.so'
    output_of('cc', '-shared', '-fPIC', '-x', 'c', '-', '-o', library, input=STALE)
    command = [programs.path('burn'), *QUICK, '--minutes', 0.05, '--series', file]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, timeout=50, env=environment(LD_PRELOAD=str(library)))
    burn = model.parse(file.read_text(), 'file')
    assert (done.returncode, done.stderr) == (0, '') and len(burn.phases) == burn.end['phases'] > 12 and len(burn.torn) == 1
    assert burn.end['write_error'] == 'Bad file descriptor' and burn.end['lost_records'] == 0 and not burn.unaccounted


#: The third write waits in the kernel, killed or not, for a file system that does not answer, and what others read is not closed at once.
HANGS = r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t write(int file, const void *text, size_t length)
{
    static int calls;
    if (file > 2 && ++calls == 3)
        open(getenv("HUNG"), O_RDONLY);
    return syscall(SYS_write, file, text, length);
}
int close(int file)
{
    if (file <= 2)
        usleep(100000);
    return (int)syscall(SYS_close, file);
}
'''


def test_nobody_waits_for_a_write_that_cannot_be_killed(programs, tmp_path):
    '''Neither for the process nor for the end of what it says.'''
    file, library = tmp_path / 'burn.jsonl', tmp_path / 'hangs.so'
    output_of('cc', '-shared', '-fPIC', '-x', 'c', '-', '-o', library, input=HANGS)
    (tmp_path / 'hung').mkdir()
    with hung(str(tmp_path / 'hung')) as path:
        command = [programs.path('burn'), *QUICK, '--minutes', 0.05, '--series', file]
        burning = subprocess.Popen([str(x) for x in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment(LD_PRELOAD=str(library), HUNG=f'{path}/file'))
        _, said = burning.communicate(timeout=50)       # where it waits, what hangs goes before it
    assert burning.returncode == 3 and f'could not be written to {file}: it does not answer' in said
    assert '"burn_start"' in file.read_text()     # what was written before


def test_a_second_signal_leaves_the_end_time_to_be_said(programs):
    command = [programs.path('burn'), *QUICK, '--minutes', 1]
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writes, bytes(1 << 16)):     # who reads is behind
            pass
    os.set_blocking(writes, True)
    burning = subprocess.Popen([str(x) for x in command], stdout=subprocess.PIPE, stderr=writes, text=True)
    os.close(writes)
    burning.stdout.readline()
    for _ in range(2):
        burning.send_signal(signal.SIGTERM)
        time.sleep(1)
    with open(reads, errors='replace') as file:
        said = file.read()
    burning.communicate()
    assert burning.returncode == 143 and 'burn: ended by signal 15 after' in said

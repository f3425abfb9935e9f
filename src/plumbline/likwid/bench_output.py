'''What likwid-bench prints, and the log of the cross-check that :mod:`plumbline.likwid.bench` writes a script for.'''

import re
import statistics

from plumbline.errors import PlumblineError
from plumbline.likwid import bench
from plumbline.model import quantity

_HEADER = re.compile(r'### plumbline-cross-check level=(?P<level>\w+) threads=(?P<threads>\d+) '
                     r'cpus=(?P<cpus>[\d,]+) kernel=(?P<kernel>\w+) repeat=(?P<repeat>\d+) '
                     r'iterations=(?P<iterations>\d+)$')
_END = re.compile(r'### plumbline-cross-check-end status=(\d+)$')
_OWN = re.compile(r'^### plumbline-own level=(\w+) threads=(\d+) repeat=(\d+)\n', re.MULTILINE)
_DONE = re.compile(r'### plumbline-cross-check-done calls=(\d+)$')

_NUMBER = r'[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?'

#: Key of the result -> (label in likwid-bench's output, type).
_FIELDS = {'cycles': ('Cycles', int), 'clock': ('Cycle Clock', int), 'seconds': ('Time', float),
           'iterations': ('Iterations per thread', int), 'working_set': ('Size (Byte)', int),
           'flops': ('Number of Flops', int), 'bytes': ('Data volume (Byte)', int),
           'rate': ('MByte/s', float)}


def _complaint(text):
    '''What likwid-bench itself said about an error, for the end of a message.'''
    said = re.search(r'^(?:Error|ERROR)\b.*', text, re.MULTILINE)
    return f': likwid-bench said: {said[0].strip()}' if said else ''


def _number(text, label, kind):
    found = re.findall(rf'^{re.escape(label)}:\s+({_NUMBER})(?: sec)?$', text, re.MULTILINE)
    if len(found) != 1:
        raise PlumblineError(f'likwid-bench: {len(found)} lines "{label}" instead of one'
                             f'{_complaint(text)}; the output is cut off or garbled, run it again')
    try:
        return kind(found[0])
    except ValueError:
        raise PlumblineError(f'likwid-bench: "{label}: {found[0]}" is not a whole number; the output is garbled, run it again') from None


def _check_bench(text, result):
    '''Refuse an output whose parts contradict each other.'''
    count = re.search(r'^Using (\d+) threads$', text, re.MULTILINE)
    if not count or int(count[1]) != len(result['hwthreads']):
        raise PlumblineError(f"likwid-bench: {count[1] if count else 'no number of'} threads, but the CPUs of {len(result['hwthreads'])}; the output "
                             'is cut off or garbled, run it again')
    if not result['seconds'] > 0:
        raise PlumblineError('likwid-bench: a time of 0; give it more iterations')
    # The time is printed with seven digits and the rate with two decimals.
    rate = quantity.per_second(result['bytes'], result['seconds'])
    if abs(rate - result['rate']) > 1e-4 * rate + 0.01:
        raise PlumblineError(f"likwid-bench: {result['bytes']} bytes in {result['seconds']} s are "
                             f"not {result['rate']} MByte/s; the output is garbled, run it again")
    # The horizontal line is the last thing that likwid-bench prints.
    if not re.search(r'^MByte/s:(?s:.*)^-{80}$', text, re.MULTILINE):
        raise PlumblineError('likwid-bench: no line at the end of the table; the output is cut off, run it again')


def parse_bench(text):
    '''Read what one call of likwid-bench printed.

    :arg text: its standard output; what it writes to standard error may stand in between.
    :returns: dictionary ``kernel``; ``threads``; ``hwthreads`` (CPU of each thread); ``seconds``, ``cycles`` and ``clock`` (Hz, by which likwid-bench
        turned cycles into seconds); ``iterations``; ``working_set`` (bytes, all threads; likwid-bench rounds it down); ``bytes`` (application bytes
        moved), ``flops``, and ``rate`` (MB/s, application bytes).
    :raises PlumblineError: if anything is missing, is there twice or contradicts the rest.
    '''
    kernel = re.search(r'^Test: (\w+)$', text, re.MULTILINE)
    if not kernel:
        raise PlumblineError(f'likwid-bench did not begin its measurement{_complaint(text)}; run the command by hand')
    result = {key: _number(text, *field) for key, field in _FIELDS.items()}
    hwthreads = re.findall(r'^Group: \d+ Thread \d+ Global Thread (\d+) running on hwthread (\d+)', text, re.MULTILINE)
    cpu_of = {int(thread): int(cpu) for thread, cpu in hwthreads}
    result |= {'kernel': kernel[1], 'threads': len(cpu_of), 'hwthreads': [cpu_of[thread] for thread in sorted(cpu_of)]}
    _check_bench(text, result)
    return result


def _blocks(text):
    '''Split a log into (match of the header, output, exit status); refuse one that is cut off.'''
    blocks, header, done = [], None, None
    output: list[str] = []
    for line in map(str.rstrip, text.splitlines()):
        if match := _HEADER.match(line):
            if header:
                break
            header, output = match, []
        elif (match := _END.match(line)) and header:
            blocks.append((header, '\n'.join(output), int(match[1])))
            header = None
        elif match := _DONE.match(line):
            done = int(match[1])
        elif header:
            output.append(line)
    if header or done != len(blocks):
        raise PlumblineError(f'the log of likwid-bench is cut off after {len(blocks)} calls; see '
                             'whether the job reached its time limit, and run it again')
    if not blocks:
        raise PlumblineError('the log of likwid-bench holds no call; give it at least one level')
    return blocks


def _sample(header, output, status):
    '''One call as a sample, checked against its header.'''
    where = f"likwid-bench {header['kernel']} in {header['level']}, {header['threads']} threads"
    if status:
        raise PlumblineError(f'{where}: exit status {status}{_complaint(output)}; run it by hand')
    try:
        sample = parse_bench(output)
    except PlumblineError as error:
        raise PlumblineError(f'{where}: {error}') from None
    if sample['kernel'] != header['kernel']:
        raise PlumblineError(f"{where}: ran {sample['kernel']}; the log is garbled, run it again")
    cpus = [int(cpu) for cpu in header['cpus'].split(',')]
    if sorted(sample['hwthreads']) != cpus:
        raise PlumblineError(f"{where}: ran on CPUs {sample['hwthreads']} instead of {cpus}; a "
                             'topology file of LIKWID or LIKWID_IGNORE_CPUSET may be in the way')
    return {'level': header['level'], 'cpus': cpus, 'repeat': int(header['repeat']), **sample}


def _common_clock(samples):
    '''Seconds by one clock for all calls.

    Each process measures the frequency of the time stamp counter anew, with an error if it is
    interrupted just then; the counter is the same, so their median is the better value.
    '''
    clocks = [sample['clock'] for sample in samples if sample['clock'] > 0]
    for sample in samples:
        if sample['clock'] > 0:
            sample['seconds'] *= sample['clock'] / statistics.median(clocks)
        sample['rate'] = quantity.per_second(sample['bytes'], sample['seconds'])


def parse_cross_check(text):
    '''Read the log of a :func:`.bench.script`.

    :returns: list of samples, in the order of their first call: what :func:`parse_bench` gives, and ``level``, ``cpus`` (asked for, and used),
        ``repeat``, ``traffic_factor`` and ``traffic_rate`` (MB/s, write-allocate counted).  Of a call that was repeated because it was too short the
        last one counts.
    :raises PlumblineError: if the log is cut off, a call failed, its output is not complete, or its threads ran on other CPUs.
    '''
    latest: dict[tuple, dict] = {}
    for block in _blocks(text):
        sample = _sample(*block)
        key = tuple(sample[k] for k in ('level', 'threads', 'kernel', 'repeat'))
        latest[key] = sample
    samples = list(latest.values())
    _common_clock(samples)
    for sample in samples:
        sample['traffic_factor'] = bench.traffic_factor(sample['kernel'], sample['level'])
        sample['traffic_rate'] = sample['rate'] * sample['traffic_factor']
    return samples


def own_parts(text):
    '''What our own limit streams printed in a log: a list of (level, threads, repeat, output).'''
    parts = _OWN.split(text)
    return [(level, int(threads), int(repeat), re.split('^### plumbline-', output, maxsplit=1, flags=re.MULTILINE)[0])
            for level, threads, repeat, output in zip(*(parts[i::4] for i in range(1, 5)))]


def agreement(samples, level, threads):
    '''How our own limit streams compare with likwid-bench's best: the two run by turns.

    :arg samples: what :func:`parse_cross_check` returned, each with ``own_rate``: the best traffic rate (MB/s) of our
        streams that ran after those of its repeat, or :obj:`None`.
    :returns: ours over likwid-bench's best in each repeat, as far as both ran.
    '''
    ratios = []
    for repeat in sorted({sample.get('repeat', 0) for sample in samples or ()}):
        best = cross_check_best([s for s in samples if s.get('repeat', 0) == repeat], level, threads)
        if best and best.get('own_rate'):
            ratios.append(best['own_rate'] / best['traffic_rate'])
    return ratios


def cross_check_best(samples, level, threads):
    '''The sample with the highest traffic rate in a level, with so many threads.

    In memory, and beyond L1 on others than x86-64 (whose kernels have no instruction set in their names), loads and non-temporal stores only: as of
    :func:`plumbline.model.limits.traffic_is_certain`.

    :arg samples: what :func:`parse_cross_check` returned, or :obj:`None`.
    :returns: one of them; its ``traffic_rate`` (MB/s) is what the limit is compared with.  :obj:`None` if there is none.
    '''
    there = [s for s in samples or () if (s['level'], s['threads']) == (level, threads)
             and (s['traffic_factor'] == 1 or (level != 'memory' and '_' in s['kernel']))]
    return max(there, key=lambda s: s['traffic_rate'], default=None)

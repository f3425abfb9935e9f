'''likwid-bench as the independent cross-check of what each level of the memory hierarchy gives.

:func:`bench_commands` says what to run, :func:`script` writes it as a POSIX shell script for a
ReFrame test, and :func:`parse_cross_check` reads the log.  Nothing here runs anything.

What was found out about likwid-bench 5.2.2, by running it and from its sources:

- Each process sleeps for a second before it measures: twice half a second, to calibrate the clock
  (``getCpuSpeed`` in ``src/timer.c``).  No option, variable or topology file avoids that; from
  5.5 on processors that tell their frequency by CPUID (leaf 0x16; Intel's) are spared it.  The
  second is idle, but it makes calls precious.
- ``-s`` takes whole seconds and first doubles the iterations until one run takes that long:
  ``-s 1`` takes six seconds in all.  Hence ``-i``, with a number that the script learns from the
  call before it.
- A thread domain of ``-w``/``-W`` holds those CPUs that the process's affinity allows.  ``taskset
  -c LIST likwid-bench -W N:SIZE:THREADS`` with as many threads as CPUs therefore places the
  threads on exactly these CPUs.  ``LIKWID_IGNORE_CPUSET`` would undo that; the script unsets it.
- More threads than CPUs are accepted without a word, two on one CPU; the list of CPUs that
  likwid-bench prints is therefore compared with the one asked for.
- ``-W`` lets each thread touch its own part of the arrays first, so that they lie in its NUMA
  node; ``-w`` has one thread touch them all.
'''

import re
import statistics
from typing import Any

from plumbline.errors import PlumblineError
from plumbline.model import limits, quantity

#: Traffic over likwid-bench's bytes, which are those that the loop names.  A store that misses
#: loads its cache line first (write-allocate), for which 8 bytes per store are added: store 8 ->
#: 16, copy 16 -> 24, stream (a = b + s c) 24 -> 32, triad (a = b + c d) 32 -> 40 bytes per element.
WRITE_ALLOCATE = {'load': 1.0, 'store': 2.0, 'copy': 3 / 2, 'stream': 4 / 3, 'triad': 5 / 4}

#: Kernels of the two efforts; ``memory``: with ordinary stores in memory, where their traffic is no
#: more than a model and says nothing about the limit.  A non-temporal store goes to memory past every cache, so those
#: kernels say something about memory only.
_EFFORTS: dict[str, dict[str, Any]] = {
    'health': {'kernels': ('load', 'copy', 'triad'), 'memory': ('load',),
               'nontemporal': ('copy', 'triad'), 'repeats': 1},
    'full': {'kernels': ('load', 'store', 'copy', 'stream', 'triad'),
             'memory': ('load', 'store', 'copy', 'stream', 'triad'),
             'nontemporal': ('store', 'copy', 'stream', 'triad'), 'repeats': 3},
}

#: Suffix of likwid-bench's kernels without and with a multiplication, which is fused if it can be.
_SUFFIX = {'avx512': ('_avx512', '_avx512_fma'), 'avx2': ('_avx', '_avx_fma'),
           'sse': ('_sse', '_sse'), 'scalar': ('', '')}

#: Where likwid-bench has no fused kernel although it has others.
_UNFUSED = {'stream_mem_avx512_fma': 'stream_mem_avx512'}

#: Guesses of the application bytes per second and thread, for the first call in each level.  Fast
#: machines are meant: too many iterations cost a second at most, too few cost another call.
_GUESS = {'L1': 300e9, 'L2': 150e9, 'L3': 60e9}
_GUESS_MEMORY, _GUESS_MEMORY_NODE = 20e9, 200e9

#: How long one call is to measure, seconds.
SECONDS = 0.5

#: A call that lasted less than this share of the wanted time is repeated with more iterations.
_TOO_SHORT = 0.4

_SCRIPT_HEAD = '''\
# The likwid-bench cross-check; written and read by plumbline.likwid.bench.
# With this variable set, likwid-bench would not keep to the CPUs that taskset gives it.
unset LIKWID_IGNORE_CPUSET
cross_check_calls=0
cross_check_rate=0

cross_check_call() {  # LEVEL THREADS CPUS BYTES KERNEL REPEAT ITERATIONS
    echo "### plumbline-cross-check level=$1 threads=$2 cpus=$3 kernel=$5 repeat=$6 iterations=$7"
    cross_check_output=$(taskset -c "$3" likwid-bench -t "$5" -W "N:$4:$2" -i "$7" 2>&1)
    cross_check_status=$?
    printf '%s\\n' "$cross_check_output"
    echo "### plumbline-cross-check-end status=$cross_check_status"
    cross_check_calls=$((cross_check_calls + 1))
    cross_check_rate=$(printf '%s\\n' "$cross_check_output" | awk '$1 == "MByte/s:" { print $2 }')
    cross_check_time=$(printf '%s\\n' "$cross_check_output" | awk '$1 == "Time:" { print $2 }')
}

# Iterations that take the wanted seconds at the rate of the last call; each sweeps SIZE bytes.
cross_check_iterations() {  # SIZE
    awk -v rate="${cross_check_rate:-0}" -v size="$1" -v seconds="$cross_check_seconds" \\
        'BEGIN { n = int(rate * 1e6 * seconds / size); print (n < 2) ? 2 : n }'
}

# The rate of the last call is that of another kernel in the same level; 0 stands for none.
cross_check() {  # LEVEL THREADS CPUS BYTES KERNEL REPEAT SIZE GUESS
    cross_check_n=$8
    [ "${cross_check_rate:-0}" = 0 ] || cross_check_n=$(cross_check_iterations "$7")
    cross_check_call "$1" "$2" "$3" "$4" "$5" "$6" "$cross_check_n"
    if awk -v time="${cross_check_time:-9}" -v enough="$cross_check_enough" \\
            'BEGIN { exit !(time + 0 < enough + 0) }'
    then
        cross_check_call "$1" "$2" "$3" "$4" "$5" "$6" "$(cross_check_iterations "$7")"
    fi
}
'''

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


def isas(arch, platform):
    '''The instruction sets of likwid-bench's kernels that a processor runs, the widest first.

    :arg arch: archspec's name of it; unknown ones run what all of the platform do.
    '''
    import archspec.cpu
    features = archspec.cpu.TARGETS[arch].features if arch in archspec.cpu.TARGETS else ()
    return [*(['avx512'] if 'avx512f' in features else []), *(['avx2'] if 'avx2' in features and 'fma' in features else []),
            'sse' if platform == 'x86_64' else 'scalar']


def kernel_name(family, isa, nontemporal=False):
    '''The name of a kernel in likwid-bench.

    :arg family: ``'load'``, ``'store'``, ``'copy'``, ``'stream'`` or ``'triad'``.
    :arg isa: ``'avx512'``, ``'avx2'`` (with FMA), ``'sse'``, or ``'scalar'``, the only
        one that processors other than x86 have.
    :arg nontemporal: stores that bypass the caches.
    :returns: for example ``'triad_mem_avx512_fma'``; :obj:`None` if there is no such kernel.
    :raises PlumblineError: for an instruction set that is not one of these.
    '''
    if isa not in _SUFFIX:
        raise PlumblineError(f'likwid-bench has no kernels for {isa!r}; choose one of '
                             f"{', '.join(_SUFFIX)}")
    # A load has no store to be non-temporal, and of the scalar _mem kernels some would store 16
    # bytes at addresses that are multiples of 8 only.
    if nontemporal and (family == 'load' or isa == 'scalar'):
        return None
    name = family + ('_mem' if nontemporal else '')
    name += _SUFFIX[isa][family in ('stream', 'triad')]
    return _UNFUSED.get(name, name)


def traffic_factor(kernel, level):
    '''Traffic over application bytes of a kernel whose arrays lie in ``level``.

    :arg kernel: likwid-bench's name, for example ``'copy_avx'``.
    :arg level: ``'L1'``, where a store needs no line from below, or another level.
    :returns: at least 1; 1 for non-temporal stores, which allocate no line.
    :raises PlumblineError: for a kernel without a model.
    '''
    family, *rest = kernel.split('_')
    if family not in WRITE_ALLOCATE:
        raise PlumblineError(f'likwid-bench kernel {kernel}: its traffic is not known; use one of '
                             f"{', '.join(WRITE_ALLOCATE)}")
    return 1.0 if level == 'L1' or 'mem' in rest else WRITE_ALLOCATE[family]


def _size_argument(size):
    '''likwid-bench reads the number as a 32-bit integer, so large sizes go in units of 1000 B.'''
    return f'{size}B' if size < 2**31 else f'{size // 1000}kB'


def _first_iterations(level, threads, size):
    if level == 'memory':
        rate = min(threads * _GUESS_MEMORY, _GUESS_MEMORY_NODE)
    else:
        rate = threads * _GUESS.get(level, _GUESS['L3'])
    return max(2, int(rate * SECONDS / size))


def bench_commands(levels, cpus, isa, effort='health'):
    '''The calls of likwid-bench that cross-check ``levels`` on ``cpus``.

    Non-temporal stores are there for memory only: they bypass the caches, so that in a cache level
    they would measure memory.  Each call costs a second before it measures (see the module).

    :arg levels: dictionary level -> working set of all threads together, bytes.
    :arg cpus: the CPUs to run on, one thread on each.
    :arg isa: see :func:`kernel_name`.
    :arg effort: ``'health'``: load, copy, triad once, in memory with non-temporal stores only; ``'full'``: all kernels, three times, the
        repeats apart from each other.
    :returns: list of dictionaries ``level``, ``threads``, ``cpus``, ``kernel``, ``repeat``,
        ``size`` (bytes) and ``iterations`` (a guess for the first call).
    :raises PlumblineError: for an unknown effort or instruction set, or without a CPU.
    '''
    if effort not in _EFFORTS:
        raise PlumblineError(f'effort {effort!r} of the cross-check is unknown; choose one of '
                             f"{', '.join(_EFFORTS)}")
    if not cpus:
        raise PlumblineError('no CPU for likwid-bench to run on; give at least one')
    plan, threads = _EFFORTS[effort], len(cpus)
    commands = []
    for level, size in levels.items():
        families = plan['kernels'] if level != 'memory' else plan['memory']
        names = [kernel_name(family, isa) for family in families]
        if level == 'memory':
            names += [kernel_name(family, isa, nontemporal=True) for family in plan['nontemporal']]
        iterations = _first_iterations(level, threads, size)
        for repeat in range(plan['repeats']):
            for kernel in filter(None, names):
                commands.append({
                    'level': level, 'threads': threads, 'cpus': sorted(cpus), 'kernel': kernel,
                    'repeat': repeat, 'size': size, 'iterations': iterations})
    return commands


def script(commands, own=None):
    '''A POSIX shell script that runs ``commands`` and prints the log for :func:`parse_cross_check`.

    In each level and number of threads the first call's number of iterations is a guess; the
    others' follow from the rate of the call before.  A call that was far too short is repeated at
    once, and the later one counts.  The script needs ``awk`` and ``taskset``.

    :arg commands: what :func:`bench_commands` returned; lists of several thread counts may be
        put together.
    :arg own: dictionary (level, threads) -> shell command that runs our own limit streams there: once after each
        repeat, so that the two can be compared on a machine whose speed changes within minutes.
    :returns: text that ends with a newline.
    '''
    lines = [_SCRIPT_HEAD, f'cross_check_seconds={SECONDS:g}',
             f'cross_check_enough={_TOO_SHORT * SECONDS:g}']
    place = None
    for command, following in zip(commands, [*commands[1:], None]):
        if place != (command['level'], command['threads']):
            place = command['level'], command['threads']
            lines.append('cross_check_rate=0')
        cpus = ','.join(map(str, command['cpus']))
        lines.append(f"cross_check {command['level']} {command['threads']} {cpus} "
                     f"{_size_argument(command['size'])} {command['kernel']} {command['repeat']} "
                     f"{command['size']} {command['iterations']}")
        block = command['level'], command['threads'], command['repeat']
        if own and (following is None or block != tuple(following[key] for key in ('level', 'threads', 'repeat'))):
            level, threads, repeat = block
            lines.append(f'echo "### plumbline-own level={level} threads={threads} repeat={repeat}"')
            lines.append(f'{own[block[:2]]} || true')
    lines.append('echo "### plumbline-cross-check-done calls=$cross_check_calls"')
    return '\n'.join(lines) + '\n'


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
        raise PlumblineError(f'likwid-bench: "{label}: {found[0]}" is not a whole number; the '
                             'output is garbled, run it again') from None


def _check_bench(text, result):
    '''Refuse an output whose parts contradict each other.'''
    count = re.search(r'^Using (\d+) threads$', text, re.MULTILINE)
    if not count or int(count[1]) != len(result['hwthreads']):
        raise PlumblineError(f"likwid-bench: {count[1] if count else 'no number of'} threads, but "
                             f"the CPUs of {len(result['hwthreads'])}; the output is cut off or "
                             'garbled, run it again')
    if not result['seconds'] > 0:
        raise PlumblineError('likwid-bench: a time of 0; give it more iterations')
    # The time is printed with seven digits and the rate with two decimals.
    rate = quantity.per_second(result['bytes'], result['seconds'])
    if abs(rate - result['rate']) > 1e-4 * rate + 0.01:
        raise PlumblineError(f"likwid-bench: {result['bytes']} bytes in {result['seconds']} s are "
                             f"not {result['rate']} MByte/s; the output is garbled, run it again")
    # The horizontal line is the last thing that likwid-bench prints.
    if not re.search(r'^MByte/s:(?s:.*)^-{80}$', text, re.MULTILINE):
        raise PlumblineError('likwid-bench: no line at the end of the table; the output is cut '
                             'off, run it again')


def parse_bench(text):
    '''Read what one call of likwid-bench printed.

    :arg text: its standard output; what it writes to standard error may stand in between.
    :returns: dictionary ``kernel``; ``threads``; ``hwthreads`` (CPU of each thread); ``seconds``,
        ``cycles`` and ``clock`` (Hz, by which likwid-bench turned cycles into seconds);
        ``iterations``; ``working_set`` (bytes, all threads; likwid-bench rounds it down);
        ``bytes`` (application bytes moved), ``flops``, and ``rate`` (MB/s, application bytes).
    :raises PlumblineError: if anything is missing, is there twice or contradicts the rest.
    '''
    kernel = re.search(r'^Test: (\w+)$', text, re.MULTILINE)
    if not kernel:
        raise PlumblineError(f'likwid-bench did not begin its measurement{_complaint(text)}; run '
                             'the command by hand')
    result = {key: _number(text, *field) for key, field in _FIELDS.items()}
    hwthreads = re.findall(r'^Group: \d+ Thread \d+ Global Thread (\d+) running on hwthread (\d+)',
                           text, re.MULTILINE)
    cpu_of = {int(thread): int(cpu) for thread, cpu in hwthreads}
    result |= {'kernel': kernel[1], 'threads': len(cpu_of),
               'hwthreads': [cpu_of[thread] for thread in sorted(cpu_of)]}
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
    '''Read the log of a :func:`script`.

    :returns: list of samples, in the order of their first call: what :func:`parse_bench` gives,
        and ``level``, ``cpus`` (asked for, and used), ``repeat``, ``traffic_factor`` and
        ``traffic_rate`` (MB/s, write-allocate counted).  Of a call that was repeated because it
        was too short the last one counts.
    :raises PlumblineError: if the log is cut off, a call failed, its output is not complete, or
        its threads ran on other CPUs.
    '''
    latest: dict[tuple, dict] = {}
    for block in _blocks(text):
        sample = _sample(*block)
        key = tuple(sample[k] for k in ('level', 'threads', 'kernel', 'repeat'))
        latest[key] = sample
    samples = list(latest.values())
    _common_clock(samples)
    for sample in samples:
        sample['traffic_factor'] = traffic_factor(sample['kernel'], sample['level'])
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

    In memory, loads and non-temporal stores only: see :func:`plumbline.model.limits.best`.

    :arg samples: what :func:`parse_cross_check` returned, or :obj:`None`.
    :returns: one of them; its ``traffic_rate`` (MB/s) is what the limit is compared with.
        :obj:`None` if there is none.
    '''
    there = [{'level': level, 'bytes': 1, 'traffic': s['traffic_factor'], 'sample': s} for s in samples or ()
             if s['level'] == level and s['threads'] == threads]
    best = limits.best(there, lambda case: case['sample']['traffic_rate'])
    return best and best['sample']

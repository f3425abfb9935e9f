'''likwid-bench as the independent cross-check of what each level of the memory hierarchy gives.

:func:`bench_commands` says what to run, :func:`script` writes it as a POSIX shell script for a
ReFrame test, and :mod:`plumbline.likwid.bench_output` reads the log.  Nothing here runs anything.

What was found out about likwid-bench 5.2.2, by running it and from its sources:

- Each process sleeps for a second before it measures: twice half a second, to calibrate the clock (``getCpuSpeed`` in ``src/timer.c``).  No option,
  variable or topology file avoids that; from 5.5 on processors that tell their frequency by CPUID (leaf 0x16; Intel's) are spared it.  The second is
  idle, but it makes calls precious.
- ``-s`` takes whole seconds and first doubles the iterations until one run takes that long: ``-s 1`` takes six seconds in all.  Hence ``-i``, with a
  number that the script learns from the call before it.
- A thread domain of ``-w``/``-W`` holds those CPUs that the process's affinity allows.  ``taskset -c LIST likwid-bench -W N:SIZE:THREADS`` with as
  many threads as CPUs therefore places the threads on exactly these CPUs.  ``LIKWID_IGNORE_CPUSET`` would undo that; the script unsets it.
- More threads than CPUs are accepted without a word, two on one CPU; the list of CPUs that likwid-bench prints is therefore compared with the one
  asked for.
- ``-W`` lets each thread touch its own part of the arrays first, so that they lie in its NUMA node; ``-w`` has one thread touch them all.
'''

from typing import Any

from plumbline.errors import PlumblineError

#: Traffic over likwid-bench's bytes, which are those that the loop names.  A store that misses loads its cache line first (write-allocate), for which
#: 8 bytes per store are added: store 8 -> 16, copy 16 -> 24, stream (a = b + s c) 24 -> 32, triad (a = b + c d) 32 -> 40 bytes per element.
WRITE_ALLOCATE = {'load': 1.0, 'store': 2.0, 'copy': 3 / 2, 'stream': 4 / 3, 'triad': 5 / 4}

#: Kernels of the two efforts; ``memory``: with ordinary stores in memory, where their traffic is no more than a model and says nothing about the
#: limit.  A non-temporal store goes to memory past every cache, so those kernels say something about memory only.
_EFFORTS: dict[str, dict[str, Any]] = {
    'health': {'kernels': ('load', 'copy', 'triad'), 'memory': ('load',),
               'nontemporal': ('copy', 'triad'), 'repeats': 1},
    'full': {'kernels': ('load', 'store', 'copy', 'stream', 'triad'),
             'memory': ('load', 'store', 'copy', 'stream', 'triad'),
             'nontemporal': ('store', 'copy', 'stream', 'triad'), 'repeats': 3},
}

#: Suffix of likwid-bench's kernels without and with a multiplication, which is fused if it can be.
_SUFFIX = {'avx512': ('_avx512', '_avx512_fma'), 'avx2': ('_avx', '_avx_fma'), 'sse': ('_sse', '_sse'), 'scalar': ('', '')}

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
# The likwid-bench cross-check; written by plumbline.likwid.bench, read by bench_output.
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
    :arg isa: ``'avx512'``, ``'avx2'`` (with FMA), ``'sse'``, or ``'scalar'``, the only one that processors other than x86 have.
    :returns: for example ``'triad_mem_avx512_fma'``; :obj:`None` if there is no such kernel.
    '''
    # A load has no store to be non-temporal, and of the scalar _mem kernels some would store 16 bytes at addresses that are multiples of 8 only.
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
        raise PlumblineError(f"likwid-bench kernel {kernel}: its traffic is not known; use one of {', '.join(WRITE_ALLOCATE)}")
    return 1.0 if level == 'L1' or 'mem' in rest else WRITE_ALLOCATE[family]


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
    :raises PlumblineError: for an unknown effort.
    '''
    if effort not in _EFFORTS:
        raise PlumblineError(f"effort {effort!r} of the cross-check is unknown; choose one of {', '.join(_EFFORTS)}")
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
                commands.append({'level': level, 'threads': threads, 'cpus': sorted(cpus), 'kernel': kernel, 'repeat': repeat, 'size': size,
                                 'iterations': iterations})
    return commands


def script(commands, own=None):
    '''A POSIX shell script that runs ``commands`` and prints the log for :func:`.bench_output.parse_cross_check`.

    In each level and number of threads the first call's number of iterations is a guess; the others' follow from the rate of the call before.  A call
    that was far too short is repeated at once, and the later one counts.  The script needs ``awk`` and ``taskset``.

    :arg commands: what :func:`bench_commands` returned; lists of several thread counts may be put together.
    :arg own: dictionary (level, threads) -> shell command that runs our own limit streams there: once after each repeat, so that the two can be
        compared on a machine whose speed changes within minutes.
    '''
    lines = [_SCRIPT_HEAD, f'cross_check_seconds={SECONDS:g}', f'cross_check_enough={_TOO_SHORT * SECONDS:g}']
    place = None
    for command, following in zip(commands, [*commands[1:], None]):
        if place != (command['level'], command['threads']):
            place = command['level'], command['threads']
            lines.append('cross_check_rate=0')
        cpus, size = ','.join(map(str, command['cpus'])), command['size']
        argument = f'{size}B' if size < 2**31 else f'{size // 1000}kB'      # likwid-bench reads the number as a 32-bit integer
        lines.append(f"cross_check {command['level']} {command['threads']} {cpus} {argument} {command['kernel']} "
                     f"{command['repeat']} {size} {command['iterations']}")
        block = command['level'], command['threads'], command['repeat']
        if own and (following is None or block != tuple(following[key] for key in ('level', 'threads', 'repeat'))):
            level, threads, repeat = block
            lines.append(f'echo "### plumbline-own level={level} threads={threads} repeat={repeat}"')
            lines.append(f'{own[block[:2]]} || true')
    lines.append('echo "### plumbline-cross-check-done calls=$cross_check_calls"')
    return '\n'.join(lines) + '\n'

'''Faults of one node of the virtual cluster, provoked for real: what `plumbline bench sweeps` must find, and name that node only.

``provoke(place, node)`` of a :class:`Fault` is a context manager: while it lasts, whatever runs on the node suffers from it.
'''

import contextlib
import functools
import os
import shlex
import sys

from plumbline.bench.common import output_of, stand_ins
from plumbline.bench.verdicts import faults as of_machines
from plumbline.bench.verdicts.faults import ALL, MEMORY, Fault, NotHere
from plumbline.errors import PlumblineError
from plumbline.model import registry
from plumbline.mpi import environments
from plumbline.settings import ROOT

#: Seconds after which the memory hog begins anew, and bytes of a copy: the time that it takes is short beside that.
_PERIOD, _COPY = 0.1, 2**22

#: Copies what is more than any last-level cache, for a part of each period.  Arguments: that part, a CPU, a file to leave once it runs.
_HOG = f'''\
import os, sys, time
import numpy
part, cpu, mark = sys.argv[1:]
os.sched_setaffinity(0, {{int(cpu)}})
chunks = {of_machines.HOG_BYTES // 2 // _COPY}
a, b = numpy.zeros((chunks, {_COPY // 8})), numpy.ones((chunks, {_COPY // 8}))
open(mark, 'w').close()
number = 0
while True:
    until = time.monotonic() + float(part) * {_PERIOD}
    while time.monotonic() < until:
        numpy.copyto(a[number], b[number])
        number = (number + 1) % chunks
    time.sleep((1 - float(part)) * {_PERIOD})
'''

#: Slurm runs both on the node, before and after each job.  The hog has a session of its own before the first one ends: Slurm kills
#: what a prolog leaves in its group.
_PROLOG = '''\
part=$(cat {folder}/"$SLURMD_NODENAME" 2> /dev/null) || exit 0
setsid {python} {folder}/hog.py "$part" {cpu} {folder}/"$SLURMD_NODENAME".ran < /dev/null > {folder}/hog.out 2>&1 &
echo $! > {folder}/"$SLURMD_NODENAME".pid
for wait in $(seq 100); do [ -e {folder}/"$SLURMD_NODENAME".ran ] && exit 0; sleep 0.1; done
exit 0'''
_EPILOG = '''\
[ -e {folder}/"$SLURMD_NODENAME".pid ] && kill -9 "$(cat {folder}/"$SLURMD_NODENAME".pid)"
rm -f {folder}/"$SLURMD_NODENAME".pid
exit 0'''

#: Stands in front of PATH, on all nodes, for the command that starts MPI programs.
_LAUNCHER = '''\
latency=$(cat {folder}/"$(uname -n)" 2> /dev/null) || exec {launcher} "$@"
touch {folder}/"$(uname -n)".ran
exec env LD_PRELOAD={library} PLUMBLINE_LATENCY_US="$latency" {launcher} "$@"'''

#: Runs a command, and all that it starts, without huge pages.
_BASE_PAGES = 'import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) and sys.exit(1); os.execvp(sys.argv[1], sys.argv[1:])'


def prepare(folder, cpu):
    '''What must be there before the cluster starts: lines for ``slurm.conf``.

    :arg folder: for the scripts; :arg cpu: that the hog runs on.
    '''
    told = {'folder': shlex.quote(str(folder / 'hog')), 'python': shlex.quote(sys.executable), 'cpu': cpu}
    stand_ins(folder / 'hog', {'prolog': _PROLOG.format(**told), 'epilog': _EPILOG.format(**told)})
    (folder / 'hog/hog.py').write_text(_HOG)
    return f'Prolog={folder}/hog/prolog\nEpilog={folder}/hog/epilog\n'


@contextlib.contextmanager
def _on(folder, node, text, what):
    '''A file that says what a node suffers from; that it did is proved.

    :raises PlumblineError: if nothing of it has run.
    '''
    path, ran = folder / node, folder / f'{node}.ran'
    ran.unlink(missing_ok=True)
    path.write_text(text)
    try:
        yield
    finally:
        path.unlink()
    if not ran.exists():
        raise PlumblineError(f'{what} was to run on {node} and did not: see {folder}')


@contextlib.contextmanager
def _undone(change, node, *how):
    '''A change of a node that is undone by the same without how.'''
    change(node, *how)
    try:
        yield
    finally:
        change(node)


def quota(place, node, share):
    return _undone(place.cluster.grant, node, share)


def hog(place, node, part):
    return _on(place.folder / 'hog', node, str(part), 'the memory hog')


def base_pages(place, node):
    with of_machines.base_pages(place.folder):      # raises NotHere
        return _undone(place.cluster.restart_node, node, [sys.executable, '-c', _BASE_PAGES])


def messages(place, node, latency):
    environment, _ = of_machines.mpi()
    if not environment:
        raise NotHere('there is no MPI')
    if len(of_machines.our_cpus()) < 2:
        raise NotHere('one CPU: a node of one rank sends no messages')
    folder = place.folder / 'messages'
    _stand_in(place, folder, environment)
    return _on(folder, node, str(latency), 'the latency library')


def _stand_in(place, folder, environment):
    launcher, built = environment['extras']['launcher'][0], folder / 'build'
    library = built / 'lib/libplumbline_latency.so'
    folder.mkdir(parents=True, exist_ok=True)
    if not library.exists():
        variables = environments.expanded(environment['env_vars'], os.environ)
        output_of(['cmake', '-S', ROOT / 'src/interpose', '-B', built, f"-DCMAKE_C_COMPILER={environment['cc']}", '-DPLUMBLINE_INTERPOSE=latency'],
                  env=variables)
        output_of(['cmake', '--build', built, '--parallel'], env=variables)
    stand_ins(place.commands, {os.path.basename(launcher): _LAUNCHER.format(
        folder=shlex.quote(str(folder)), launcher=shlex.quote(launcher), library=shlex.quote(str(library)))})


_SLOWS = (*ALL, registry.LATENCY)

#: Name -> :class:`Fault`.
FAULTS = {
    **{f'quota{100 * share:.0f}': Fault('CPU quota', _SLOWS, ('quota',), functools.partial(quota, share=share), f'{100 * share:.0f} %')
       for share in (0.95, 0.9, 0.8, 0.6, 0.4)},
    **{f'hog{100 * part:.0f}': Fault('memory hog on the last core', _SLOWS, ('noisy_neighbour',), functools.partial(hog, part=part),
                                     f'{100 * part:.0f} % of the time') for part in (0.1, 0.4, 1.0)},
    'pages': Fault('huge pages off', (registry.LATENCY, *MEMORY), ('no_huge_pages',), base_pages, '-'),
    **{f'messages{latency:g}us': Fault('latency of messages', (registry.MESSAGES_SHM,), (), functools.partial(messages, latency=latency),
                                       f'{latency:g} us more') for latency in (0.2, 2)},
}

'''``python tests/cluster``: the virtual cluster in the foreground, for people who want to try it.'''

import shlex
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from cluster import Cluster
from plumbline.errors import PlumblineError


def _ask_to_end(*_):
    raise KeyboardInterrupt


def main(folder: Annotated[Path | None, typer.Argument(help='for its files, which stay there; default: a temporary one that is removed')] = None,
         nodes: Annotated[int, typer.Option(help='how many', min=1, max=99)] = 4,
         slow: Annotated[list[str] | None, typer.Option(help='a node, such as n3, that gets 60 % of the time of its CPUs')] = None,
         database: Annotated[bool, typer.Option('--database', help='with slurmdbd and MariaDB, for sacct')] = False):
    '''A Slurm cluster of virtual nodes on this host, until Ctrl-C.'''
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ask_to_end)
    with tempfile.TemporaryDirectory(prefix='plumbline-cluster-') as temporary:
        cluster = Cluster(folder or temporary, nodes, quotas=dict.fromkeys(slow or (), 0.6), database=database)
        try:
            with cluster:
                print(_how_to_use(cluster), flush=True)
                signal.pause()
        except KeyboardInterrupt:
            print('the cluster has ended')


def _how_to_use(cluster):
    slow = ''.join(f", {node} at {100 * quota:.0f} % of its CPUs' time" for node, quota in cluster.quotas.items())
    variables = '\n'.join(f'    export {name}={shlex.quote(value)}' for name, value in cluster.variables.items())
    return f'''\
A Slurm cluster of {len(cluster.nodes)} nodes{slow}, all in partition "all"; Ctrl-C ends it.  In another terminal:
{variables}
    sinfo
    srun -N{len(cluster.nodes)} hostname
    . .venv/bin/activate
    reframe -C config/sites/virtual.py -c checks -R -l
    plumbline sweep -C config/sites/virtual.py --partition virtual:all -c checks --mode node
Logs: {cluster.folder}'''


if __name__ == '__main__':
    try:
        typer.run(main)
    except PlumblineError as error:
        print(f'plumbline: {error}', file=sys.stderr)
        sys.exit(2)

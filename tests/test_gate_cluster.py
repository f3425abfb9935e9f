'''The gate in a real Slurm: the examples of ``config/slurm`` drain the node that is not as expected, with the reason, and no other.'''

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import rfm
from hung import hung
from plumbline.gate import pack
from virtual import cluster_in, needs_cluster
from waiting import until

EXAMPLES = rfm.REPOSITORY / 'config/slurm'
PYTHON = next(path for path in ('/usr/bin/python3', sys.executable) if os.path.exists(path))


class Site:
    '''A cluster whose nodes must have a file system at ``home``: each has its own view of what is mounted.

    :arg example: a shipped script, which is installed with the lines of ``slurm.conf`` that it names; but it looks every 2 s.
    :attr gate: where the gate will be; until then the example finds none.
    '''

    def __init__(self, folder, example):
        needs_cluster()
        self.folder, self.home, self.gate = folder, folder / 'home', folder / 'gate'
        self.home.mkdir(parents=True)
        text = (EXAMPLES / example).read_text().replace('/usr/local/sbin/plumbline-gate', str(self.gate))
        lines = re.findall(r'^#   (\w+=\S+)$', text, re.M)
        path = folder / example
        # slurmd does not hand on where this cluster's configuration is.
        path.write_text(text.replace('export PATH=', f'export SLURM_CONF={folder}/cluster/slurm.conf PATH=', 1))
        path.chmod(0o755)
        self.cluster = cluster_in(folder / 'cluster', nodes=3, extra=re.sub('/usr/local/sbin/.*', str(path), '\n'.join(lines)).replace('=300', '=2'))

    def write_gate(self):
        expectations = {f'mount.{self.home}.type': {'one_of': ['tmpfs', 'fuse'], 'severity': 'drain'},
                        f'mount.{self.home}.answers': {'to': 2, 'severity': 'drain'}}
        pack.write(self.gate, [{'schema': 1, 'kind': 'node', 'of': {'system.architecture': os.uname().machine}, 'expectations': expectations}], 20, PYTHON)

    def inside(self, node, *command):
        '''A command before which stands what lets it see what this node has mounted.'''
        unshare = self.cluster._processes[node].pid
        slurmd = Path(f'/proc/{unshare}/task/{unshare}/children').read_text().split()[0]
        return ['nsenter', '--mount', '--target', slurmd, *map(str, command)]

    def mount(self, node):
        subprocess.run(self.inside(node, 'mount', '-t', 'tmpfs', 'none', self.home), check=True, timeout=60)

    def unmount(self, node):
        # While its gate looks at it, it is busy.
        until(lambda: subprocess.run(self.inside(node, 'umount', self.home), timeout=60).returncode == 0, f'{self.home} of {node} is unmounted')

    def reason(self, node):
        return self.cluster.must(['sinfo', '-h', '-N', '-n', node, '-o', '%E']).strip()

    def drained(self, node):
        return self.cluster.states().get(node) in ('drained', 'draining') and self.reason(node)


@contextmanager
def site_in(folder, example):
    site = Site(folder, example)
    with site.cluster:
        for node in site.cluster.nodes:
            site.mount(node)
        yield site


def test_the_health_check_drains_the_node_that_differs_with_the_reason(tmp_path):
    with site_in(tmp_path, 'healthcheck.sh') as site:
        site.cluster.must(['scontrol', 'update', 'node=n3', 'state=drain', 'reason=mine'])
        site.unmount('n3')
        site.write_gate()
        site.unmount('n2')
        gone = f'plumbline gate: drain: mount.{site.home}.type: not there, expected tmpfs or fuse'
        assert until(lambda: site.drained('n2'), 'n2 is drained') == gone
        assert site.cluster.states()['n1'] == 'idle'
        assert site.cluster.must(['srun', '-w', 'n1', 'hostname']) == 'n1\n'
        with hung(site.home, *site.inside('n1')):
            assert until(lambda: site.drained('n1'), 'n1 is drained') == f'plumbline gate: drain: mount {site.home}: no answer in 5 s'
        assert site.reason('n3') == 'mine'      # it was looked at, too, by now: it keeps the reason that somebody gave


def test_the_prolog_keeps_jobs_off_a_node_and_the_epilog_drains_one_that_a_job_broke(tmp_path):
    with site_in(tmp_path, 'prolog.sh') as site:
        site.write_gate()
        site.unmount('n2')
        output = tmp_path / 'output'
        site.cluster.must(['sbatch', '-w', 'n2', '-o', output, '--wrap', 'echo started'])
        assert 'rolog' in until(lambda: site.drained('n2'), 'n2 is drained') and 'started' not in (output.read_text() if output.exists() else '')
        assert site.cluster.must(['srun', '-w', 'n1', 'hostname']) == 'n1\n'
        until(lambda: site.cluster.states()['n1'] == 'idle', 'n1 is idle after its epilog')
        assert site.cluster.run(['srun', '-w', 'n3', 'umount', site.home]).returncode == 0
        assert 'pilog' in until(lambda: site.drained('n3'), 'n3 is drained') and site.cluster.states()['n1'] == 'idle'

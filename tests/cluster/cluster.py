'''A real Slurm cluster on this host: munged, slurmctld and one slurmd for each node.

::

    with Cluster(folder, nodes=4) as cluster:
        cluster.run(['sinfo'])

Every node has a host name, a port and a view of ``/etc/hosts`` of its own (namespaces, which end with its processes), so
programs see several hosts.  They share the host's CPUs, memory and loopback.  All files are below the folder; nothing else
is changed, and :meth:`Cluster.stop` leaves no process behind.  Several clusters may run at once.

What it needs are Debian's packages slurmctld, slurmd, slurm-client and munge, and root.
'''

import contextlib
import getpass
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import database as accounting
from plumbline.errors import PlumblineError

COMMANDS = ('slurmctld', 'slurmd', 'munged', 'sinfo', 'sbatch', 'squeue', 'unshare', 'setpriv')

_SYSTEM = ':/usr/sbin:/sbin'      # often not in the PATH of ordinary users
_CPU_CGROUPS = Path('/sys/fs/cgroup/cpu')       # version 1
_UNIFIED = Path('/sys/fs/cgroup')               # version 2

_CONF = '''\
ClusterName=plumb
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=200000,bf_interval=2
SlurmdTimeout=20
KillWait=2
MailProg=/bin/true
{extra}
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
'''


def missing(database=False):
    '''Why no cluster can be started here, or none with accounting; empty if one can.'''
    needed = COMMANDS + (accounting.COMMANDS if database else ())
    lacking = [command for command in needed if not shutil.which(command, path=os.environ['PATH'] + _SYSTEM)]
    if lacking:
        return f"{', '.join(lacking)} not found"
    return '' if os.geteuid() == 0 else 'only root can give the nodes names of their own'


def free_ports(count):
    '''Ports that nobody uses, and that the system gives to nobody who asks for any: other clusters begin and end meanwhile.'''
    first = int(Path('/proc/sys/net/ipv4/ip_local_port_range').read_text().split()[0])
    free = []
    for port in random.sample(range(10000, first) if first > 15000 else range(10000, 65536), 2000):
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(('', port))
            free.append(port)
        if len(free) == count:
            return free
    raise PlumblineError(f'there are no {count} free ports for a cluster')


def shared_out(cpus, nodes):
    '''CPUs for each node: a share of its own, or, where there are too few, one that several have.'''
    share = max(1, len(cpus) // nodes)
    return [[cpus[(i * share + j) % len(cpus)] for j in range(share)] for i in range(nodes)]


class Cluster:
    '''A cluster whose nodes are ``n1``, ``n2``, …, all in partition ``all``.

    :arg folder: made if it is not there; holds all files, also after the end.
    :arg nodes: how many.
    :arg cpus: the CPUs that each node is bound to, a list of numbers for each; by default the nodes share them out.
    :arg quotas: node -> share of the time of its CPUs that is its cgroup's quota, e.g. ``{'n3': 0.6}``.
    :arg favoured: the nodes' processes come before all else that this host runs, as if it were theirs (a cgroup for each).
    :arg hardware: what Slurm takes each node for; by default its CPUs.
    :arg extra: further lines of ``slurm.conf``, e.g. partitions.
    :arg absent: nodes that are in ``slurm.conf`` but have no slurmd.
    :arg database: also start slurmdbd and MariaDB, for ``sacct``.
    '''

    def __init__(self, folder, nodes=4, cpus=None, quotas=None, favoured=False, hardware='', extra='', absent=(), database=False):
        self.folder = Path(folder).absolute()
        self.nodes = [f'n{i + 1}' for i in range(nodes)]
        self.cpus = dict(zip(self.nodes, cpus or shared_out(sorted(os.sched_getaffinity(0)), nodes)))
        self.hardware = hardware
        self.quotas, self.favoured, self.extra, self.absent, self.database = quotas or {}, favoured, extra, set(absent), database
        #: Variables that Slurm's commands need.  UCX (of MPICH) would take the nodes for one host, by its boot id, and look for the
        #: peer's process number, which is another one in another node's namespace.
        self.variables = {'SLURM_CONF': str(self.folder / 'slurm.conf'), 'UCX_TLS': '^sm'}
        self._processes, self._cgroups = {}, []

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # --- start and stop -----------------------------------------------------------------------------------

    def start(self):
        why = missing(self.database)
        if why:
            raise PlumblineError(f'no virtual cluster: {why}')
        unknown = sorted((set(self.quotas) | self.absent) - set(self.nodes))
        if unknown:
            raise PlumblineError(f"no virtual cluster: {', '.join(unknown)} is none of its nodes {self.nodes[0]} .. {self.nodes[-1]}")
        # Munge refuses a folder that others may write to, and sockets have short paths.
        for part in ('munge', 'state'):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        (self.folder / 'munge').chmod(0o755)
        self.port, database_port, *ports = free_ports(2 + len(self.nodes))
        self.ports = dict(zip(self.nodes, ports))
        if self.database:
            self.extra += accounting.SLURM_CONF.format(port=database_port, folder=self.folder)
        (self.folder / 'slurm.conf').write_text(self._configuration())
        (self.folder / 'hosts').write_text(Path('/etc/hosts').read_text() + ''.join(
            f'{self._address(node)} {node}\n' for node in self.nodes))
        try:
            self._start_munge()
            if self.database:
                accounting.start(self, database_port)
            self.start_controller()
            for node in self.nodes:
                if node not in self.absent:
                    self.start_node(node)
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        '''End all daemons and the jobs' processes.'''
        for name in [*reversed(self._processes)]:
            self._end(name)
        for cgroup in self._cgroups:
            with contextlib.suppress(OSError):
                cgroup.rmdir()
        self._cgroups = []

    def start_controller(self):
        self.spawn('slurmctld', ['slurmctld', '-D', '-i'])

    def stop_controller(self):
        self._end('slurmctld')

    def start_node(self, node, before=()):
        '''
        :arg before: words in front of slurmd's command: what they do to a process, they do to all that runs on the node.
        '''
        (self.folder / f'spool-{node}').mkdir(exist_ok=True)
        cpus = ','.join(map(str, self.cpus[node]))
        slurmd = shlex.join([*map(str, before), 'slurmd', '-D', '-N', node])
        inside = f'mount --bind {self.folder}/hosts /etc/hosts && hostname {node} && exec {slurmd}'
        command = ['taskset', '-c', cpus, 'unshare', '--mount', '--uts', '--pid', '--fork', '--kill-child', '--mount-proc',
                   'sh', '-c', inside]
        if node in self.quotas or self.favoured:
            tasks = self._cgroup(node)
            command = ['sh', '-c', f'echo $$ > {tasks} && exec "$@"', 'sh', *command]
        self.spawn(node, command)

    def stop_node(self, node):
        self._end(node)

    def restart_node(self, node, before=()):
        '''The node's slurmd anew, as :meth:`start_node`; what runs there ends.'''
        def listens():
            with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', self.ports[node]), 1):
                return True
        self.stop_node(node)
        self.start_node(node, before)
        self.until(listens, 120, f'{node} does not start again')
        self.wait()

    def grant(self, node, share=None):
        '''Change the share of the time of its CPUs that a running node gets; None: all.  The node must have a cgroup.'''
        self.quotas.pop(node, None)
        self.quotas |= {} if share is None else {node: share}
        self._cgroup(node)

    def spawn(self, name, command, **variables):
        '''Start a daemon that ends with this process.'''
        with open(self.folder / f'{name}.out', 'a') as output:
            self._processes[name] = subprocess.Popen(
                # Without this process, whatever ended it, there is no cluster.
                ['setpriv', '--pdeathsig', 'KILL', *command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env={**self._environment(), **variables}, start_new_session=True)

    def _end(self, name):
        process = self._processes.pop(name, None)
        if process is None:
            return
        if name in self.nodes:
            self._kill_namespace(process.pid)
        else:
            process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _kill_namespace(self, unshare):
        '''End the first process of a node's namespace, which takes all others along; unshare then ends by itself.'''
        children = Path(f'/proc/{unshare}/task/{unshare}/children')
        with contextlib.suppress(OSError):      # it has ended
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGKILL)

    def _start_munge(self):
        key = self.folder / 'munge/key'
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.spawn('munged', ['munged', '--foreground', '--force', f'--key-file={key}', f'--socket={self.folder}/munge/socket',
                              f'--pid-file={self.folder}/munge/pid', f'--log-file={self.folder}/munge/log',
                              f'--seed-file={self.folder}/munge/seed'])
        self.until(lambda: (self.folder / 'munge/socket').exists(), 60, 'munged does not start')

    def _cgroup(self, node):
        '''The file to write a process number to, so that it gets what the node gets.'''
        version1 = (_CPU_CGROUPS / 'cpu.cfs_quota_us').exists() or (_CPU_CGROUPS / 'tasks').exists()
        parent = _CPU_CGROUPS if version1 else _UNIFIED
        for old in parent.glob('plumbline-*-*-*'):      # of a process that was killed
            if not Path('/proc', old.name.split('-')[1]).exists():
                with contextlib.suppress(OSError):      # its jobs have not ended yet
                    old.rmdir()
        folder = parent / f'plumbline-{os.getpid()}-{self.port}-{node}'
        folder.mkdir(exist_ok=True)
        if folder not in self._cgroups:
            self._cgroups.append(folder)
        quota = round(self.quotas[node] * len(self.cpus[node]) * 100000) if node in self.quotas else None
        if version1:
            files = {'cpu.cfs_period_us': 100000, 'cpu.cfs_quota_us': quota or -1, 'cpu.shares': 2**18 if self.favoured else 1024}
        else:
            files = {'cpu.max': f"{quota or 'max'} 100000", 'cpu.weight': 10000 if self.favoured else 100}
        for name, value in files.items():
            (folder / name).write_text(str(value))
        return folder / ('tasks' if version1 else 'cgroup.procs')

    def _address(self, node):
        return f'127.0.1.{self.nodes.index(node) + 1}'

    def _configuration(self):
        memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 2**20
        nodes = '\n'.join(
            f'NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={self.ports[node]} {self.hardware or f"CPUs={len(self.cpus[node])}"} '
            f'RealMemory={memory} State=UNKNOWN' for node in self.nodes)
        return _CONF.format(folder=self.folder, port=self.port, user=getpass.getuser(), nodes=nodes, extra=self.extra)

    # --- use ----------------------------------------------------------------------------------------------

    def _environment(self):
        outside = {name: value for name, value in os.environ.items() if not name.startswith(('SLURM', 'SBATCH', 'SQUEUE'))}
        return {**outside, **self.variables, 'PATH': os.environ['PATH'] + _SYSTEM}

    def run(self, command, timeout=120, **more):
        '''A command with the cluster's variables; :class:`subprocess.CompletedProcess` with text.'''
        return subprocess.run(list(map(str, command)), env=self._environment(), text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, **more)

    def must(self, command):
        '''The same for a command that has to end well; its standard output.'''
        done = self.run(command)
        if done.returncode:
            raise PlumblineError(f"{' '.join(map(str, command))} failed: {(done.stdout + done.stderr).strip()[-500:]}")
        return done.stdout

    def states(self):
        '''Node -> its state as sinfo says it, e.g. ``idle``; empty while the controller does not answer.'''
        done = self.run(['sinfo', '-N', '-h', '-o', '%N %T', '-p', 'all'])
        return dict(line.split() for line in done.stdout.splitlines()) if done.returncode == 0 else {}

    def wait(self, seconds=120):
        '''Until all nodes that have a slurmd are idle.'''
        present = [node for node in self.nodes if node in self._processes]
        self.until(lambda: all(self.states().get(node) == 'idle' for node in present), seconds, 'the nodes do not become idle')

    def until(self, done, seconds, complaint):
        '''Wait until a function says true; an error if it takes longer, or if a daemon has ended.'''
        end = time.monotonic() + seconds
        while not done():
            dead = [name for name, process in self._processes.items() if process.poll() is not None]
            if dead or time.monotonic() > end:
                tails = {name: (self.folder / f'{name}.out').read_text()[-500:] for name in dead or self._processes}
                raise PlumblineError(f"{complaint}{': ended: ' + ', '.join(dead) if dead else ''}; see {self.folder}: {tails}")
            time.sleep(0.2)

'''Accounting for the virtual cluster: slurmdbd, and MariaDB with data, socket and no port of its own.

What it needs besides are Debian's packages slurmdbd and mariadb-server.
'''

import getpass

COMMANDS = ('slurmdbd', 'mariadbd', 'mariadb-install-db', 'sacctmgr', 'sacct')

#: The data end with the cluster: nothing is written through to the disk.
_MARIADB = ['--no-defaults', '--user={user}', '--datadir={folder}/database', '--innodb-log-file-size=4M', '--innodb-buffer-pool-size=16M',
            '--debug-no-sync', '--innodb-flush-method=nosync']

_CONF = '''\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StorageLoc=accounting
'''

#: What ``slurm.conf`` says of it.
SLURM_CONF = '''\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge/socket
JobAcctGatherType=jobacct_gather/none
'''


def start(cluster, port):
    '''Start both daemons and register the cluster; account and user ``root`` slurmdbd makes by itself.'''
    folder, user = cluster.folder, getpass.getuser()
    options = [option.format(user=user, folder=folder) for option in _MARIADB]
    cluster.must(['mariadb-install-db', *options, '--skip-test-db', '--auth-root-authentication-method=socket'])
    socket = folder / 'mariadb.socket'
    cluster.spawn('mariadbd', ['mariadbd', *options, '--skip-networking', f'--socket={socket}', f'--pid-file={folder}/mariadbd.pid'])
    cluster.until(socket.exists, 120, 'MariaDB does not start')
    conf = folder / 'slurmdbd.conf'
    conf.write_text(_CONF.format(port=port, user=user, folder=folder))
    conf.chmod(0o600)           # slurmdbd insists
    # MariaDB's client library takes its socket from this variable.
    cluster.spawn('slurmdbd', ['slurmdbd', '-D'], MYSQL_UNIX_PORT=str(socket))
    cluster.until(lambda: cluster.run(['sacctmgr', '-n', 'list', 'cluster']).returncode == 0, 120, 'slurmdbd does not answer')
    cluster.must(['sacctmgr', '-i', 'add', 'cluster', 'plumb'])

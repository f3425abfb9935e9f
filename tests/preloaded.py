'''Commands in Python start in a tenth of the time: one process has loaded what is others', and forks for each of them.

Nothing of ours is loaded before the fork: it may look at the environment.  What Python itself or a library asks of the environment when it
starts is that of the tests; a command with another one of these is started anew (:func:`suits`).
'''

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Variables that count when Python or a library starts.
_AT_START = ('PYTHON', 'LC_', 'LANG', 'TZ', 'OMP_', 'OPENBLAS_', 'MKL_', 'POLARS_', 'RAYON_', 'LD_', 'MALLOC_', 'COVERAGE_')

_LIBRARIES = ('archspec.cpu', 'attr', 'jinja2', 'jsonschema', 'lxml.etree', 'numpy', 'plotly.graph_objects', 'reframe.frontend.cli', 'requests',
              'rich.console', 'rich.table', 'scipy.special', 'typer', 'yaml', 'zipfile', 'ClusterShell.NodeSet')


def _starting(environment):
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


def suits(environment):
    '''Whether a command with these variables may come from the fork.'''
    return _starting(environment) == _starting(os.environ)


class Preloaded:
    '''The process that forks; it ends with the one that made this.'''

    def __init__(self):
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, cwd=Path(__file__).parent)

    def run(self, module, arguments, cwd, environment, timeout):
        '''``main()`` of a module.

        :returns: exit code, standard output, standard error.
        :raises subprocess.TimeoutExpired: after so many seconds; it is killed.
        '''
        os.umask(umask := os.umask(0))
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with mine, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            with its:
                socket.send_fds(self._ours, [b'.'], [out.fileno(), errors.fileno(), its.fileno()])
            mine.sendall(json.dumps([module, list(arguments), str(cwd), environment, sorted(os.sched_getaffinity(0)), umask]).encode())
            mine.shutdown(socket.SHUT_WR)
            pid = int.from_bytes(_read(mine, 4, None), 'little')
            try:
                code = int.from_bytes(_read(mine, 4, timeout), 'little', signed=True)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
                raise subprocess.TimeoutExpired([module, *arguments], timeout) from None
            for file in (out, errors):
                file.seek(0)
            return code, out.read().decode(), errors.read().decode()


def _read(connection, size, timeout):
    connection.settimeout(timeout)
    got = b''
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            raise RuntimeError('the process that forks has ended')
        got += more
    return got


def _serve(connection):
    '''Fork for each request, until nobody asks any more; returns in the child that is to run the command.'''
    while True:
        word, fds, _, _ = socket.recv_fds(connection, 1, 3)
        if not word:
            os._exit(0)
        if os.fork():
            for fd in fds:
                os.close(fd)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            continue
        connection.close()
        out, errors, answer = fds
        child = os.fork()
        if child:       # waits, and says how it ended
            os.write(answer, child.to_bytes(4, 'little'))
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            with contextlib.suppress(BrokenPipeError):
                os.write(answer, code.to_bytes(4, 'little', signed=True))
            os._exit(0)
        os.dup2(out, 1)
        os.dup2(errors, 2)
        with open(answer, 'rb') as file:
            request = json.load(file)
        os.close(out)
        os.close(errors)
        return request


def main():
    import gc
    import importlib
    for library in _LIBRARIES:
        importlib.import_module(library)
    gc.freeze()
    module, arguments, cwd, environment, cpus, umask = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.sched_setaffinity(0, cpus)
    os.umask(umask)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent) if os.sep in arguments[0] else ''
    return importlib.import_module(module).main()


if __name__ == '__main__':
    sys.exit(main())

'''Commands in Python start in a tenth of the time: one process has loaded what is others', and forks for each of them.

Of ours nothing is kept that looks at the environment when it is loaded, by way of ``plumbline.settings``.  What Python itself or a library
asks of the environment when it starts is that of the tests; a command with another one of these is started anew (:func:`suits`).
'''

import atexit
import contextlib
import gc
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from unittest import mock

#: Variables that count when Python or a library starts.
_AT_START = ('PYTHON', 'LC_', 'LANG', 'TZ', 'OMP_', 'OPENBLAS_', 'MKL_', 'POLARS_', 'RAYON_', 'LD_', 'MALLOC_', 'COVERAGE_')

_LOADED = ('archspec.cpu', 'attr', 'jinja2', 'jsonschema', 'lxml.etree', 'numpy', 'plotly.graph_objects', 'reframe.frontend.cli',
           'requests', 'rich.console', 'rich.table', 'scipy.special', 'typer._adapters', 'yaml', 'zipfile', 'ClusterShell.NodeSet',
           *(f'plumbline.{name}' for name in (
               'analysis.history', 'cli.gate', 'cli.nodes', 'likwid.bench_output', 'likwid.pin', 'model.spatter', 'report.acceptance',
               'report.history_page', 'report.notify', 'report.page', 'report.telemetry', 'report.upgrade_page', 'store.perflogs', 'sweep.causes')))


def _starting(environment):
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


def suits(environment):
    '''Whether a command with these variables may come from the fork.'''
    return _starting(environment) == _starting(os.environ)


class Preloaded:
    '''The process that forks; it ends with the one that made this.

    :arg umask: of it and of all commands: what is loaded may ask for it.
    '''

    def __init__(self, umask):
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, cwd=Path(__file__).parent, umask=umask)

    def run(self, module, arguments, cwd, environment, timeout):
        '''``main()`` of a module.

        :returns: exit code, standard output, standard error.
        :raises subprocess.TimeoutExpired: after so many seconds; it is killed.
        '''
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with mine, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            with its:
                socket.send_fds(self._ours, [b'.'], [out.fileno(), errors.fileno(), its.fileno()])
            mine.sendall(json.dumps([module, list(arguments), str(cwd), environment, sorted(os.sched_getaffinity(0))]).encode())
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


def _load():
    '''All that is loaded before the fork; what has anything of ``plumbline.settings`` is forgotten: each command loads its own.'''
    import logging  # noqa: F401 - which is to end as always
    with mock.patch.object(atexit, 'register'):     # Polars would wait for a thread that no fork has
        importlib.import_module('polars')
    os.environ['PLUMBLINE_HOME'] = nowhere = '/nowhere'
    for name in _LOADED:
        importlib.import_module(name)
    looking, ours = {'plumbline.settings'}, {name: module for name, module in sys.modules.items() if name.startswith('plumbline.')}

    def looks(name, attribute, value):
        of = {getattr(value, '__module__', None), getattr(value, '__name__', None)}
        return f'{name}.{attribute}' not in ours and (of & looking or (isinstance(value, (str, Path)) and nowhere in str(value)))
    while more := {name for name in ours.keys() - looking if any(looks(name, *pair) for pair in vars(ours[name]).items())}:
        looking |= more
    for name in looking & ours.keys():
        package, _, last = name.rpartition('.')
        delattr(ours.get(package) or sys.modules[package], last)
        del sys.modules[name]
    ours['plumbline.analysis.diagnosis'].rules()        # half of what a report takes is to read these, and to make its page
    document = ours['plumbline.report.document']
    document._plotly()
    for template in document._environment().list_templates(extensions=['j2']):
        document._environment().get_template(template)
    gc.freeze()


def main():
    _load()
    module, arguments, cwd, environment, cpus = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.sched_setaffinity(0, cpus)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent) if os.sep in arguments[0] else ''
    try:
        code = importlib.import_module(module).main()
    except SystemExit as end:
        code = end.code
    if isinstance(code, str):
        print(code, file=sys.stderr)
    # As Python ends, but for all that has been loaded: taking it apart would copy the memory that is shared so far.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == '__main__':
    main()

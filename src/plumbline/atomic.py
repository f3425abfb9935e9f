'''Files that are there as a whole or not at all: a reader never sees half of one, and a full disk leaves the one before.'''

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from plumbline.errors import PlumblineError

_UMASK = os.umask(0)
os.umask(_UMASK)

#: Of results that root writes, which may hold what only root can read of a machine.
RESULT = 0o640 & ~_UMASK if os.geteuid() == 0 else None


#: A disk with less room than this is full, bytes.
_ROOM = 2**16


def no_room(folder: str | Path, said: str = '') -> str:
    '''What to say of a folder whose disk is full, or of which something said that; empty where it is not.'''
    full = shutil.disk_usage(folder).free < _ROOM or re.search('No space left on device|Disk quota exceeded', said)
    return f'no space left for {folder}: make room' if full else ''


@contextlib.contextmanager
def alone(path: str | Path, busy: str = '') -> Iterator[None]:
    '''Hold the lock of a path, after whoever else holds it.  Where there is none to be had (Lustre mounted without ``-o flock``, a file of
    somebody else's), go on without.

    :arg busy: what to say of somebody else, instead of waiting.
    :raises PlumblineError: that.
    '''
    with contextlib.ExitStack() as held:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(held.enter_context(open(path, 'ab')), fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise PlumblineError(busy) from None
        except OSError:
            pass
        yield


def write(path: str | Path, data: str | bytes, mode: int | None = None, check: Callable[[str], object] | None = None) -> Path:
    '''Write a file, first under a name that nobody can have foreseen.

    :arg data: text or bytes.
    :arg mode: its permissions; as any new file where none are given.  They are set by descriptor: a link that somebody puts in its
        place is not followed.
    :arg check: function (path of the temporary file); what it raises leaves the file as it was.
    :returns: the path.
    :raises OSError: if it cannot be written; if there is something in its place that is no file (``/dev/stdout``).
    '''
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, 'it is no file, and would be replaced by one: name another', str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with os.fdopen(handle, 'wb') as file:
            os.fchmod(file.fileno(), 0o666 & ~_UMASK if mode is None else mode)
            file.write(data.encode('utf-8') if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())     # a full disk may tell only now
        if check:
            check(new)
        os.replace(new, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
    return path

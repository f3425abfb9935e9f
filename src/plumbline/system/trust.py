'''Root runs nothing that somebody else can change: programs, configurations, scripts and the folders that they lie in.'''

import os
import pwd
import re
import stat
from pathlib import Path

from plumbline.errors import PlumblineError


def changed_by(path):
    '''Who but root can change a file or folder, by itself or by a folder that it lies in.

    :arg path: as it is given, and where its links lead: both are looked at.  What is not there yet is its folder's.
    :returns: a text; :obj:`None` for nobody.
    '''
    path = Path(path).absolute()
    parts = dict.fromkeys(part for whole in (path, Path(os.path.realpath(path))) for part in (*reversed(whole.parents), whole))
    return next(filter(None, (_of(part, part != path) for part in parts)), None)


def _of(part, above=False):
    '''The same of one file or folder alone; of a folder above, others may write beside what is root's, as in /tmp.'''
    try:
        status = os.lstat(part)
    except FileNotFoundError:
        return None
    if status.st_uid != 0:
        return f'{part} belongs to {user(status.st_uid)}'
    # With an access control list the group's bits are what it may give to anybody at most.
    others = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and (status.st_gid != 0 or _has_list(part)))
    kept = above and status.st_mode & stat.S_ISVTX
    return f'{part} can be written by others' if others and not kept and not stat.S_ISLNK(status.st_mode) else None


def _has_list(part):
    '''Whether a file has an access control list (POSIX; of NFS version 4 nothing is seen).'''
    try:
        return 'system.posix_acl_access' in os.listxattr(part, follow_symlinks=False)
    except OSError:         # of this file system none
        return False


def _within(folder):
    '''The same of all that a folder holds.'''
    # uv leaves a lock in its environments that anybody may hold; nothing runs it.
    parts = (os.path.join(place, name) for place, folders, files in os.walk(folder) for name in (*folders, *files) if name != '.lock')
    return next(filter(None, map(_of, parts)), None)


def refuse(*paths, whole=()):
    '''As root: one line about the first path that others can change.

    :arg whole: folders, all of what is in them.
    :raises PlumblineError: with it.
    '''
    if os.geteuid() != 0:
        return
    for path in (*paths, *whole):
        if why := changed_by(path) or (_within(path) if path in whole else None):
            raise PlumblineError(f'root runs nothing that others can change: {why}; give it to root alone (chown, chmod), or run this as its owner')


#: Variables that make programs and shells run what they name.
_RUN = ('LD_PRELOAD', 'LD_AUDIT', 'LD_LIBRARY_PATH', 'BASH_ENV', 'PYTHONPATH')


def refuse_environment():
    '''As root: one line about the first variable that makes jobs run what others can change, by whoever has called.

    :raises PlumblineError: with it.
    '''
    for name in _RUN:
        for entry in filter(None, re.split('[: ]', os.environ.get(name, ''))):
            try:
                refuse(entry)
            except PlumblineError as error:
                raise PlumblineError(f'{name}={os.environ[name]}: {error}; or unset {name}') from None


def refuse_run(*paths, code):
    '''Refuse what a run that begins later, or elsewhere, would take along: a relative entry of PATH, and as root what others can change
    of its PATH and variables, of these paths, and in the folders of its code.

    :raises PlumblineError: with the first of them.
    '''
    for entry in os.environ.get('PATH', '').split(':'):
        if not os.path.isabs(entry):
            raise PlumblineError(f"PATH has the relative entry '{entry}', and what is run starts elsewhere: call from a shell without it")
        refuse(entry)
    refuse_environment()
    refuse(*paths, whole=code)


def user(uid):
    '''The name of a user, or his number where he has none.'''
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f'uid {uid}'

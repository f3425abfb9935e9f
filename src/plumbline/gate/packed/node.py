'''What a node's files and commands are asked through: the root that they lie below, where commands are looked for, and what was asked for.'''

import glob
import os
import re
import shutil
import subprocess

from plumbline.gate.packed.reading import Fact, Missing

#: Where commands are looked for: not in the PATH of whoever starts the gate, which is root's in a prolog.
PATH = '/usr/sbin:/usr/bin:/sbin:/bin'


def natural(name):
    '''Key by which n2 is sorted before n10.'''
    return [int(part) if part.isdecimal() else part for part in re.split(r'(\d+)', name)]


class Node:
    '''A node.

    :attr root: its root, ``/`` but in tests; :attr path: where commands are.
    :attr packages, services, variables, mounts: names of those that are asked for.
    '''

    def __init__(self, root='/', path=PATH, packages=(), services=(), variables=(), mounts=()):
        self.root, self.path = root, path
        self.packages, self.services, self.variables, self.mounts = packages, services, variables, mounts

    def at(self, name):
        return os.path.join(self.root, name.lstrip('/'))

    def text(self, name):
        '''Contents of a file without white space around them; None where it cannot be read.'''
        try:
            with open(self.at(name), encoding='utf-8', errors='replace') as file:
                return file.read().strip()
        except OSError:
            return None

    def files(self, pattern):
        '''Names, from the root on, of files that there are, in the order of the numbers in them.'''
        return sorted(('/' + os.path.relpath(name, self.root) for name in glob.glob(self.at(pattern))), key=natural)

    def texts(self, pattern):
        '''Distinct contents of the files that there are, sorted.'''
        return sorted({text for text in map(self.text, self.files(pattern)) if text is not None})

    def numbers(self, pattern):
        '''Whole numbers that files hold.'''
        return [int(text) for text in map(self.text, self.files(pattern)) if text is not None and text.isdecimal()]

    def command(self, name):
        return shutil.which(name, path=self.path)

    def ask(self, prefix, *words, codes=(0,), seconds=20):
        '''(standard output of a command, None), or (None, :class:`Missing`) where it is not there or fails.'''
        path = self.command(words[0])
        if path is None:
            return None, Missing(prefix, f'{words[0]} is not there')
        try:
            done = subprocess.run([path, *words[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds,
                                  env={'PATH': self.path, 'LC_ALL': 'C'})
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, Missing(prefix, f'{words[0]}: {error}')
        out, said = (stream.decode('utf-8', 'replace').strip() for stream in (done.stdout, done.stderr))
        if done.returncode not in codes:
            return None, Missing(prefix, f"{words[0]}: {(said or out or f'exit code {done.returncode}').splitlines()[-1]}")
        return out, None


def known(name, value, source, why=None):
    '''A fact, or that it could not be read where its value is None.'''
    return Missing(name, why or f'{source} does not say') if value is None else Fact(name, value, source)


def of_file(node, name, path, unit=None):
    '''The fact that a file tells, as ``unit`` makes it of its text (None: of nothing); that it cannot be read, where it is not there.'''
    text = node.text(path)
    yield known(name, unit(text) if unit and text is not None else text, path, None if text is not None else f'{path} cannot be read')

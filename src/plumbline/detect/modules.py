'''Modules: compilers and MPIs that have to be loaded.

Those that a site calls by a name of a compiler or MPI are loaded, each in a process of its own and without a version, so that the site's default
counts; what appears in PATH says what it is.  ReFrame's own way to the module system is taken: what is found here is what ReFrame can use.
'''

import os
import shutil
import sys
from dataclasses import dataclass, field

from plumbline.detect.site_file import name_of
from plumbline.system.commands import NoAnswer, ask_json

#: What sites, Spack, EasyBuild and vendors call modules of compilers and MPIs, in small letters.
COMPILERS = ('gcc', 'gnu', 'llvm', 'clang', 'intel', 'intel-compilers', 'intel-oneapi-compilers', 'oneapi', 'icx',
             'nvhpc', 'nvhpc-hpcx', 'pgi', 'cce', 'aocc', 'acfl', 'prgenv-gnu', 'prgenv-cray', 'prgenv-intel',
             'prgenv-nvidia', 'prgenv-aocc', 'foss', 'gompi', 'iimpi')
MPIS = ('openmpi', 'mpich', 'impi', 'intelmpi', 'intel-mpi', 'intel-oneapi-mpi', 'mvapich', 'mvapich2', 'cray-mpich', 'hpcx', 'gnu-openmpi',
        'gnu-mpich')

_LOADED = ('DECIDE: this session has modules loaded ({}), and what is found in PATH may be theirs: detect again after '
           "`module purge`, or add them as 'modules' of the system")

#: Modules of a large tree, on a file system that is not in the cache.
_SECONDS = 120


@dataclass
class Modules:
    '''What there is.

    :attr kind: ReFrame's name of the module system; None where there is none that it can use.
    :attr remarks: what else there is to say.
    :attr environments: pairs: a dictionary of ReFrame's configuration, with ``modules``, and a remark.
    '''
    kind: str | None = None
    remarks: list[str] = field(default_factory=list)
    environments: list[tuple[dict, str]] = field(default_factory=list)


def _kind():
    '''(ReFrame's name of the module system that this session has, why there is none).'''
    if os.environ.get('LMOD_CMD'):
        return 'lmod', None
    if 'MODULEPATH' not in os.environ:
        return None, None
    if shutil.which('modulecmd'):
        return 'envmod', None
    return None, 'MODULEPATH is set, but ReFrame can use no modules: neither LMOD_CMD nor modulecmd is there'


def probe(kind, loaded=()):
    '''What :mod:`plumbline.detect.probe` says in a session with these modules loaded.'''
    return ask_json([sys.executable, '-I', '-m', 'plumbline.detect.probe', kind, *loaded], seconds=_SECONDS)


def wanted(available, names):
    '''The modules whose name, or a folder of it, is one of ``names``: without version, each once; Red Hat's has the processor's family at its end.'''
    found: dict[str, None] = {}
    family = f'-{os.uname().machine}'
    for module in available:
        parts = module.rstrip('/').split('/')
        for depth, part in enumerate(parts if parts[-1].endswith(family) else parts[:-1] or parts, 1):
            if part.lower().removesuffix(family) in names:
                found['/'.join(parts[:depth])] = None
    return list(found)


class _Search:
    '''The modules of one system, looked at one after the other.'''

    def __init__(self, kind):
        self.found = Modules(kind)
        self.kind, self.bare = kind, probe(kind)

    def load(self, *names):
        '''What these modules bring; None, and a remark, where they do not load.'''
        try:
            seen = probe(self.kind, names)
        except NoAnswer as error:
            seen = {'error': str(error)}
        if 'error' in seen:
            self.found.remarks.append(f"module {' '.join(names)} does not load: {seen['error']}")
            return None
        return seen

    def keep(self, environment, seen, name):
        '''Take an environment with the modules it needs; of two with one name the second gets a number.'''
        others = [module for module in seen['available'] if module.startswith(f'{name}/') and not module.endswith('/')
                  and module not in seen['loaded']]
        taken = [known['name'] for known, _ in self.found.environments]
        environment = {**environment, 'name': name_of(environment['name'], taken), 'modules': seen['loaded']}
        self.found.environments.append((environment, f"of {name} there are also {', '.join(others)}" if others else ''))

    def compilers(self):
        for name in wanted(self.bare['available'], COMPILERS):
            seen = self.load(name)
            if seen is None:
                continue
            new = [one for one in seen['compilers'] if seen['paths'][one['cc']] != self.bare['paths'].get(one['cc'])]
            for compiler in new:
                self.keep(compiler, seen, name)
                self.mpis(compiler, seen, [name])
            if not new:
                self.found.remarks.append(f'module {name} brings no compiler that data/toolchains.yaml knows')

    def mpis(self, compiler, before, modules):
        '''MPIs that come with these modules, or can be loaded after them.'''
        if modules:
            self.keep_mpi(compiler, before, self.bare, modules)
        for name in wanted(before['available'], MPIS):
            seen = self.load(*modules, name)
            if seen:
                self.keep_mpi(compiler, seen, before, [*modules, name])

    def keep_mpi(self, compiler, seen, before, modules):
        if seen['mpicc'] in (None, before['mpicc']):
            return
        environment = seen['mpi'].get(compiler['name'])
        if environment:
            self.keep(environment, seen, modules[-1])
        else:
            self.found.remarks.append(f"module {' '.join(modules)} brings {seen['mpicc']}, of no MPI that "
                                      f"data/mpi.yaml and data/toolchains.yaml have for {compiler['name']}")


def detect(compilers):
    '''What modules offer.

    :arg compilers: environments of the compilers in PATH without modules: MPIs that are modules may use them.
    '''
    kind, why = _kind()
    if kind is None:
        return Modules(remarks=[why] if why else [])
    try:
        return _found(_Search(kind), compilers)
    except NoAnswer as error:
        why = str(error)
    except (LookupError, TypeError, AttributeError) as error:       # what a module prints stands where JSON was to be
        why = f'it answers in a form that is not known here ({error!r})'
    return Modules(remarks=[f'the module system cannot be read: {why}'])


def _found(search, compilers):
    found = search.found
    if 'error' in search.bare:
        raise NoAnswer(search.bare['error'])
    if os.environ.get('LOADEDMODULES'):
        found.remarks.append(_LOADED.format(os.environ['LOADEDMODULES']))
    search.compilers()
    if not any('mpi' in one['features'] for one, _ in found.environments):
        for compiler in compilers:
            search.mpis(compiler, search.bare, [])
    if not found.environments:
        found.remarks.append(f"{search.bare['version']} has {len(search.bare['available'])} modules, none of which brings a compiler or an MPI that "
                             'is known')
        found.kind = None
    return found

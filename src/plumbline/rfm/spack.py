'''Programs from a Spack environment, instead of from a build of our own.

A ReFrame environment with the feature ``spack`` names its folder; a relative one lies in this clone::

    {'name': 'spack-openmpi', 'features': ['spack', 'openmp', 'fortran', 'mpi', 'openmpi'],
     'extras': {'spack': {'environment': 'spack-env/minimal'}, 'launcher': ['mpirun']}}
'''

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.settings import HOME

PACKAGE = 'plumbline-kernels'


@dataclass(frozen=True)
class Locked:
    '''A Spack environment that is concretised.

    :attr folder: where its ``spack.yaml`` and ``spack.lock`` are.
    :attr package: hash of the concrete spec that has our programs.
    :attr lock_hash: SHA-256 of ``spack.lock``.
    :attr specs: all concrete specs as text, that of our programs first.
    '''
    folder: Path
    package: str
    lock_hash: str
    specs: list

    def commands(self):
        '''What puts our programs into ``build/bin`` and the libraries into ``build/lib``, once they are installed.'''
        return [f'prefix=$(spack -e {self.folder} location -i /{self.package})', 'mkdir -p build/bin',
                'ln -sf $prefix/bin/* build/bin', 'ln -sfn $prefix/lib build/lib']

    def not_installed(self, said):
        '''One line for a person who can fix it, from what the attempt to install it wrote.'''
        told = [line for line in said.splitlines() if 'Error: ' in line] or said.splitlines() or ['nothing']
        return f'{_not_installed(self.folder)} (the attempt said: {told[0].strip()})'

    def provenance(self):
        '''What a result says (``schemas/result.json``).'''
        return {'spack': {'environment': str(self.folder), 'lock_hash': self.lock_hash, 'specs': self.specs}}


def _not_installed(folder):
    return (f'the Spack environment {folder} is not installed: run "spack -e {folder} install" where Spack can reach '
            'its sources, and have spack in the PATH of the jobs')


def _text(name, value):
    if isinstance(value, bool):
        return ('+' if value else '~') + name
    return f" {name}={','.join(map(str, value)) if isinstance(value, list) else value}"


def spec_text(key, node):
    '''A node of a lock file, with its hash, as Spack would print it.'''
    arch, external = node['arch'], node.get('external')
    # Of a known microarchitecture Spack writes all it knows.
    target = arch['target']['name'] if isinstance(arch['target'], dict) else arch['target']
    parameters = sorted(node['parameters'].items(), key=lambda pair: not isinstance(pair[1], bool))
    variants = ''.join(_text(name, value) for name, value in parameters if value != [])
    return (f"{node['name']}@{node['version']}{variants} os={arch['platform_os']} target={target} /{key[:7]}"
            + (f" [{external.get('path') or external.get('module')}]" if external else ''))


def _folder(environment):
    '''Where the Spack environment is that a ReFrame environment names.'''
    named = environment.extras.get('spack')
    if 'spack' not in environment.features or not isinstance(named, dict) or list(named) != ['environment']:
        raise PlumblineError(f'the environment {environment.name} takes its programs from Spack: it needs both the '
                             "feature 'spack' and 'extras': {'spack': {'environment': FOLDER}}")
    folder = HOME / str(named['environment'])
    if not re.fullmatch(r'[\w./+@%:=-]+', str(folder)):
        raise PlumblineError(f"the path of the Spack environment '{folder}' has characters that the shell takes for its own: move it")
    if not (folder / 'spack.yaml').exists():
        raise PlumblineError(f'{folder} is no Spack environment (it has no spack.yaml): fix the extras of {environment.name}')
    return folder


def locked(environment):
    '''The Spack environment that a ReFrame environment takes its programs from.

    :returns: a :class:`Locked`, or None for an environment without the feature ``spack``.
    :raises PlumblineError: where it is not named, not there, not concretised, or does not say what our programs are.
    '''
    if 'spack' not in environment.features and 'spack' not in environment.extras:
        return None
    folder = _folder(environment)
    try:
        lock = (folder / 'spack.lock').read_bytes()
        nodes = json.loads(lock)['concrete_specs']
        order = sorted(nodes, key=lambda key: (nodes[key]['name'] != PACKAGE, nodes[key]['name'], key))
        specs = [spec_text(key, nodes[key]) for key in order]
        ours = [nodes[key] for key in order if nodes[key]['name'] == PACKAGE]
    except FileNotFoundError:
        raise PlumblineError(_not_installed(folder)) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PlumblineError(f'{folder}/spack.lock cannot be read ({type(error).__name__}: {error}): run '
                             f'"spack -e {folder} concretize --force" and install it again') from None
    if len(ours) != 1:
        raise PlumblineError(f'the Spack environment {folder} has {len(ours)} specs of {PACKAGE}, and must have one: '
                             f'see "spack -e {folder} find", then add or remove')
    if 'dev_path' in ours[0]['parameters']:
        raise PlumblineError(f'the Spack environment {folder} builds {PACKAGE} from files that may change ("spack develop"), which no lock file can '
                             f'tell: commit them, and run "spack -e {folder} undevelop {PACKAGE}"')
    return Locked(folder, order[0], hashlib.sha256(lock).hexdigest(), specs)

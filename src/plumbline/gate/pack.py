'''One file that holds the gate and expectations, and runs on a node where nothing of ours is: a zip file that Python executes.'''

import json
import shutil
import tempfile
import zipapp
from pathlib import Path

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.gate.packed import main as gate

#: What is packed, from the package's folder on.
_MODULES = ('gate/packed/*.py', 'system/cgroup.py', 'system/dmi.py')

#: The name of what it holds, beside its modules.
HELD = 'held.json'

#: An exit code of Python's own would be a verdict on the node.
_MAIN = f'''\
import os
try:
    import pkgutil
    from plumbline.gate.packed.main import main
    held = pkgutil.get_data('plumbline.gate.packed', '{HELD}').decode('utf-8')
except Exception as error:
    print('plumbline gate: unknown: this file is damaged: %s: %s' % (type(error).__name__, error), flush=True)
    os._exit({gate.UNKNOWN})
main(held)
'''


def write(path, kinds, seconds=gate.SECONDS, python='/usr/bin/python3'):
    '''Write the gate of these expectations.

    :arg kinds: expectations, one of each kind of node (:func:`plumbline.gate.files.load`).
    :arg python: the interpreter on the nodes, 3.6 or newer: an absolute path.
    :raises PlumblineError: if it cannot be written.
    '''
    if not (least := gate.least(kinds)) <= seconds <= gate.MOST_SECONDS:
        raise PlumblineError(f'--seconds {seconds:g}: give {least:g} to {gate.MOST_SECONDS}: a second more than mounts may take to answer')
    if not python.startswith('/') or len(python) > 100 or not python.isprintable() or ' ' in python:
        raise PlumblineError(f'--python {python}: give the absolute path of the interpreter on the nodes, without blanks')
    package = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as temporary:
        folder, packed = Path(temporary, 'tree'), Path(temporary, 'packed.zip')
        for pattern in _MODULES:
            for source in sorted(package.glob(pattern)):
                target = folder / 'plumbline' / source.relative_to(package)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        for part in {parent for path in folder.rglob('*.py') for parent in path.parents if folder in parent.parents}:
            (part / '__init__.py').touch()
        held = json.dumps({'schema': gate.SCHEMA, 'seconds': seconds, 'kinds': kinds})
        (folder / 'plumbline/gate/packed' / HELD).write_text(held, encoding='utf-8')
        (folder / '__main__.py').write_text(_MAIN, encoding='utf-8')
        # -I: nothing of the environment, the current folder or the user's; -S: no site-packages, which may hang.
        zipapp.create_archive(folder, packed, interpreter=f'{python} -IS')
        with saying_why(path):
            atomic.write(path, packed.read_bytes(), 0o755)

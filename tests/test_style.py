'''The style that tools settle: pyproject.toml says it.'''

import ast
import subprocess
import sys

import rfm

PACKAGE = rfm.REPOSITORY / 'src/plumbline'


def test_ruff_finds_nothing():
    done = subprocess.run([sys.executable, '-m', 'ruff', 'check', '--no-cache', '.'], cwd=rfm.REPOSITORY, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def imported(path):
    '''What of ours a module imports.'''
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('plumbline'):
            yield from (f'{node.module}.{name.name}' for name in node.names)


def test_what_imports_what():
    '''Figures and pages are made of what is known; nothing is known from a page.'''
    model, paged = {}, set()
    for path in PACKAGE.rglob('*.py'):
        part, *_ = path.relative_to(PACKAGE).parts
        for name in imported(path):
            _, group, *_ = name.split('.')
            if part == 'model' and group not in ('model', 'errors', 'schemas'):
                model[path.name] = name
            if part not in ('report', 'bench') and group == 'report':
                paged.add(path.name)
    assert model == {} and paged == {'cli.py', 'command.py'}

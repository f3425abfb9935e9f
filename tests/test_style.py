'''The style that tools settle: pyproject.toml says it.'''

import ast
import re
import subprocess
import sys
from pathlib import Path

import rfm
from plumbline.likwid import bench
from plumbline.scheduler import schedule
from plumbline.sweep import node as job

PACKAGE = rfm.REPOSITORY / 'src/plumbline'
SHELL = re.compile(rb'#!.*\b(ba|da)?sh\b')


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


def shellcheck(*paths):
    done = subprocess.run([Path(sys.executable).with_name('shellcheck'), *paths], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_shellcheck_finds_nothing():
    listed = subprocess.run(['git', 'ls-files', '-z'], cwd=rfm.REPOSITORY, text=True, capture_output=True, check=True).stdout.split('\0')
    scripts = [path for path in map(rfm.REPOSITORY.joinpath, filter(None, listed)) if path.is_file() and SHELL.match(path.open('rb').readline())]
    assert len(scripts) > 10
    shellcheck(*scripts)


def test_nor_in_what_is_written_for_a_site(tmp_path, monkeypatch):
    '''The script of a schedule, that of a sweep's jobs, and that of likwid-bench's calls.'''
    site = rfm.GUARDS / 'config.py'
    monkeypatch.setattr(schedule.trust, 'refuse_run', lambda *_, **__: None)      # the clone may be anybody's
    commands = bench.bench_commands({'L1': 2**14}, [0], 'sse')
    (tmp_path / 'cross_check.sh').write_text('#!/bin/sh\n' + bench.script([{**command, 'iterations': 100} for command in commands]))
    (tmp_path / 'job.sh').write_text(job.script('s', tmp_path, 'made:cpu', ['reframe', '-n', 'a b']))
    shellcheck(schedule.write('daily', site, tmp_path / 'schedule'), tmp_path / 'job.sh', tmp_path / 'cross_check.sh')

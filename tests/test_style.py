'''The style that tools settle: pyproject.toml says it.'''

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import clang_tidy
import pytest
from reframe import VERSION
from reframe.core import fields, variables
from reframe.core.backends import getscheduler
from reframe.core.exceptions import ReframeError
from reframe.core.warnings import ReframeDeprecationWarning, suppress_deprecations

import c_layout
import rfm
from mpi_native import MPIS, any_mpi
from native import needs, output_of
from plumbline import private
from plumbline.likwid import bench
from plumbline.scheduler import schedule
from plumbline.sweep import node as job

PACKAGE = rfm.REPOSITORY / 'src/plumbline'
SHELL = re.compile(rb'#!.*\b(ba|da)?sh\b')


def test_ruff_finds_what_is_wrong_and_nothing_else():
    def checked(*words, **options):
        return subprocess.run([sys.executable, '-m', 'ruff', 'check', '--no-cache', *words], cwd=rfm.REPOSITORY, text=True, capture_output=True, **options)
    done = checked('.')
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = checked('--output-format=json', '-', input='import os\ndef f( x):\n    return "text"#this\n')
    assert {one['code'] for one in json.loads(wrong.stdout)} == {'F401', 'I001', 'E302', 'E201', 'Q000', 'E261', 'E262'}


def tracked(*patterns):
    done = subprocess.run(['git', 'ls-files', '-z', *patterns], cwd=rfm.REPOSITORY, text=True, capture_output=True, check=True)
    return [path for path in map(rfm.REPOSITORY.joinpath, filter(None, done.stdout.split('\0'))) if path.is_file()]


@pytest.mark.slow
def test_spaces_and_indentation_of_c_are_those_of_clang_format(tmp_path):
    sources = tracked('src/*.[ch]')
    assert len(sources) > 200 and not list(c_layout.changes(sources)), 'python tests/c_layout.py $(git ls-files "src/*.[ch]")'
    wrong = tmp_path / 'wrong.c'
    wrong.write_text('enum { A, B };\nint  f( int*x )\n{\n  return x [A]+\n  x[B];\n}\n')
    assert c_layout.changes([wrong]) == {wrong: 'enum { A, B };\nint f(int *x)\n{\n    return x[A] +\n           x[B];\n}\n'}


#: Of the analyzer, of each function: with its own number, 225,000, it takes 137 s of CPU instead of 51 s, and has found one more place of 21.
NODES = ('-Xclang', '-analyzer-config', '-Xclang', 'max-nodes=30000')


@pytest.mark.native
def test_clang_tidy_finds_what_is_wrong_and_nothing_else(tmp_path):
    '''Every file once, on all CPUs; the static analyzer looks at a part of the ways through a long function (CONTRIBUTING.rst).'''
    needs('cmake', 'gcc', 'gfortran')
    (tmp_path / 'wrong.c').write_text('#include <string.h>\nvoid f(char *p) { memset(p, sizeof p, 0); }\nint g(int *p) { return p ? 0 : *p; }\n')
    (tmp_path / 'omp.h').symlink_to(output_of('gcc', '-print-file-name=include/omp.h').strip())
    commands = {'wrong.c': {'directory': str(tmp_path), 'file': 'wrong.c', 'command': 'cc -c wrong.c'}}
    mpi = MPIS[any_mpi()]['cc']
    for part, compiler in (('', 'gcc'), ('mpi', mpi), ('nas', 'gcc')):
        output_of('cmake', '-S', rfm.REPOSITORY / 'src' / part, '-B', tmp_path / 'of' / part, f'-DCMAKE_C_COMPILER={compiler}', '-DCMAKE_EXPORT_COMPILE_COMMANDS=ON')
        commands |= {entry['file']: entry for entry in json.loads((tmp_path / 'of' / part / 'compile_commands.json').read_text()) if entry['file'].endswith('.c')}
    (tmp_path / 'compile_commands.json').write_text(json.dumps(list(commands.values())))
    included = [word for word in output_of(mpi, '-show').split() if word.startswith('-I')]
    further = [f'--extra-arg={word}' for word in (f'-I{tmp_path}', *included, *NODES)]
    command = [clang_tidy.get_executable('clang-tidy'), '--quiet', f'--config-file={rfm.REPOSITORY}/.clang-tidy', '-p', tmp_path, *further]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        done = pool.map(lambda file: subprocess.run([*command, file], cwd=tmp_path, text=True, capture_output=True), commands)
        said = ''.join(one.stdout + one.stderr * (one.returncode != 0) for one in done)
    found = [line for line in said.splitlines() if re.search(': (error|warning): ', line)]
    assert len(commands) > 150 and len(found) == 2, said
    assert 'wrong.c:2:19: error: ' in found[0] and '[bugprone-suspicious-memset-usage' in found[0]
    assert 'wrong.c:3:' in found[1] and '[clang-analyzer-core.NullDereference' in found[1]


def test_no_line_of_c_is_longer_than_one_of_python():
    lines = [(path.name, number) for path in (rfm.REPOSITORY / 'src').rglob('*.[ch]')
             for number, line in enumerate(path.read_text().splitlines(), 1) if len(line) > 150]
    assert not lines


#: What mypy must find: a number that may be None in a function without types, and an entry of a result that is misspelt in a check.
WRONG = {
    'wrong_type.py': 'from plumbline.model import prediction\n\n\ndef f():\n    return prediction.moderated(1.0, 2, None)\n',
    'wrong_name.py': 'from plumbline.rfm.judging import Judging\n\n\nclass Wrong(Judging):\n    def f(self):\n        self.plumbline.tiemd_seconds = 1.0\n',
}


def test_mypy_finds_what_is_wrong_and_nothing_else(tmp_path):
    for name, text in WRONG.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run([sys.executable, '-m', 'mypy', 'src/plumbline', *(tmp_path / name for name in WRONG)], cwd=rfm.REPOSITORY, text=True,
                          capture_output=True)
    found = sorted(line.rpartition('/')[2] for line in done.stdout.splitlines() if ': error: ' in line)      # its cache has another folder
    assert len(found) == len(WRONG) and found[0].startswith('wrong_name.py:6: error: "Result" has no attribute "tiemd_seconds"') and found[1].startswith(
        'wrong_type.py:5: error: Argument 3 to "moderated"'), done.stdout + done.stderr


#: What import-linter must find: an import from above, one from beside, a library of pages where nothing is shown, a package that is in no layer.
WRONG_IMPORTS = {
    'model/up.py': ('def f():\n    from plumbline.nodes import history\n', 'model.up -> plumbline.nodes.history'),
    'model/aside.py': ('import plumbline.atomic\n', 'model.aside -> plumbline.atomic'),
    'model/drawn.py': ('import plotly.graph_objects\n', 'model.drawn -> plotly'),
    'stray/__init__.py': ('', 'stray'),
}


def test_import_linter_finds_what_is_wrong_and_nothing_else(tmp_path):
    wrong = shutil.copytree(PACKAGE, tmp_path / 'plumbline', ignore=shutil.ignore_patterns('__pycache__'))
    for name, (text, _) in WRONG_IMPORTS.items():
        (wrong / name).parent.mkdir(exist_ok=True)
        (wrong / name).write_text(text)
    done = subprocess.run([Path(sys.executable).with_name('lint-imports'), '--no-cache', '--config', rfm.REPOSITORY / 'pyproject.toml'], cwd=tmp_path,
                          text=True, capture_output=True)
    found = re.findall(r'(?m)^- +plumbline\.(\S+(?: -> \S+)?)', done.stdout)
    assert done.returncode == 1 and sorted(found) == sorted(finding for _, finding in WRONG_IMPORTS.values()), done.stdout + done.stderr


#: Whose private attributes are our own business; ``os._exit`` is documented.
OURS = {'self', 'cls', 'os'}


def private_of_others(path):
    '''Where a module takes, or sets, a private attribute of what it did not make itself.'''
    if not re.search(r'(?<!\bself)(?<!\bcls)(?<!\bos)\._(?!_)', path.read_text()):      # to parse all takes seconds
        return
    tree = ast.parse(path.read_text())
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match('_(?!_)', node.attr) and node.attr not in own:
            base = node.value
            if not (isinstance(base, ast.Name) and base.id in OURS):
                yield f'{path.name}: {ast.unparse(node)}'


def test_no_module_has_a_name_of_the_standard_library():
    modules = [path.relative_to(rfm.REPOSITORY) for folder in ('src/plumbline', 'checks', 'tests') for path in (rfm.REPOSITORY / folder).rglob('*.py')]
    assert len(modules) > 250 and not [path for path in modules if path.stem in sys.stdlib_module_names]


def test_no_private_attribute_of_reframe_is_named_but_in_one_module():
    paths = [*PACKAGE.rglob('*.py'), *(rfm.REPOSITORY / 'checks').rglob('*.py'), *(rfm.REPOSITORY / 'config').rglob('*.py')]
    assert {one for path in paths for one in private_of_others(path)} == {
        'private.py: job._nodelist', 'private.py: job._exitcode', 'private.py: test._job', 'private.py: job._state', 'private.py: job._completed'}


@pytest.mark.parametrize('scheduler', ['local', 'squeue', 'slurm', 'pbs', 'torque'])
def test_reframe_gives_back_what_is_set_of_its_private_attributes(scheduler):
    job = getscheduler(scheduler).make_job(SimpleNamespace(_multi_clusters=False), name='job')
    assert not job.nodelist and job.exitcode is None
    private.set_nodes(job, ['n1'])
    private.set_exit_code(job, 3)
    assert (job.nodelist, job.exitcode) == (['n1'], 3)


def test_what_a_reframe_lacks_is_said_in_one_line_and_ends_a_run_only_where_a_failed_job_might_pass():
    '''Nothing would read what is set of a job instead.'''
    lacks, tested = 'ReFrame {} has no {}, which Plumbline sets; versions known to work are {}', private.TESTED
    assert VERSION in tested
    done = subprocess.run([sys.executable, '-c', 'from reframe.core import pipeline; del pipeline._ReferenceDictField; import plumbline.private'], text=True,
                          capture_output=True)
    said = lacks.format(VERSION, 'reframe.core.pipeline._ReferenceDictField.__set__', tested)
    assert (done.returncode, done.stderr) == (0, f'plumbline: {said}; -S CHECK.reference=... has no effect\n')
    for change, name in ((private.set_nodes, '_nodelist'), (private.set_exit_code, '_exitcode')):
        with pytest.raises(ReframeError, match=lacks.format(VERSION, f'SimpleNamespace.{name}', tested)):
            change(SimpleNamespace(), 0)


def test_reframe_looks_for_the_line_of_a_deprecation_only_where_it_tells_it(monkeypatch):
    with pytest.warns(ReframeDeprecationWarning, match='old'):
        fields.user_deprecation_warning('old')
    monkeypatch.setattr(inspect, 'stack', lambda: pytest.fail('looked for'))
    with suppress_deprecations():
        variables.user_deprecation_warning('old')


def test_shares_and_sizes_are_formatted_in_one_place():
    paths = [path for folder in (PACKAGE, rfm.REPOSITORY / 'checks') for path in folder.rglob('*.py')]
    ours = [path for path in paths if 'bench' not in path.parts]
    for pattern, where, others in ((r''':[+]?\.\d%\}|\{100 \* [^'"]*:\+[^'"]*\} %''', paths, set()), (r'''\{100 \* [^'"]*\} %''', ours, set()),
                                   (r'\} [KMG]i?B\b(?!/s)', ours, {'compare.py', 'check.py'})):     # the gate's goes to nodes alone; IMB is given GB
        assert {path.name for path in where if re.search(pattern, path.read_text())} == {'quantity.py'} | others


def test_no_variable_has_a_type_of_whose_errors_reframe_makes_a_warning_or_a_stack_trace():
    paths = [*PACKAGE.rglob('*.py'), *(rfm.REPOSITORY / 'checks').rglob('*.py')]
    assert [path.name for path in paths if re.search(r'variable\((int|float|bool|typ\.List\[int)\b', path.read_text())] == []


def shellcheck(*paths):
    program = Path(sys.executable).with_name('shellcheck')
    if not program.exists():
        pytest.skip('requirements.lock has no shellcheck for this processor')
    done = subprocess.run([program, *paths], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_shellcheck_finds_nothing():
    scripts = [path for path in tracked() if SHELL.match(path.open('rb').readline())]
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


def test_checks_ask_for_variants_of_one_processor_only_where_they_run():
    '''"nt|" or "simd|plain": elsewhere the program refuses the name, and the check fails.'''
    looked_at = set()
    for path in (rfm.REPOSITORY / 'checks').rglob('*.py'):
        program = re.search(r"(?m)^    program = '(\w+)'", path.read_text())
        for table in (rfm.REPOSITORY / 'src/kernels').glob(f'*/{program[1]}.c') if program else ():
            text = ''.join(file.read_text() for file in table.parent.glob('*.c'))
            of_one = set(re.findall(r'PL_(?:WIDEST|WIDEST_AVX|AVX2)\("(\w+)"', text))
            for function in ast.walk(ast.parse(path.read_text())):
                if isinstance(function, ast.FunctionDef) and function.name == 'options':
                    asked = {name for one in ast.walk(function) if isinstance(one, ast.Constant) and isinstance(one.value, str) for name in one.value.split(',')}
                    assert not asked & of_one, f'{path}: {asked & of_one}'
            looked_at |= of_one
    assert looked_at >= {'nt', 'simd', 'fill_nt', 'blocked_prefetch'}

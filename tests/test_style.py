'''The style that tools settle: pyproject.toml says it.'''

import subprocess
import sys

import rfm


def test_ruff_finds_nothing():
    done = subprocess.run([sys.executable, '-m', 'ruff', 'check', '--no-cache', '.'], cwd=rfm.REPOSITORY, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr

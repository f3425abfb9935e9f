'''What commands do whose output has no room, or that nobody reads to its end.'''

import subprocess
import sys

import pytest

COMMAND = [sys.executable, '-c', 'from plumbline.cli import main; main()']


@pytest.mark.parametrize('given', [('path', 'checks'), ('report', '--help')])
def test_a_full_disk_is_one_line_and_no_verdict(given):
    with open('/dev/full', 'w') as full:
        done = subprocess.run([*COMMAND, *given], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == 'plumbline: [Errno 28] No space left on device: what was to be said is not whole\n'


def test_a_reader_that_has_gone_is_no_error_to_tell():
    done = subprocess.Popen([*COMMAND, 'report', '--help'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    done.stdout.close()
    assert done.wait() == 1 and done.stderr.read() == ''

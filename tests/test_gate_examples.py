'''The examples of ``config/slurm`` with stand-ins for the gate and Slurm: what of the gate's answers they believe, and in which order they act.'''

import subprocess

import pytest

import rfm

DRAIN = 'echo "plumbline gate: drain: gone"; exit 2'


def ran(folder, script, gate, **environment):
    '''(exit code, commands that it called in their order) of an example, with a gate that is this shell script.

    ``state`` and ``update`` of the environment: what ``scontrol show`` prints, and the exit code of ``scontrol update``.
    '''
    (folder / 'gate').write_text(gate)
    (folder / 'gate').chmod(0o755)
    functions = {'logger': 'echo "endless logger" >> $log',
                 'timeout': 'case "$*" in *" show "*) echo "$state" ;; *) echo "$@" >> $log ; case $3 in update) return $update ;; esac ;; esac'}
    done = subprocess.run(['/bin/bash', rfm.REPOSITORY / f'config/slurm/{script}.sh'], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env={
        **{f'BASH_FUNC_{name}%%': f'() {{ {text}; }}' for name, text in functions.items()}, 'PLUMBLINE_GATE': str(folder / 'gate'),
        'log': str(folder / 'log'), 'SLURMD_NODENAME': 'n1', 'SLURM_JOB_ID': '7', 'state': ' State=IDLE ', 'update': '0', **environment})
    return done.returncode, (folder / 'log').read_text().splitlines() if (folder / 'log').exists() else []


@pytest.mark.parametrize('script', ['prolog', 'healthcheck'])
@pytest.mark.parametrize('gate, drains, logs', [
    ('#!/bin/sh\necho "plumbline gate: ok: cpu, 3 of 3 as expected"', False, False),
    ('#!/bin/sh\n' + DRAIN, True, True),
    ('#!/bin/sh\necho "plumbline gate: warn: old"; exit 1', False, True),
    ('', False, True),       # a file that was cut short: the shell runs it
    ('#!/bin/sh\nexit 2', False, True),      # Python that cannot open the file, or does not know an option
    ('#!/bin/sh\nexit 127', False, True)])
def test_an_exit_code_counts_with_the_gates_line_alone(script, gate, drains, logs, tmp_path):
    code, called = ran(tmp_path, script, gate)
    assert bool(called) == logs and all(line.startswith(('2 logger -t plumbline-gate ', '5 scontrol update ')) for line in called), called
    if script == 'healthcheck':
        assert any('scontrol' in line for line in called) == drains
    else:
        assert code == drains


@pytest.mark.parametrize('environment, said', [
    ({}, ['5 scontrol update NodeName=n1 State=DRAIN Reason=plumbline gate: drain: gone', '2 logger -t plumbline-gate plumbline gate: drain: gone']),
    ({'update': '1'}, ['5 scontrol update NodeName=n1 State=DRAIN Reason=plumbline gate: drain: gone',
                       '2 logger -t plumbline-gate not drained: scontrol failed: plumbline gate: drain: gone']),
    ({'state': ' State=IDLE+DRAIN '}, []),
    # A controller that is busy: somebody else's reason may stand there.
    ({'state': ''}, ['2 logger -t plumbline-gate not drained: scontrol does not tell the state of n1: plumbline gate: drain: gone'])])
def test_the_health_check_drains_before_it_logs_and_keeps_the_reason_of_others(environment, said, tmp_path):
    assert ran(tmp_path, 'healthcheck', '#!/bin/sh\n' + DRAIN, **environment)[1] == said

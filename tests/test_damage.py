'''Every message of every MPI program is verified: one that does not arrive, or arrives with a wrong byte, makes the result invalid.'''

import pytest

from mpi_native import MPIS, any_mpi, variables
from native import QUICK, SOURCE, output_of

#: What is measured, and the messages that a process gets in a pass, but for empty ones; None: as many as its record says.
PROGRAMS = {
    'pingpong --variants standard,touched --size 64': 1,
    'pingpong --variants swapped --size 64': 2,
    'datatype --variants datatype,packed,blocked,mpi_pack,contiguous --size 9': 1,
    'pairs --size 64': 1,
    'patterns --variants all --size 64': 1,
    'rma --variants all --size 64 --messages 4 --window 2': 4,
    'cg --class S --variants all': None,
    'sp --variants transposed --size 6': None,
    'sp --variants pipelined --size 6 --rows 1000': None,
}


@pytest.fixture(scope='module')
def measured(mpi_programs, tmp_path_factory):
    '''Function (command, damage) -> the records of a run in which every message of a kind is damaged.'''
    mpi = any_mpi()
    library = tmp_path_factory.mktemp('damage') / 'damage.so'
    output_of(MPIS[mpi]['cc'], '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-o', library,
              SOURCE.parent / 'tests/interpose/damage.c', env=variables(mpi))

    def run(command, damage):
        found = mpi_programs(mpi).run(2, *command.split(), *QUICK, LD_PRELOAD=library, DAMAGE=damage)
        assert found.measurements, found.errors
        return found.measurements
    return run


@pytest.mark.parametrize('command', PROGRAMS, ids=lambda command: ' '.join(command.split()[:3]))
def test_a_message_that_is_damaged_is_found(measured, command):
    messages = PROGRAMS[command]
    if not messages:
        records = measured(command, 'drop:1000000:999999')
        assert all(record['valid'] for record in records)
        messages, = {record['options']['messages'] for record in records}
    dropped = {0, 4 * messages // 5, messages - 1}
    for damage in (*(f'drop:{messages}:{which}' for which in dropped), f'byte:{messages}:{messages // 2}'):
        assert not [record['variant'] for record in measured(command, damage) if record['valid']], damage

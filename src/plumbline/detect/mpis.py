'''What starts the programs of an MPI.'''

import shutil

from plumbline.system.commands import NoAnswer, ask


def _knows_pmix(launcher):
    '''Whether an Open MPI can be started by another launcher that speaks PMIx.'''
    info = shutil.which('ompi_info', path=launcher.rpartition('/')[0] or None) or shutil.which('ompi_info')
    try:
        text = ask([info, '--parsable', '--all']) if info else ''
    except NoAnswer:
        return False
    return 'mca:pmix:ext' in text or 'prrte' in text


def with_launcher(environment, pmi):
    '''The environment and a remark: ``srun`` starts its programs where both know the same PMI, else ``mpirun`` does.

    :arg pmi: what Slurm does by default for processes to find each other (``pmix``, ``pmi2``), or None.
    '''
    launcher = environment['extras']['launcher']
    if not pmi:
        return environment, ''
    if pmi.startswith('pmix') and 'openmpi' in environment['features'] and _knows_pmix(launcher[0]):
        extras = {key: value for key, value in environment['extras'].items() if key != 'launcher'}
        return {**environment, 'extras': extras}, f'srun starts its programs: Slurm and this Open MPI know {pmi}'
    return environment, f'Slurm offers {pmi}; if this MPI was built for that, take the launcher away: srun will do'

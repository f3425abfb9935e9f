'''The machine that ReFrame runs on: one partition, measured without a scheduler.'''

import shutil

from reframe.utility.cpuinfo import cpuinfo

from plumbline import settings
from plumbline.errors import in_one_line
from plumbline.likwid import pin
from plumbline.mpi import environments
from plumbline.system import datasheet, toolchains

with in_one_line():
    machine_file = datasheet.local_file(settings.HOME / 'config/machines/localhost.yaml')

compilers = toolchains.found()
# Whoever measures this machine as root, a fresh one or a container, wants its MPIs too.  No other site file says so unasked.
environments = [*compilers, *environments.found(compilers, as_root=True)]

site_configuration = settings.site(
    systems=[{
        'name': 'localhost',
        'descr': 'this machine',
        'hostnames': ['.*'],
        'max_local_jobs': 1,
        'partitions': [{
            'name': 'default',
            'descr': 'all of its CPUs that may be used',
            'scheduler': 'local',
            'launcher': 'local',
            'environs': [environment['name'] for environment in environments],
            'max_jobs': 1,
            # Given here, not left to ReFrame, which would keep it in a file and not notice that the
            # machine has changed.
            'processor': cpuinfo(),
            'features': [feature for feature, there in (('likwid', pin.found()[0]), ('simgrid', shutil.which('smpirun'))) if there],
            'extras': {'machine': machine_file},
        }],
    }],
    environments=environments,
)

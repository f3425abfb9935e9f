'''A machine of which some environments are broken: each in another way; ``CANNED_MODULES`` switches its modules on.'''

import os
import runpy
from pathlib import Path

from plumbline import settings

HERE = Path(__file__).parent
modules = {'modules_system': 'tmod4'} if 'CANNED_MODULES' in os.environ else {}
broken = [
    {'name': 'missing', 'cc': 'clang-99'},
    {'name': 'serial', 'cc': str(HERE / 'cc-without-openmp')},
    {'name': 'fortran', 'cc': 'gcc', 'ftn': 'false', 'features': ['openmp', 'fortran']},
    {'name': 'sourced', 'cc': 'gcc', 'prepare_cmds': ['. /usr/share/modules/init/bash', 'module load nosuch/2.3']},
    *([{'name': 'module', 'cc': 'gcc', 'modules': ['nosuch/1.2']}] if modules else []),
]
environments = [{'name': 'gnu', 'cc': 'gcc', 'features': ['openmp']},
                *({'features': ['openmp'], **entry} for entry in broken)]

site_configuration = settings.site(
    systems=[{'name': 'made', 'hostnames': ['.*'], **modules, 'partitions': [{
        'name': 'cpu', 'scheduler': 'local', 'launcher': 'local', 'environs': [entry['name'] for entry in environments],
        'processor': runpy.run_path(str(HERE / 'config.py'))['processor'](sorted(os.sched_getaffinity(0)))}]}],
    environments=environments)

'''What pyproject.toml cannot say: a wheel brings checks, site files and the sources of the kernels, in ``plumbline/share``.'''

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

#: Of this clone or this site, or not needed to build kernels.
EXCLUDED = ('__pycache__', 'localhost.yaml', 'plumbline', 'setup', '*.egg-info')


class WithShare(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:      # a clone has them
            for folder in ('checks', 'config', 'src'):
                share = Path(self.build_lib, 'plumbline/share', folder)
                shutil.rmtree(share, ignore_errors=True)
                shutil.copytree(folder, share, ignore=shutil.ignore_patterns(*EXCLUDED))


setup(cmdclass={'build_py': WithShare})

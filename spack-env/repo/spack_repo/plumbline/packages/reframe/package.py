from spack.package import *

from spack_repo.builtin.packages.reframe.package import Reframe as OfSpack


class Reframe(OfSpack):
    '''ReFrame, with what it imports and Spack's own recipe does not name.'''

    depends_on('py-clustershell', type='run', when='@4.8:')
    depends_on('py-fasteners', type='run', when='@4.8:')
    depends_on('py-jinja2', type='run', when='@4.8:')

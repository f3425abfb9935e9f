# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyRuptures(PythonPackage):
    """Change points of time series."""

    homepage = "https://centre-borelli.github.io/ruptures-docs/"
    pypi = "ruptures/ruptures-1.1.10.tar.gz"

    license("BSD-2-Clause")

    version("1.1.10", sha256="76b998f10709045e91a5f44173dc574bf98a106fd3bf22ec3c63b298a02df031")

    depends_on("c", type="build")
    depends_on("py-cython", type="build")
    depends_on("py-setuptools", type="build")
    depends_on("py-setuptools-scm", type="build")

    with default_args(type=("build", "run")):
        depends_on("py-numpy")
        depends_on("py-scipy")

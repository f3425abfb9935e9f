# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyReframeHpc(PythonPackage):
    """ReFrame as a Python package.  Spack's own ``reframe`` ends before 4.10, and is no wheel."""

    homepage = "https://reframe-hpc.readthedocs.io"
    pypi = "reframe-hpc/reframe_hpc-4.10.4.tar.gz"

    license("BSD-3-Clause")

    version("4.10.4", sha256="0d3b0246664fa5b98dc50deed239282300fd74684c607f6b23b5484b924e988b")

    depends_on("py-setuptools@60.2:", type="build")

    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        depends_on("py-archspec@0.2.4:")
        depends_on("py-argcomplete@3.6:3")
        depends_on("py-clustershell@1.9:1")
        depends_on("py-fasteners@0.20:0")
        depends_on("py-jinja2@3.1:3")
        depends_on("py-jsonschema@4.26:4")
        depends_on("py-lxml@6:6")
        depends_on("py-polars@1.39:1")
        depends_on("py-pyyaml@6:6")
        depends_on("py-requests@2.33:2")
        depends_on("py-semver@3:3")
        depends_on("py-tabulate@0.9:0")  # it asks for 0.10, which Spack does not have

    conflicts("reframe", msg="two packages of the name reframe in one PYTHONPATH")

# SPDX-License-Identifier: BSD-3-Clause

import pathlib

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyPlumbline(PythonPackage):
    """Plumbline's checks, and the command that judges, keeps and shows what they measure.

    The checks build their programs themselves, or take them from plumbline-kernels.
    """

    # The clone that this file lies in, as plumbline-kernels.
    git = str(pathlib.Path(__file__).resolve().parents[6])

    license("BSD-3-Clause")

    version("main", branch="HEAD")

    depends_on("py-setuptools@77:", type="build")

    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        depends_on("py-archspec@0.2.5:")
        depends_on("py-clustershell@1.9.2:")
        depends_on("py-jinja2@3.1.4:")
        depends_on("py-jsonschema@4.18:")
        depends_on("py-referencing@0.28.4:")
        depends_on("py-markupsafe@2.1:")
        depends_on("py-numpy@1.26:")
        depends_on("py-plotly@6.0:")
        depends_on("py-polars@1.39:")
        depends_on("py-pyyaml@6.0.1:")
        depends_on("py-reframe-hpc@4.10.0:4")
        depends_on("py-rich@13.7:")
        depends_on("py-ruamel-yaml@0.18:")
        depends_on("py-ruptures@1.1.9:")
        depends_on("py-scipy@1.12:")
        depends_on("py-typer@0.20:")

    depends_on("cmake@3.20:", type="run")

    def test_checks_are_found(self):
        """list the checks that the package brings"""
        checks = which(join_path(self.prefix.bin, "plumbline"), required=True)(
            "path", "checks", output=str
        )
        reframe = which(join_path(self.spec["py-reframe-hpc"].prefix.bin, "reframe"), required=True)
        listed = reframe("-c", checks.strip(), "-R", "-l", output=str, error=str)
        assert "triad_memory" in listed

# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyPolars(PythonPackage):
    """Data frames.  Spack's own ends at 1.29; later ones are two wheels, the Rust in one of its own."""

    homepage = "https://www.pola.rs"
    url = "https://pypi.io/packages/py3/p/polars/polars-1.44.2-py3-none-any.whl"

    license("MIT")

    version(
        "1.44.2",
        sha256="1bb331f17a40d9d931101533dcd33637b66edc61eb377b07020dac16a0f0377b",
        expand=False,
    )

    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        depends_on("py-polars-runtime-32@1.44.2", when="@1.44.2")

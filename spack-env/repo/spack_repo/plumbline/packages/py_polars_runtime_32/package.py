# SPDX-License-Identifier: BSD-3-Clause

import platform

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *

WHEELS = {
    "x86_64": "a1bafb441e99199a62c63bf1bbdc0ea09ee9776dbac2bf31452b5000fb1df2f7",
    "aarch64": "bbf9b45040291dc1c6c588c837019c33557bde25ec536562a9cca9e1f6dfcc45",
}


class PyPolarsRuntime32(PythonPackage):
    """The Rust of py-polars, as its authors have compiled it."""

    homepage = "https://www.pola.rs"

    license("MIT")

    if platform.machine() in WHEELS:
        version(
            "1.44.2",
            sha256=WHEELS[platform.machine()],
            expand=False,
            url="https://pypi.io/packages/cp310/p/polars_runtime_32/polars_runtime_32-1.44.2-cp310-abi3-"
            f"manylinux_2_17_{platform.machine()}.manylinux2014_{platform.machine()}.whl",
        )

    depends_on("python@3.10:", type=("build", "run"))

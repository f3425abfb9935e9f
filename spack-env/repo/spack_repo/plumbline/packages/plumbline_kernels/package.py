# SPDX-License-Identifier: BSD-3-Clause

import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class PlumblineKernels(CMakePackage):
    """Plumbline's kernels, MPI programs and PMPI libraries, as its ReFrame checks run them."""

    # The clone that this file lies in: what is committed there is built.  The commit becomes part
    # of the concrete spec, and with it of the hash.
    git = str(pathlib.Path(__file__).resolve().parents[6])

    license("BSD-3-Clause")

    version("main", branch="HEAD")

    variant("fortran", default=True, description="Variants written in Fortran")
    variant(
        "openmp",
        default=True,
        description="Programs with threads, not only NAME-serial; the checks need them",
    )
    variant("likwid", default=True, description="LIKWID markers around the timed loops")
    variant("openblas", default=False, description="OpenBLAS as the transposition's yardstick")
    variant("blas", default=False, description="DGEMM of the BLAS")
    variant("fftw", default=False, description="Plane waves by FFTW and the BLAS")
    variant(
        "mpi",
        default=True,
        description="MPI programs, and the libraries between a program and its MPI",
    )

    depends_on("c", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.20:", type="build")
    depends_on("likwid@5.2:", when="+likwid")
    depends_on("openblas threads=none", when="+openblas")
    depends_on("blas", when="+blas")
    depends_on("fftw@3", when="+fftw")
    depends_on("mpi", when="+mpi")

    conflicts("~blas", when="+fftw", msg="plane waves need both libraries")
    conflicts("+ipo", msg="records state the flags of src/cmake/flags.cmake; add others by cflags")

    root_cmakelists_dir = "src"
    # Flags of a spec (cflags=...) go through CMake, which states them in the records.
    flag_handler = CMakePackage.build_system_flags

    def cmake_args(self):
        switches = [
            self.define_from_variant(f"PLUMBLINE_{name.upper()}", name)
            for name in ("fortran", "openmp", "likwid", "openblas", "blas", "fftw")
        ]
        return [*switches, *self.common_args()]

    def common_args(self):
        """The target is the spec's, not that of the node that builds; what lacks is an error."""
        languages = {"C": "c"}
        if self.spec.satisfies("+fortran"):
            languages["Fortran"] = "fortran"
        return [
            self.define("PLUMBLINE_STRICT", True),
            *(
                self.define(
                    f"PLUMBLINE_{name}_TARGET", microarchitecture_flags(self.spec, language)
                )
                for name, language in languages.items()
            ),
        ]

    @run_after("install")
    def install_mpi_programs(self):
        """A project of its own: its C compiler is the MPI's."""
        if not self.spec.satisfies("+mpi"):
            return
        with working_dir(join_path(self.stage.path, "build-mpi"), create=True):
            cmake(
                join_path(self.stage.source_path, "src", "mpi"),
                *self.std_cmake_args,
                *self.common_args(),
                self.define("CMAKE_C_COMPILER", self.spec["mpi"].mpicc),
            )
            make("install")

    def test_kernels(self):
        """verify what the kernels compute"""
        for kernel in ("triad", "jacobi", "spmv", "transpose"):
            with test_part(self, f"test_kernels_{kernel}", purpose=f"verify {kernel}"):
                program = which(join_path(self.prefix.bin, f"{kernel}-serial"), required=True)
                program("--variants", "all", "--size", "100", "--samples", "10")

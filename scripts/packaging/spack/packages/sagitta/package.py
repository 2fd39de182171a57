# SPDX-License-Identifier: BSD-3-Clause
"""Spack's recipe for Sagitta, built from this tree; doc/install.md says how."""

import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class Sagitta(AutotoolsPackage):
    """Learns sparse dictionaries of neural activations and describes rows with them, exactly:
    equal input gives equal bytes on any number of ranks, threads and GPUs."""

    license("BSD-3-Clause", checked_by="the Sagitta authors")

    version("0.1.0")

    variant("cuda", default=False, description="Use NVIDIA GPUs, by kernels compiled at run time")
    variant("nccl", default=False, description="Exchange between GPUs through NCCL")

    variant("zmq", default=False, description="Serve rows of other programs, by ZeroMQ")

    depends_on("c", type="build")
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("help2man", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("hdf5@1.10:")
    depends_on("openssl@1.1.1:")
    depends_on("cuda@13", when="+cuda")
    depends_on("nccl@2", when="+nccl")
    depends_on("libzmq@4.3:", when="+zmq")

    conflicts("+nccl", when="~cuda", msg="NCCL joins GPUs: add +cuda")

    def autoreconf(self, spec, prefix):
        if not os.path.exists("configure"):  # a checkout; an archive has it
            Executable("./scripts/bootstrap")()

    def configure_args(self):
        hdf5, openssl = self.spec["hdf5"], self.spec["openssl"]
        args = [
            f"CC={self.spec['mpi'].mpicc}",
            f"HDF5_CFLAGS={hdf5.headers.include_flags}",
            f"HDF5_LIBS={hdf5.libs.ld_flags}",
            f"CRYPTO_CFLAGS={openssl.headers.include_flags}",
            f"CRYPTO_LIBS={openssl.libs.search_flags} -lcrypto",
        ]
        for name in ("cuda", "nccl"):
            if self.spec.satisfies(f"+{name}"):
                args.append(f"--with-{name}={self.spec[name].prefix}")
            else:
                args.append(f"--without-{name}")
        args.append("--with-zmq" if self.spec.satisfies("+zmq") else "--without-zmq")
        return args

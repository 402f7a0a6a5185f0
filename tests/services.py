#!/usr/bin/env python3
"""The programs of Slurm, munge, etcd, Open MPI and Prometheus that tests run.

  services.program("etcd")            its path
  services.environment()              what they need, for subprocess

scripts/test_tools.sh unpacks their packages below .deps/services, where their libraries, plugins and
settings are not at the places that were compiled in. Where it is not there, installed programs are used.

  tests/services.py --check           exit code 1 where one is not there, or does not find its libraries
"""
import glob
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, ".deps", "services")
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
PROGRAMS = ["etcd", "munged", "slurmctld", "slurmd", "slurmstepd", "sbatch", "srun", "scontrol", "squeue", "scancel",
            "mpirun", "prometheus", "promtool"]


def unpacked(*parts):
    """The path of a file or folder of the unpacked packages; None where it is not there."""
    found = glob.glob(os.path.join(FOLDER, *parts))
    return found[0] if found else None


def library_folders():
    folders = set()
    for top in ("lib", "usr/lib"):
        for library in glob.glob(os.path.join(FOLDER, top, "*-linux-gnu", "**", "lib*.so*"), recursive=True):
            folders.add(os.path.dirname(library))
    return sorted(folders)


def program(name):
    """Its path; None where it is neither unpacked nor installed."""
    own = os.path.join(FOLDER, "bin", name)
    return own if os.path.exists(own) else shutil.which(name, path=os.environ.get("PATH", "") + ":" + SYSTEM_PATH)


def environment(base=None):
    """`base` (os.environ) with what the programs need where they are unpacked."""
    given = dict(os.environ if base is None else base)
    given["PATH"] = ":".join(filter(None, [given.get("PATH"), SYSTEM_PATH]))
    if not os.path.isdir(os.path.join(FOLDER, "bin")):
        return given
    given["PATH"] = os.path.join(FOLDER, "bin") + ":" + given["PATH"]
    given["LD_LIBRARY_PATH"] = ":".join(library_folders() + list(filter(None, [given.get("LD_LIBRARY_PATH")])))
    given.update(open_mpi_places())
    return given


def open_mpi_places():
    """Open MPI, PMIx and PRRTE look for their components and help texts where they were installed."""
    prefix = os.path.join(FOLDER, "usr")
    places = {"OPAL_PREFIX": prefix, "PMIX_PREFIX": prefix, "PRTE_PREFIX": prefix,
              "OPAL_LIBDIR": unpacked("usr/lib/*-linux-gnu/openmpi/lib"),
              "OPAL_PKGLIBDIR": unpacked("usr/lib/*-linux-gnu/openmpi/lib/openmpi*"),
              "OPAL_DATADIR": unpacked("usr/share"), "OPAL_PKGDATADIR": unpacked("usr/share/openmpi"),
              "OPAL_SYSCONFDIR": unpacked("etc/openmpi"),
              "PMIX_INSTALL_PREFIX": unpacked("usr/lib/*-linux-gnu/pmix2")}
    return {name: place for name, place in places.items() if place}


def slurm_places():
    """Lines of slurm.conf, and the arguments of slurmd, that say where the parts of Slurm are."""
    plugins = unpacked("usr/lib/*-linux-gnu/slurm-wlm")
    stepd = program("slurmstepd")
    return (f"PluginDir={plugins}\n" if plugins else "", ["-d", stepd] if plugins and stepd else [])


def check():
    failures = 0
    for name in PROGRAMS:
        path = program(name)
        if path is None:
            found = "there is none: scripts/test_tools.sh unpacks it"
        else:
            libraries = subprocess.run(["ldd", path], env=environment(), capture_output=True, text=True).stdout
            found = ", ".join(line.strip() for line in libraries.splitlines() if "not found" in line)
        if found:
            print(f"services: {name}: {found}", file=sys.stderr)
            failures += 1
    return failures


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        sys.exit(__doc__)
    sys.exit(1 if check() else 0)

"""The stand-in for libnvidia-ml.so.1: compiled when it is first needed, driven by a machine.

The real nvidia-ml-py is above it. pynvml opens the library by its SONAME, so loading ours by path
first is enough within a process; another process finds it through ``environment``.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

from tests.fakes.machines import MIB, Gpu, Machine

SOURCE = Path(__file__).with_name("nvml.c")
VARIABLE = "GPU_ADMIT_FAKE_NVML"
LIBRARY = "libnvidia-ml.so.1"
LEVEL = {"same switch": 10, "several switches": 20, "host bridge": 30, "node": 40, "system": 50}


class NoCompiler(Exception):
    """There is no C compiler: tests above NVML cannot run."""


def compiler() -> str | None:
    """The C compiler: ``$CC``, else cc, gcc or clang on PATH; None where there is none."""
    named = os.environ.get("CC", "")
    return next((p for c in (named, "cc", "gcc", "clang") if c and (p := shutil.which(c))), None)


def build(folder: Path) -> Path:
    """The compiled library in ``folder``. Raises NoCompiler."""
    cc = compiler()
    if cc is None:
        raise NoCompiler(
            "no C compiler (cc, gcc, clang or $CC): the stand-in for NVML is not built"
        )
    path = folder / LIBRARY
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", f"-Wl,-soname,{LIBRARY}"]
    subprocess.run([cc, *flags, "-o", str(path), str(SOURCE), "-lpthread"], check=True)
    return path


class Driver:
    """A loaded driver showing one machine; ``show`` another one while it runs, ``unload`` it."""

    def __init__(self, library: Path, table: Path) -> None:
        self.library = library
        self.table = table

    @property
    def environment(self) -> dict[str, str]:
        """What another process needs to find it."""
        return {"LD_LIBRARY_PATH": str(self.library.parent), VARIABLE: str(self.table)}

    def load(self) -> None:
        """Makes the library the one that pynvml opens in this process."""
        os.environ[VARIABLE] = str(self.table)
        ctypes.CDLL(str(self.library))

    def show(self, machine: Machine, **values: str) -> None:
        """From the next call on the driver says this; ``error=9`` makes every call fail with it."""
        fresh = self.table.with_suffix(".new")
        fresh.write_text(table(machine, **values))
        fresh.replace(self.table)

    def unload(self) -> None:
        """No driver: every call, nvmlInit too, answers DRIVER_NOT_LOADED."""
        self.table.unlink(missing_ok=True)


def table(machine: Machine, **more: str) -> str:
    """The lines that the library reads."""
    found = {
        "driver": machine.driver,
        "cuda": str(machine.cuda),
        "gpus": str(len(machine.gpus)),
        **machine.values,
        **more,
    }
    for index, gpu in enumerate(machine.gpus):
        for key, value in _gpu(gpu, index).items():
            found[f"gpu/{index}/{key}"] = value
        for other, peer in enumerate(machine.gpus):
            if other != index:
                found[f"gpu/{index}/level/{other}"] = str(_level(gpu, peer))
    lines = [f"{key}={value}\n" for key, value in found.items()]
    return "".join(sorted(lines, key=lambda line: line.partition("=")[0].encode()))


def _gpu(gpu: Gpu, index: int) -> dict[str, str]:
    found = {
        "uuid": gpu.uuid,
        "name": gpu.name,
        "pci": gpu.pci,
        "minor": str(index),
        "memory/total": str(gpu.memory_mib * MIB),
        "memory/used": str(gpu.used_mib * MIB),
        "memory/reserved": str(gpu.reserved_mib * MIB),
        "ecc/volatile/corrected": "0",
        "ecc/volatile/uncorrected": "0",
        "ecc/aggregate/corrected": "0",
        "ecc/aggregate/uncorrected": "0",
    }
    if gpu.numa is not None:
        found["numa"] = str(gpu.numa)
    if gpu.mig is not None:
        found["migmode"] = str(int(gpu.mig))
    if gpu.processes:
        found["processes/compute"] = ",".join(
            f"{pid}:{mib * MIB}:4294967295" for pid, mib in gpu.processes
        )
    for number, link in enumerate(gpu.links):
        found[f"link/{number}/up"] = str(int(link.up))
        found[f"link/{number}/version"] = str(link.version)
        found[f"link/{number}/type"] = str(link.kind)
        found[f"link/{number}/pci"] = link.remote or "ffffffff:ff:ff.0"
    for number, part in enumerate(gpu.slices):
        for key, value in {
            "uuid": part.uuid,
            "name": f"{gpu.name} MIG {part.profile}",
            "gi": str(part.gi),
            "ci": "0",
            "start": str(part.start),
            "size": str(part.size),
            "slices/gi": part.profile[0],
            "slices/ci": part.profile[0],
            "memory/mib": str(part.memory_mib),
            "memory/total": str(part.memory_mib * MIB),
            "memory/used": str(part.used_mib * MIB),
        }.items():
            found[f"mig/{number}/{key}"] = value
    return found | gpu.values


def _level(a: Gpu, b: Gpu) -> int:
    """What nvmlDeviceGetTopologyCommonAncestor would say."""
    if a.root == b.root:
        shared = sum(1 for x, y in zip(a.path, b.path, strict=False) if x == y)
        if shared >= 2:
            return LEVEL["same switch"]
        return LEVEL["host bridge"]
    return LEVEL["node"] if a.numa == b.numa else LEVEL["system"]

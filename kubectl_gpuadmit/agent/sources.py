"""Gathers one look at the node from every source there is; a source that fails is a silent one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from kubectl_gpuadmit.errors import GpuAdmitError
from kubectl_gpuadmit.topology.observe import Look
from kubectl_gpuadmit.topology.readings import (
    Driver,
    Grants,
    Kernel,
    KubeletConfig,
    Silent,
)
from kubectl_gpuadmit.topology.wires import tells_links

T = TypeVar("T")


class DriverSource(Protocol):
    """adapters.nvml.Nvml."""

    def read(self) -> Driver: ...
    def close(self) -> None: ...


class KernelSource(Protocol):
    """adapters.sysfs.Sysfs."""

    def read(self) -> Kernel: ...
    def owner(self, pid: int) -> str | None: ...
    def sees_all_processes(self) -> bool: ...


class KubeletSource(Protocol):
    """adapters.kubelet.PodResources."""

    def read(self) -> Grants: ...


class Sources:
    """Where a node's facts come from. ``matrix`` runs ``nvidia-smi topo -m``, asked only where NVML
    tells nothing of links."""

    def __init__(
        self,
        driver: DriverSource,
        kernel: KernelSource,
        kubelet: KubeletSource,
        *,
        matrix: Callable[[], str] = lambda: "",
        config: Callable[[], KubeletConfig | None] = lambda: None,
    ) -> None:
        self._driver = driver
        self._kernel = kernel
        self._kubelet = kubelet
        self._matrix = matrix
        self._config = config

    def look(self) -> Look:
        """All of it, once. Never raises what a source raises."""
        kernel = self._kernel.read()
        driver = _or_silent(self._driver.read)
        grants = _or_silent(self._kubelet.read)
        boards = () if isinstance(driver, Silent) else driver.boards
        pids = {one.pid for board in boards for one in board.processes or ()}
        wordless = isinstance(driver, Silent) or not tells_links(driver)
        return Look(
            driver=driver,
            kernel=kernel,
            grants=grants,
            owners={pid: self._kernel.owner(pid) for pid in sorted(pids)},
            sees_processes=self._kernel.sees_all_processes(),
            matrix=self._matrix() if wordless and kernel.gpus else "",
            config=self._config(),
        )

    def close(self) -> None:
        """Lets the driver go."""
        self._driver.close()


def _or_silent(read: Callable[[], T]) -> T | Silent:
    try:
        return read()
    except GpuAdmitError as problem:
        return Silent(problem.message, ref=problem.ref)

"""A whole node for the agent: driver, /sys, /proc and kubelet of one machine, in one folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kubectl_gpuadmit.adapters import kubelet_config
from kubectl_gpuadmit.adapters.kubelet import PodResources
from kubectl_gpuadmit.adapters.nvml import Nvml
from kubectl_gpuadmit.adapters.sysfs import FIRST_PID_NAMESPACE, Sysfs
from kubectl_gpuadmit.agent.sources import Sources
from tests.fakes import sysfs
from tests.fakes.kubelet import Kubelet
from tests.fakes.machines import Machine
from tests.fakes.nvml import Driver


class Node:
    """``sources`` are the real adapters above the stand-ins; change these between two looks."""

    def __init__(self, driver: Driver, kubelet: Kubelet, root: Path) -> None:
        self.driver = driver
        self.kubelet = kubelet
        self.root = root
        self.smi = ""
        """What nvidia-smi would print."""
        self.nvml = Nvml()
        self.config = root / "config.yaml"
        self.sources = Sources(
            self.nvml,
            Sysfs(str(root)),
            PodResources(str(kubelet.socket)),
            matrix=lambda: self.smi,
            config=lambda: kubelet_config.read(str(self.config)),
        )

    def process(self, pid: int, pod_uid: str = "") -> None:
        """A process of a pod, or of none."""
        place = self.root / "proc" / str(pid)
        place.mkdir(parents=True, exist_ok=True)
        slice_ = f"kubepods-pod{pod_uid.replace('-', '_')}.slice/cri-containerd-0a1b.scope"
        group = f"/kubepods.slice/{slice_}" if pod_uid else "/system.slice/docker.service"
        (place / "cgroup").write_text(f"0::{group}\n")

    @property
    def arguments(self) -> list[str]:
        """Flags of ``agent`` that make another process see this node."""
        return [
            f"--root={self.root}",
            f"--socket={self.kubelet.socket}",
            f"--kubelet-config={self.config}",
        ]

    @property
    def environment(self) -> Mapping[str, str]:
        return {**os.environ, **self.driver.environment}


@contextmanager
def node_of(machine: Machine, driver: Driver, root: Path) -> Iterator[Node]:
    """The node while its kubelet runs. ``root`` is short: a socket's path has 107 bytes at most."""
    driver.show(machine)
    sysfs.write(machine, root / "sys")
    namespace = root / "proc/self/ns"
    namespace.mkdir(parents=True)
    (namespace / "pid").symlink_to(FIRST_PID_NAMESPACE)
    with Kubelet(root / "k.sock", allocatable={}) as kubelet:
        made = Node(driver, kubelet, root)
        try:
            yield made
        finally:
            made.nvml.close()

"""/sys, /proc and the kubelet's files, read from trees of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_gpuadmit.adapters import kubelet_config, nvidia_smi
from kubectl_gpuadmit.adapters.sysfs import FIRST_PID_NAMESPACE, Sysfs
from kubectl_gpuadmit.topology import pci
from kubectl_gpuadmit.topology.readings import (
    Card,
    Kernel,
    KubeletConfig,
    MemoryGrant,
    PciPlace,
    Socket,
)
from tests.fakes import machines, sysfs

POD = "0f4c2d1e-aaaa-bbbb-cccc-1234567890ab"


def test_gpus_cards_and_numa_nodes_of_a_machine(tmp_path: Path) -> None:
    sysfs.write(machines.pcie_l40s(), tmp_path / "sys")
    upper = ("0000:14:01.0", "0000:15:00.0")
    assert Sysfs(str(tmp_path)).read() == Kernel(
        gpus=(
            PciPlace("0000:16:00.0", "pci0000:14", (*upper, "0000:15:10.0"), 0),
            PciPlace("0000:17:00.0", "pci0000:14", (*upper, "0000:15:14.0"), 0),
            PciPlace("0000:98:00.0", "pci0000:97", ("0000:97:01.0",), 1),
            PciPlace("0000:b9:00.0", "pci0000:b8", ("0000:b8:01.0",), 1),
        ),
        cards=(
            Card(
                "mlx5_0",
                PciPlace("0000:18:00.0", "pci0000:14", (*upper, "0000:15:18.0"), 0),
                layer="Ethernet",
                state="Active",
                rate_gbps=100,
            ),
            Card(
                "mlx5_1",
                PciPlace("0000:99:00.0", "pci0000:97", ("0000:97:05.0",), 1),
                layer="Ethernet",
                state="Active",
                rate_gbps=100,
            ),
        ),
        sockets=(Socket(0, "0-31", 257_000, (10, 21)), Socket(1, "32-63", 258_000, (21, 10))),
    )


def test_a_card_without_rdma_has_its_interfaces_name(tmp_path: Path) -> None:
    sysfs.write(machines.hgx_h100(), tmp_path / "sys")
    cards = Sysfs(str(tmp_path)).read().cards
    assert [card.name for card in cards] == [*(f"mlx5_{i}" for i in range(8)), "eth0"]
    assert (cards[-1].layer, cards[-1].state, cards[-1].rate_gbps) == ("", "Active", 100)


def test_a_port_that_is_down_is_told(tmp_path: Path) -> None:
    sysfs.write(machines.pcie_l40s(), tmp_path / "sys")
    port = tmp_path / "sys/class/infiniband/mlx5_1/ports/1/state"
    port.write_text("1: DOWN\n")
    assert [card.state for card in Sysfs(str(tmp_path)).read().cards] == ["Active", "Down"]


def test_a_machine_without_anything_to_read_reads_as_nothing(tmp_path: Path) -> None:
    empty = Sysfs(str(tmp_path))
    assert (empty.read(), empty.owner(1), empty.sees_all_processes()) == (Kernel(), None, False)


def test_numa_minus_one_means_not_told(tmp_path: Path) -> None:
    machine = machines.pcie_l40s().with_gpu(0, numa=None)
    sysfs.write(machine, tmp_path / "sys")
    assert Sysfs(str(tmp_path)).read().gpus[0].numa is None


@pytest.mark.parametrize(
    ("group", "owner"),
    [
        (f"0::/kubepods/burstable/pod{POD}/8a1f", POD),
        (f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-o-1.scope", POD),
        (f"12:devices:/kubepods/pod{POD}/1\n1:name=systemd:/kubepods/pod{POD}/1", POD),
        (f"0::/../../kubepods-besteffort-pod{POD.replace('-', '_')}.slice/x", POD),
        ("0::/kubepods/pod0123456789abcdef0123456789abcdef/1", "0123456789abcdef0123456789abcdef"),
        ("0::/system.slice/docker-71.scope", ""),
        ("0::/user.slice/podman-1.scope", ""),
    ],
)
def test_whose_a_process_is_stands_in_its_cgroup(tmp_path: Path, group: str, owner: str) -> None:
    place = tmp_path / "proc/71"
    place.mkdir(parents=True)
    (place / "cgroup").write_text(group + "\n")
    assert Sysfs(str(tmp_path)).owner(71) == owner


def test_only_the_first_pid_namespace_shows_all_processes(tmp_path: Path) -> None:
    place = tmp_path / "proc/self/ns"
    place.mkdir(parents=True)
    (place / "pid").symlink_to("pid:[4026532001]")
    assert not Sysfs(str(tmp_path)).sees_all_processes()
    (place / "pid").unlink()
    (place / "pid").symlink_to(FIRST_PID_NAMESPACE)
    assert Sysfs(str(tmp_path)).sees_all_processes()


# -- how near two devices are ----------------------------------------------------------------------


def at(address: str, *bridges: str, root: str = "pci0000:14", numa: int | None = 0) -> PciPlace:
    return PciPlace(address, root, bridges, numa)


UP, DOWN = ("0000:14:01.0", "0000:15:00.0"), ("0000:16:08.0", "0000:20:00.0")


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [
        (at("a", *UP, "0000:16:00.0"), at("b", *UP, "0000:16:04.0"), "PIX"),
        (at("a", *UP, "0000:16:00.0"), at("b", *UP, *DOWN, "0000:21:00.0"), "PXB"),
        (at("a", "0000:14:01.0"), at("b", "0000:14:01.0"), "PIX"),
        (at("a", *UP, "0000:16:00.0"), at("b", "0000:14:03.0"), "PHB"),
        (at("a"), at("b"), "PHB"),
        (at("a"), at("b", root="pci0000:40"), "NODE"),
        (at("a"), at("b", root="pci0000:80", numa=1), "SYS"),
        (at("a", numa=None), at("b", root="pci0000:80", numa=None), ""),
        (at("a", root=""), at("b"), ""),
    ],
)
def test_how_near_two_devices_are(a: PciPlace, b: PciPlace, level: str) -> None:
    assert (pci.level(a, b), pci.level(b, a)) == (level, level)


# -- the kubelet's files, nvidia-smi ---------------------------------------------------------------

CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
cpuManagerPolicy: static
reservedSystemCPUs: 0-1
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 0
  limits: {memory: 1Gi, hugepages-2Mi: broken}
"""


def test_the_kubelets_numa_settings(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    assert kubelet_config.read(str(file)) == KubeletConfig(
        topology_policy="single-numa-node",
        topology_scope="pod",
        topology_options={"prefer-closest-numa-nodes": "true"},
        cpu_policy="static",
        cpu_options={},
        memory_policy="Static",
        reserved_cpus="0-1",
        reserved_memory=(MemoryGrant("memory", 1 << 30, (0,)),),
    )


def test_what_the_kubelet_defaults_is_told_as_its_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("kind: KubeletConfiguration\n")
    read = kubelet_config.read(str(file))
    assert read == KubeletConfig("none", "container", {}, "none", {}, "None")


def test_the_state_files_show_the_policy_that_runs(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("kind: KubeletConfiguration\n")
    (tmp_path / "cpu_manager_state").write_text('{"policyName":"static","defaultCpuSet":"0-7"}')
    read = kubelet_config.read(str(file))
    assert read is not None
    assert read.cpu_policy == "static"


@pytest.mark.parametrize("text", ["", "kind: Deployment", "{", "- 1"])
def test_another_file_tells_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert kubelet_config.read(str(file)) is None
    assert kubelet_config.read(str(tmp_path / "none.yaml")) is None


def test_a_file_that_was_replaced_behind_its_mount_is_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    with file.open("rb") as held:  # as a bind mount holds the old file
        file.unlink()
        assert kubelet_config.read(f"/proc/self/fd/{held.fileno()}") is None


def test_nvidia_smi_is_run_where_it_is_there(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "matrix of $1 $2"\n')
    program.chmod(0o755)
    assert nvidia_smi.matrix(str(program)) == "matrix of topo -m\n"
    program.write_text("#!/bin/sh\necho half\nexit 9\n")
    assert nvidia_smi.matrix(str(program)) == ""
    assert nvidia_smi.matrix(str(tmp_path / "none")) == ""

"""From what the real adapters read to what is reported of a node."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_gpuadmit.kube.gpu_topology import (
    GpuTopologySpec,
    ReportedAssignment,
    ReportedFabric,
    ReportedGpu,
    ReportedHolder,
    ReportedKubelet,
    ReportedMemoryBlock,
    ReportedNvlinks,
    ReportedXid,
)
from kubectl_gpuadmit.kube.gpu_topology_object import plain
from kubectl_gpuadmit.topology.news import changed, drifted
from kubectl_gpuadmit.topology.observe import Look, Seen, observe
from kubectl_gpuadmit.topology.readings import Driver, Grants, Kernel, PciPlace, Silent
from tests.agent.node import Node, node_of
from tests.fakes import machines
from tests.fakes.kubelet import devices, pod
from tests.fakes.nvml import Driver as FakeDriver

NOW, LATER = "2026-11-29T10:00:00Z", "2026-11-29T10:30:00Z"
POD = "0f4c2d1e-aaaa-bbbb-cccc-1234567890ab"


def uuid(number: int) -> str:
    return machines.uuid("GPU", number)


NOTHING = Seen()


def report(node: Node, seen: Seen = NOTHING, now: str = NOW) -> tuple[GpuTopologySpec, Seen]:
    spec, after = observe(node.sources.look(), now=now, seen=seen, version="1.2.3")
    assert spec is not None
    return spec, after


def test_a_whole_healthy_machine(h100: Node) -> None:
    spec, _ = report(h100)
    assert replace(spec, gpus=(), links=(), nics=()) == GpuTopologySpec(
        schema=2,
        asOf=NOW,
        heartbeatSeconds=300,
        source="nvml",
        agentVersion="1.2.3",
        driverVersion="550.163.01",
        numa=spec.numa,
        holders=(),
        fabric=ReportedFabric("00000000-0000-0000-0000-000000000000", 0, "completed", None),
        kubelet=ReportedKubelet(assignments=()),
        problems=(),
    )
    assert spec.gpus[5] == ReportedGpu(
        index=5,
        uuid=uuid(0x1005),
        pciBusID="0000:c3:00.0",
        product="NVIDIA H100 80GB HBM3",
        memoryMiB=81559,
        usedMiB=0,
        residueMiB=0,
        numaNode=1,
        cpus="56-111,168-223",
        pcieRoot="pci0000:bd",
        pcieSwitch="0000:be:00.0",
        nvlinks=ReportedNvlinks(18, 18, 4),
        migEnabled=False,
        eccUncorrected=0,
    )
    assert spec.links[0] == (
        "X NV18 NV18 NV18 NV18 NV18 NV18 NV18 PIX NODE NODE NODE SYS SYS SYS SYS NODE"
    )
    assert len(spec.links) == 8
    assert [(n.id, n.cpus, n.memoryMiB) for n in spec.numa] == [
        (0, "0-55,112-167", 1_031_000),
        (1, "56-111,168-223", 1_032_000),
    ]
    nic = spec.nics[7]
    assert (nic.name, nic.pcieSwitch, nic.linkLayer, nic.state, nic.rateGbps) == (
        "mlx5_7", "0000:da:00.0", "InfiniBand", "Active", 400,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("pcie-l40s", ["X PIX SYS SYS PIX SYS", "PIX X SYS SYS PIX SYS",
                       "SYS SYS X NODE SYS PHB", "SYS SYS NODE X SYS NODE"]),
        ("gb200-tray", ["X NV18 NV18 NV18", "NV18 X NV18 NV18",
                        "NV18 NV18 X NV18", "NV18 NV18 NV18 X"]),
        ("dgx-a100-mig", ["X " + "NV12 " * 6 + "NV12"]),
    ],
)  # fmt: skip
def test_what_joins_the_gpus_and_the_cards(
    driver: FakeDriver, short: Path, name: str, rows: list[str]
) -> None:
    with node_of(machines.MACHINES[name](), driver, short) as node:
        spec, _ = report(node)
    assert list(spec.links[: len(rows)]) == rows


def test_the_map_reads_back_as_a_node_map(h100: Node) -> None:
    reported = pytest.importorskip("kubectl_gpuadmit.topology.reported")
    from kubectl_gpuadmit.kube.decode import decode_object  # noqa: F401
    from kubectl_gpuadmit.kube.objects import GpuTopology

    spec, _ = report(h100)
    raw = msgspec.json.encode(
        {
            "apiVersion": "gpu-admit.io/v1alpha1",
            "kind": "GpuTopology",
            "metadata": {"name": "n-0"},
            "spec": plain(spec),
        }
    )
    obj = msgspec.json.decode(raw, type=GpuTopology)
    assert obj.spec == spec
    read = reported.from_object(obj)
    assert (read.node, read.count, read.problems) == ("n-0", 8, ())
    assert {(link.type, link.degraded) for link in read.links} == {("NV18", False)}


# -- links that are down ---------------------------------------------------------------------------


def test_a_link_that_goes_down_is_dated_and_stays_dated_over_a_restart(h100: Node) -> None:
    _, seen = report(h100)
    h100.driver.show(machines.links_down(machines.hgx_h100(), 5, 2, 6))
    spec, _ = report(h100, seen, LATER)
    assert spec.gpus[5].nvlinks == ReportedNvlinks(16, 18, 4, (2, 6), LATER)
    assert spec.links[5].split()[:8] == ["NV16"] * 5 + ["X", "NV16", "NV16"]
    again, _ = report(h100, Seen(spec=spec), "2026-11-30T00:00:00Z")
    assert again.gpus[5].nvlinks == ReportedNvlinks(16, 18, 4, (2, 6), LATER)
    h100.driver.show(machines.hgx_h100())
    healed, _ = report(h100, Seen(spec=again))
    assert healed.gpus[5].nvlinks == ReportedNvlinks(18, 18, 4)


def test_a_link_that_was_down_before_anybody_looked_is_known_by_its_siblings(h100: Node) -> None:
    h100.driver.show(machines.links_down(machines.hgx_h100(), 0, 17))
    spec, _ = report(h100)
    assert spec.gpus[0].nvlinks == ReportedNvlinks(17, 18, 4, (17,), NOW)


def test_sockets_that_never_had_a_bridge_are_not_down(driver: FakeDriver, short: Path) -> None:
    machine = machines.hgx_h100()
    for index in range(8):
        machine = machines.links_down(machine, index, *range(18))
    with node_of(machine, driver, short) as node:
        spec, _ = report(node)
    assert {gpu.nvlinks for gpu in spec.gpus} == {ReportedNvlinks(0, 0)}
    assert spec.links[0].split()[:8] == ["X", "NODE", "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"]


def test_a_gpu_that_is_cut_into_slices_has_no_links_to_miss(
    driver: FakeDriver, short: Path
) -> None:
    machine = machines.links_down(machines.dgx_a100_mig(), 0, *range(12))
    with node_of(machine, driver, short) as node:
        spec, _ = report(node)
    assert spec.gpus[0].nvlinks == ReportedNvlinks(0, 0)
    assert spec.links[0].split()[:3] == ["X", "PIX", "SYS"]


def test_all_links_of_the_machine_that_were_up_before_a_restart_are_down(h100: Node) -> None:
    spec, _ = report(h100)
    machine = machines.hgx_h100()
    for index in range(8):
        machine = machines.links_down(machine, index, *range(18))
    h100.driver.show(machine)
    dark, _ = report(h100, Seen(spec=spec), LATER)
    assert dark.gpus[3].nvlinks == ReportedNvlinks(0, 18, 4, tuple(range(18)), LATER)


def test_direct_links_count_for_their_pair_alone(driver: FakeDriver, short: Path) -> None:
    machine = machines.pcie_l40s()
    for a, b in ((0, 1), (1, 0)):
        bridge = tuple(
            machines.Link(remote=machine.gpus[b].pci, kind=machines.GPU_REMOTE) for _ in range(4)
        )
        machine = machine.with_gpu(a, links=bridge)
    with node_of(machine, driver, short) as node:
        spec, _ = report(node)
    assert [row.split()[:4] for row in spec.links] == [
        ["X", "NV4", "SYS", "SYS"], ["NV4", "X", "SYS", "SYS"],
        ["SYS", "SYS", "X", "NODE"], ["SYS", "SYS", "NODE", "X"],
    ]  # fmt: skip


def test_gpus_that_are_not_yet_part_of_the_fabric_are_named(
    driver: FakeDriver, short: Path
) -> None:
    machine = machines.counters(machines.gb200_tray(), 2, fabric__state=2)
    with node_of(machine, driver, short) as node:
        spec, _ = report(node)
    assert spec.fabric is not None
    assert spec.fabric.state == "in-progress"
    assert spec.problems == ("GPU 2: not yet part of the NVLink fabric (fabric manager)",)


# -- GPUs that are gone, errors --------------------------------------------------------------------


def test_a_lost_gpu_keeps_its_identity_and_its_place(h100: Node) -> None:
    before, seen = report(h100)
    h100.driver.show(machines.xids(machines.lost(machines.hgx_h100(), 3), (3, 79)))
    spec, _ = report(h100, seen, LATER)
    gone = spec.gpus[3]
    assert (gone.index, gone.uuid, gone.lost) == (3, uuid(0x1003), True)
    assert (gone.pcieSwitch, gone.numaNode, gone.usedMiB) == (before.gpus[3].pcieSwitch, 0, None)
    assert spec.links[3].split()[:8] == ["?", "?", "?", "X", "?", "?", "?", "?"]
    assert [row.split()[3] for row in spec.links] == ["?"] * 3 + ["X"] + ["?"] * 4
    assert spec.problems == ()


def test_a_gpu_that_the_driver_counts_no_more_is_lost_and_leaves_its_index(h100: Node) -> None:
    _, seen = report(h100)
    whole = machines.hgx_h100()
    h100.driver.show(replaced(whole, whole.gpus[:2] + whole.gpus[3:]))
    spec, after = report(h100, seen, LATER)
    assert [(gpu.index, gpu.uuid[-1], gpu.lost) for gpu in spec.gpus] == [
        (0, "0", False), (1, "1", False), (2, "3", False), (3, "4", False),
        (4, "5", False), (5, "6", False), (6, "7", False), (7, "2", True),
    ]  # fmt: skip
    assert spec.problems == (
        "the GPU at 0000:52:00.0 is on the PCI bus, and the driver does not show it",
    )
    h100.driver.show(whole)
    back, _ = report(h100, after)
    assert [(gpu.index, gpu.lost) for gpu in back.gpus] == [(i, False) for i in range(8)]


def replaced(machine: machines.Machine, gpus: tuple[machines.Gpu, ...]) -> machines.Machine:
    import dataclasses

    return dataclasses.replace(machine, gpus=gpus)


def test_a_board_that_was_exchanged_is_not_a_lost_one(h100: Node) -> None:
    _, seen = report(h100)
    h100.driver.show(machines.hgx_h100().with_gpu(4, uuid=uuid(0x9999)))
    spec, _ = report(h100, seen)
    assert [gpu.uuid[-4:] for gpu in spec.gpus if gpu.lost] == []
    assert spec.gpus[4].uuid == uuid(0x9999)


def test_xids_are_counted_by_code_and_forgotten_after_a_day(h100: Node) -> None:
    machine = machines.hgx_h100()
    h100.driver.show(machines.xids(machine, (2, 63), (2, 63), (2, 94)))
    spec, seen = report(h100)
    assert spec.gpus[2].xids == (ReportedXid(63, NOW, 2), ReportedXid(94, NOW, 1))
    h100.driver.show(machines.xids(machine, (2, 63), (2, 63), (2, 94), (2, 94)))
    spec, seen = report(h100, seen, "2026-11-30T09:00:00Z")
    assert spec.gpus[2].xids == (
        ReportedXid(63, NOW, 2),
        ReportedXid(94, "2026-11-30T09:00:00Z", 2),
    )
    spec, _ = report(h100, seen, "2026-11-30T11:00:00Z")
    assert spec.gpus[2].xids == (ReportedXid(94, "2026-11-30T09:00:00Z", 2),)


def test_memory_errors_are_told(h100: Node) -> None:
    h100.driver.show(
        machines.counters(
            machines.hgx_h100(), 1, ecc__volatile__uncorrected=3, rows__corrected=0,
            rows__uncorrected=4, rows__pending=0, rows__failed=1,
        )
    )  # fmt: skip
    gpu = report(h100)[0].gpus[1]
    assert (gpu.eccUncorrected, gpu.retiredPages, gpu.retirementPending) == (3, 4, True)


# -- memory without an owner -----------------------------------------------------------------------


def used(mib: int, *processes: tuple[int, int]) -> machines.Machine:
    return machines.hgx_h100().with_gpu(5, used_mib=mib, processes=processes)


def test_memory_in_use_that_nobody_owns_is_residue_with_a_date(h100: Node) -> None:
    h100.driver.show(used(3174))
    spec, seen = report(h100)
    assert (spec.gpus[5].residueMiB, spec.gpus[5].residueSince) == (3174, NOW)
    spec, seen = report(h100, seen, LATER)
    assert (spec.gpus[5].residueMiB, spec.gpus[5].residueSince) == (3174, NOW)
    h100.driver.show(used(4))
    spec, _ = report(h100, seen, LATER)
    assert (spec.gpus[5].residueMiB, spec.gpus[5].residueSince) == (0, None)


def test_memory_of_a_pod_that_has_just_ended_is_given_a_moment(h100: Node) -> None:
    h100.kubelet.pods = [pod("a", "b", devices=devices("nvidia.com/gpu", uuid(0x1005)))]
    h100.driver.show(used(60_000))
    _, seen = report(h100)
    h100.kubelet.pods = []
    spec, seen = report(h100, seen)
    assert spec.gpus[5].residueMiB == 0
    spec, _ = report(h100, seen, LATER)
    assert (spec.gpus[5].residueMiB, spec.gpus[5].residueSince) == (60_000, LATER)


def test_what_a_pod_was_given_is_its_own(h100: Node) -> None:
    h100.kubelet.pods = [pod("a", "b", devices=devices("nvidia.com/gpu", uuid(0x1005)))]
    h100.driver.show(used(60_000))
    assert report(h100)[0].gpus[5].residueMiB == 0


def test_a_process_of_no_pod_is_residue_also_on_a_gpu_that_a_pod_has(h100: Node) -> None:
    h100.kubelet.pods = [pod("a", "b", devices=devices("nvidia.com/gpu", uuid(0x1005)))]
    h100.driver.show(used(62_000, (10, 60_000), (11, 2_000)))
    h100.process(10, POD)
    h100.process(11)
    assert report(h100)[0].gpus[5].residueMiB == 2_000


def test_a_pod_that_takes_a_gpu_past_the_kubelet_is_an_owner_and_a_holder(h100: Node) -> None:
    h100.driver.show(used(900, (10, 880)))
    h100.process(10, POD)
    spec, _ = report(h100)
    assert spec.gpus[5].residueMiB == 0
    assert spec.holders == (
        ReportedHolder(uuid(0x1005), podUID=POD, via="process", pid=10, usedMiB=880),
    )


def test_without_a_view_of_all_processes_nobody_is_blamed(h100: Node) -> None:
    (h100.root / "proc/self/ns/pid").unlink()
    h100.driver.show(used(3174))
    spec, _ = report(h100)
    assert spec.gpus[5].residueMiB is None
    assert spec.problems == ("processes outside the agent's container cannot be seen (hostPID)",)


def test_without_the_kubelet_no_gpu_is_known_to_be_free(h100: Node) -> None:
    h100.kubelet.stop()
    h100.driver.show(used(3174))
    spec, _ = report(h100)
    h100.kubelet.start()
    assert (spec.holders, spec.gpus[5].residueMiB, spec.kubelet) == (None, None, None)
    assert spec.problems == (
        f"holders: the kubelet does not answer on {h100.kubelet.socket}: unavailable",
    )


def test_memory_on_a_mig_device_that_nobody_has_is_residue(driver: FakeDriver, short: Path) -> None:
    machine = machines.dgx_a100_mig()
    first, second = machine.gpus[1].slices
    import dataclasses

    held = dataclasses.replace(first, used_mib=9_000)
    idle = dataclasses.replace(second, used_mib=1_000)
    with node_of(machine.with_gpu(1, slices=(held, idle)), driver, short) as node:
        node.kubelet.pods = [pod("a", "b", devices=devices("nvidia.com/mig-3g.20gb", held.uuid))]
        spec, _ = report(node)
    assert spec.gpus[1].residueMiB == 1_000
    assert spec.holders == (
        ReportedHolder(
            held.uuid, "a", "b", container="main", via="device-plugin",
            resource="nvidia.com/mig-3g.20gb",
        ),
    )  # fmt: skip


# -- who has what ----------------------------------------------------------------------------------


def claim(device: str) -> dict[str, object]:
    part = {"driver_name": "gpu.nvidia.com", "pool_name": "n-0", "device_name": device}
    return {"claim_name": "big", "claim_namespace": "a", "claim_resources": [part]}


def test_a_claims_device_is_told_by_its_uuid(driver: FakeDriver, short: Path) -> None:
    with node_of(machines.dgx_a100_mig(), driver, short) as node:
        node.kubelet.pods = [
            pod("a", "whole", dynamic_resources=[claim("gpu-3")]),
            pod("a", "slice", dynamic_resources=[claim("gpu-0-mig-1g5gb-19-4")]),
            pod("a", "gone", dynamic_resources=[claim("gpu-9")]),
        ]
        spec, _ = report(node)
    assert spec.holders is not None
    assert {
        holder.pod: (holder.device, holder.via, holder.resource) for holder in spec.holders
    } == {
        "whole": (uuid(0x2003), "dra", "a/big"),
        "slice": (machines.uuid("MIG", 0x2104), "dra", "a/big"),
        "gone": ("gpu-9", "dra", "a/big"),
    }


def test_replicas_of_a_shared_gpu_count_as_one_device(h100: Node) -> None:
    shared = [f"{uuid(0x1000)}::{n}" for n in range(4)]
    h100.kubelet.allocatable = {
        "devices": devices("nvidia.com/gpu.shared", *shared)
        + devices("nvidia.com/gpu", *(uuid(0x1000 + n) for n in range(1, 8)))
    }
    h100.kubelet.pods = [
        pod("a", "two", devices=devices("nvidia.com/gpu.shared", *shared[:2])),
        pod("a", "one", devices=devices("nvidia.com/gpu.shared", shared[2])),
    ]
    spec, _ = report(h100)
    assert [(gpu.sharing, gpu.replicas) for gpu in spec.gpus[:2]] == [(None, 4), ("", None)]
    assert spec.holders is not None
    assert [(holder.device, holder.pod) for holder in spec.holders] == [
        (uuid(0x1000), "one"), (uuid(0x1000), "two"),
    ]  # fmt: skip


def test_other_devices_than_gpus_are_not_told(h100: Node) -> None:
    h100.kubelet.pods = [
        pod("a", "b", devices=devices("rdma/hca", "mlx5_0")),
        pod("a", "c", devices=devices("nvidia.com/gpu", "GPU-unknown")),
    ]
    spec, _ = report(h100)
    assert spec.holders is not None
    assert [(holder.device, holder.pod) for holder in spec.holders] == [("GPU-unknown", "c")]


def test_cpus_memory_and_the_kubelets_settings_are_told(h100: Node) -> None:
    h100.config.write_text(
        "kind: KubeletConfiguration\ntopologyManagerPolicy: restricted\n"
        "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n"
    )
    memory = {"memory_type": "memory", "size": 1 << 30, "topology": {"nodes": [{"ID": 1}]}}
    h100.kubelet.pods = [pod("a", "b", cpu_ids=[4, 5, 6, 9], memory=[memory])]
    spec, _ = report(h100)
    assert spec.kubelet == ReportedKubelet(
        topologyPolicy="restricted",
        topologyScope="container",
        topologyOptions={},
        cpuPolicy="static",
        cpuOptions={},
        memoryPolicy="None",
        reservedCpus="0-1",
        assignments=(
            ReportedAssignment(
                "a", "b", "main", "4-6,9", (ReportedMemoryBlock("memory", 1 << 30, (1,)),)
            ),
        ),
    )


# -- sources that are silent -----------------------------------------------------------------------


def test_a_silent_driver_leaves_the_last_report_with_its_own_time(h100: Node) -> None:
    before, seen = report(h100)
    h100.driver.show(machines.hgx_h100(), error="999")
    spec, _ = report(h100, seen, LATER)
    assert spec == replace(
        before, problems=("the driver: the driver does not answer: Unknown Error",)
    )


def test_a_driver_that_never_answered_leaves_what_the_bus_tells(h100: Node) -> None:
    h100.driver.unload()
    spec, _ = report(h100)
    assert (spec.source, len(spec.gpus), spec.holders) == ("sysfs", 8, None)
    assert spec.gpus[1] == ReportedGpu(
        1, pciBusID="0000:43:00.0", numaNode=0, pcieRoot="pci0000:3d",
        pcieSwitch="0000:3e:00.0", cpus="0-55,112-167",
    )  # fmt: skip
    assert spec.links[1].split()[:5] == ["NODE", "X", "NODE", "NODE", "SYS"]
    assert spec.problems == (
        "the driver: the driver does not answer: Driver Not Loaded",
        "GPUs are numbered by PCI address",
    )


def test_a_machine_without_a_gpu_has_no_report() -> None:
    for driver in (Driver("1", ()), Silent("libnvidia-ml.so.1 is not there")):
        assert observe(Look(driver, Kernel(), Grants()), now=NOW) == (None, Seen())


def printed() -> str:
    """What nvidia-smi prints of eight GPUs behind NVSwitch."""
    names = "".join(f"\tGPU{i}" for i in range(8))
    rows = [
        f"GPU{i}" + "".join("\t X " if i == j else "\tNV18" for j in range(8)) for i in range(8)
    ]
    return "\n".join([names, *rows]) + "\n"


def test_nvidia_smi_is_asked_where_nvml_is_silent(h100: Node) -> None:
    h100.driver.unload()
    h100.smi = printed()
    spec, _ = report(h100)
    assert spec.source == "nvidia-smi"
    assert spec.links[0].split()[:9] == ["X", *["NV18"] * 7, "PIX"]
    h100.smi = "nvidia-smi: command not found"
    spec, _ = report(h100)
    assert (spec.source, spec.links[0].split()[:3]) == ("sysfs", ["X", "NODE", "NODE"])


def test_links_that_do_not_tell_where_they_lead_are_asked_of_nvidia_smi(h100: Node) -> None:
    machine = machines.hgx_h100()
    mute = tuple(machines.Link(kind=255) for _ in range(18))
    for index in range(8):
        machine = machine.with_gpu(index, links=mute)
    h100.driver.show(machine)
    spec, _ = report(h100)
    assert spec.links[0].split()[:4] == ["X", "?", "?", "?"]
    assert spec.problems == ("what joins 28 of the pairs of GPUs could not be read",)
    h100.smi = printed()
    spec, _ = report(h100)
    assert (spec.links[0].split()[:3], spec.problems) == (["X", "NV18", "NV18"], ())


# -- when it is worth a write ----------------------------------------------------------------------


def test_only_news_is_worth_a_write(h100: Node) -> None:
    h100.driver.show(used(3000))
    spec, seen = report(h100)
    assert changed(None, spec)
    h100.driver.show(used(3400))
    same, seen = report(h100, seen, LATER)
    assert (changed(spec, same), drifted(spec, same)) == (False, False)
    h100.driver.show(used(9000))
    more, seen = report(h100, seen, LATER)
    assert (changed(spec, more), drifted(spec, more)) == (False, True)
    h100.driver.show(used(0))
    none, _ = report(h100, seen, LATER)
    assert changed(more, none), "the residue is gone"


def test_an_error_is_news_once_and_its_count_waits_for_the_heartbeat(h100: Node) -> None:
    spec, seen = report(h100)
    machine = machines.hgx_h100()
    h100.driver.show(machines.xids(machine, (2, 13)))
    first, seen = report(h100, seen)
    assert changed(spec, first)
    h100.driver.show(machines.xids(machine, (2, 13), (2, 13)))
    second, _ = report(h100, seen, LATER)
    assert (changed(first, second), drifted(first, second)) == (False, True)


def test_a_pci_place_alone_says_nothing_of_the_driver() -> None:
    kernel = Kernel(gpus=(PciPlace("0000:1b:00.0", "pci0000:15"),))
    spec, _ = observe(Look(Silent("gone"), kernel, Silent("gone too")), now=NOW)
    assert spec is not None
    assert spec.problems == (
        "the driver: gone", "GPUs are numbered by PCI address", "holders: gone too",
    )  # fmt: skip

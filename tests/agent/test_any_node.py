"""Whatever driver, kernel and kubelet say, in whatever order of days: the map stays readable."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.kube.gpu_topology_object import document
from kubectl_gpuadmit.kube.objects import GpuTopology
from kubectl_gpuadmit.kube.times import stamp
from kubectl_gpuadmit.topology.news import changed, drifted
from kubectl_gpuadmit.topology.observe import Look, Seen, observe
from kubectl_gpuadmit.topology.readings import (
    Board,
    Card,
    ClaimGrant,
    ContainerGrant,
    DeviceGrant,
    Driver,
    FabricState,
    Grants,
    Kernel,
    MigDevice,
    PciPlace,
    Port,
    Process,
    Silent,
    Socket,
)
from kubectl_gpuadmit.topology.reported import from_object

UUIDS = [f"GPU-{n}" for n in range(6)]
ADDRESSES = [f"0000:{n + 16:02x}:00.0" for n in range(6)]
REMOTES = ["", "0000:07:00.0", "0000:08:00.0", *ADDRESSES]
MAYBE = st.none() | st.integers(0, 3)
MIB = st.none() | st.integers(0, 90_000)

ports = st.lists(st.tuples(st.booleans(), st.sampled_from(REMOTES)), max_size=5).map(
    lambda drawn: tuple(
        Port(number, up, 4, "switch" if remote in REMOTES[1:3] else "", remote)
        for number, (up, remote) in enumerate(drawn)
    )
)
migs = st.lists(st.integers(0, 3), max_size=3, unique=True).map(
    lambda drawn: tuple(
        MigDevice(f"MIG-{n}", "1g.5gb", n, 1, 4864, 10 * n, n, 0) for n in sorted(drawn)
    )
)
processes = st.none() | st.lists(st.tuples(st.integers(1, 5), MIB), max_size=3).map(
    lambda drawn: tuple(Process(pid, mib) for pid, mib in dict(drawn).items())
)
fabrics = st.none() | st.builds(
    FabricState,
    st.sampled_from(["not-supported", "not-started", "in-progress", "completed"]),
    st.sampled_from(["", "u-1"]),
    MAYBE,
    st.none() | st.booleans(),
)


@st.composite
def boards(draw: Any) -> tuple[Board, ...]:
    """Boards with the identities of some of six GPUs; MIG devices are of the first alone."""
    who = draw(st.lists(st.integers(0, 5), max_size=5, unique=True))
    found = []
    for index, n in enumerate(who):
        lost = draw(st.integers(0, 4)) == 0
        known = not lost or draw(st.booleans())
        found.append(
            Board(
                index=index,
                uuid=UUIDS[n] if known else "",
                pci=ADDRESSES[n] if known else "",
                name="H100",
                minor=index,
                memory_mib=draw(MIB),
                used_mib=draw(MIB),
                numa=draw(MAYBE),
                mig_enabled=draw(st.none() | st.booleans()),
                mig=draw(migs) if index == 0 else (),
                ports=draw(ports),
                fabric=draw(fabrics),
                processes=draw(processes),
                ecc_uncorrected=draw(MAYBE),
                retired_pages=draw(MAYBE),
                retirement_pending=draw(st.none() | st.booleans()),
                lost=lost,
            )
        )
    return tuple(found)


drivers = st.builds(
    lambda found, levels, xids: Driver("1", found, tuple(levels), tuple(xids)),
    boards(),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(3, 4), st.sampled_from(["PIX", "SYS"])), max_size=3
    ),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([13, 63, 79])), max_size=3),
) | st.just(Silent("gone", "nvml-silent"))
places = st.builds(
    PciPlace,
    st.sampled_from(ADDRESSES),
    st.sampled_from(["", "pci0000:15", "pci0000:80"]),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True).map(tuple),
    MAYBE,
)
kernels = st.builds(
    lambda gpus, cards, sockets: Kernel(
        tuple({place.address: place for place in gpus}.values()),
        tuple(Card(f"mlx5_{n}", place) for n, place in enumerate(cards)),
        tuple(Socket(n, f"{n}") for n in sockets),
    ),
    st.lists(places, max_size=5),
    st.lists(st.none() | places, max_size=2),
    st.lists(st.integers(0, 3), max_size=3, unique=True),
)
devices = st.sampled_from([*UUIDS, f"{UUIDS[0]}::1", "MIG-0", "other"])
containers = st.builds(
    lambda n, ids, claim, cpus: ContainerGrant(
        "team",
        f"pod-{n}",
        "main",
        (DeviceGrant("nvidia.com/gpu", tuple(ids)),),
        tuple(ClaimGrant("team", "c", "gpu.nvidia.com", "n", one) for one in claim),
        tuple(cpus),
    ),
    st.integers(0, 3),
    st.lists(devices, max_size=3),
    st.lists(st.sampled_from(["gpu-0", "gpu-7", "gpu-0-mig-1g5gb-19-0", "?"]), max_size=2),
    st.lists(st.integers(0, 9), max_size=4, unique=True),
)
grants = st.just(Silent("no socket")) | st.builds(
    lambda found, ids: Grants(tuple(found), (DeviceGrant("nvidia.com/gpu", tuple(ids)),)),
    st.lists(containers, max_size=3),
    st.lists(devices, max_size=4),
)
looks = st.builds(
    Look,
    drivers,
    kernels,
    grants,
    st.dictionaries(st.integers(1, 5), st.sampled_from([None, "", "u-1"]), max_size=4),
    st.booleans(),
)


@settings(max_examples=40)
@given(st.lists(looks, min_size=1, max_size=5))
def test_any_days_of_a_node_give_maps_that_read_back(days: list[Look]) -> None:
    seen = Seen()
    for number, look in enumerate(days):
        now = stamp(dt.datetime(2026, 11, 29, tzinfo=dt.UTC) + dt.timedelta(hours=number))
        before = seen.spec
        spec, seen = observe(look, now=now, seen=seen)
        again, _ = observe(look, now=now, seen=Seen(before) if number == 0 else seen)
        if spec is None:
            assert before is None
            continue
        raw = msgspec.json.encode(document("n", spec))
        stored = msgspec.json.decode(raw, type=GpuTopology)
        assert stored.spec == spec, "what is left out reads as it was"
        read = from_object(stored)
        assert read.count == len(spec.gpus)
        contradictions = [p for p in read.problems if "contradict" in p or "not a matrix" in p]
        assert contradictions == []
        assert not changed(spec, spec)
        assert not drifted(spec, spec)
        assert again is not None
        known = {gpu.uuid for gpu in before.gpus if gpu.uuid} if before is not None else set()
        slots = {gpu.pciBusID for gpu in spec.gpus}
        kept = {gpu.uuid for gpu in spec.gpus}
        gone = [
            gpu
            for gpu in (before.gpus if before is not None else ())
            if gpu.uuid in known - kept and gpu.pciBusID not in slots
        ]
        assert gone == [], "a GPU that was there once is lost, not forgotten"

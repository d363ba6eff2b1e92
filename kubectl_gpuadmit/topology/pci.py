"""How near two PCI devices are, from the bridges above them; in the words of ``nvidia-smi topo``.

PIX: one switch, or one bridge, at most. PXB: several, below one root port. PHB: one host bridge.
NODE: one NUMA node. SYS: across NUMA nodes. (Legend of ``nvidia-smi topo -m``;
nvmlGpuTopologyLevel_t in nvml.h.)
"""

from __future__ import annotations

from kubectl_gpuadmit.topology.readings import PciPlace


def switch(place: PciPlace) -> str:
    """Address of the upstream port of the lowest PCIe switch above the device, '' for none.

    A switch shows as two bridges, upstream and downstream port, below the root port: three bridges
    at least. Fewer are a root port alone, or what a hypervisor shows.
    """
    return place.bridges[-2] if len(place.bridges) >= 3 else ""


def level(a: PciPlace, b: PciPlace) -> str:
    """PIX, PXB, PHB, NODE or SYS; '' where the kernel does not say enough."""
    if not a.root or not b.root:
        return ""
    if a.root == b.root:
        if switch(a) and switch(a) == switch(b):
            return "PIX"
        if a.bridges and b.bridges and a.bridges[0] == b.bridges[0]:
            return "PIX" if len(a.bridges) == len(b.bridges) == 1 else "PXB"
        return "PHB"
    if a.numa is None or b.numa is None:
        return ""
    return "NODE" if a.numa == b.numa else "SYS"

"""A pod's way down to its devices, for a terminal and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kubectl_gpuadmit.overview.lineage import Lineage, Step
from kubectl_gpuadmit.render.topology.words import SOURCES

if TYPE_CHECKING:
    from rich.text import Text

UNKNOWN = "not known"


def text(found: Lineage, *, width: int = 80, ascii: bool = False) -> Text:
    """One block a device, one fact a line, from the outside in."""
    from kubectl_gpuadmit.render.page import Page

    page = Page(width, ascii=ascii)
    where = f"on {found.node}" if found.node else "without a node"
    page.line(
        (f"pod/{found.pod}", "bold"),
        (f" · {found.namespace} · {found.phase or 'phase not known'} · {where}", ""),
    )
    facts = [("class", found.workload_class or "none")]
    facts += [(f"label {key}", value) for key, value in found.labels]
    facts += [(f"image of {name}", image) for name, image in found.images]
    for what, value in facts:
        page.block([(f"  {what:<26}  ", "dim")], value, indent=30)
    if not found.steps:
        page.line(("  it asks for no GPU", ""))
    for number, step in enumerate(found.steps, start=1):
        page.blank()
        head = f"device {number}" if step.count == 1 else f"{step.count} devices"
        page.line((f"  {head}", "bold"), (f"  {step.resource}", ""))
        for what, value in _facts(step):
            style = "dim" if value == UNKNOWN else ""
            page.block([(f"    {what:<14}", "dim")], value, indent=18, style=style)
    return page.text


def _facts(step: Step) -> Iterator[tuple[str, str]]:
    yield "given by", "DRA" if step.via == "dra" else "the device plugin"
    if step.container:
        yield "container", step.container
    if step.device:
        yield "device", step.device
    if step.count > 1 or not (step.uuid or step.device):
        yield "which one", UNKNOWN
        return
    yield "UUID", step.uuid or UNKNOWN
    yield "PCI", step.pci_bus_id or UNKNOWN
    yield "NUMA node", UNKNOWN if step.numa is None else str(step.numa)
    if step.index is not None:
        yield "GPU of node", str(step.index)
    if step.profile:
        yield "MIG profile", step.profile
    memory = f", {step.memory_mib} MiB" if step.memory_mib else ""
    yield "product", (step.product or UNKNOWN) + memory
    yield "told by", SOURCES.get(step.source, UNKNOWN)


def to_json(found: Lineage) -> dict[str, Any]:
    """The lineage as a member of ``gpu-admit.io/topology/v1``."""
    return {
        "namespace": found.namespace,
        "pod": found.pod,
        "node": found.node or None,
        "phase": found.phase or None,
        "class": found.workload_class,
        "labels": dict(found.labels),
        "images": dict(found.images),
        "devices": [
            {
                "via": step.via,
                "resource": step.resource,
                "device": step.device or None,
                "container": step.container or None,
                "gpu": step.index,
                "uuid": step.uuid,
                "pciBusId": step.pci_bus_id,
                "numa": step.numa,
                "pcieRoot": step.pcie_root,
                "product": step.product,
                "memoryMiB": step.memory_mib,
                "migProfile": step.profile or None,
                "source": step.source or None,
                "count": step.count,
            }
            for step in found.steps
        ],
    }

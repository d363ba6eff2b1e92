"""Every pasted matrix of the corpus is read as its index says, or refused for the right reason."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from kubectl_gpuadmit.errors import BadMatrix
from kubectl_gpuadmit.topology.islands import islands
from kubectl_gpuadmit.topology.model import NodeMap
from kubectl_gpuadmit.topology.smi import Reading, read_smi
from tests.corpus import Item, items, needs_corpus

MATRICES = [one for one in items("topo") if one.expected.startswith("gpus=")]
OTHERS = [one for one in items("topo") if not one.expected.startswith("gpus=")]

pytestmark = needs_corpus


def pairs(found: NodeMap) -> str:
    counted = Counter(link.type for link in found.links or ())
    return ", ".join(f"{type}x{n}" for type, n in sorted(counted.items())) or "none"


def domains(found: NodeMap) -> str:
    joined = islands(found)
    if joined is None:  # GPUs without a known link to the rest: a row that was cut off
        assert not any(link.lanes for link in found.links or ())
        return "none"
    told = []
    for island in joined:
        members = "{" + ",".join(map(str, island.gpus)) + "}"
        inside = [link for link in found.links or () if {link.a, link.b} <= set(island.gpus)]
        nv = sum(1 for link in inside if link.lanes)
        wanted = len(island.gpus) * (len(island.gpus) - 1) // 2
        words = {
            "all-to-all": "all-to-all",
            "partial": f"partial mesh {nv}/{wanted} pairs",
            "unknown": f"all known pairs NVLink ({nv} of {wanted} pairs in the text, rest unknown)",
        }
        if len(island.gpus) > 1:
            told.append(f"{members} {words[island.mesh]}")
    return "; ".join(told) or "none"


def numa(found: NodeMap, wanted: str) -> str:
    where: dict[str, list[int]] = {}
    for gpu in found.gpus:
        where.setdefault(gpu.numa_affinity or "?", []).append(gpu.index)
    if where.get("?") and len(where) > 1:
        del where["?"]  # rows that were cut off
    text = ", ".join(f"{node}:[{','.join(map(str, who))}]" for node, who in where.items())
    if "gpu numa id" in wanted:
        text += "; gpu numa id: " + ", ".join(f"{g.index}={g.memory_numa}" for g in found.gpus)
    return text


def told(reading: Reading, wanted: str) -> str:
    (found,) = reading.maps
    return (
        f"gpus={found.count}; pairs: {pairs(found)}; nvlink domains: {domains(found)}; "
        f"numa: {numa(found, wanted)}"
    )


def expected(item: Item) -> str:
    """SOC is what SYS was called before; N/A and an absent column both tell nothing; what cannot be
    told of rows that are not there, and judgements after the bar, are not of the reading."""
    text = item.expected.split(" | ")[0].replace("SOCx", "SYSx").replace("numa: N/A:", "numa: ?:")
    if item.row["complete"] == "truncated":
        rows = len(re.findall(r"^[| ]*GPU\d+\s*[|\s].*(?:NV|SYS)", item.path.read_text(), re.M))
        assert rows
        count = int(item.row["gpu_count"])
        text = re.sub(r"numa: \?:.*", f"numa: ?:[{','.join(map(str, range(count)))}]", text)
    return text


@pytest.mark.parametrize("item", MATRICES, ids=lambda one: one.path.stem)
def test_a_matrix_is_read_as_the_index_says(item: Item) -> None:
    reading = read_smi(item.path.read_text(encoding="utf-8"))
    assert told(reading, item.expected) == expected(item)
    assert not reading.problems
    shortened = item.row["complete"] == "truncated" or "No affinity columns" in item.notes
    assert bool(reading.missing) == shortened, reading.missing


@pytest.mark.parametrize("item", OTHERS, ids=lambda one: one.path.stem)
def test_what_is_no_matrix_is_refused(item: Item) -> None:
    with pytest.raises(BadMatrix) as refused:
        read_smi(item.path.read_text(encoding="utf-8"))
    assert refused.value.ref == "not-a-matrix"
    assert ("nvlink -s" in refused.value.message) == ("nvlink" in item.path.name)

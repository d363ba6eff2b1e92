"""Sentences about a node that text and page say alike."""

from __future__ import annotations

from kubectl_gpuadmit.overview.ages import spell
from kubectl_gpuadmit.overview.model import SIZES, NodeView, PoolView
from kubectl_gpuadmit.render.wording import plural

SOURCES = {
    "agent": "agent map",
    "smi": "nvidia-smi topo -m",
    "slices": "ResourceSlices",
    "labels": "labels of GPU Feature Discovery",
    "allocatable": "allocatable resources",
}


def source_words(node: NodeView) -> str:
    """``agent map 12 s old``; what is assumed instead of seen is said."""
    words = SOURCES[node.map.source]
    if node.age_seconds is not None:
        words += f" {spell(node.age_seconds)} old"
    if node.map.assumed:
        words += f" · assumed: {node.map.assumed}"
    return words


def subtitle(node: NodeView) -> str:
    """``8 × H100-80GB · NVLink, 1 island of 8 · 2 NUMA nodes``."""
    product = node.map.product or "GPU"
    parts = [f"{node.total} × {product}"]
    joined = [len(one) for one in node.islands or () if len(one) > 1]
    if joined and len(set(joined)) == 1 and len(joined) == len(node.islands or ()):
        parts.append(f"NVLink, {plural(len(joined), 'island')} of {joined[0]}")
    elif joined:
        parts.append(f"NVLink, islands of {' + '.join(str(len(o)) for o in node.islands or ())}")
    elif node.islands is not None and node.total > 1:
        parts.append("no NVLink")
    numas = {view.gpu.numa for view in node.gpus if view.gpu.numa is not None}
    if numas:
        parts.append(f"{plural(len(numas), 'NUMA node')}")
    if node.sharing:
        parts.append(node.sharing)
    return " · ".join(parts)


def next_placement(node: NodeView) -> str:
    """``free: 3 whole GPUs · clean for 2: 1 placement · for 4: none``."""
    if node.free is None:
        return "free: not known"
    words = f"free: {plural(node.free, 'whole GPU')}"
    if node.clean is None:
        return f"{words} · which of them belong together is not known"
    largest = max((size for size in SIZES if node.clean.get(size)), default=0)
    missing = next((s for s in SIZES if s > largest and s <= max(node.total, 1)), 0)
    if largest > 1:
        words += f" · clean for {largest}: {plural(node.clean[largest], 'placement')}"
    if missing:
        words += f" · for {missing}: none"
    return words


def islands_words(pool: PoolView) -> str:
    """``1 split``, ``whole``; of ``2 ?`` nodes it is not known, ``2 shared`` have none."""
    words = [f"{pool.split:,} split"] if pool.split else []
    if pool.shared:
        words.append(f"{pool.shared:,} shared")
    if pool.unclear:
        words.append(f"{pool.unclear:,} ?")
    return ", ".join(words) or "whole"

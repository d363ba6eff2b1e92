"""An overview of matrices that somebody pasted: wires are known, holders are not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from kubectl_gpuadmit.overview.model import GpuView, NodeView, Overview
from kubectl_gpuadmit.overview.nodes import members
from kubectl_gpuadmit.topology.model import NodeMap


def of_maps(
    maps: Sequence[NodeMap], *, source: str, now: dt.datetime, missing: Sequence[str] = ()
) -> Overview:
    """``missing``: what the text does not tell, a sentence each."""
    nodes = tuple(_view(found) for found in maps)
    return Overview(source, "text", now, (), (), nodes, tuple(missing))


def _view(found: NodeMap) -> NodeView:
    grouped = members(found)
    number = {index: i for i, one in enumerate(grouped or ()) for index in one}
    return NodeView(
        name=found.node or "pasted",
        pool="",
        map=found,
        total=max(len(found.gpus), found.count),
        held=None,
        free=None,
        unfree=0,
        unhealthy=0,
        gpus=tuple(GpuView(gpu, "unknown", island=number.get(gpu.index)) for gpu in found.gpus),
        islands=grouped,
    )

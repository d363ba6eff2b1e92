"""Models that init containers fetch into a volume, for an engine that is told only the path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_gpuadmit.sizing.startup.blanks import is_known
from kubectl_gpuadmit.sizing.startup.commands import programs
from kubectl_gpuadmit.sizing.startup.container import ConfigData, started

Downloads = dict[tuple[str, str], tuple[str, str]]
"""(volume, path in it) -> the model that is downloaded there, and who says so."""


def downloads(
    inits: Sequence[Mapping[str, Any]],
    *,
    spec: Mapping[str, Any],
    metadata: Mapping[str, Any],
    config: ConfigData,
) -> Downloads:
    """Those of a pod's init containers."""
    found: Downloads = {}
    for index, container in enumerate(inits):
        one = started(
            container,
            f"/spec/initContainers/{index}",
            spec=spec,
            metadata=metadata,
            config=config,
        )
        for program in programs(one):
            words = program.words
            if words[0].rpartition("/")[2] not in ("huggingface-cli", "hf") or len(words) < 3:
                continue
            if words[1] != "download" or "--local-dir" not in words:
                continue
            at = words.index("--local-dir") + 1
            place = one.files.place(words[at]) if at < len(words) else None
            if place and is_known(words[2]) and not words[2].startswith("-"):
                found[place] = (words[2], f"init container {one.name} downloads it")
    return found

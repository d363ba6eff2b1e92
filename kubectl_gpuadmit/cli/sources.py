"""Where a command's cluster comes from: the snapshot that it names."""

from __future__ import annotations

import datetime as dt

from msgspec import Struct

from kubectl_gpuadmit.cli.question import instant, needs_live
from kubectl_gpuadmit.cluster import Cluster


class Taken(Struct, frozen=True):
    """A cluster, and the moment that it shows."""

    cluster: Cluster
    as_of: dt.datetime
    name: str
    assumed: str = ""
    """A sentence where the source does not say the moment itself."""


def cluster_of(path: str, *, now: str, command: str) -> Taken:
    """The cluster at ``path``. Raises Unanswerable where none is named: it would be a live one."""
    if not path:
        needs_live(f"{command} without --snapshot reads a live cluster")
    from kubectl_gpuadmit.adapters.snapshot import load_snapshot

    read = load_snapshot(path)
    as_of = instant(now) if now else read.as_of
    if as_of is not None:
        return Taken(read.cluster, as_of, path)
    moment = read.modified.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Taken(
        read.cluster,
        read.modified,
        path,
        assumed=f"{path} does not say when it was taken; its newest file says {moment}"
        " (--now sets it)",
    )

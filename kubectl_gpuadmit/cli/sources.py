"""Where a command's cluster comes from: the snapshot that it names, else the live cluster."""

from __future__ import annotations

import datetime as dt

from msgspec import Struct

from kubectl_gpuadmit.cli.ending import hold
from kubectl_gpuadmit.cli.question import instant
from kubectl_gpuadmit.cluster import Cluster


class Taken(Struct, frozen=True):
    """A cluster, and the moment that it shows."""

    cluster: Cluster
    as_of: dt.datetime
    name: str
    assumed: str = ""
    """A sentence where the source does not say the moment itself."""


def cluster_of(path: str, *, now: str, context: str = "", kubeconfig: str = "") -> Taken:
    """The cluster at ``path``; where none is named, everything of the live one that the engine
    reads. Raises Unanswerable."""
    if not path:
        return _live(now, context=context, kubeconfig=kubeconfig)
    from kubectl_gpuadmit.adapters.snapshot import load_snapshot

    read = hold(load_snapshot(path))
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


def _live(now: str, *, context: str, kubeconfig: str) -> Taken:
    from kubectl_gpuadmit.adapters.kube.connection import Access
    from kubectl_gpuadmit.adapters.kube.kubeconfig import connect
    from kubectl_gpuadmit.adapters.kube.reading import read_cluster, server_version
    from kubectl_gpuadmit.needs import EVERYTHING

    connection = connect(Access(kubeconfig=kubeconfig, context=context))
    server_version(connection)
    as_of = instant(now) if now else dt.datetime.now(dt.UTC).replace(microsecond=0)
    facts = read_cluster(connection, EVERYTHING, homes=[connection.namespace], everywhere=True)
    refused = "; ".join(one.why for one in facts.absences)
    return Taken(
        facts.cluster,
        as_of,
        connection.name,
        assumed=f"not in the snapshot: {refused}" if refused else "",
    )

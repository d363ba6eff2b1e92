"""What a live cluster itself says beside the engine's answer: what happened, and dry runs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from kubectl_gpuadmit.cli.session import Session, workloads_of
from kubectl_gpuadmit.verdict import Ref, Report, Verdict

if TYPE_CHECKING:
    from kubectl_gpuadmit.adapters.kube.connection import Connection
    from kubectl_gpuadmit.cluster import Cluster
    from kubectl_gpuadmit.happened.history import History
    from kubectl_gpuadmit.kube.manifests import Document
    from kubectl_gpuadmit.kube.requester import Requester

Key = tuple[str, str, str]
"""Kind, namespace and name."""


def key_of(ref: Ref) -> Key:
    return ref.kind, ref.namespace, ref.name


def key_of_object(stored: dict[str, Any]) -> Key:
    meta = stored["metadata"]
    return str(stored["kind"]), str(meta.get("namespace", "")), str(meta["name"])


def histories_of(connection: Connection, objects: Sequence[dict[str, Any]]) -> dict[Key, History]:
    """What happened to each of these live objects."""
    from kubectl_gpuadmit.adapters.kube.history import history_of
    from kubectl_gpuadmit.adapters.kube.listing import in_parallel

    found = in_parallel(lambda obj: history_of(connection, obj), objects)
    return {key_of_object(stored): history for stored, history in zip(objects, found, strict=True)}


def _history(verdict: Verdict, histories: dict[Key, History]) -> History | None:
    return histories.get(key_of(verdict.ref))


def with_histories(report: Report, histories: dict[Key, History], now: dt.datetime) -> Report:
    """The report with what happened to those of its workloads that have a history."""
    if not histories:
        return report
    from kubectl_gpuadmit.happened import with_history

    told = [
        with_history(verdict, history, now=now)
        if (history := _history(verdict, histories)) is not None
        else verdict
        for verdict in report.workloads
    ]
    return structs.replace(report, workloads=tuple(told))


def all_placed(report: Report, histories: dict[Key, History]) -> bool:
    """Whether every workload runs on nodes; of manifests, whether every one would."""
    from kubectl_gpuadmit.happened.history import placed

    for verdict in report.workloads:
        history = _history(verdict, histories)
        if history is not None:
            if not placed(verdict, history):
                return False
        elif verdict.admission not in ("admitted", "mutated") or verdict.placement != "fits":
            return False
    return bool(report.workloads)


def asked_of_server(
    session: Session,
    report: Report,
    cluster: Cluster,
    documents: Sequence[Document],
    now: dt.datetime,
    requester: Requester | None,
) -> Report:
    """Each workload with a dry run of one pod a role beside our verdict on that pod."""
    from kubectl_gpuadmit.adapters.kube.dry_run import ask
    from kubectl_gpuadmit.agreement import compared, expanded_pod
    from kubectl_gpuadmit.engine import evaluate
    from kubectl_gpuadmit.kube.manifests import Document as ManifestDocument
    from kubectl_gpuadmit.policy import Policy

    verdicts = {key_of(v.ref): v for v in report.workloads}
    for workload in workloads_of(documents, session, cluster):
        ref = workload.ref
        key = key_of(ref)
        if key not in verdicts:
            continue
        stored = cluster.get(ref.kind, ref.namespace, ref.name)
        uid = (stored.metadata.uid or "") if stored else ""
        for group in workload.groups:
            pod = expanded_pod(workload, group, uid=uid)
            one = ManifestDocument(file=f"a pod of {ref}", index=0, line=0, data=pod)
            ours = evaluate(
                [one],
                cluster,
                Policy.default(),
                now=now,
                source=report.source,
                namespace=ref.namespace,
                with_remedies=False,
                kubernetes=session.version,
                requester=requester,
            )
            if not ours.workloads:
                continue
            answer = ask(session.connection, pod, role=group.role)
            verdicts[key] = compared(verdicts[key], ours.workloads[0], answer)
    kept = [verdicts[key_of(v.ref)] for v in report.workloads]
    return structs.replace(report, workloads=tuple(kept))

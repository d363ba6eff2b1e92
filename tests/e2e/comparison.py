"""What a running control plane makes of a run's pods beside what we say; lists the differences.

Policy rules have no counterpart in Kubernetes, so the run is judged under the default policy, which
changes nothing and refuses nothing that Kubernetes admits.
"""

from __future__ import annotations

import copy
import datetime as dt
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.brought_along import APPLIED
from kubectl_gpuadmit.cluster import Cluster, Key
from kubectl_gpuadmit.engine import evaluate
from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube.decode import convert, decode_bulk
from kubectl_gpuadmit.kube.manifests import Document, read_documents
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload, expand
from kubectl_gpuadmit.placement.place import Placed, place
from kubectl_gpuadmit.policy import Policy
from kubectl_gpuadmit.verdict import Report, Source, Verdict
from tests.controlplane.bed import ControlPlane, Outcome
from tests.controlplane.client import ApiError, Client, Json
from tests.controlplane.loading import load
from tests.differential.ours import comparable

READ = (
    *(("v1", kind) for kind in ("Namespace", "Node", "Pod", "ResourceQuota", "LimitRange")),
    *(("v1", kind) for kind in ("ServiceAccount", "PersistentVolumeClaim", "PersistentVolume")),
    ("policy/v1", "PodDisruptionBudget"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSIStorageCapacity"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding"),
)
"""The kinds that the engine asks about."""


class Compared(Struct):
    """One pod group: what we said and what the control plane did."""

    workload: str
    ours: str
    theirs: str
    differences: list[str]


def cluster_of(bed: ControlPlane) -> Cluster:
    """The cluster as it is now, read through our own decoder."""
    items = [item for api, kind in READ for item in bed.client.list(api, kind)]
    raw = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    objects, _ = decode_bulk(raw, "the API server")
    return Cluster.of(objects, {kind for _, kind in READ})


def compare(bed: ControlPlane, file: Path, *, namespace: str = "default") -> list[Compared]:
    """Judges the file's workloads, then lets the control plane judge their pods, one by one."""
    found = read_documents(file.read_bytes(), file.name)
    documents = [d for d in found if not isinstance(d, BadManifest)]
    cluster = cluster_of(bed)
    now = dt.datetime.now(dt.UTC)
    report = judged(documents, cluster, now, namespace)
    bring(bed, documents, namespace)
    settle(bed)
    verdicts = {verdict.ref: verdict for verdict in report.workloads}
    compared: list[Compared] = []
    for document in documents:
        workload = None if document.data.get("kind") in APPLIED else expand(document)
        if isinstance(workload, Workload) and workload.groups:
            world = cluster_of(bed)
            compared += compare_workload(bed, workload, verdicts[workload.ref], world, now)
    return compared


def judged(
    documents: Iterable[Document], cluster: Cluster, now: dt.datetime, namespace: str
) -> Report:
    return evaluate(
        list(documents),
        cluster,
        Policy.default(),
        now=now,
        source=Source("live", "the test's control plane"),
        namespace=namespace,
        with_remedies=False,
    )


def bring(bed: ControlPlane, documents: Iterable[Document], namespace: str) -> None:
    """Applies what the run brings along besides workloads."""
    for document in documents:
        if document.data.get("kind") == "Namespace":
            meta = document.data["metadata"]
            bed.namespace(meta["name"], labels=meta.get("labels"))
        elif document.data.get("kind") in APPLIED:
            wanted = copy.deepcopy(document.data)
            wanted.setdefault("metadata", {}).setdefault("namespace", namespace)
            bed.client.create(wanted)


def settle(bed: ControlPlane) -> None:
    """Waits until every quota has been counted since its last change of spec."""

    def counted() -> bool:
        quotas = bed.client.list("v1", "ResourceQuota")
        return all(set(q["spec"]["hard"]) == set(q["status"].get("hard", ())) for q in quotas)

    bed.wait(counted, what="the quota controller")


# -- one workload


def compare_workload(
    bed: ControlPlane, workload: Workload, verdict: Verdict, cluster: Cluster, now: dt.datetime
) -> list[Compared]:
    """Creates the workload's pods in order, as its controllers would, until one is refused."""
    compared: list[Compared] = []
    refusal = object_refusal(bed.client, workload)
    if refusal and verdict.admission != "denied":
        name, answer = str(workload.ref), f"{verdict.admission}, {verdict.placement}"
        different = f"the API server refuses the {workload.ref.kind} itself: {refusal}"
        compared.append(Compared(name, answer, refusal, [different]))
    if "strict decoding error" in refusal and verdict.admission == "denied":
        own = {str(e.observed) for f in verdict.findings for e in f.evidence if e.what == "message"}
        other = [] if refusal in own else [f"ours: {sorted(own)}, the API server: {refusal}"]
        return [Compared(str(workload.ref), "denied", refusal, other)]  # and makes no pods
    for group in workload.groups:
        name = f"{workload.ref}" + (f" [{group.role}]" if group.role else "")
        if group.scheduled_by_daemonset or not group.count:
            continue
        documents = [pod_document(group, number) for number in range(group.count)]
        refused, created = create(bed.client, documents)
        differences = list(admission_differences(verdict, refused, len(created), group))
        outcomes = [bed.outcome(p["metadata"]["namespace"], p["metadata"]["name"]) for p in created]
        pod = chain.mutate(group.pod, cluster).pod
        placed = place(cluster, pod, max(len(created), 1), now=now)
        if created:
            differences += defaulting_differences(pod, created[0])
            differences += placement_differences(placed, outcomes)
        compared.append(Compared(name, said(verdict, placed), did(refused, outcomes), differences))
    return compared


def object_refusal(client: Client, workload: Workload) -> str:
    """Why the workload's own object is refused; '' where it is not or the server lacks its kind."""
    document = copy.deepcopy(workload.manifest)
    document["metadata"]["namespace"] = workload.ref.namespace
    try:
        client.create(document, dry_run="All", validation="Strict")  # as kubectl does
    except KeyError:
        return ""
    except ApiError as problem:
        unknown = problem.reason in ("NotFound", "") and problem.status == 404
        return "" if unknown and workload.ref.kind != "Pod" else problem.message
    return ""


def pod_document(group: PodGroup, number: int) -> Json:
    """The pod as its controller would create it."""
    document: dict[str, Any] = copy.deepcopy(group.template)
    meta = document.setdefault("metadata", {}) or {}
    document["metadata"] = meta
    for key in ("ownerReferences", "uid", "resourceVersion", "creationTimestamp"):
        meta.pop(key, None)
    meta["namespace"] = group.pod.namespace
    meta["labels"] = dict(group.pod.labels)
    if group.names or group.pod.name:
        meta["name"] = group.name(number)
        meta.pop("generateName", None)
    else:
        meta["generateName"] = group.pod.metadata.generateName or "pod-"
        meta.pop("name", None)
    return {**document, "apiVersion": "v1", "kind": "Pod"}


def create(client: Client, documents: list[Json]) -> tuple[ApiError | None, list[Json]]:
    """Asks with a dry run, then creates, one by one; stops at the first refusal."""
    created: list[Json] = []
    for number, document in enumerate(documents):
        try:
            if number == 0:
                client.create(document, dry_run="All")
            stored = client.create(document)
        except ApiError as problem:
            return problem, created
        created.append({**stored, "apiVersion": "v1", "kind": "Pod"})
    return None, created


TOPOLOGY = frozenset({"topology.kubernetes.io/zone", "topology.kubernetes.io/region"})


def defaulting_differences(ours: Pod, stored: Json) -> Iterable[str]:
    """Fields that we read and that the API server has set otherwise."""
    here, there = comparable(ours), comparable(convert(stored, NewPod))
    if ours.spec.nodeName:  # PodTopologyLabels copies the node's; no rule of ours reads a pod's
        there["labels"] = {k: v for k, v in there["labels"].items() if k not in TOPOLOGY}
    for part in ("spec", "labels", "annotations"):
        one, other = here[part], there[part]
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                yield f"{part}.{name}: we say {one.get(name)}, the server {other.get(name)}"


def plain(message: str) -> str:
    """A refusal without what differs from time to time: drawn names, the order of a Go map."""
    named = re.sub(r'^(\S+) "[^"]*" is (forbidden|invalid)', r"\1 … is \2", message)
    head, several, rest = named.partition(" is forbidden: [")
    if not several:
        return named
    parts = re.split(r", (?=minimum |maximum |\S+ max limit)", rest.removesuffix("]"))
    return f"{head}{several}{', '.join(sorted(parts))}]"


def admission_differences(
    verdict: Verdict, refused: ApiError | None, admitted: int, group: PodGroup
) -> Iterable[str]:
    denials = [
        f for f in verdict.findings if f.level == "deny" and not f.reason.startswith("placement/")
    ]
    if refused is None:
        if denials:
            yield f"we deny ({denials[0].reason}: {denials[0].detail}), the API server admits all"
        return
    if not denials:
        yield f"we admit, the API server refuses pod {admitted + 1}: {refused.message}"
        return
    ours = [plain(str(f.evidence[-1].observed)) for f in denials if f.evidence]
    if plain(refused.message) != ours[0]:
        yield f"we say {ours}, the API server says {plain(refused.message)}"
    told = re.match(r"pod (\d+) of", denials[0].detail)
    if told and int(told[1]) != admitted + 1:
        yield f"we admit {int(told[1]) - 1} of {group.count}, the API server {admitted}"


def placement_differences(placed: Placed, outcomes: list[Outcome]) -> Iterable[str]:
    bound = [o for o in outcomes if o.node]
    waiting = [o for o in outcomes if not o.node]
    fits = placed.placement == "fits"
    if placed.placement == "unknown":
        yield f"we do not know, the scheduler binds {len(bound)} of {len(outcomes)}"
        return
    if fits != (not waiting):
        first = waiting[0].message if waiting else f"all bound, the first to {bound[0].node}"
        yield f"we say {placed.placement} ({placed.message}), the scheduler: {first}"
        return
    if len(placed.places) != len(bound):
        yield f"we place {len(placed.places)} of {len(outcomes)}, the scheduler {len(bound)}"
    feasible = {node.node for node in placed.nodes if node.fits}
    if bound and fits and bound[0].node not in feasible:
        yield f"we say {sorted(feasible)} would do, the scheduler takes {bound[0].node}"
    same = sorted(placed.places) == sorted(o.node for o in bound)
    if waiting and same and placed.message != waiting[0].message:
        yield f"we say {placed.message!r}, the scheduler says {waiting[0].message!r}"


def said(verdict: Verdict, placed: Placed) -> str:
    denied = [f.reason for f in verdict.findings if f.level == "deny"]
    reasons = f" ({', '.join(dict.fromkeys(denied))})" if denied else ""
    return f"{verdict.admission}, {placed.placement}{reasons}"


def did(refused: ApiError | None, outcomes: list[Outcome]) -> str:
    bound = sum(bool(o.node) for o in outcomes)
    text = "" if refused is None else f"pod {len(outcomes) + 1} refused: {refused.message}; "
    more = next((o.message for o in outcomes if not o.node), "")
    return f"{text}{bound} of {len(outcomes)} bound" + (f"; {more}" if more else "")


# -- between runs


class Baseline(Struct):
    """The loaded cluster, so that each run can meet it as it was."""

    pods: dict[Key, Json]
    used: dict[Key, Json]
    """What each quota counts."""
    others: dict[tuple[str, str], set[Key]]

    @classmethod
    def of(cls, bed: ControlPlane) -> Baseline:
        settle(bed)
        pods = {key(pod): pod for pod in bed.client.list("v1", "Pod")}
        others = {kind: names(bed, kind) for kind in BROUGHT}
        return cls(pods, used(bed), others)

    def restore(self, bed: ControlPlane) -> None:
        """Removes what was added, puts back who was preempted, and waits for the quotas' count."""
        lost = dict(self.pods)
        for pod in bed.client.list("v1", "Pod"):
            if key(pod) in lost and "deletionTimestamp" not in pod["metadata"]:
                lost.pop(key(pod))
            else:
                bed.client.delete(pod)
        for api, kind in BROUGHT:
            for namespace, name in names(bed, (api, kind)) - self.others[api, kind]:
                meta = {"namespace": namespace, "name": name}
                bed.client.delete({"apiVersion": api, "kind": kind, "metadata": meta})
        load(bed, lost.values())
        bed.wait(lambda: used(bed) == self.used, what="the quotas' use of before", timeout=60)


def used(bed: ControlPlane) -> dict[Key, Json]:
    return {key(q): q["status"].get("used", {}) for q in bed.client.list("v1", "ResourceQuota")}


BROUGHT = (
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("v1", "PersistentVolumeClaim"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
)


def key(document: Json) -> Key:
    meta = document["metadata"]
    return meta.get("namespace", ""), meta["name"]


def names(bed: ControlPlane, kind: tuple[str, str]) -> set[Key]:
    return {key(document) for document in bed.client.list(*kind)}

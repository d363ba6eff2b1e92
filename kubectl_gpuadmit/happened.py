"""What really became of a workload: conditions and events as findings; fetches nothing.

A Deployment's quota and webhook refusals stand in ``FailedCreate`` events of its ReplicaSet, a
Job's in its own; the scheduler's word in a condition of the pod; the kubelet's refusal in the
status of a Failed pod, which stays behind while its controller makes another. Equal ones are
folded into one.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, structs

from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Evidence, Finding, Level, Unknown, Verdict

REASONS: dict[str, str] = {
    "live/not-created": (
        "The API server refused pods that the controller wanted to create: quota, a webhook, a "
        "policy; do what its message says"
    ),
    "live/unschedulable": (
        "The scheduler found no node for pods that are there; its message "
        "counts the nodes by reason"
    ),
    "live/gated": (
        "Pods wait behind scheduling gates, which a queue or controller has to remove; look there"
    ),
    "live/refused-by-kubelet": (
        "A node's kubelet refused a pod that the scheduler had sent there (NUMA, devices, "
        "resources); such a pod stays Failed, and its controller makes another; ask for what "
        "the node can give"
    ),
    "live/runaway": (
        "Kubelets refuse one pod of the workload after the other, and its controller makes a new "
        "one each time: the scheduler does not see what the kubelet sees and sends the next one to "
        "the same node; stop the controller first, then ask for what a node gives or keep off it"
    ),
    "live/evicted": (
        "Pods were evicted or preempted; the message says by what, often a higher priority"
    ),
    "live/container-failing": (
        "Containers were admitted and placed, and do not come up; look at their logs and images"
    ),
    "live/not-mounted": "A volume or a device claim of the pod could not be had; look at the event",
    "live/stopped": (
        "The controller has given up (a Job's backoff limit or deadline, a rollout's deadline); "
        "mend the cause and start it anew"
    ),
    "live/complete": "The Job has ended well; the verdict is about running it again",
    "live/placed": "All pods that the workload wants are on nodes",
    "live/disagrees": (
        "What happened differs from the verdict; the evidence holds both; the cluster may have "
        "changed since, or something decides that cannot be read: --server asks the API server "
        "itself"
    ),
}

KUBELET = re.compile(
    r"OutOf\S+|UnexpectedAdmissionError|Topology ?Affinity ?Error|NodeAffinity|NodePorts|"
    r"SMTAlignmentError|EmptyPodSharedPoolError|"
    r"PodLevelResources\w*|AppArmor|SysctlForbidden|Unsupported\w*|InvalidNodeInfo|"
    r"ResourceExhausted|PodFeatureUnsupported"
)
RUNAWAY = 3
"""Failed pods of one workload and one reason from which on nobody waits for luck."""

FRESH_SECONDS = 20 * 60
"""A controller tries again at least this often: an older refusal says nothing about now."""

_FOREIGN = re.compile(
    r'(?:admission webhook|calling webhook|webhook) "([^"]+)"|'
    r"(?:ValidatingAdmissionPolicy|policy) '([^']+)'"
)
_NOT_MOUNTED = ("FailedMount", "FailedAttachVolume", "FailedResourceClaimCreation")
_NO_FAULT = ("ContainerCreating", "PodInitializing")


class History(Struct, frozen=True):
    """One workload's object and what belongs to it, as plain data of the API."""

    object: dict[str, Any]
    children: tuple[dict[str, Any], ...] = ()
    """Objects in between: ReplicaSets, Jobs, StatefulSets."""
    pods: tuple[dict[str, Any], ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    """What of it could not be read."""


class _Told(Struct):
    """Equal things that happened, folded."""

    reason: str
    what: str
    """The API's own reason: ``FailedCreate``, ``Unschedulable``."""
    message: str
    subjects: list[str]
    times: int = 0
    last: str = ""


def with_history(verdict: Verdict, history: History, *, now: dt.datetime) -> Verdict:
    """The verdict with what happened added: at level warn what keeps pods from running, at audit
    the rest.

    Its answers stay the engine's but for one: a fresh refusal by a webhook or an admission policy,
    which cannot be told from objects, is a refusal.
    """
    told = list(_told(history))
    decisive = [] if placed(verdict, history) else [o for o in told if _decides(o, verdict, now)]
    found = [_finding(one, now, level="deny" if one in decisive else "warn") for one in told]
    found += _runaway(history, verdict)
    found += _state(history, verdict)
    found += _disagreements([one for one in told if one not in decisive], verdict, history)
    blockers = (*(one.reason for one in decisive), *verdict.blockers)
    return structs.replace(
        verdict,
        admission="denied" if decisive else verdict.admission,
        blockers=tuple(dict.fromkeys(blockers)),
        findings=(*verdict.findings, *found),
        unknowns=(*verdict.unknowns, *history.unknowns),
    )


def _decides(one: _Told, verdict: Verdict, now: dt.datetime) -> bool:
    return (
        one.reason == "live/not-created"
        and verdict.admission in ("admitted", "mutated")
        and bool(by_whom(one.message))
        and (age := _seconds_since(one.last, now)) is not None
        and age < FRESH_SECONDS
    )


def by_whom(message: str) -> str:
    """``webhook gate.corp.example`` or ``policy p``, if a foreign one refuses in this message."""
    found = _FOREIGN.search(message)
    if not found:
        return ""
    return f"webhook {found[1]}" if found[1] else f"policy {found[2]}"


def placed(verdict: Verdict, history: History) -> bool:
    """Whether as many of its living pods are on nodes as the workload wants."""
    return verdict.pods > 0 and len(_on_nodes(history)) >= verdict.pods


def plain_message(reason: str, message: str) -> str:
    """The message in one line, without what an event puts before it."""
    message = message.removeprefix("(combined from similar events): ")
    return f"{reason}: {' '.join(message.split())}" if message else reason


_WHO = {"user": "yours to solve", "platform": "the platform's", "wait": "waits", "fault": "a fault"}
_CAUSES = 3


def meaning(reason: str, message: str) -> tuple[Evidence, ...]:
    """What a message of Kubernetes means, whose move it is, the next command: the one place where
    texts are read."""
    from kubectl_gpuadmit.diagnosis.reading import read  # compiles a hundred patterns

    causes = read(message or reason).causes[:_CAUSES]
    means = [
        Evidence(cause.reason, _WHO[cause.who], cause.detail, None, cause.speaker)
        for cause in causes
    ]
    steps = dict.fromkeys(
        cause.next
        for cause in causes
        if cause.next and not cause.next.startswith("kubectl gpu-admit explain")  # this is it
    )
    return (*means, *(Evidence("next", "next", step, None) for step in steps))


# -- reading ---------------------------------------------------------------------------------------


def _told(history: History) -> list[_Told]:
    folded: dict[tuple[str, str, str], _Told] = {}
    for reason, what, message, subject, times_, last in (
        *_from_pods(history),
        *_from_events(history),
        *_from_controllers(history),
    ):
        key = (reason, what, _nameless(message, subject))
        one = folded.setdefault(key, _Told(reason, what, message, []))
        if subject not in one.subjects:
            one.subjects.append(subject)
        one.times += times_
        one.last = max(one.last, last)
        if last == one.last:
            one.message = message
    return list(folded.values())


_Row = tuple[str, str, str, str, int, str]
"""Our code, the API's reason, message, subject, how often, when last."""


def _from_pods(history: History) -> Iterator[_Row]:
    for pod in history.pods:
        status = pod.get("status") or {}
        subject = f"Pod {_name(pod)}"
        reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
        conditions = {str(c.get("type")): c for c in status.get("conditions") or ()}
        at = _created(pod)
        if status.get("phase") == "Failed" and KUBELET.fullmatch(reason):
            yield "live/refused-by-kubelet", reason, message, subject, 1, at
        elif reason in ("Evicted", "Preempting", "NodeShutdown", "Terminated"):
            yield "live/evicted", reason, message, subject, 1, at
        elif conditions.get("DisruptionTarget", {}).get("status") == "True":
            target = conditions["DisruptionTarget"]
            why, text = str(target.get("reason")), str(target.get("message") or "")
            yield "live/evicted", why, text, subject, 1, str(target.get("lastTransitionTime") or at)
        else:
            scheduled = conditions.get("PodScheduled", {})
            if scheduled.get("status") == "False":
                why, text = str(scheduled.get("reason")), str(scheduled.get("message") or "")
                code = "live/gated" if why == "SchedulingGated" else "live/unschedulable"
                when = str(scheduled.get("lastTransitionTime") or at)
                yield code, why, text, subject, 1, when
            yield from _from_containers(status, subject, at)


def _from_containers(status: dict[str, Any], subject: str, at: str) -> Iterator[_Row]:
    for key in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(key) or ():
            waiting = (one.get("state") or {}).get("waiting") or {}
            ended = (one.get("lastState") or {}).get("terminated") or {}
            ended = (one.get("state") or {}).get("terminated") or ended
            restarts = int(one.get("restartCount") or 0)
            why = str(waiting.get("reason") or "")
            text = str(waiting.get("message") or "")
            if ended.get("reason") == "OOMKilled":
                why = "OOMKilled"
                text = f"container {one.get('name')} used more memory than its limit"
            elif ended and int(ended.get("exitCode") or 0) != 0:
                why = why or str(ended.get("reason") or "Error")
                code = ended.get("exitCode")
                text = f"container {one.get('name')} ended with exit code {code}. {text}".strip()
            if why and why not in _NO_FAULT:
                yield "live/container-failing", why, text, subject, max(restarts, 1), at


def _from_events(history: History) -> Iterator[_Row]:
    for event in history.events:
        about = event.get("involvedObject") or event.get("regarding") or {}
        subject = f"{about.get('kind', 'Object')} {about.get('name', '')}"
        why, message = str(event.get("reason") or ""), str(event.get("message") or "")
        series = event.get("series") or {}
        often = int(series.get("count") or event.get("count") or 1)
        last = _when(event)
        if why == "FailedCreate" and about.get("kind") != "Pod":
            yield "live/not-created", why, message, subject, often, last
        elif why in _NOT_MOUNTED:
            yield "live/not-mounted", why, message, subject, often, last


def _from_controllers(history: History) -> Iterator[_Row]:
    for obj in (history.object, *history.children):
        subject = f"{obj.get('kind')} {_name(obj)}"
        for condition in (obj.get("status") or {}).get("conditions") or ():
            type_, on = condition.get("type"), condition.get("status") == "True"
            why, text = str(condition.get("reason") or ""), str(condition.get("message") or "")
            at = str(condition.get("lastTransitionTime") or "")
            if (type_, on) in (("Failed", True), ("Progressing", False)):
                yield "live/stopped", why, text, subject, 1, at
            elif type_ == "ReplicaFailure" and on and not _has_event(history, "FailedCreate"):
                yield "live/not-created", why, text, subject, 1, at


def _has_event(history: History, reason: str) -> bool:
    return any(event.get("reason") == reason for event in history.events)


def _nameless(message: str, subject: str) -> str:
    """The message without the names that are drawn anew for each pod, so that equal ones fold."""
    message = message.removeprefix("(combined from similar events): ")
    text = re.sub(r"[pP]ods? \"?[a-z0-9][-a-z0-9.]*\"?", "pod", message)
    return text.replace(subject.partition(" ")[2], "…")


def _name(obj: dict[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def _created(obj: dict[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("creationTimestamp") or "")


def _when(event: dict[str, Any]) -> str:
    series = event.get("series") or {}
    meta = event.get("metadata") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or meta.get("creationTimestamp")
        or ""
    )


# -- findings --------------------------------------------------------------------------------------


def _finding(one: _Told, now: dt.datetime, *, level: Level) -> Finding:
    count = len(one.subjects)
    whose = one.subjects[0] if count == 1 else f"{count} pods, such as {one.subjects[-1]}"
    often = [f"{one.times} times"] if one.times > count else []
    often += [ago] if (ago := _ago(one.last, now)) else []
    when = f" ({', '.join(often)})" if often else ""
    return Finding(
        reason=one.reason,
        detail=f"{whose}{when}: {plain_message(one.what, one.message)}",
        evidence=(
            *(
                Evidence(subject, one.what, one.times if count == 1 else 1, None, ago)
                for subject in one.subjects[:3]
            ),
            *meaning(one.what, one.message),
        ),
        permanent=False,
        rule="live",
        level=level,
    )


def _seconds_since(last: str, now: dt.datetime) -> int | None:
    try:
        return int((now - times.parse_instant(last)).total_seconds())
    except times.TimeError:
        return None


def _ago(last: str, now: dt.datetime) -> str:
    seconds = _seconds_since(last, now)
    if seconds is None:
        return ""
    if seconds < 120:
        return f"last {max(seconds, 0)} s ago"
    return f"last {seconds // 60} min ago" if seconds < 7200 else f"last {seconds // 3600} h ago"


def _state(history: History, verdict: Verdict) -> Iterator[Finding]:
    conditions = (history.object.get("status") or {}).get("conditions") or ()
    subject = f"{history.object.get('kind')} {_name(history.object)}"
    if any(c.get("type") == "Complete" and c.get("status") == "True" for c in conditions):
        at = str((history.object.get("status") or {}).get("completionTime") or "")
        evidence = (Evidence(subject, "Complete", "True", None, at),)
        detail = f"{subject} has ended well"
        yield Finding(
            "live/complete", detail, evidence, permanent=False, rule="live", level="audit"
        )
    elif placed(verdict, history):
        on = _on_nodes(history)
        ready = sum(1 for pod in history.pods if _is_ready(pod))
        nodes = ", ".join(sorted({str(pod["spec"]["nodeName"]) for pod in on})[:4])
        detail = f"{len(on)} of {verdict.pods} pods are on nodes ({nodes}), {ready} of them ready"
        evidence = (Evidence(subject, "pods on nodes", len(on), verdict.pods, "live"),)
        yield Finding("live/placed", detail, evidence, permanent=False, rule="live", level="audit")


def _on_nodes(history: History) -> list[dict[str, Any]]:
    return [
        pod
        for pod in history.pods
        if (pod.get("spec") or {}).get("nodeName")
        and (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded")
        and not (pod.get("metadata") or {}).get("deletionTimestamp")
    ]


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


_STOP = {
    "Deployment": "scale deployment/{name} --replicas=0",
    "ReplicaSet": "scale replicaset/{name} --replicas=0",
    "ReplicationController": "scale rc/{name} --replicas=0",
    "StatefulSet": "scale statefulset/{name} --replicas=0",
    "Job": 'patch job/{name} --type=merge -p \'{{"spec":{{"suspend":true}}}}\'',
    "CronJob": 'patch cronjob/{name} --type=merge -p \'{{"spec":{{"suspend":true}}}}\'',
}
"""Kind -> what keeps its controller from making more pods."""


def _runaway(history: History, verdict: Verdict) -> Iterator[Finding]:
    """Pods that kubelets refuse one after the other, told as the one thing that it is."""
    if verdict.ref.kind == "Pod":
        return
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for pod in history.pods:
        status = pod.get("status") or {}
        reason = str(status.get("reason") or "")
        if status.get("phase") == "Failed" and KUBELET.fullmatch(reason):
            by_reason.setdefault(reason.replace(" ", ""), []).append(pod)
    for reason, pods in sorted(by_reason.items()):
        if len(pods) < RUNAWAY or len(pods) <= verdict.pods:
            continue
        nodes: dict[str, int] = {}
        for pod in pods:
            node = str((pod.get("spec") or {}).get("nodeName") or "a node")
            nodes[node] = nodes.get(node, 0) + 1
        most = max(nodes, key=lambda node: (nodes[node], node))
        where = f"all on {most}" if len(nodes) == 1 else f"{nodes[most]} of them on {most}"
        numa = " NUMA" if reason == "TopologyAffinityError" else " what its kubelet knows"
        yield Finding(
            "live/runaway",
            f"{len(pods)} pods {_within(pods)}ended {reason}, {where}: the scheduler does not see"
            f"{numa}, to it the node looks free, and it sends the next one there again; waiting"
            " does not end this",
            (
                *(
                    Evidence(f"Node {node}", "pods that its kubelet refused", nodes[node], None)
                    for node in sorted(nodes, key=lambda node: (-nodes[node], node))[:3]
                ),
                *_ways_out(verdict, most),
            ),
            permanent=False,
            rule="live",
            level="warn",
        )


def _within(pods: list[dict[str, Any]]) -> str:
    """``within 90 s ``, '' where their times are not known."""
    instants = []
    for pod in pods:
        try:
            instants.append(times.parse_instant(_created(pod)))
        except times.TimeError:
            return ""
    return f"within {times.spell(max(instants) - min(instants))} "


def _ways_out(verdict: Verdict, node: str) -> Iterator[Evidence]:
    ref = verdict.ref
    at = f"kubectl -n {ref.namespace or 'default'}"
    if stop := _STOP.get(ref.kind):
        yield Evidence("next", "stop it", f"{at} {stop.format(name=ref.name)}", None)
    yield Evidence(
        "next", "then clear up", f"{at} delete pods --field-selector status.phase=Failed", None
    )
    yield Evidence(
        "next",
        "then mend it",
        f"keep off {node}: node affinity kubernetes.io/hostname NotIn [{node}]; or ask for what one"
        " of its NUMA nodes has free",
        None,
    )


def _disagreements(told: Iterable[_Told], verdict: Verdict, history: History) -> Iterator[Finding]:
    """Where the verdict and what happened cannot both hold. Our own policy's refusals are left out:
    it is asked at the door, and what runs went through it before."""
    if placed(verdict, history):
        theirs = f"all {verdict.pods} pods are on nodes"
        if verdict.placement in ("never", "waits"):
            yield _disagrees("placement", verdict.placement, theirs)
        elif refused_by_kubernetes(verdict):
            yield _disagrees("admission", "denied", theirs)
        return
    for one in told:
        text = f"{one.what}: {one.message}"
        if one.reason == "live/not-created" and verdict.admission in ("admitted", "mutated"):
            yield _disagrees("admission", verdict.admission, text)
        elif (one.reason == "live/unschedulable" and verdict.placement == "fits") or (
            one.reason == "live/refused-by-kubelet" and verdict.placement == "fits"
        ):
            yield _disagrees("placement", "fits", text)


def refused_by_kubernetes(verdict: Verdict) -> bool:
    """Denied by a check of the API server's own, not only by a rule of our policy."""
    return any(
        found.level == "deny"
        and found.rule not in REGISTRY
        and not found.reason.startswith(("static/", "placement/", "live/"))
        for found in verdict.findings
    )


def _disagrees(what: str, ours: str, theirs: str) -> Finding:
    return Finding(
        reason="live/disagrees",
        detail=f"we say {what} {ours}, but {theirs}",
        evidence=(
            Evidence("this verdict", what, ours, None, "kubectl gpu-admit"),
            Evidence("the cluster", what, theirs, None, "conditions and events"),
        ),
        permanent=False,
        rule="live",
        level="warn",
    )

"""What conditions, events and pods tell of a workload, equal things folded into one; judges none.

A Deployment's quota and webhook refusals stand in ``FailedCreate`` events of its ReplicaSet, a
Job's in its own; the scheduler's word in a condition of the pod; the kubelet's refusal in the
status of a Failed pod, which stays behind while its controller makes another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.happened.history import History, created, name_of

KUBELET = re.compile(
    r"OutOf\S+|UnexpectedAdmissionError|Topology ?Affinity ?Error|NodeAffinity|NodePorts|"
    r"SMTAlignmentError|EmptyPodSharedPoolError|"
    r"PodLevelResources\w*|AppArmor|SysctlForbidden|Unsupported\w*|InvalidNodeInfo|"
    r"ResourceExhausted|PodFeatureUnsupported"
)
"""Reasons of a Failed pod that its kubelet refused."""

_NOT_MOUNTED = ("FailedMount", "FailedAttachVolume", "FailedResourceClaimCreation")
_NO_FAULT = ("ContainerCreating", "PodInitializing")


class Told(Struct):
    """Equal things that happened, folded."""

    reason: str
    what: str
    """The API's own reason: ``FailedCreate``, ``Unschedulable``."""
    message: str
    subjects: list[str]
    times: int = 0
    last: str = ""


def told(history: History) -> list[Told]:
    folded: dict[tuple[str, str, str], Told] = {}
    for reason, what, message, subject, times_, last in (
        *_from_pods(history),
        *_from_events(history),
        *_from_controllers(history),
    ):
        key = (reason, what, _nameless(message, subject))
        one = folded.setdefault(key, Told(reason, what, message, []))
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
        subject = f"Pod {name_of(pod)}"
        reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
        conditions = {str(c.get("type")): c for c in status.get("conditions") or ()}
        at = created(pod)
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
        subject = f"{obj.get('kind')} {name_of(obj)}"
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

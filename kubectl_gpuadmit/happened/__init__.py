"""What really became of a workload: conditions and events as findings; fetches nothing."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator

from msgspec import structs

from kubectl_gpuadmit.happened.history import History, is_ready, name_of, on_nodes, placed
from kubectl_gpuadmit.happened.runaway import runaway
from kubectl_gpuadmit.happened.told import Told, told
from kubectl_gpuadmit.kube import times
from kubectl_gpuadmit.rule import REGISTRY
from kubectl_gpuadmit.verdict import Evidence, Finding, Level, Verdict

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

FRESH_SECONDS = 20 * 60
"""A controller tries again at least this often: an older refusal says nothing about now."""

_FOREIGN = re.compile(
    r'(?:admission webhook|calling webhook|webhook) "([^"]+)"|'
    r"(?:ValidatingAdmissionPolicy|policy) '([^']+)'"
)


def with_history(verdict: Verdict, history: History, *, now: dt.datetime) -> Verdict:
    """The verdict with what happened added: at level warn what keeps pods from running, at audit
    the rest.

    Its answers stay the engine's but for one: a fresh refusal by a webhook or an admission policy,
    which cannot be told from objects, is a refusal.
    """
    all_told = told(history)
    decisive = [one for one in all_told if _decides(one, verdict, now)]
    if placed(verdict, history):
        decisive = []
    found = [_finding(one, now, level="deny" if one in decisive else "warn") for one in all_told]
    found += runaway(history, verdict)
    found += _state(history, verdict)
    found += _disagreements([one for one in all_told if one not in decisive], verdict, history)
    blockers = (*(one.reason for one in decisive), *verdict.blockers)
    return structs.replace(
        verdict,
        admission="denied" if decisive else verdict.admission,
        blockers=tuple(dict.fromkeys(blockers)),
        findings=(*verdict.findings, *found),
        unknowns=(*verdict.unknowns, *history.unknowns),
    )


def _decides(one: Told, verdict: Verdict, now: dt.datetime) -> bool:
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


# -- findings --------------------------------------------------------------------------------------


def _finding(one: Told, now: dt.datetime, *, level: Level) -> Finding:
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
    subject = f"{history.object.get('kind')} {name_of(history.object)}"
    if any(c.get("type") == "Complete" and c.get("status") == "True" for c in conditions):
        at = str((history.object.get("status") or {}).get("completionTime") or "")
        evidence = (Evidence(subject, "Complete", "True", None, at),)
        detail = f"{subject} has ended well"
        yield Finding(
            "live/complete", detail, evidence, permanent=False, rule="live", level="audit"
        )
    elif placed(verdict, history):
        on = on_nodes(history)
        ready = sum(1 for pod in history.pods if is_ready(pod))
        nodes = ", ".join(sorted({str(pod["spec"]["nodeName"]) for pod in on})[:4])
        detail = f"{len(on)} of {verdict.pods} pods are on nodes ({nodes}), {ready} of them ready"
        evidence = (Evidence(subject, "pods on nodes", len(on), verdict.pods, "live"),)
        yield Finding("live/placed", detail, evidence, permanent=False, rule="live", level="audit")


def _disagreements(told: Iterable[Told], verdict: Verdict, history: History) -> Iterator[Finding]:
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

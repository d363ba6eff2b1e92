"""Cluster Autoscaler and Karpenter: why no node comes, or that one does; knows no node group.

The texts are those of cluster-autoscaler 1.28 to 1.35 and Karpenter 0.3x to 1.x.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubectl_gpuadmit.diagnosis.cause import Cause, Heard, Phrase, Who, spoken, table
from kubectl_gpuadmit.diagnosis.node_reasons import reason_of, taint_words
from kubectl_gpuadmit.diagnosis.pasted import Statement
from kubectl_gpuadmit.verdict import Evidence

REASONS = {
    "why/scale-no-fit": "By what the autoscaler knows of its node groups, a new node would not"
    " take the pod"
    " either. For a GPU group that scales from zero, say what its nodes have (node-template tags).",
    "why/scale-maximum": "Node groups that would take the pod are at their maximum size. Have it"
    " raised, or"
    " wait until work ends.",
    "why/scale-backoff": "A node group that would take the pod failed to grow lately and is left"
    " alone for a"
    " while. Look at the cloud's quota and capacity.",
    "why/scaling-up": "New nodes are on their way for this pod. Wait.",
    "why/karpenter-offering": "Instance types match and are large enough, but none is offered in"
    " a zone and"
    " capacity type that may be used. Allow more zones, types or on-demand; the GPU count is not"
    " to blame.",
    "why/karpenter-no-type": "No instance type that the NodePool allows satisfies the pod's"
    " resources and"
    " requirements. Allow larger types, or ask for less.",
    "why/karpenter-taint": "The NodePool's nodes carry a taint that the pod does not tolerate.",
    "why/karpenter-limit": "The NodePool's limits are reached. Have them raised, or wait.",
    "why/karpenter-requirement": "The pod's labels contradict the NodePool's requirements.",
}

GROUPS = "kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml"
POOLS = "kubectl get nodepools -o yaml"

_NOT_TRIGGERED = re.compile(
    r"poddidn'ttriggerscale-up(?:\(itwouldn'tfitifanewnodeisadded\))?:(?P<list>[^;]*)",
    re.IGNORECASE,
)
_SCALE_ITEM = re.compile(r"(\d{1,9})(\D.*?)(?=,\d{1,9}(?:node|max|in|Insuff|[A-Za-z])|\.?$)")
_MAXIMUM = re.compile(r"max(?:nodegroupsize|limit)reached|maxclusterlimitreached.*", re.IGNORECASE)
_BACKOFF = re.compile(r"inbackoffafterfailedscale-up|.*backoff.*", re.IGNORECASE)


def _not_triggered(statement: Statement) -> Iterator[Heard]:
    for match in _NOT_TRIGGERED.finditer(statement.bare):
        for item in _SCALE_ITEM.finditer(match["list"]):
            start = match.start("list") + item.start()
            heard = (start, match.start("list") + item.end())
            cause = _group(int(item[1]), item[2].rstrip("."))
            yield Heard(*heard, spoken(cause, "autoscaler") if cause else None)


def _group(count: int, text: str) -> Cause | None:
    groups = f"{count:,} node {'group' if count == 1 else 'groups'}"
    evidence = (Evidence("node groups", "refused", count, None, "NotTriggerScaleUp"),)
    if _MAXIMUM.fullmatch(text):
        return Cause(
            "why/scale-maximum",
            f"{groups} would do and may not grow: at the maximum size",
            "platform",
            GROUPS,
            evidence,
        )
    if _BACKOFF.fullmatch(text):
        return Cause(
            "why/scale-backoff",
            f"{groups}: growing failed lately, the autoscaler waits before it tries again",
            "wait",
            GROUPS,
            evidence,
        )
    found = reason_of(text)
    if found is None:
        return None
    row, words = found
    named = {k: v or "" for k, v in words.groupdict().items()}
    if "taint" in named:
        named["taint"] = f" ({taint_words(named['taint'])})" if named["taint"] else ""
    detail = f"a new node of {groups} would not do either: {row.says.format(**named)}"
    who: Who = row.who
    if row.code == "placement/insufficient":
        detail = (
            f"the autoscaler believes that a new node of {groups} has too little"
            f" {named['resource']};"
            " a GPU group that scales from zero must say what its nodes have (node-template tag)"
        )
        who = "platform"
    return Cause("why/scale-no-fit", detail, who, GROUPS, evidence)


_KARPENTER = re.compile(
    r"incompatiblewith(?:nodepool|provisioner)\"(?P<pool>[^\"]{1,400})\",?"
    r"(?P<text>.*?)(?=;incompatiblewith(?:nodepool|provisioner)|$)",
    re.IGNORECASE,
)
_LAST_BRACKETS = re.compile(r".*\((?P<why>noinstancetype[^()]*)\)?", re.IGNORECASE)


def _karpenter(statement: Statement) -> Iterator[Heard]:
    for match in _KARPENTER.finditer(statement.bare):
        code, says, who = _nodepool(statement, match)
        if code:
            cause = Cause(code, f"NodePool {match['pool']}: {says}", who, POOLS)
            yield Heard(*match.span(), spoken(cause, "Karpenter"))
        elif match["text"].strip(".,; "):
            yield Heard(*match.span())


def _nodepool(statement: Statement, match: re.Match[str]) -> tuple[str, str, Who]:
    text = match["text"].lower()
    if "didnottolerate" in text:
        return "why/karpenter-taint", _tail(statement, match, "didnottolerate"), "user"
    last = _LAST_BRACKETS.match(text)
    if last:
        end = last["why"].split(",")[-1]
        if "hadarequiredoffering" in end or "hadarequiredoffering" in last["why"]:
            return (
                "why/karpenter-offering",
                "instance types match and are large enough, but none is offered in the zones and"
                " capacity"
                " types that may be used; the GPU count is not to blame",
                "platform",
            )
        if "hadenoughresources" in last["why"]:
            return (
                "why/karpenter-no-type",
                "types that meet the requirements are too small for the pod's resources",
                "user",
            )
        return "why/karpenter-no-type", "no allowed type meets the requirements", "user"
    if "noinstancetypesatisfiedresources" in text:
        return (
            "why/karpenter-no-type",
            "no allowed type satisfies resources and requirements",
            "user",
        )
    if "exceedlimit" in text or "limitsexceeded" in text or "exceedslimit" in text:
        return "why/karpenter-limit", "its limits are reached", "platform"
    if "incompatiblerequirements" in text:
        return (
            "why/karpenter-requirement",
            _tail(statement, match, "incompatiblerequirements"),
            "user",
        )
    return "", "", "user"


def _tail(statement: Statement, match: re.Match[str], start: str) -> str:
    """The NodePool's own words from ``start`` on."""
    at = match["text"].lower().index(start)
    return statement.said(match.start("text") + at, match.end("text")).strip(" ,;.")[:200]


_PHRASES = table(
    "autoscaler",
    (
        Phrase.of(
            r"(?:TriggeredScaleUp|pod triggered scale-up: (?P<groups>\[.*?\]))",
            "why/scaling-up",
            "wait",
            "the autoscaler is adding a node for this pod {groups}",
            GROUPS,
        ),
        Phrase.of(
            r"Pod should schedule on: (?:nodeclaim/(?P<claim>[-a-z0-9.]+))?",
            "why/scaling-up",
            "wait",
            "Karpenter is adding a node for this pod",
            "kubectl get nodeclaims",
        ),
        Phrase.of(
            r"all available instance types exceed limits for nodepool:?"
            r" \"?(?P<pool>[-a-z0-9.]+)\"?",
            "why/karpenter-limit",
            "platform",
            "NodePool {pool}: its limits are reached",
            POOLS,
        ),
    ),
)


def hear(statement: Statement) -> Iterator[Heard]:
    yield from _not_triggered(statement)
    yield from _karpenter(statement)
    yield from _PHRASES(statement)

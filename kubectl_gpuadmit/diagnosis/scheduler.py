"""What the scheduler says: ``0/N nodes are available``, preemption, gates, gangs; judges no
cluster.

Source: k8s.io/kubernetes v1.37.2 pkg/scheduler/framework/types.go (FitError) and preemption/. Each
node is
counted under every reason that its first failing filter gave, so reasons may overlap and need not
sum
to the node count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubectl_gpuadmit.diagnosis.cause import Cause, Heard, Phrase, Who, spoken, table
from kubectl_gpuadmit.diagnosis.node_reasons import LOOK, NodeReason, reason_of, taint_words
from kubectl_gpuadmit.diagnosis.pasted import Statement
from kubectl_gpuadmit.verdict import Evidence

REASONS = {
    "why/no-preemption": "Preemption cannot help: no pods of lower priority whose removal would"
    " make"
    " room. Wait, ask for less, or use a higher priority class if the work deserves one.",
    "why/preempting": "The scheduler makes room by ending pods of lower priority. Wait until they"
    " are"
    " gone.",
    "why/preemption-never": "The pod's priority class has preemptionPolicy Never, so it waits for"
    " room"
    " without ending anybody. Wait, or use a class that preempts.",
    "why/scheduler-error": "The scheduler could not judge the pod because one of its plugins"
    " failed."
    " The text after it says why; read the scheduler's log.",
    "why/gang-waiting": "The pod waits for the other pods of its group: all of them start, or none."
    " Look at the group and at the pods of it that cannot start.",
    "why/resize-waiting": "A resize of the pod in place fits and waits for the kubelet. Nothing"
    " to do.",
}

WHO = "scheduler"

_HEADER = re.compile(
    r"(?:\b|(?<=[a-z]))(?P<free>\d+)/(?P<all>\d+)(?:nodes|placements)areavailable[:.]?",
    re.IGNORECASE,
)
_LOST_HEAD = re.compile(
    r"[a-z.…]{0,24}available:(?=\d)|[.…]*(?=\d{1,9}(?:node\(s\)|Insufficient|cannotallocate))",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\.*(?:preemption:|podgrouppreemption:|nonewclaims|stillnotschedulable|deallocation(?:anddeletion)?of"
    r"|deletionofResourceClaim|firstplacementstatus)",
    re.IGNORECASE,
)
_PREEMPTION = re.compile(r"preemption:", re.IGNORECASE)
_NO_VICTIMS = re.compile(
    r"Nopreemptionvictimsfound(?:forincomingpod)?|nocandidatenodeforpreemption", re.IGNORECASE
)
_NOT_HELPFUL = re.compile(r"Preemptionisnothelpful(?:forscheduling)?", re.IGNORECASE)

_PHRASES = table(
    WHO,
    (
        Phrase.of(
            r"no nodes available to schedule pods",
            "placement/no-nodes",
            "platform",
            "the cluster has no node that the scheduler knows",
            "kubectl get nodes",
        ),
        Phrase.of(
            r"preemption: not eligible due to preemptionPolicy=Never\.?",
            "why/preemption-never",
            "wait",
            "the pod's priority class never preempts: it waits until there is room",
            "kubectl get priorityclasses",
        ),
        Phrase.of(
            r"preemption: not eligible due to (?:a )? terminating pod on the nominated node\.?",
            "why/preempting",
            "wait",
            "pods of lower priority are ending on the node that the pod was promised",
            "kubectl get pods -A --field-selector spec.nodeName={node}",
        ),
        Phrase.of(
            r"found a potential placement for pod (?:group)? (?:on node"
            r" (?P<node>(?-i:[a-z0-9][-a-z0-9.]{0,252}?))?"
            r"(?:,preempting(?P<victims>\d+)victims)?)?(?-i:(?=[^-a-z0-9.,]|$|\.$))",
            "why/preempting",
            "wait",
            "preemption works: room is being made on a node, pods of lower priority there are"
            " ending",
            LOOK,
        ),
        Phrase.of(
            r"Preempted by (?:pod)? (?P<by>[-0-9a-z/]+?) on node <node>(?-i:(?=$|[^-a-z0-9.]|\.$))",
            "why/preempting",
            "user",
            "this pod was ended to make room for a pod of higher priority",
            "kubectl get priorityclasses",
        ),
        Phrase.of(
            r"waiting for the preemption for this pod (?:group)? to be finished",
            "why/preempting",
            "wait",
            "pods of lower priority are being ended to make room for this one",
            LOOK,
        ),
        Phrase.of(
            r"waiting for scheduling gates: (?P<gates>\[[^\]]*\]?)",
            "placement/gated",
            "wait",
            "no scheduler looks at the pod before whoever set its gates {gates} takes them away",
            "kubectl get pod {pod} -o jsonpath='{{.spec.schedulingGates}}'",
        ),
        Phrase.of(
            r"Scheduling is blocked due to non-empty scheduling gates|\bSchedulingGated\b",
            "placement/gated",
            "wait",
            "no scheduler looks at the pod before whoever set its scheduling gates takes them away",
            "kubectl get pod NAME -o jsonpath='{{.spec.schedulingGates}}'",
        ),
        Phrase.of(
            r"waiting for pods's pod group \"?<group>\"? to appear in scheduling queue",
            "why/gang-waiting",
            "wait",
            "the pod group {group} does not exist yet",
            "kubectl get podgroups",
        ),
        Phrase.of(
            r"waiting for (?:composite pod group \"?<group>\"? tree to meet quorum"
            r"|minCount pods from a gang to (?:appear in scheduling queue|be scheduled))",
            "why/gang-waiting",
            "wait",
            "the other pods of its group are not there or do not fit: all start, or none",
            "kubectl get podgroups",
        ),
        Phrase.of(
            r"minCount \((?P<min>\d+)\) (?:cannot be|is not yet) satisfied: (?P<placed>\d+)"
            r" scheduled,"
            r" (?P<left>\d+) remaining",
            "why/gang-waiting",
            "wait",
            "its group needs {min} pods at once: {placed} fit, {left} more are there to try",
            "kubectl get podgroups",
            evidence=lambda hit: (
                Evidence(
                    "pod group", "pods", int(hit["placed"]), int(hit["min"]), "the event", "least"
                ),
            ),
        ),
        Phrase.of(
            r"pod has unbound immediate PersistentVolumeClaims",
            "placement/volume-unbound",
            "platform",
            "a PersistentVolumeClaim of the pod is not bound, and its class binds before"
            " scheduling",
            "kubectl get pvc,storageclass",
        ),
        Phrase.of(
            r"persistentvolumeclaim \"?(?P<claim>(?-i:[a-z0-9][-a-z0-9.]{0,252}?))\"?"
            r" (?:not found|is being deleted|bound to non-existent persistentvolume[^.]*)",
            "placement/volume-missing",
            "user",
            "the PersistentVolumeClaim {claim} that the pod names is not there",
            "kubectl get pvc {claim}",
        ),
        Phrase.of(
            r"available: node\(s\) didn't satisfy plugin\(s\) \[(?P<plugins>[^\]]{1,400})\]"
            r" simultaneously",
            "why/left-out",
            "user",
            "no node is left by {plugins} together: each allows others",
            LOOK,
        ),
        Phrase.of(
            r"pod affinity terms conflict",
            "placement/node-affinity-conflict",
            "user",
            "the pod's node affinity asks for two different nodes at once",
            LOOK,
        ),
        Phrase.of(
            r"pod resize fits, waiting for Kubelet actuation",
            "why/resize-waiting",
            "wait",
            "the pod's new size fits and waits for the kubelet",
            LOOK,
        ),
        Phrase.of(
            r"running \"?(?P<plugin>[A-Za-z]+)\"? (?:pre)?(?:filter|score|bind|permit) plugin"
            r" (?:\"[A-Za-z]+\")? : (?=(?P<text>.+))",
            "why/scheduler-error",
            "fault",
            "the scheduler's plugin {plugin} failed: {text}",
            "kubectl -n kube-system logs -l component=kube-scheduler --tail=50",
        ),
    ),
)


def hear(statement: Statement) -> Iterator[Heard]:
    bare = statement.bare
    heard = list(_PHRASES(statement))
    for start, end, total in _lists(bare):
        preempting = _PREEMPTION.search(bare, max(0, start - 60), start)
        if not (preempting and "available:" in bare[preempting.start() : start].lower()):
            heard += _fit_error(statement, start, end, total)
            if not any(part.start < end and start < part.end for part in heard):
                heard += _other_text(bare, start, end)
    yield from heard
    if helped := _preemption(bare):
        yield helped


def _lists(bare: str) -> Iterator[tuple[int, int, int | None]]:
    """``[start, end)`` of each list of counted reasons, and how many nodes there are."""
    for found in (*_HEADER.finditer(bare), *_headless(bare)):
        total = int(found["all"]) if "all" in found.re.groupindex else None
        if total is not None and len(found["all"]) > 9:
            total = None
        after = _AFTER.search(bare, found.end())
        nearest = min(
            (m.start() for m in (after, _HEADER.search(bare, found.end())) if m), default=len(bare)
        )
        yield found.end(), nearest, total


def _headless(bare: str) -> Iterator[re.Match[str]]:
    """A list whose beginning was cut off."""
    match = None if _HEADER.search(bare) else _LOST_HEAD.match(bare)
    if match:
        yield match


def _items(statement: Statement, start: int, end: int) -> Iterator[tuple[int, int, int, str]]:
    """(start, end, count, reason) of each item; a taint's own commas are no separators."""
    bare = statement.bare
    at = start
    while match := re.compile(r"[,;]?(?P<count>\d{1,9})(?!\d|/)").match(bare, at):
        stop = re.compile(r",(?=\d{1,9}(?:node\(s\)|[A-Za-z]))|(?<!\d)\.(?=$|\.|\s)").search(
            bare, match.end()
        )
        close = min(stop.start() if stop else end, end)
        close = _sentence_end(statement, match.end(), close)
        if close <= match.end():
            return
        yield match.start("count"), close, int(match["count"]), bare[match.end() : close]
        at = close


def _sentence_end(statement: Statement, start: int, end: int) -> int:
    """Where a reason ends at a full stop that a blank or a new sentence follows."""
    for i in range(start, end):
        if statement.bare[i] != ".":
            continue
        if i + 1 >= end:
            return i
        gap = statement.gap(i)
        if " " in gap or ("\n" in gap and re.match(r"[A-Z(\[]", statement.bare[i + 1])):
            return i
    return end


def _fit_error(statement: Statement, start: int, end: int, total: int | None) -> Iterator[Heard]:
    bare = statement.bare
    refused, helpless = _counts(bare, end)
    items = list(_items(statement, start, end))
    known = [
        reason_of(text.rstrip("."), cut=stop >= len(bare.rstrip("."))) for _, stop, _, text in items
    ]
    fixed = sum(
        count
        for (_, _, count, _), found in zip(items, known, strict=True)
        if found and found[0].permanent
    )
    shortages = {m["resource"] for f in known if f for m in [f[1]] if "resource" in m.re.groupindex}
    for (at, stop, count, text), found in zip(items, known, strict=True):
        if found is None:
            if not _PHRASE_IN.search(text):
                yield Heard(at, stop)
            continue
        row, match = found
        hopeless = (
            row.code == "placement/insufficient"
            and refused == 0
            and helpless is not None
            and total is not None
            and helpless >= total
            and fixed < total
        )
        cause = _cause(row, match, count, total)
        if hopeless:
            alone = len(shortages) == 1
            which = f"so little {match['resource']}" if alone else "so little of what the pod asks"
            cause = Cause(
                cause.reason,
                f"{cause.detail}; even empty they have {which} that removing pods would not help",
                "user",
                cause.next,
                cause.evidence,
            )
        yield Heard(at, stop, spoken(cause, WHO))


def _other_text(bare: str, start: int, end: int) -> Iterator[Heard]:
    """A PreFilter's own words where the counted reasons would stand: known to somebody else, or
    not at all."""
    if bare[start:end].strip(".,"):
        yield Heard(start, end)


_PHRASE_IN = re.compile(r"nopreemptionvictims|preemptionisnothelpful", re.IGNORECASE)


def _cause(row: NodeReason, match: re.Match[str], count: int, total: int | None) -> Cause:
    nodes = "node" if count == 1 and total is None else "nodes"
    share = f"{count:,} of {total:,} {nodes}" if total is not None else f"{count:,} {nodes}"
    words = {name: value or "" for name, value in match.groupdict().items()}
    if "taint" in words:
        words["taint"] = f" ({taint_words(words['taint'])})" if words["taint"] else ""
    detail = f"{share}: {row.says.format(**words)}"
    if row.code == "placement/insufficient" and count == total and "/" in words["resource"]:
        detail += (
            "; what counts is one node, never the sum, and a node that advertises none counts too"
        )
    evidence = Evidence(
        subject=f"{total:,} nodes" if total is not None else "nodes",
        what=words.get("resource") or row.code.split("/")[1],
        observed=count,
        wanted=0,
        source="nodes that it refuses, by the scheduler's message",
        bound="most",
    )
    arguments = {"pod": "NAME", "node": "NODE"}
    who = row.who
    key = (match.groupdict().get("taint") or "").partition(":")[0]
    if key.startswith("node.kubernetes.io/"):
        who, detail = "platform", f"{detail}; it goes away with that condition of the node"
    elif key.startswith("node-role.kubernetes.io/"):
        who, detail = "platform", f"{detail}; such nodes are not meant for workloads"
    return Cause(
        row.code,
        detail,
        who,
        row.next.format(**arguments),
        (evidence,),
    )


def _counts(bare: str, start: int) -> tuple[int | None, int | None]:
    """Nodes where no victim was found, and where preemption would not help, after ``start``."""
    head = _PREEMPTION.search(bare, max(0, start - 1), start + 80)
    if not head:
        return None, None
    following = [m.start() for m in _HEADER.finditer(bare, head.end() + 1)]
    end = following[0] if following else len(bare)
    refused = helpless = None
    for text, name in ((_NO_VICTIMS, "refused"), (_NOT_HELPFUL, "helpless")):
        match = re.compile(r"(?P<n>\d{1,9})" + text.pattern, re.IGNORECASE).search(bare, start, end)
        if match and name == "refused":
            refused = int(match["n"])
        elif match:
            helpless = int(match["n"])
    return (refused or 0) if helpless is not None else refused, helpless


def _preemption(bare: str) -> Heard | None:
    """What the preemption part adds."""
    found = [
        *re.compile(r"(?P<n>\d{1,9})?" + f"(?:{_NO_VICTIMS.pattern})", re.I).finditer(bare),
        *re.compile(r"(?P<n>\d{1,9})?" + f"(?:{_NOT_HELPFUL.pattern})", re.I).finditer(bare),
    ]
    if not found:
        return None
    refused = _sum(bare, _NO_VICTIMS)
    helpless = _sum(bare, _NOT_HELPFUL)
    parts = []
    if refused:
        parts.append(f"on {_nodes(refused)} there is nobody of lower priority to end")
    if helpless:
        parts.append(f"on {_nodes(helpless)} ending pods would not help")
    who: Who = "wait" if refused or not helpless else "user"
    cause = Cause(
        "why/no-preemption",
        "preemption cannot help" + (f": {', '.join(parts)}" if parts else ""),
        who,
        "kubectl get priorityclasses",
        tuple(
            Evidence("nodes", what, number, None, "the scheduler's message")
            for what, number in (("no victims", refused), ("not helpful", helpless))
            if number
        ),
    )
    first = min(found, key=lambda m: m.start())
    return Heard(first.start(), max(m.end() for m in found), spoken(cause, WHO))


def _nodes(number: int) -> str:
    return f"{number:,} {'node' if number == 1 else 'nodes'}"


def _sum(bare: str, text: re.Pattern[str]) -> int:
    match = re.compile(r"(?P<n>\d{1,9})" + f"(?:{text.pattern})", re.I).search(bare)
    return int(match["n"]) if match else 0

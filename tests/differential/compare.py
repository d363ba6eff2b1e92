"""What counts as agreement between the referee and us, family by family."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from kubectl_gpuadmit.kube.new_pods import NewPod
from tests.differential import decode_cases, numa, ours, policies
from tests.differential.vocabulary import Json

QUESTIONS = {
    "placement": ["placement"],
    "replicas": ["placement"],
    "objects": ["object"],
    "claims": ["claims"],
    "preemption": ["placement", "preemption"],
    "admission": ["admission"],
    "podsecurity": ["podsecurity"],
    "dra": ["placement", "dra"],
    "cel": ["cel"],
    "policies": ["policies"],
    "numa": ["numa"],
    "decode": ["decode"],
}


def admission(case: Json, referee: Json) -> list[str]:
    """Differences in words, [] where both say the same; ``unknown`` of ours is not compared."""
    return let_in(referee["admission"], ours.admission(case))


def other_object(case: Json, referee: Json) -> list[str]:
    """LimitRange and quota of objects that are no pods."""
    return let_in(referee["object"], ours.other_object(case))


def claim_object(case: Json, referee: Json) -> list[str]:
    """What is said to the creation of a claim, template or class: all errors, in any order."""
    theirs = referee["claims"]
    if "undecodable" in theirs:
        return []
    expected = sorted({_bare(text) for text in theirs.get("errors", [])})
    own = sorted({_bare(text) for text in ours.claim_errors(case)})
    if own == expected:
        return []
    return [f"kubernetes: {text}" for text in expected if text not in own] + [
        f"ours:       {text}" for text in own if text not in expected
    ] or [f"kubernetes: {expected}; ours: {own}"]


def _bare(text: str) -> str:
    """Without what is compared elsewhere or not at all: the words of CEL's compiler have a family
    of their own; of two things with one name Kubernetes prints the second whole, we its name."""
    text = re.sub(r"compilation failed: .*", "compilation failed", text, flags=re.S)
    return re.sub(
        r'Duplicate value: \{"name":("(?:[^"\\]|\\.)*").*', r"Duplicate value: \1", text, flags=re.S
    )


def let_in(theirs: Json, own: Json) -> list[str]:
    if own["unknown"]:
        return ["unknown"]
    found: list[str] = []
    if own["allowed"] != theirs["allowed"] or own.get("check") != theirs.get("check"):
        found.append(f"kubernetes {verdict(theirs)}, ours {verdict(own)}")
        found.append(f"kubernetes: {theirs.get('bare', '')}")
        found.append(f"ours:       {own.get('texts', '')}")
    elif not own["allowed"]:
        texts = own["texts"]
        expected = theirs_texts(theirs)
        if theirs["check"] == "Validation":
            texts = split_errors(texts[0], expected)
        if theirs["check"] == "Decode":
            texts = expected  # Go's decoder does not name the field
        if texts != expected:
            found += [f"kubernetes: {text}" for text in expected if text not in texts]
            found += [f"ours:       {text}" for text in texts if text not in expected]
            if not found:
                found.append(f"kubernetes: {expected}; ours: {texts}")
    else:
        for name, amounts in theirs.get("used", {}).items():
            if tidied(amounts) != tidied(own["used"].get(name, {})):
                found.append(
                    f"used of {name}: kubernetes {tidied(amounts)}, ours {own['used'].get(name)}"
                )
    if theirs["allowed"] and not found and "fits" in own:
        expected_fit = (theirs["fits"], theirs.get("next", ""))
        if expected_fit != (own["fits"], own["next"]):
            found.append(f"replicas: kubernetes {expected_fit}, ours {(own['fits'], own['next'])}")
    stored = theirs.get("pod")
    if stored is not None and not found:
        pod = msgspec.convert(stored, NewPod)
        found += differences("", ours.comparable(pod), own["pod"])
    return found


def tidied(amounts: Json) -> Json:
    return {key: ours.tidy(value, amounts=True) for key, value in sorted(amounts.items())}


def verdict(answer: Json) -> str:
    return "allows" if answer["allowed"] else f"refuses by {answer.get('check')}"


def theirs_texts(theirs: Json) -> list[str]:
    if theirs["check"] == "Validation" and theirs.get("causes"):
        return sorted({f"{one['field']}: {one['message']}" for one in theirs["causes"]})
    return ours.texts_of(theirs["check"], theirs["message"])


def split_errors(joined: str, expected: list[str]) -> list[str]:
    """Our joined message as single errors, whose own texts may hold commas too.

    So the expected ones are cut out first; what is left over is ours alone.
    """
    rest = joined[1:-1] if joined.startswith("[") and joined.endswith("]") else joined
    found = []
    for text in sorted(expected, key=len, reverse=True):
        if text in rest:
            found.append(text)
            rest = rest.replace(text, "\0", 1)
    leftover = [part for part in rest.replace("\0", "").split(", ") if part.strip(", ")]
    return sorted(found) + leftover


def differences(path: str, theirs: Any, own: Any) -> list[str]:
    if isinstance(theirs, dict) and isinstance(own, dict):
        found = []
        for key in sorted(theirs.keys() | own.keys()):
            found += differences(f"{path}.{key}" if path else key, theirs.get(key), own.get(key))
        return found
    if isinstance(theirs, list) and isinstance(own, list) and len(theirs) == len(own):
        return [
            line
            for i, (a, b) in enumerate(zip(theirs, own, strict=True))
            for line in differences(f"{path}[{i}]", a, b)
        ]
    return [] if theirs == own else [f"stored pod {path}: kubernetes {theirs!r}, ours {own!r}"]


# -- placement -------------------------------------------------------------------------------------

UNRESOLVABLE = "UnschedulableAndUnresolvable"
RESTRICTED = "filtered by PreFilter"
"""What the referee says of nodes that PreFilter's result leaves out: no filter was asked there."""


def placement(case: Json, referee: Json) -> list[str]:
    """Feasible nodes; the first refusing filter, its reasons, permanence; each filter alone."""
    return agree(case, referee["placement"], ours.placement(case))


def replicas(case: Json, referee: Json) -> list[str]:
    """Placement after replicas have moved in: ours keeps count, the referee starts anew."""
    return agree(case, referee["placement"], ours.replicas(case))


def agree(case: Json, theirs: Json, own: Json) -> list[str]:
    if own["unknown"]:
        return ["unknown"]
    found: list[str] = []
    rejected = theirs["prefilter"]["code"] != "Success"
    if rejected and not set(theirs["prefilter"]["reasons"]) <= set(own["rejected"]):
        found.append(f"PreFilter: kubernetes {theirs['prefilter']}, ours {own['rejected']}")
    if not rejected and own["rejected"]:
        found.append(f"PreFilter: kubernetes accepts, ours {own['rejected']}")
    promised = any(
        o["kind"] == "Pod" and o.get("status", {}).get("nominatedNodeName") for o in case["objects"]
    )
    for name, node in theirs["nodes"].items():
        mine = own["nodes"][name]
        fits = node["code"] == "Success"
        if fits != mine["fits"]:
            found.append(f"node fits: kubernetes {said(node)}, ours {mine}")
        if fits or rejected:
            continue
        left_out = node.get("reasons") == [RESTRICTED]
        if not left_out:
            expected = (
                node.get("plugin", ""),
                sorted(node.get("reasons", [])),
                node["code"] == UNRESOLVABLE,
            )
            if expected != (mine["plugin"], mine["reasons"], mine["permanent"]):
                found.append(
                    f"first refusal: kubernetes {expected},"
                    f" ours {(mine['plugin'], mine['reasons'], mine['permanent'])}"
                )
        if promised:
            continue
        for plugin in sorted(node.get("each", {}).keys() | mine["each"].keys()):
            alone = node.get("each", {}).get(plugin)
            expected_one = alone and {
                "reasons": sorted(alone.get("reasons", [])),
                "permanent": alone["code"] == UNRESOLVABLE,
            }
            if expected_one != mine["each"].get(plugin):
                found.append(
                    f"{plugin} alone: kubernetes {expected_one}, ours {mine['each'].get(plugin)}"
                )
    if theirs.get("message", "") != own["message"] and not found:
        found += [
            "scheduler message differs",
            f"kubernetes: {theirs.get('message', '')}",
            f"ours: {own['message']}",
        ]
    return found


def said(node: Json) -> str:
    return " ".join([node["code"], node.get("plugin", ""), *node.get("reasons", [])])


def preemption(case: Json, referee: Json) -> list[str]:
    """Nodes where preemption helps, with victims and broken budgets; whether at all; the choice."""
    theirs = referee["preemption"]
    if any(node["code"] == "Success" for node in referee["placement"]["nodes"].values()):
        return []  # nobody preempts for a pod that fits
    own = ours.preempted(case)
    if own["unknown"]:
        return ["unknown"]
    found: list[str] = []
    for name in sorted(theirs["candidates"].keys() | own["candidates"].keys()):
        expected, mine = theirs["candidates"].get(name), own["candidates"].get(name)
        if expected is None or mine is None:
            found.append(f"helps: kubernetes {expected} {theirs['refused'].get(name)}, ours {mine}")
        elif expected != mine:
            found.append(f"victims: kubernetes {expected}, ours {mine}")
    if not theirs["eligible"] and theirs["reason"] not in own["message"]:
        found.append(f"not eligible: kubernetes {theirs['reason']}, ours {own['message']}")
    if not found and own["chosen"] and own["chosen"] not in theirs["chosen"]:
        found.append(f"chosen node: kubernetes {theirs['chosen']}, ours {own['chosen']}")
    return found


# -- devices ---------------------------------------------------------------------------------------


def dra(case: Json, referee: Json) -> list[str]:
    """What DynamicResources has against each node; whether the pod fits there; which devices its
    claims would get; an error on a node that all other filters let pass ends the attempt."""
    own = ours.dra(case)
    if own["unknown"]:
        return ["unknown"]
    theirs, devices = referee["placement"], referee["dra"]
    rejected = theirs["prefilter"]["code"] != "Success"
    found: list[str] = []
    if rejected or own["rejected"]:
        if sorted(theirs["prefilter"].get("reasons", [])) != own["rejected"]:
            found.append(f"PreFilter: kubernetes {theirs['prefilter']}, ours {own['rejected']}")
        elif theirs.get("message", "") != own["message"]:
            found.append(f"message: kubernetes {theirs.get('message')}, ours {own['message']}")
        return found
    asked = [one for n in theirs["nodes"].values() for one in (n, *n.get("each", {}).values())]
    if any(_TIMED_OUT in "".join(one.get("reasons", ())) for one in asked):
        return []  # the referee was given ten seconds of a busy machine
    error = False
    for name, node in sorted(theirs["nodes"].items()):
        alone = node.get("each", {}).get("DynamicResources")
        expected = [
            {
                "reason": _EXPECTING.sub("", reason),
                "error": alone["code"] == "Error",
            }
            for reason in (alone or {}).get("reasons", [])
        ]
        mine = own["alone"].get(name, [])
        if not own["ordered"]:  # which device or pool ends the attempt is not fixed
            expected, mine = ([_unordered(one) for one in each] for each in (expected, mine))
        if expected != mine:
            found.append(f"DynamicResources: kubernetes {expected}, ours {mine}")
        error = error or node["code"] == "Error"
    fits = {name: not error and n["code"] == "Success" for name, n in theirs["nodes"].items()}
    mine_fit = {name: n["fits"] for name, n in own["nodes"].items()}
    if fits != mine_fit:
        found.append(f"node fits: kubernetes {fits}, ours {mine_fit}")
    if found or devices["allocations"] is None or not own["ordered"]:
        return found
    for name, claims in sorted(devices["allocations"].items()):
        expected_claims = {claim: tidy_allocation(one) for claim, one in claims.items()}
        mine_claims = own["allocations"].get(name, {})
        found += differences(f"allocation on {name}", expected_claims, mine_claims)
        expected_more = devices.get("extended", {}).get(name, [])
        if expected_more != own["extended"].get(name, []):
            found.append(f"extended: kubernetes {expected_more}, ours {own['extended'].get(name)}")
    if devices["scores"] != {n: own["scores"].get(n, 0) for n in devices["scores"]}:
        found.append(f"scores: kubernetes {devices['scores']}, ours {own['scores']}")
    return found


_TIMED_OUT = "timed out trying to allocate devices"


def _unordered(reason: Json) -> Json:
    return {"error": True} if reason["error"] else reason


_EXPECTING = re.compile(r" expecting \{.*?\}(?=\n)")
"""The CEL parser's list of what might stand there instead; ours does not keep one."""


def tidy_allocation(one: Json) -> Json:
    devices = one.get("devices") or []
    selector = one.get("nodeSelector")
    if selector is not None:
        keys = ("matchExpressions", "matchFields")
        terms = [{k: t.get(k) for k in keys} for t in selector["nodeSelectorTerms"]]
        selector = {"nodeSelectorTerms": terms}
    return {"devices": devices, "nodeSelector": selector}


# -- pod security ----------------------------------------------------------------------------------


def podsecurity(case: Json, referee: Json) -> list[str]:
    """What the pod itself and a Deployment of it get: refusal, warnings and audit, word by word."""
    own = ours.podsecurity(case)
    found = []
    for name, theirs in referee["podsecurity"].items():
        audit = {k: v for k, v in theirs.get("audit", {}).items() if k == "audit-violations"}
        expected = {
            "allowed": theirs["allowed"],
            "message": theirs.get("message", ""),
            "warnings": theirs.get("warnings", []),
            "audit": list(audit.values()),
        }
        found += differences(name, expected, own[name])
    return [line.replace("stored pod ", "", 1) for line in found]


WORDS = "words: "
"""How a difference begins where both sides fail, with other texts. Which of several faults is told
may hang on the order of a Go map."""


def cel(case: Json, referee: Json) -> list[str]:
    """Each selector of the case; the words of refusals and failures too."""
    found: list[str] = []
    unknown = 0
    expressions = case["pod"]["expressions"]
    for expression, theirs, own in zip(
        expressions, referee["cel"], ours.device_selectors(case), strict=True
    ):
        orders = own.pop("costs", ())
        for number in ("maxCost", "cost"):
            said = own.pop(number, theirs[number])
            if said == theirs[number] or (number == "cost" and theirs[number] in orders):
                continue
            found.append(f"{expression}: {number} {theirs[number]}, ours {said}")
        if "unknown" in own:
            unknown += 1
            continue
        expected = (
            {"refused": theirs["refused"]}
            if theirs.get("refused")
            else {key: theirs[key] for key in ("failed", "matches") if key in theirs}
        )
        if "refused" in expected and "Syntax error" in expected["refused"]:
            expected["refused"] = "Syntax error"
            own = {k: "Syntax error" if "Syntax error" in str(v) else v for k, v in own.items()}
        if _alike(expected) == _alike(own) or _part(own, expected):
            continue
        same_end = expected.keys() == own.keys() and not expected.get("matches", False)
        fails = same_end and ("failed" in own or "refused" in own)
        words = WORDS if fails else ""
        found.append(f"{words}{expression}: kubernetes {expected}, ours {own}")
    return found or (["unknown"] if unknown else [])


def _part(own: Json, expected: Json) -> bool:
    """Both refuse, and each fault that we list is one that Kubernetes lists too: of an expression
    with several faults we may name fewer."""
    ours_, theirs = (_faults(one.get("refused", "")) for one in (own, expected))
    return len(theirs) > 1 and bool(ours_) and ours_ <= theirs


def _faults(text: str) -> set[str]:
    lines = re.sub(r"_var\d+", "_var", text).splitlines()
    return {line.rpartition("ERROR: ")[2] for line in lines if "ERROR: " in line}


def _alike(answer: Json) -> Json:
    """Without the numbers of cel-go's free type variables and the words of its crashes."""
    texts = {key: re.sub(r"_var\d+", "_var", str(value)) for key, value in answer.items()}
    return {
        key: "internal error" if text.startswith("internal error") else text
        for key, text in texts.items()
    }


COMPARE = {
    "admission": admission,
    "cel": cel,
    "policies": policies.differences,
    "placement": placement,
    "preemption": preemption,
    "replicas": replicas,
    "objects": other_object,
    "claims": claim_object,
    "podsecurity": podsecurity,
    "dra": dra,
    "numa": numa.differences,
    "decode": decode_cases.differences,
}


def _feasible(answer: Json) -> bool:
    return any(node["code"] == "Success" for node in answer["placement"]["nodes"].values())


WELCOME: dict[str, Callable[[Json], float]] = {
    "admission": lambda answer: bool(answer["admission"]["allowed"]),
    "placement": _feasible,
    "replicas": _feasible,
    "objects": lambda answer: bool(answer["object"]["allowed"]),
    "claims": lambda answer: bool(answer["claims"]["allowed"]),
    "podsecurity": lambda answer: bool(answer["podsecurity"]["pod"]["allowed"]),
    "dra": _feasible,
    "preemption": lambda answer: bool(answer["preemption"]["candidates"]),
    "policies": lambda answer: bool(answer["policies"]["allowed"]),
    "cel": lambda answer: any(one["matches"] for one in answer["cel"]),
    "numa": numa.share_admitted,
    "decode": lambda answer: bool(answer["decode"]["allowed"]),
}
"""Whether, or how far, the referee's answer is the good one; a generator should yield a third."""

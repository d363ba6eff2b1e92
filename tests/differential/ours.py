"""Our own answers to a case, brought into the same shape as the referee's."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from kubectl_gpuadmit.admission import (
    chain,
    defaults,
    device_claims,
    limit_range,
    pod_security,
    quota,
    resource_lists,
)
from kubectl_gpuadmit.cel import dra as cel_dra
from kubectl_gpuadmit.cel.values import Unsure
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.devices import extended
from kubectl_gpuadmit.kube import quantity, versions
from kubectl_gpuadmit.kube.decode import decode_bulk
from kubectl_gpuadmit.kube.kinds import KNOWN_KINDS
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import (
    Generic,
    KubeObject,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
)
from kubectl_gpuadmit.placement import message, place, preemption
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.placement.filters import dynamic_resources
from kubectl_gpuadmit.verdict import Finding, NodeVerdict
from tests.controlplane import binaries
from tests.differential import podsecurity_cases
from tests.differential.vocabulary import Json

KUBERNETES = binaries.kubernetes().rpartition(".")[0]
"""Whose rules ours follows too: the referee's version, ``1.N``."""

NOW = dt.datetime(2026, 11, 29, 12, 0, 5, tzinfo=dt.UTC)
ALL_KINDS = (
    *KNOWN_KINDS,
    *(
        "CSIDriver",
        "CSIStorageCapacity",
    ),
    *(
        "Deployment",
        "ReplicaSet",
        "Job",
        "Service",
        "Secret",
        "VolumeAttributesClass",
    ),
    *(
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    ),
    *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration"),
)


def decode(document: Json) -> KubeObject:
    known = KNOWN_KINDS.get(document["kind"])
    if known is None:
        return Generic(
            apiVersion=document.get("apiVersion", ""),
            metadata=msgspec.convert(document.get("metadata", {}), ObjectMeta),
            realKind=document["kind"],
            document=document,
        )
    decoded: KubeObject = msgspec.convert(document, known)
    if isinstance(decoded, Pod) and versions.version(KUBERNETES) < (1, 37):
        # the referee defaults what it reads, and that filled in pod-level requests until 1.36
        decoded = defaults.decode(decoded, kubernetes=KUBERNETES)
    return decoded


def cluster_of(case: Json) -> Cluster:
    return Cluster.of([decode(document) for document in case["objects"]], known=ALL_KINDS)


def asking(case: Json) -> NewPod:
    return msgspec.convert({"kind": "Pod", "apiVersion": "v1", **case["pod"]}, NewPod)


def stored(case: Json) -> Pod:
    """The asking pod as the referee's scheduler sees it; see ``decode`` for older versions."""
    pod: Pod = asking(case)
    if versions.version(KUBERNETES) < (1, 37):
        pod = defaults.decode(pod, kubernetes=KUBERNETES)
    return pod


# -- admission -------------------------------------------------------------------------------------

CHECKS = {
    "namespace": "NamespaceLifecycle",
    "limit-range": "LimitRanger",
    "service-account": "ServiceAccount",
    "priority": "Priority",
    "runtime-class": "RuntimeClass",
    "pod-security": "PodSecurity",
    "invalid": "Validation",
    "quota": "ResourceQuota",
}


def message_of(finding: Finding) -> str:
    """The API server's own words, which the finding carries as its last piece of evidence."""
    return str(finding.evidence[-1].observed)


def admission(case: Json) -> Json:
    """``unknown`` is true where we say that we cannot tell."""
    cluster, pod = cluster_of(case), asking(case)
    plugins = frozenset(case.get("plugins", ()))
    mutated = chain.mutate(pod, cluster, kubernetes=KUBERNETES, plugins=plugins)
    validated = chain.validate(mutated.pod, cluster, kubernetes=KUBERNETES)
    findings = [f for f in (*mutated.findings, *validated.findings) if f.level == "deny"]
    unknowns = [u for u in (*mutated.unknowns, *validated.unknowns) if u.level != "audit"]
    used: dict[str, dict[str, str]] = {}
    fits, following = 0, ""
    if not findings:
        ledger = quota.Ledger.of(cluster)
        fits, more, _ = ledger.fork().admit_pods(validated.pod, pod.namespace, case.get("count", 1))
        following = texts_of("ResourceQuota", message_of(more[0]))[0] if more else ""
        _, found, unsure = ledger.admit_pods(validated.pod, pod.namespace, 1)
        findings += found
        unknowns += [u for u in unsure if u.level != "audit"]
        used = {
            row.quota.name: {key: str(amount) for key, amount in row.used.items()}
            for row in ledger.rows(pod.namespace)
        }
    answer: Json = {
        "allowed": not findings,
        "unknown": bool(unknowns),
        "pod": comparable(mutated.pod),
        "fits": fits,
        "next": following,
    }
    if findings:
        first = findings[0]
        family = first.reason.split("/", 1)[0]
        answer["check"] = CHECKS.get(family, first.reason)
        if first.reason == "invalid/quantity" and "quantities must match" in first.detail:
            answer["check"] = "Decode"
        answer["texts"] = texts_of(answer["check"], message_of(first))
    else:
        answer["used"] = used
    return answer


def texts_of(check: str, message: str) -> list[str]:
    """The single complaints of a message; their order within one message means nothing."""
    bare = re.sub(r'^[\w.]+ "[^"]*" is forbidden: ', "", message)
    bare = re.sub(r'^Pod "[^"]*" is invalid: ', "", bare)
    if check == "LimitRanger" and bare.startswith("["):
        return sorted(re.split(r", (?=minimum |maximum |\S+ max limit)", bare[1:-1]))
    return [bare]


def comparable(pod: Pod) -> Json:
    """What both must agree on: spec, labels, annotations; quantities canonical, empty = absent."""
    spec = tidy(msgspec.to_builtins(pod.spec))
    return {
        "spec": spec,
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
    }


TOKEN_VOLUME = "kube-api-access-"
"""The ServiceAccount plugin mounts its token under a generated name; we do not follow that."""

AMOUNTS = ("requests", "limits", "overhead", "sizeLimit")


def tidy(value: Any, *, amounts: bool = False) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            item = tidy(item, amounts=amounts or key in AMOUNTS)
            if key in ("volumes", "volumeMounts"):
                item = [
                    one for one in item or () if not one.get("name", "").startswith(TOKEN_VOLUME)
                ]
            if item not in (None, {}, [], "") and (key, item) != ("hostPort", 0):
                kept[key] = item
        return kept
    if isinstance(value, list | tuple):
        return [tidy(item, amounts=amounts) for item in value]
    if amounts and isinstance(value, str | int | float):
        try:
            return str(resource_lists.read_one(value))
        except quantity.QuantityError:
            return str(value)
    return value


def other_object(case: Json) -> Json:
    """Claims, services and the like against LimitRange and quota."""
    cluster, obj = cluster_of(case), decode(case["pod"])
    findings: list[Finding] = []
    if isinstance(obj, PersistentVolumeClaim):
        findings += limit_range.findings(obj, cluster.limit_ranges(obj.namespace))
    used: dict[str, dict[str, str]] = {}
    if not findings:
        ledger = quota.Ledger.of(cluster)
        found, _ = ledger.admit_object(obj, obj.namespace)
        findings += found
        used = {
            row.quota.name: {key: str(amount) for key, amount in row.used.items()}
            for row in ledger.rows(obj.namespace)
        }
    answer: Json = {"allowed": not findings, "unknown": False, "used": used}
    if findings:
        answer["check"] = CHECKS[findings[0].reason.split("/", 1)[0]]
        answer["texts"] = texts_of(answer["check"], message_of(findings[0]))
    return answer


def claim_errors(case: Json) -> list[str]:
    """Of a ResourceClaim, template or DeviceClass that is created."""
    found = device_claims.errors(decode(case["pod"]))
    return list(dict.fromkeys(error.text for error in found))


# -- placement and preemption ----------------------------------------------------------------------


def placement(case: Json) -> Json:
    """Per node what the first filter says and what each filter says on its own."""
    cycle = Cycle(cluster_of(case), stored(case))
    return answered(cycle, place.node_verdicts(cycle.cluster, cycle.pod))


def replicas(case: Json) -> Json:
    """The same after the replicas among the objects were assumed one by one, not found in place."""
    own = [document for document in case["objects"] if is_replica(document)]
    before = {**case, "objects": [o for o in case["objects"] if not is_replica(o)]}
    cycle = Cycle(cluster_of(before).fork(), stored(case))
    cycle.verdicts()
    for document in own:
        replica = decode(document)
        assert isinstance(replica, Pod)
        cycle.best()
        cycle.assume(replica)
    return answered(cycle, cycle.verdicts())


REPLICA = "uid-replica"


def is_replica(document: Json) -> bool:
    return str(document.get("metadata", {}).get("uid", "")).startswith(REPLICA)


def with_replicas(case: Json, count: int) -> Json:
    """The case with up to ``count`` pods like the asking one where we would put them."""
    cycle = Cycle(cluster_of(case).fork(), stored(case))
    placed: list[Json] = []
    for number in range(count):
        best = cycle.best()
        if best is None:
            break
        document = {
            **case["pod"],
            "metadata": {
                **case["pod"]["metadata"],
                "name": f"replica{number}",
                "uid": f"{REPLICA}{number}",
            },
            "spec": {**case["pod"]["spec"], "nodeName": best.name},
            "status": {"phase": "Running"},
        }
        replica = decode(document)
        assert isinstance(replica, Pod)
        cycle.assume(replica)
        placed.append(document)
    return {**case, "objects": [*case["objects"], *placed]}


def answered(cycle: Cycle, verdicts: tuple[NodeVerdict, ...]) -> Json:
    nodes: dict[str, Json] = {}
    for verdict in verdicts:
        name, reasons, permanent = message.first_refusal(verdict.shortfalls)
        at_nodes = [s for s in verdict.shortfalls if s.code not in message.PREFILTER_CODES]
        each: dict[str, Json] = {}
        for shortfall in at_nodes:
            own = tuple(s for s in at_nodes if s.filter == shortfall.filter)
            _, texts, fixed = message.first_refusal(own)
            each[shortfall.filter] = {"reasons": sorted(texts), "permanent": fixed}
        nodes[verdict.node] = {
            "fits": verdict.fits,
            "plugin": name,
            "reasons": sorted(reasons),
            "permanent": permanent,
            "each": each,
        }
    return {
        "nodes": nodes,
        "rejected": sorted({s.reason for s in cycle.rejections}),
        "message": message.scheduler_message(verdicts, cycle.pod),
        "unknown": any(u.level != "audit" for u in cycle.unknowns),
    }


def preempted(case: Json) -> Json:
    cluster, pod = cluster_of(case), stored(case)
    cycle = Cycle(cluster, pod)
    tried = preemption.dry_run(cycle, cycle.verdicts(), now=NOW)
    return {
        "candidates": {
            c.node: {
                "victims": [f"{v.namespace}/{v.name}" for v in c.victims],
                "violations": c.violations,
            }
            for c in tried.candidates
        },
        "chosen": tried.candidate.node if tried.candidate else "",
        "message": tried.message,
        "unknown": any(u.level != "audit" for u in cycle.unknowns),
    }


# -- devices ---------------------------------------------------------------------------------------


def dra(case: Json) -> Json:
    """What DynamicResources says of each node by itself, and which devices the claims would get."""
    written = {"apiVersion": "v1", "kind": "List", "items": case["objects"]}
    objects, _ = decode_bulk(json.dumps(written).encode(), "case")  # as files are read
    cycle = Cycle(
        Cluster.of(objects, known=ALL_KINDS), stored(case), kubernetes=KUBERNETES, now=NOW
    )
    verdicts = cycle.verdicts()
    answer = answered(cycle, verdicts)
    answer["alone"], answer["allocations"], answer["extended"], answer["scores"] = {}, {}, {}, {}
    plugin = cycle.dra
    if plugin is None:
        return answer
    for info in cycle.cluster.nodes.values():
        found = plugin.judge(info)
        answer["alone"][info.name] = [
            {"reason": s.reason, "error": s.code == dynamic_resources.ABORTS} for s in found
        ]
        if found:
            continue
        allocations: Json = {}
        of_claims = {
            str(one.device)
            for claim, given in plugin.allocations(info)
            for one in given.devices
            if claim.name != extended.CLAIM_NAME
        }
        for claim, given in plugin.allocations(info):
            if claim.name == extended.CLAIM_NAME:
                own = {str(one.device) for one in given.devices}
                answer["extended"][info.name] = sorted(own - of_claims)
                continue
            allocations[claim.name] = {
                "devices": [
                    {
                        "request": one.request,
                        "device": str(one.device),
                        **({"admin": True} if one.admin_access else {}),
                        **({"shared": True} if one.share else {}),
                        **(
                            {"consumed": {k: str(v) for k, v in sorted(one.consumed.items())}}
                            if one.consumed
                            else {}
                        ),
                    }
                    for one in given.devices
                ],
                "nodeSelector": msgspec.json.decode(msgspec.json.encode(given.node_selector)),
            }
        answer["allocations"][info.name] = allocations
        answer["scores"][info.name] = plugin.score(info)
    answer["unknown"] = any(u.level != "audit" for u in cycle.unknowns)
    return answer


# -- pod security ----------------------------------------------------------------------------------


def podsecurity(case: Json) -> Json:
    """For the pod and for a Deployment of it: what is refused, warned of and audited.

    Findings of several modes that ask the same are one finding of ours; they are told apart again.
    """
    cluster, pod = cluster_of(case), asking(case)
    home = cluster.namespace(pod.namespace)
    assert home is not None
    version = home.annotations.get(podsecurity_cases.EMULATE, KUBERNETES)
    if binaries.kubernetes() != binaries.PINNED:
        version = KUBERNETES  # an older referee plays no other version
    asked = pod_security.levels.read(home.labels)
    answer: Json = {}
    for name, owner in (("pod", "Pod"), ("template", "Deployment")):
        found, _ = pod_security.check(pod, pod.namespace, cluster, owner=owner, kubernetes=version)
        said = {f.reason: message_of(f) for f in found}
        refused = said.get("pod-security/violates", "")
        texts = {text.split('"', 2)[1]: text for text in said.values() if "would violate" in text}
        if refused:
            bare = refused.split("violates ", 1)[1]
            texts[str(asked.enforce)] = f"would violate {bare}"
        direct = refused and owner == "Pod"
        answer[name] = {
            "allowed": not direct,
            "message": refused if direct else "",
            "warnings": [texts[str(asked.warn)]] if str(asked.warn) in texts and not direct else [],
            "audit": [texts[str(asked.audit)]] if str(asked.audit) in texts else [],
        }
    return answer


# -- CEL selectors ---------------------------------------------------------------------------------


def device_selectors(case: Json) -> list[Json]:
    """For each expression: refused, failed, or whether the device matches; ``unknown`` of ours."""
    asked = case["pod"]
    made = asked["device"]
    device = cel_dra.Device(
        asked["driver"],
        {name: _attribute(one) for name, one in made.get("attributes", {}).items()},
        {name: quantity.parse(one["value"]) for name, one in made.get("capacity", {}).items()},
        allow_multiple=made.get("allowMultipleAllocations", False),
    )
    gates = asked["features"] if asked["new"] else {}
    found: list[Json] = []
    for expression in asked["expressions"]:
        compiled = cel_dra.compile(
            expression,
            kubernetes=KUBERNETES,
            list_attributes=gates.get("EnableListTypeAttributes", True),
            consumable_capacity=gates.get("EnableConsumableCapacity", True),
            new=asked["new"],
        )
        if isinstance(compiled, cel_dra.Problem):
            found.append({"refused": compiled.message})
            continue
        answer = compiled.matches(device)
        if isinstance(answer, cel_dra.NotEvaluable):
            found.append({"unknown": answer.why})
        elif isinstance(answer, cel_dra.RuntimeProblem):
            found.append({"failed": answer.message, "matches": False})
        else:
            found.append({"matches": answer})
        found[-1]["maxCost"] = compiled.most
        if not device.broken:
            with suppress(Unsure):
                found[-1]["cost"] = compiled.program.cost(device.variables, cel_dra.MOST_COST)
                found[-1]["costs"] = _costs_in_other_orders(compiled, device)
    return found


def _costs_in_other_orders(selector: cel_dra.Selector, device: cel_dra.Device) -> Iterator[int]:
    """The costs where the entries of maps come in some other order: Go leaves it to chance."""
    for seed in range(200):
        rng = Random(seed)
        yield selector.program.cost(
            device.variables,
            cel_dra.MOST_COST,
            lambda entries, r=rng: r.sample(entries, len(entries)),
        )


def _attribute(one: Json) -> cel_dra.Attribute:
    kind, value = next(iter(one.items()))
    if kind == "version":
        return cel_dra.Version(value)
    if kind == "versions":
        return [cel_dra.Version(text) for text in value]
    known: cel_dra.Attribute = value
    return known

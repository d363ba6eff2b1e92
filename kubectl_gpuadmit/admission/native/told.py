"""Turns what policies say into findings, changes and unknowns; asks for pods and workload objects.

The API server asks about the object that the user applies first; the controllers then make pods
from what the mutating policies have left of it, and these are asked about once more. A refusal
carries the API server's own words as its last piece of evidence. What is only audited or warned of
is a finding of that level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct, structs

from kubectl_gpuadmit.admission.native import (
    between,
    bound,
    brought,
    mutating,
    request,
    validating,
    workloads,
)
from kubectl_gpuadmit.admission.native.bound import Bound
from kubectl_gpuadmit.admission.native.mutating import Mutated
from kubectl_gpuadmit.admission.native.request import Request
from kubectl_gpuadmit.admission.native.validating import Said
from kubectl_gpuadmit.admission.native.who import Makers
from kubectl_gpuadmit.admission.refusal import forbidden, refusal, stored_name
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.versions import version
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.verdict import Evidence, Finding, Level, Mutation, Ref, Unknown

Json = dict[str, Any]

REASONS = {
    "admission-policy/denied": "A ValidatingAdmissionPolicy of the cluster refuses the object,"
    " warns of it or records it, as its binding says.",
    "admission-policy/failed": "The API server cannot evaluate an admission policy of the cluster"
    " for this object, and failurePolicy Fail refuses it.",
}

_HINT = "kubectl apply --dry-run=server -f …"
_WHO = "--as USER --as-group GROUP says who"
_TOKEN = "kube-api-access-xxxxx"


class Policies(Struct):
    """What the policies make of one pod: changes to the template, findings, unknowns."""

    mutations: list[Mutation]
    findings: list[Finding]
    unknowns: list[Unknown]


def pod_mutations(
    group: PodGroup, pod: Pod, makers: Makers, cluster: Cluster, *, kubernetes: str
) -> Policies:
    """What MutatingAdmissionPolicies change. ``pod`` is the group's after the built-in plugins."""
    raw = request.new_pod(group.template, group.pod, pod, cluster)
    asked = request.of_pod(raw, pod)
    result = mutating.mutated_by(asked, makers, cluster, version=version(kubernetes)[1])
    told = _troubles(result)
    told.mutations += _mutations(result, group.template, _bare, of="template")
    return told


def _mutations(
    result: Mutated,
    document: Any,
    shown: Callable[[Json], Json],
    *,
    of: Literal["template", "object"],
) -> list[Mutation]:
    """The changes as operations on what the user wrote, one after another."""
    from jsonpatch import apply_patch

    found = []
    for change in result.changes:
        ops = _operations(document, shown(change.before), shown(change.after))
        if ops:
            summary = _summary(change.bound, mutating.KIND)
            found.append(Mutation(ops=tuple(ops), summary=summary, of=of))
            document = apply_patch(document, ops)
    return found


def _summary(one: Bound, kind: str) -> str:
    return f"{kind} {one.policy} (binding {one.binding})" if one.binding else f"{kind} {one.policy}"


def _troubles(result: Mutated) -> Policies:
    told = Policies([], [], [])
    for trouble in result.troubles:
        if trouble.unknown:
            told.unknowns.append(_unknown(trouble.bound, mutating.KIND, trouble.message, "warn"))
        else:
            one, said = trouble.bound, trouble.message
            told.findings.append(_failed(one, mutating.KIND, said, trouble.text))
    return told


def pod_findings(
    group: PodGroup, pod: Pod, makers: Makers, cluster: Cluster, *, kubernetes: str
) -> tuple[list[Finding], list[Unknown]]:
    """What ValidatingAdmissionPolicies say of the pod as it would be stored."""
    raw = request.stored(request.new_pod(group.template, group.pod, pod, cluster))
    return _said(request.of_pod(raw, pod), makers, stored_name(pod), cluster, kubernetes)


def workload_policies(
    workload: Workload, makers: Makers, cluster: Cluster, *, kubernetes: str
) -> Policies:
    """What policies of both kinds make and say of the workload's own object.

    The operations of its mutations are against the manifest. A pod is asked about as a pod alone.
    """
    if workload.ref.kind == "Pod":
        return Policies([], [], [])
    asked = workloads.request(workload, version=version(kubernetes)[1])
    name = mutating.type_name(asked)
    return _of_object(
        asked,
        workload.manifest,
        makers,
        cluster,
        store=lambda raw: workloads.stored(raw, name),
        kubernetes=kubernetes,
    )


def brought_policies(
    document: Json, ref: Ref, makers: Makers, cluster: Cluster, *, kubernetes: str
) -> Policies:
    """The same of an object that a run brings along beside its workloads."""
    asked = brought.request(document, ref)
    if asked is None:
        return Policies([], [], [])
    return _of_object(asked, document, makers, cluster, store=brought.stored, kubernetes=kubernetes)


def _of_object(
    asked: Request,
    manifest: Json,
    makers: Makers,
    cluster: Cluster,
    *,
    store: Callable[[Json], Json],
    kubernetes: str,
) -> Policies:
    result = mutating.mutated_by(asked, makers, cluster, version=version(kubernetes)[1])
    told = _troubles(result)
    told.mutations += _mutations(result, manifest, request.whole, of="object")
    if told.findings:
        return told
    raw = store(result.object)
    name = str(raw["metadata"].get("name", ""))
    after = structs.replace(asked, object=raw, labels=workloads.labels(raw), name=name)
    found, unsure = _said(after, makers, name, cluster, kubernetes)
    told.findings += found
    told.unknowns += unsure
    return told


def between_policies(workload: Workload, cluster: Cluster, *, kubernetes: str) -> Policies:
    """The same of the objects that controllers create on the way to the pods.

    Operations are against the workload's manifest; a change that cannot be followed is unknown.
    """
    told = Policies([], [], [])
    ref = workload.ref
    for resource in between.others(workload):
        what = f"of the {resource} that controllers make for {ref}"
        for kind in (mutating.KIND, validating.KIND):
            for one in bound.about(kind, resource, ref.namespace or "default", cluster):
                level = "warn" if kind == mutating.KIND else _level(tuple(one.actions))
                told.unknowns.append(_unknown(one, kind, what, level))
    made = between.made(workload)
    if made is None:
        return told
    said = workload_policies(made.workload, made.makers, cluster, kubernetes=kubernetes)
    told.findings += said.findings
    told.unknowns += said.unknowns
    for mutation in said.mutations:
        ops = tuple(
            {**op, "path": f"{made.pointer}{op['path']}"}
            for op in mutation.ops
            if op["path"].startswith("/spec/")
        )
        kind = made.workload.ref.kind
        if ops and made.pointer:
            by = f"{mutation.summary}, of the {kind} that is made from it"
            told.mutations.append(structs.replace(mutation, ops=ops, summary=by))
        elif ops:
            missing = f"what becomes of a {kind} that {mutation.summary} changes under its owner"
            told.unknowns.append(Unknown("admission/policy", missing, "warn", _HINT))
    return told


def _said(
    asked: Request, makers: Makers, name: str, cluster: Cluster, kubernetes: str
) -> tuple[list[Finding], list[Unknown]]:
    found: list[Finding] = []
    unsure: list[Unknown] = []
    for said in validating.asked_by(asked, makers, cluster, version=version(kubernetes)[1]):
        level = _level(said.actions)
        if said.outcome == "unknown":
            unsure.append(_unknown(said.bound, validating.KIND, said.message, level))
        else:
            found.append(_finding(said, asked, name, level))
    return found, unsure


def _level(actions: tuple[str, ...]) -> Level:
    if "Deny" in actions:
        return "deny"
    return "warn" if "Warn" in actions else "audit"


def _finding(said: Said, asked: Request, name: str, level: Level) -> Finding:
    one = said.bound
    by = _summary(one, validating.KIND)
    verb = {"deny": "refuses", "warn": "warns", "audit": "records"}[level]
    text = forbidden(name, said.text, asked.qualified)
    if level == "warn":
        text = (
            f"Validation failed for {validating.KIND} '{one.policy}' with binding"
            f" '{one.binding}': {said.message}"
        )
    if said.outcome == "failed":
        return structs.replace(_failed(one, validating.KIND, said.message, text), level=level)
    checks = one.spec.get("validations") or ()
    expression = " ".join(str(checks[said.index].get("expression", "")).split())
    found = refusal(
        "admission-policy/denied",
        f"{by} {verb}: {said.message}",
        text,
        evidence=(
            Evidence(
                f"{validating.KIND} {one.policy}",
                f"spec.validations[{said.index}]",
                "false",
                expression,
            ),
        ),
    )
    return structs.replace(found, level=level)


def _failed(one: Bound, kind: str, message: str, text: str) -> Finding:
    return refusal(
        "admission-policy/failed",
        f"{_summary(one, kind)} fails, and failurePolicy is Fail: {message}",
        text,
        evidence=(Evidence(f"{kind} {one.policy}", "spec.failurePolicy", "Fail", None),),
    )


def _unknown(one: Bound, kind: str, what: str, level: Level) -> Unknown:
    return Unknown(
        rule="admission/policy",
        missing=f"what {_summary(one, kind)} would say: {what}",
        level="warn" if level == "deny" else level,
        hint=_WHO if "who creates the object" in what else _HINT,
    )


# -- changes of a pod as changes of its template ---------------------------------------------------


def _bare(pod: Json) -> Json:
    """What a template can hold, without the token that the API server mounts."""
    metadata = pod.get("metadata") or {}
    spec = {**pod["spec"]}
    spec["volumes"] = [v for v in spec.get("volumes") or () if v.get("name") != _TOKEN]
    for kind in ("initContainers", "containers"):
        if kind in spec:
            spec[kind] = [_without_token(one) for one in spec[kind]]
    return {
        "metadata": {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)},
        "spec": {key: one for key, one in spec.items() if one != []},
    }


def _without_token(container: Json) -> Json:
    mounts = [m for m in container.get("volumeMounts") or () if m.get("name") != _TOKEN]
    bare = {key: one for key, one in container.items() if key != "volumeMounts"}
    return {**bare, "volumeMounts": mounts} if mounts else bare


def _operations(template: Any, before: Any, after: Any, path: str = "") -> list[Json]:
    """RFC 6902 operations that bring a change of the defaulted pod into the template."""
    ops: list[Json] = []
    holder = template if isinstance(template, dict) else {}
    for key in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        here = f"{path}/{_escaped(key)}"
        written = holder.get(key)
        if new is None:
            if key in holder:
                ops.append({"op": "remove", "path": here})
        elif isinstance(new, dict) and isinstance(written, dict):
            ops += _operations(written, old if isinstance(old, dict) else {}, new, here)
        elif isinstance(new, list) and isinstance(written, list) and isinstance(old, list):
            ops += _list_operations(written, old, new, here)
        else:
            ops.append({"op": "replace" if key in holder else "add", "path": here, "value": new})
    return ops


def _list_operations(written: list[Any], old: list[Any], new: list[Any], path: str) -> list[Json]:
    pairs = list(zip(written, old, new, strict=False))
    if not len(written) == len(old) <= len(new) or not all(
        isinstance(part, dict) for pair in pairs for part in pair
    ):
        return [{"op": "replace", "path": path, "value": new}]
    ops: list[Json] = []
    for place, (here, was, now) in enumerate(pairs):
        ops += _operations(here, was, now, f"{path}/{place}")
    ops += [{"op": "add", "path": f"{path}/-", "value": one} for one in new[len(old) :]]
    return ops


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

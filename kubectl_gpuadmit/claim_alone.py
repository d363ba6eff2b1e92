"""Claims and templates that no workload of a run uses: what the policy and the nodes say to them.

Asked with a pod that wants nothing else and tolerates every taint, so that devices alone decide.
What is said of that pod and is not about its claim is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from kubectl_gpuadmit.devices import isolation, normal
from kubectl_gpuadmit.judge import State, Terms, judge
from kubectl_gpuadmit.kube.dra import DRA_GROUP
from kubectl_gpuadmit.kube.manifests import Document
from kubectl_gpuadmit.kube.objects import KubeObject, Namespace
from kubectl_gpuadmit.kube.workloads import Workload, expand
from kubectl_gpuadmit.verdict import Admission, Finding, Ref, Skipped, Unknown, Verdict

KINDS = {
    "ResourceClaim": "resourceClaimName",
    "ResourceClaimTemplate": "resourceClaimTemplateName",
}
"""Kind -> the field by which a pod names it."""

_FAMILIES = ("dra/", "placement/", "namespace/")
_RULES = ("dra/", "placement")


class Lone(Struct, frozen=True):
    """One claim or template, and the pod by which it is judged."""

    ref: Ref
    location: str
    outdated: Finding | None
    """What is wrong with its version, None for one that is served."""
    document: Document
    """The pod's."""
    workload: Workload


def of_run(
    brought: Iterable[tuple[Document, KubeObject]], workloads: Iterable[Workload], state: State
) -> tuple[Lone, ...]:
    """Those of the objects that a run brings along which none of its pods names.

    None where the cluster's devices are not known: nothing could be said about them.
    """
    if not state.cluster.knows("ResourceSlice"):
        return ()
    used = {*_used(workloads), *_given(state)}
    return tuple(
        lone
        for document, obj in brought
        if obj.kind in KINDS
        and obj.apiVersion.startswith(f"{DRA_GROUP}/")
        and (obj.kind, obj.namespace, obj.name) not in used
        and (lone := _lone(document, obj)) is not None
    )


def _used(workloads: Iterable[Workload]) -> Iterator[tuple[str, str, str]]:
    for workload in workloads:
        for group in workload.groups:
            for entry in group.pod.spec.resourceClaims or ():
                for kind, name in (
                    ("ResourceClaim", entry.resourceClaimName),
                    ("ResourceClaimTemplate", entry.resourceClaimTemplateName),
                ):
                    if name:
                        yield kind, workload.ref.namespace, name


def _given(state: State) -> Iterator[tuple[str, str, str]]:
    """What pods of isolated namespaces are given: workloads are asked before that happens."""
    for obj in state.cluster.every("Namespace"):
        wanted = isolation.resolved(obj) if isinstance(obj, Namespace) else None
        if wanted is not None and wanted.claimTemplateName:
            yield "ResourceClaimTemplate", obj.name, wanted.claimTemplateName
        elif wanted is not None:
            yield "ResourceClaim", obj.name, wanted.claimName


def _lone(document: Document, obj: KubeObject) -> Lone | None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": obj.name[:63], "namespace": obj.namespace},
        "spec": {
            "resourceClaims": [{"name": "claim", KINDS[obj.kind]: obj.name}],
            "containers": [
                {"name": "claim", "image": "none", "resources": {"claims": [{"name": "claim"}]}}
            ],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    stand_in = structs.replace(document, data=manifest)
    made = expand(stand_in, namespace=obj.namespace)
    if isinstance(made, Skipped):
        return None
    ref = Ref(obj.apiVersion, obj.kind, obj.namespace, obj.name)
    return Lone(ref, document.location, normal.outdated(obj), stand_in, made)


def judged(lone: Lone, state: State, terms: Terms) -> Verdict:
    """The verdict on the pod, for the search of remedies."""
    return judge(lone.workload, state, terms)[0]


def about(lone: Lone, verdict: Verdict) -> Verdict:
    """The pod's verdict as one on the claim: nothing that is not about it, no pods."""
    if lone.outdated is not None:
        return Verdict(
            lone.ref,
            lone.location,
            pods=0,
            gpus={},
            admission="denied",
            placement="unknown",
            running="not-a-model",
            blockers=(lone.outdated.reason,),
            findings=(structs.replace(lone.outdated, rule="admission/served"),),
        )
    at = "/spec/spec" if lone.ref.kind == "ResourceClaimTemplate" else "/spec"
    findings = tuple(
        structs.replace(found, field=f"{at}/devices/requests")
        for found in verdict.findings
        if _is_about(found)
    )
    unknowns = tuple(u for u in verdict.unknowns if _is_asked(u))
    blockers = {f.reason for f in findings}
    return structs.replace(
        verdict,
        ref=lone.ref,
        location=lone.location,
        pods=0,
        gpus={},
        running="not-a-model",
        models=(),
        groups=(),
        places=(),
        patch=(),
        mutations=(),
        admission=_admission(findings),
        findings=findings,
        unknowns=unknowns,
        blockers=tuple(b for b in verdict.blockers if b in blockers),
    )


def _is_about(found: Finding) -> bool:
    return found.reason.startswith(_FAMILIES) and found.reason != "placement/gated"


def _is_asked(unknown: Unknown) -> bool:
    return unknown.rule.startswith(_RULES)


def _admission(findings: tuple[Finding, ...]) -> Admission:
    denied = any(f.level == "deny" and not f.reason.startswith("placement/") for f in findings)
    return "denied" if denied else "admitted"

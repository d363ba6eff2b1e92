"""RuntimeClass: the overhead, node selector and tolerations that it adds to a pod.

Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/runtimeclass/admission.go and
pkg/util/tolerations/tolerations.go.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_gpuadmit.admission import resource_lists
from kubectl_gpuadmit.admission.refusal import Admitted, forbidden, refusal, shown_name, stored_name
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod, Resources, RuntimeClass, Toleration
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.verdict import Evidence, Finding, Unknown

REASONS = {
    "runtime-class/missing": "The pod names a RuntimeClass that does not exist. Name one that does,"
    " or leave the field out.",
    "runtime-class/overhead": "The pod sets spec.overhead to something else than its RuntimeClass."
    " Leave spec.overhead out.",
    "runtime-class/node-selector": "The pod's nodeSelector contradicts the one of its RuntimeClass."
    " Change the selector or the class.",
}


def lookup(pod: Pod, cluster: Cluster) -> RuntimeClass | None:
    name = pod.spec.runtimeClassName
    found = cluster.get("RuntimeClass", "", name) if name is not None else None
    return found if isinstance(found, RuntimeClass) else None


def _fixed(runtime: RuntimeClass) -> Resources | None:
    return runtime.overhead.podFixed if runtime.overhead is not None else None


def _same(one: Resources | None, other: Resources | None) -> bool:
    left, right = resource_lists.read(one), resource_lists.read(other)
    return {k: q.nano for k, q in left.items()} == {k: q.nano for k, q in right.items()}


def mutate(pod: Pod, cluster: Cluster) -> Admitted:
    """Sets overhead and merges scheduling constraints."""
    spec = pod.spec
    if spec.runtimeClassName is None:
        return Admitted(pod)
    runtime = lookup(pod, cluster)
    if runtime is None:
        return _absent(pod, cluster)
    found: list[Finding] = []
    if runtime.overhead is not None:
        fixed = _fixed(runtime)
        if spec.overhead and not _same(fixed, spec.overhead):
            text = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            found.append(
                _overhead(pod, shown_name(pod), text, fixed, f"RuntimeClass {runtime.name}")
            )
        elif spec.overhead != fixed:
            spec = replace(spec, overhead=fixed)
    if runtime.scheduling is not None:
        wanted = runtime.scheduling.nodeSelector or {}
        own = spec.nodeSelector
        if own is None:
            own = runtime.scheduling.nodeSelector
        else:
            for key, value in sorted(wanted.items()):
                if key in own and own[key] != value:
                    found.append(_conflict(pod, runtime.name, key, value, own[key]))
            own = {**own, **wanted}
        tolerations = merged(spec.tolerations or (), runtime.scheduling.tolerations or ())
        if not any(f.reason == "runtime-class/node-selector" for f in found) and (
            own != spec.nodeSelector or tolerations != (spec.tolerations or ())
        ):
            spec = replace(spec, nodeSelector=own, tolerations=tolerations or None)
    return Admitted(pod if spec is pod.spec else replace(pod, spec=spec), tuple(found))


def validate(pod: Pod, cluster: Cluster) -> tuple[Finding, ...]:
    """The overhead must be exactly the one of the class, whoever set it."""
    if pod.spec.runtimeClassName is not None and lookup(pod, cluster) is None:
        return ()  # told by mutate
    runtime = lookup(pod, cluster)
    if runtime is not None and runtime.overhead is not None:
        if _same(_fixed(runtime), pod.spec.overhead):
            return ()
        text = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        return (
            _overhead(pod, stored_name(pod), text, _fixed(runtime), f"RuntimeClass {runtime.name}"),
        )
    if pod.spec.overhead is None:
        return ()
    text = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    return (_overhead(pod, stored_name(pod), text, None, "RuntimeClass"),)


def _absent(pod: Pod, cluster: Cluster) -> Admitted:
    name = pod.spec.runtimeClassName or ""
    if not cluster.knows("RuntimeClass"):
        unknown = Unknown(
            rule="admission/runtime-class",
            missing=f"RuntimeClass {name}: runtime classes are not in the snapshot",
            hint="kubectl get runtimeclasses -o yaml",
        )
        return Admitted(pod, unknowns=(unknown,))
    text = f'pod rejected: RuntimeClass "{name}" not found'
    others = ", ".join(sorted(o.name for o in cluster.every("RuntimeClass")))
    finding = refusal(
        "runtime-class/missing",
        f'RuntimeClass "{name}" not found',
        forbidden(shown_name(pod), text),
        evidence=(Evidence("RuntimeClass", "name", name, others or None, "spec.runtimeClassName"),),
        field="/spec/runtimeClassName",
    )
    return Admitted(pod, (finding,))


def _overhead(pod: Pod, name: str, text: str, wanted: Resources | None, subject: str) -> Finding:
    def show(resources: Resources | None) -> str | None:
        amounts = resource_lists.read(resources)
        return ", ".join(f"{k}={q}" for k, q in sorted(amounts.items())) or None

    evidence = Evidence(
        subject, "overhead", show(pod.spec.overhead), show(wanted), "overhead.podFixed"
    )
    return refusal(
        "runtime-class/overhead",
        text.removeprefix("pod rejected: "),
        forbidden(name, text),
        evidence=(evidence,),
        field="/spec/overhead",
    )


def _conflict(pod: Pod, runtime: str, key: str, wanted: str, own: str) -> Finding:
    text = (
        f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted};"
        f" pod.spec.nodeSelector[{key}] = {own}"
    )
    evidence = Evidence(
        f"RuntimeClass {runtime}", f"nodeSelector {key}", own, wanted, "scheduling.nodeSelector"
    )
    return refusal(
        "runtime-class/node-selector",
        text,
        forbidden(shown_name(pod), text),
        evidence=(evidence,),
        field=f"/spec/nodeSelector/{token(key)}",
    )


def merged(first: tuple[Toleration, ...], second: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Both lists in order, without those that another one covers."""
    every = (*first, *second)
    kept: list[Toleration] = []
    for i, one in enumerate(every):
        if any(_covers(other, one) for other in kept):
            continue
        if any(not _equal(one, later) and _covers(later, one) for later in every[i + 1 :]):
            continue
        kept.append(one)
    return tuple(kept)


def _shape(t: Toleration) -> tuple[str, str, str, str, int | None]:
    """Absent and empty text are the same to the API."""
    return t.key or "", t.operator or "", t.value or "", t.effect or "", t.tolerationSeconds


def _equal(one: Toleration, other: Toleration) -> bool:
    return _shape(one) == _shape(other)


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    if _equal(wide, narrow):
        return True
    key, operator, value, effect, seconds = _shape(narrow)
    wide_key, wide_operator, wide_value, wide_effect, wide_seconds = _shape(wide)
    if key != wide_key and (wide_key or wide_operator != "Exists"):
        return False
    if wide_effect not in ("", effect):
        return False
    if (
        wide_effect == "NoExecute"
        and wide_seconds is not None
        and (seconds is None or seconds > wide_seconds)
    ):
        return False
    if wide_operator in ("", "Equal"):
        return operator == "Equal" and value == wide_value
    return wide_operator == "Exists"

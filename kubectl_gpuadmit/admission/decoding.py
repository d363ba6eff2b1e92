"""Fields that the API server does not know and values of a wrong type: what kubectl is refused for.

kubectl asks for strict reading unless told otherwise (``--validate``). Other clients may ask for a
warning alone; the field is then dropped, so that the object does not say what its author wrote. A
value of a wrong type is refused to all of them.

Objects that come from a cluster are not looked at: they have been read. Of custom resources only
the pod templates are looked at that their controllers hand on as they are: whether the API server
checks the names inside is for the CustomResourceDefinition to say.

Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/{create,rest}.go, k8s.io/kubectl v0.37.2
pkg/cmd/util/helpers.go (``--validate``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from kubectl_gpuadmit.admission.refusal import said
from kubectl_gpuadmit.kube import fields, versions
from kubectl_gpuadmit.kube.pointers import dotted, resolve
from kubectl_gpuadmit.kube.workloads import PodGroup, Workload
from kubectl_gpuadmit.kube.workloads.placeholders import unresolved
from kubectl_gpuadmit.verdict import Evidence, Finding

UNKNOWN_FIELD = "invalid/unknown-field"
FIELD_TYPE = "invalid/field-type"
REASONS = {
    UNKNOWN_FIELD: "A field that this version of the object's kind does not have: misspelt, in the"
    " wrong place, or of another version. kubectl is refused (--validate=strict is its default);"
    " for clients that ask for a warning the API server drops the field. Write the field that the"
    " detail names, or remove it.",
    FIELD_TYPE: "A value of another type than its field has, such as a number where text belongs."
    " Every client is refused. Quotes make text of a number; without them true and 3 are no text.",
}

TEMPLATES = frozenset(
    {
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("jobset.x-k8s.io", "JobSet"),
        ("kubeflow.org", "PyTorchJob"),
        ("kubeflow.org", "TFJob"),
        ("kubeflow.org", "MPIJob"),
        ("kubeflow.org", "XGBoostJob"),
        ("kubeflow.org", "PaddleJob"),
        ("kubeflow.org", "JAXJob"),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
        ("ray.io", "RayService"),
        ("batch.volcano.sh", "Job"),
    }
)
"""Custom resources whose templates are Kubernetes' own PodTemplateSpec."""


def of_workload(workload: Workload, *, kubernetes: str) -> Iterator[Finding]:
    """What the strict decoder says of a workload that is still to be applied."""
    if workload.stored:
        return
    yield from of_object(workload.manifest, kubernetes=kubernetes)
    group = workload.ref.apiVersion.rpartition("/")[0]
    if (group, workload.ref.kind) in TEMPLATES:
        seen: set[str] = set()
        for one in workload.groups:
            if one.pointer not in seen:
                seen.add(one.pointer)
                yield from _of_template(workload, one, kubernetes)


def of_object(data: dict[str, Any], *, kubernetes: str) -> Iterator[Finding]:
    """What it says of any object whose kind is Kubernetes' own, in the order of reading."""
    found = fields.decoded(data, kubernetes=kubernetes)
    if not found.message:
        return
    newer = _is_newer(kubernetes)
    for problem in found.problems:
        if problem.what == "type" and unresolved(resolve(data, problem.pointer)):
            continue  # what the template engine would put there is not known
        made = _finding(problem, data, found.message, kubernetes)
        if newer and problem.what == "unknown":
            latest = versions.LATEST
            note = f"; Kubernetes {kubernetes} is newer than the {latest} that is known here"
            made = structs.replace(
                made, detail=made.detail + note, level="warn", fidelity="unknown"
            )
        yield made


def _is_newer(kubernetes: str) -> bool:
    return versions.version(kubernetes) > versions.version(versions.LATEST)


def _of_template(workload: Workload, group: PodGroup, kubernetes: str) -> Iterator[Finding]:
    """The names in a pod template of a custom resource; its metadata most CRDs leave open."""
    if not group.pointer or group.pointer == "-" or group.paths:
        return
    data = workload.manifest
    written = resolve(data, group.pointer)
    known = fields.table(kubernetes)
    of = known.type("core/v1.PodTemplateSpec")
    if not isinstance(written, dict) or fields.fits(written, of):
        return
    for problem in fields.problems_of(written, of, group.pointer):
        if problem.what == "unknown" and problem.holder.name != "meta/v1.ObjectMeta":
            made = _finding(problem, data, "", kubernetes)
            yield structs.replace(made, level="warn", fidelity="modelled")


def _finding(
    problem: fields.Problem, data: dict[str, Any], message: str, kubernetes: str
) -> Finding:
    guess = fields.meant(problem, data, fields.table(kubernetes))
    path = dotted(problem.pointer)
    if problem.what == "unknown":
        holder = problem.holder.short
        detail = f"{path}: {holder} has no such field"
        observed: Any = problem.name
        better = guess.name if guess else None
        reason = UNKNOWN_FIELD
    else:
        assert problem.wanted is not None
        shown = _shown(resolve(data, problem.pointer), secret=fields.is_secret(data))
        detail = f"{path} must be {fields.wanted(problem.wanted)}, and is {shown}"
        observed = shown
        better = (guess.name if guess else "") or fields.wanted(problem.wanted)
        reason = FIELD_TYPE
    if guess and guess.words:
        detail += f"; {guess.words}"
    subject = str(data.get("kind", ""))
    metadata = data.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
        subject += f" {metadata['name']}"
    what = "field" if problem.what == "unknown" else problem.name
    evidence: tuple[Evidence, ...] = (Evidence(subject, what, observed, better),)
    if message:
        evidence = (*evidence, said(message))
    # named by its reason: so a policy may set its level
    return Finding(reason, detail, evidence, field=problem.pointer, rule=reason)


def _shown(value: Any, *, secret: bool) -> str:
    match value:
        case int() | float() if secret and not isinstance(value, bool):
            return "a number"
        case str() if secret:
            return "text that is none"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return "a list"
        case _:
            return "a mapping"


def corrected(data: dict[str, Any], *, kubernetes: str) -> tuple[str, int, list[Any]] | None:
    """(summary, cost, RFC 6902): the change after which every field is known and every value fits.

    A field that nobody can guess the meaning of is left out. None where nothing is to be mended, or
    a value is wrong and no better one can be told.
    """
    problems = fields.decoded(data, kubernetes=kubernetes).problems
    known = fields.table(kubernetes)
    parts: list[str] = []
    ops: list[Any] = []
    cost = 0
    for problem in problems:
        guess = fields.meant(problem, data, known)
        if guess and guess.ops:
            parts.append(guess.summary)
            made = list(guess.ops)
        elif problem.what == "unknown":
            parts.append(f"without {problem.path}")
            made, cost = [fields.without(problem)], 30
        else:
            return None
        ops += [op for op in made if op not in ops]  # one new mapping for two fields
    return (_together(parts), cost, ops) if ops else None


def _together(parts: list[str]) -> str:
    listed = list(dict.fromkeys(parts))
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return "; ".join(listed[:3]) + more

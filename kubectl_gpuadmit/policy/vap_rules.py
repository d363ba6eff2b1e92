"""Rules in CEL, each as drafts of admission policies that know no level; one function a rule.

A rule that this cannot say as the file means it raises NotCompiled with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from kubectl_gpuadmit.policy import expressions as cel
from kubectl_gpuadmit.policy.expressions import NotCompiled, all_of, matches, text
from kubectl_gpuadmit.policy.model import Policy


class Check(Struct, frozen=True):
    """One condition that objects must meet."""

    expression: str
    message: str


class Draft(Struct, frozen=True):
    """A rule in CEL before levels are added."""

    rule: str
    name: str
    resources: tuple[tuple[str, tuple[str, ...]], ...]
    """(API group, resources)."""
    conditions: tuple[Check, ...]
    """All must hold for the rule to be asked: name and expression."""
    checks: tuple[Check, ...]
    variables: tuple[tuple[str, str], ...] = ()
    note: str = ""


PODS = (("", ("pods",)),)
CLAIMS = (("resource.k8s.io", ("resourceclaims", "resourceclaimtemplates")),)
_SHARES = (
    "GPUs that a pod reaches past its booking (host paths, CDI annotations, a runtime class) or"
    " shares by annotation are not seen"
)


def _labels_required(policy: Policy) -> Iterator[Draft]:
    settings = policy.settings("labels/required")
    keys: Sequence[str] = settings.get("labels", ("team", "workload-type"))
    conditions: tuple[Check, ...] = ()
    if not settings.get("all_pods", False):
        conditions = (_gpu_pods(policy),)
    checks = [
        Check(
            f'{cel.LABELS}[?{text(key)}].orValue("") != ""',
            f"the pod lacks the label {key}, which pods that use GPUs must carry",
        )
        for key in keys
    ]
    note = _SHARES if conditions else ""
    yield Draft("labels/required", "labels-required", PODS, conditions, tuple(checks), note=note)


def _gpu_pods(policy: Policy) -> Check:
    return Check(cel.gpu_pod(policy.gpu_patterns), "uses-gpus")


def _dead_keys(policy: Policy) -> Iterator[Draft]:
    named = [one for one in policy.gpu_patterns if "/" in one]
    dead = matches("k", named)
    limits = matches("k", [f"limits.{one}" for one in named])
    yield Draft(
        "quota/dead-key",
        "quota-dead-key",
        (("", ("resourcequotas",)),),
        (),
        (
            Check(
                f"object.spec.?hard.orValue({{}}).all(k, !({dead} || {limits}))",
                "a quota key for a GPU that the API accepts and never enforces: the key that"
                " counts begins with requests.",
            ),
        ),
        note="only keys of GPU resources are told apart from keys that count",
    )


_REQUESTS = (
    "(has(object.spec.spec) ? object.spec.spec.?devices.?requests.orValue([])"
    " : object.spec.?devices.?requests.orValue([]))"
)
_WANTS = "(has(r.exactly) ? [r.exactly] : r.?firstAvailable.orValue([]))"


def _wants(condition: str) -> str:
    return f"variables.requests.all(r, {_WANTS}.all(w, {condition}))"


def _admin_access(policy: Policy) -> Iterator[Draft]:
    platform = policy.settings("dra/admin-access").get("namespaces", ())
    labelled = (
        'namespaceObject.metadata.?labels[?"resource.kubernetes.io/admin-access"].orValue("")'
        ' == "true"'
    )
    allowed = labelled
    if platform:
        allowed = f"{labelled} && {matches('request.namespace', platform)}"
    yield Draft(
        "dra/admin-access",
        "dra-admin-access",
        CLAIMS,
        (),
        (
            Check(
                f"{_wants('!w.?adminAccess.orValue(false)')} || ({allowed})",
                "adminAccess reaches devices that others use: it is for platform namespaces alone",
            ),
        ),
        (("requests", _REQUESTS),),
        "claims are checked when they are created, not when a pod names them",
    )


def _tenants(policy: Policy) -> Iterator[Draft]:
    rule = "dra/tenant-allow-list"
    if any(tenant.maxDevices is not None for tenant in policy.tenants):
        raise NotCompiled(
            "maxDevices counts the devices of all claims of a pod: a policy sees one object alone"
        )
    before: list[str] = []
    for tenant in policy.tenants:
        here = matches("request.namespace", tenant.namespaces)
        home = Check(all_of([here, *(f"!({one})" for one in before)]), f"tenant-{tenant.name}")
        before.append(here)
        checks = []
        if tenant.deviceClasses is not None:
            shown = ", ".join(tenant.deviceClasses) or "none"
            checks.append(
                Check(
                    _wants(matches('w.?deviceClassName.orValue("")', tenant.deviceClasses)),
                    f"a DeviceClass that is not allowed for tenant {tenant.name}; allowed: {shown}",
                )
            )
        if tenant.selectors is not None:
            folded = 's.cel.expression.replace("\\n", " ").replace("\\t", " ").split(" ")'
            folded += '.filter(x, x != "").join(" ")'
            listed = cel.texts(" ".join(one.split()) for one in tenant.selectors)
            checks.append(
                Check(
                    _wants(f"w.?selectors.orValue([]).all(s, {folded} in {listed})"),
                    f"a selector that is not among those that tenant {tenant.name} may use",
                )
            )
        if checks:
            yield Draft(
                rule,
                f"dra-tenant-{tenant.name}",
                CLAIMS,
                (home,),
                tuple(checks),
                (("requests", _REQUESTS),),
                "claims are checked when they are created, not when a pod names them",
            )
        if tenant.runtimeClasses is not None:
            shown = ", ".join(tenant.runtimeClasses) or "none"
            of = 'object.spec.?runtimeClassName.orValue("")'
            claims = Check("object.spec.?resourceClaims.orValue([]).size() > 0", "claims-devices")
            allowed = f'{of} == "" || {matches(of, tenant.runtimeClasses)}'
            message = f"a RuntimeClass that is not allowed for tenant {tenant.name}; allowed:"
            yield Draft(
                rule,
                f"dra-tenant-{tenant.name}-runtime",
                PODS,
                (home, claims),
                (Check(allowed, f"{message} {shown}"),),
            )


DRAFTS: dict[str, Callable[[Policy], Iterator[Draft]]] = {
    "labels/required": _labels_required,
    "quota/dead-key": _dead_keys,
    "dra/admin-access": _admin_access,
    "dra/tenant-allow-list": _tenants,
}
"""Rule -> its drafts under a policy."""

"""Proposes changes of a pod's claims and templates by what the nearest devices have.

A claim's spec is immutable, so the command makes the object anew; the pod's manifest stays as it
is. What is tried is the changed object in a what-if.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.json import encode

from kubectl_gpuadmit.admission import chain
from kubectl_gpuadmit.devices.funnel import Funnel, Lack
from kubectl_gpuadmit.devices.inventory import Inventory
from kubectl_gpuadmit.devices.pod_claims import PodClaim, of_pod
from kubectl_gpuadmit.judge import State
from kubectl_gpuadmit.kube.dra import DeviceRequest, ResourceClaim, ResourceClaimTemplate
from kubectl_gpuadmit.kube.pointers import resolve
from kubectl_gpuadmit.kube.quantity import QuantityError, parse
from kubectl_gpuadmit.placement import devices
from kubectl_gpuadmit.placement.cycle import Cycle
from kubectl_gpuadmit.proposals import Case, Proposal

Op = dict[str, Any]
_PLURALS = {"ResourceClaim": "resourceclaim", "ResourceClaimTemplate": "resourceclaimtemplate"}
_QUANTITY = re.compile(r"""quantity\(\s*(["'])([^"']+)\1\s*\)""")
_EQUALS = re.compile(r"""==\s*(["'])(?P<text>(?:(?!\1).)*)\1""")
_CLASSES = 3
"""Other device classes that are tried."""


def claims_changed(case: Case) -> Iterator[Proposal]:
    """For each request that runs out of devices: selectors by what the nearest device has, fewer
    devices, another class, a toleration, no constraint."""
    if not any(blocker in devices.REASONS for blocker in case.verdict.blockers):
        return
    cluster = case.before.cluster
    for group in case.workload.groups:
        if not group.count or not group.pod.spec.resourceClaims:
            continue
        pod = chain.mutate(group.pod, cluster, kubernetes=case.terms.kubernetes).pod
        home = case.workload.ref.namespace
        found = devices.funnels(
            Cycle(cluster, pod, kubernetes=case.terms.kubernetes), case.verdict.nodes
        )
        for entry in of_pod(pod, home, cluster):
            for at, request in requests(case, entry, home):
                one = next((f for f in found if f.request == request and _is_of(f, entry)), None)
                if one is not None and one.falls is not None:
                    yield from _for_request(case, entry, home, at, one)


def _is_of(one: Funnel, entry: PodClaim) -> bool:
    """Funnels name the claim that would be made, a pod's entry the one that is asked for."""
    name = one.claim.rpartition("/")[2]
    return name == entry.object or f"-{entry.name}-" in f"{name}-"


def requests(case: Case, entry: PodClaim, home: str) -> Iterator[tuple[str, str]]:
    """(JSON pointer to what it asks, full name) of each alternative."""
    obj = case.before.cluster.get(entry.kind, home, entry.object) if entry.kind else None
    root, requests = listed(obj)
    for index, request in enumerate(requests):
        at = f"{root}/requests/{index}"
        if request.firstAvailable:
            for place, sub in enumerate(request.firstAvailable):
                yield f"{at}/firstAvailable/{place}", f"{request.name}/{sub.name}"
        else:
            yield f"{at}/exactly" if request.exactly else at, request.name


def listed(obj: object) -> tuple[str, tuple[DeviceRequest, ...]]:
    """JSON pointer to ``devices`` in a claim or template, and its requests; '' and () otherwise."""
    if isinstance(obj, ResourceClaim):
        return "/spec/devices", obj.spec.devices.requests or ()
    if isinstance(obj, ResourceClaimTemplate):
        return "/spec/spec/devices", obj.spec.spec.devices.requests or ()
    return "", ()


def _for_request(
    case: Case, entry: PodClaim, home: str, at: str, one: Funnel
) -> Iterator[Proposal]:
    falls = one.falls
    assert falls is not None

    def proposal(summary: str, cost: int, *ops: Op, less: bool = False) -> Proposal:
        where = f"{entry.kind} {entry.object}"
        return Proposal(
            summary=f"in {where}: {summary}",
            topic=f"claim {where} {one.request}",
            cost=cost,
            command=command(entry, home, ops),
            change=changed(entry, home, ops),
            less=less,
        )

    match falls.name:
        case "class" | "selector":
            for lack in one.nearest.lacks[:1] if one.nearest else ():
                if lack.selector >= 0 and one.nearest and len(one.nearest.lacks) == 1:
                    yield from _other_selector(case, entry, home, at, lack, proposal)
            yield from _other_class(case, at, one, proposal)
        case "together" | "amounts" | "free" | "constraint":
            if falls.left and falls.left < one.needs:
                ops = {"op": "replace", "path": f"{at}/count", "value": falls.left}
                yield proposal(f"{falls.left} instead of {one.needs} devices", 40, ops, less=True)
            if falls.name == "constraint":
                root = at.partition("/requests/")[0]
                ops = {"op": "remove", "path": f"{root}/constraints"}
                yield proposal("without its constraints", 45, ops)
            elif falls.name != "together":
                yield from _other_class(case, at, one, proposal)
        case "untainted":
            for loss in falls.losses[:1]:
                taint = loss.why.removeprefix("taint ").split(", ")[0]
                toleration = _toleration(taint)
                ops = {"op": "add", "path": f"{at}/tolerations", "value": [toleration]}
                yield proposal(f"tolerate the device taint {taint}", 60, ops)


_Make = Callable[..., Proposal]


def _other_selector(
    case: Case, entry: PodClaim, home: str, at: str, lack: Lack, proposal: _Make
) -> Iterator[Proposal]:
    path = f"{at}/selectors/{lack.selector}/cel/expression"
    obj = case.before.cluster.get(entry.kind, home, entry.object)
    text = resolve(_plain(obj), path)
    if not isinstance(text, str):
        return
    for what, value in lack.values:
        for old, new in _replacements(lack.term, value):
            if old in text:
                ops = {"op": "replace", "path": path, "value": text.replace(old, new, 1)}
                short = what.rpartition("/")[2]
                yield proposal(f"{short}: {new} instead of {old}", 10, ops)
    only = f"{at}/selectors/{lack.selector}"
    yield proposal(f"without selector {lack.selector + 1}", 35, {"op": "remove", "path": only})


def _replacements(term: str, value: str) -> Iterator[tuple[str, str]]:
    """(what a term says, what it would say if it asked for ``value``)."""
    if found := _QUANTITY.search(term):
        quote = found[1]
        for amount in _round(value):
            yield found[0], f"quantity({quote}{amount}{quote})"
    if found := _EQUALS.search(term):
        quote = found[1]
        if value and value != found["text"] and quote not in value:
            yield found[0], f"== {quote}{value}{quote}"


def _round(value: str) -> Iterator[str]:
    """The whole Gi below and above an amount; the amount itself where it is less than one."""
    try:
        size = parse(value).nano // 10**9
    except QuantityError:
        return
    if size >= 2**30:
        yield f"{size // 2**30}Gi"
        yield f"{-(-size // 2**30)}Gi"
    else:
        yield value


def _other_class(case: Case, at: str, one: Funnel, proposal: _Make) -> Iterator[Proposal]:
    names = [n for n in sorted(Inventory.of(case.before.cluster).classes) if n != one.device_class]
    for name in names[:_CLASSES]:
        ops = {"op": "replace", "path": f"{at}/deviceClassName", "value": name}
        yield proposal(f"DeviceClass {name} instead of {one.device_class}", 50, ops)


def _toleration(taint: str) -> dict[str, str]:
    head, _, effect = taint.rpartition(":")
    key, equals, value = head.partition("=")
    made = {"key": key, "operator": "Equal" if equals else "Exists", "effect": effect}
    return {**made, "value": value} if equals else made


# -- the object as it would be ---------------------------------------------------------------------


def command(entry: PodClaim, home: str, ops: tuple[Op, ...]) -> str:
    """A dry run of kubectl makes the changed object; replace --force stores it anew."""
    plural = _PLURALS[entry.kind]
    patch = encode(list(ops)).decode().replace("'", "'\\''")
    return (
        f"kubectl -n {home} patch {plural} {entry.object} --dry-run=client -o yaml --type json"
        f" -p '{patch}' | kubectl replace --force -f -"
    )


def changed(entry: PodClaim, home: str, ops: tuple[Op, ...]) -> Callable[[State], State]:
    """The operations on the claim or template that the entry names, in a what-if."""

    def change(state: State) -> State:
        import jsonpatch

        obj = state.cluster.get(entry.kind, home, entry.object)
        if obj is None:
            return state
        plain = _plain(obj)
        made = [
            {**op, "op": "add"}
            if op["op"] == "replace" and resolve(plain, op["path"]) is None
            else op
            for op in ops
        ]
        plain = jsonpatch.apply_patch(plain, made)
        state.cluster.apply(msgspec.convert(plain, type(obj)))
        return state

    return change


def _plain(obj: Any) -> Any:
    """As JSON has it: lists, no tuples."""
    return msgspec.json.decode(encode(obj))

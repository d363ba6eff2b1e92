"""Object validation of resource requirements and resource claims, per container and pod-level.

Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go
(validateResourceRequirements, validatePodResources, validateResourceClaimNames,
validatePodResourceClaim and what they call).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from kubectl_gpuadmit.admission import resource_lists
from kubectl_gpuadmit.admission.field_errors import (
    FieldError,
    Key,
    Where,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from kubectl_gpuadmit.kube import names, resource_names
from kubectl_gpuadmit.kube.objects import (
    Pod,
    PodResourceClaim,
    ResourceClaimRef,
    ResourceRequirements,
    Resources,
)
from kubectl_gpuadmit.kube.quantity import Quantity, QuantityError, parse

QUANTITY_SHAPE = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_NAME = "invalid/resource-name"
_AMOUNT = "invalid/quantity"
_LIMIT = "invalid/requests-limits"
_CLAIM = "invalid/resource-claims"


def unreadable(pod: Pod) -> list[FieldError]:
    """Quantities that the API server cannot even decode: it looks at nothing else then."""
    found = []
    for where, resources in _lists(pod):
        for name, text in sorted((resources or {}).items()):
            try:
                parse(text)
            except QuantityError:
                shown = text if isinstance(text, str) else json.dumps(text)
                found.append(invalid(_AMOUNT, (*where, Key(name)), shown, QUANTITY_SHAPE))
    return found


def _lists(pod: Pod) -> Iterator[tuple[Where, Resources | None]]:
    spec = pod.spec
    for field, many in (("containers", spec.containers), ("initContainers", spec.initContainers)):
        for i, container in enumerate(many or ()):
            if container.resources is not None:
                base: Where = ("spec", field, i, "resources")
                yield (*base, "limits"), container.resources.limits
                yield (*base, "requests"), container.resources.requests
    if spec.resources is not None:
        yield ("spec", "resources", "limits"), spec.resources.limits
        yield ("spec", "resources", "requests"), spec.resources.requests
    if spec.overhead:
        yield ("spec", "overhead"), spec.overhead


def _name(name: str, where: Where) -> Iterator[FieldError]:
    complaints = names.label_key(name)
    if complaints:
        yield from (invalid(_NAME, where, name, text) for text in complaints)
    elif "/" not in name and not resource_names.is_standard(name):
        yield invalid(_NAME, where, name, "must be a standard resource type or fully qualified")


def container_resource(name: str, where: Where) -> Iterator[FieldError]:
    """A name under a container's requests or limits, or under overhead."""
    yield from _name(name, where)
    if "/" not in name:
        if name not in resource_names.CONTAINER_STANDARD and not resource_names.is_hugepages(name):
            yield invalid(_NAME, where, name, "must be a standard resource for containers")
    elif not resource_names.is_native(name) and not resource_names.is_extended(name):
        yield invalid(_NAME, where, name, "doesn't follow extended resource name standard")


def pod_resource(name: str, where: Where) -> Iterator[FieldError]:
    """A name under pod-level spec.resources."""
    complaints = list(_name(name, where))
    if complaints:
        yield from complaints
    elif not resource_names.is_pod_level(name):
        yield unsupported(_NAME, where, name, ("cpu", "hugepages-", "memory"))


def _amount(name: str, amount: Quantity, where: Where) -> Iterator[FieldError]:
    if amount.nano < 0:
        yield invalid(_AMOUNT, where, str(amount), "must be greater than or equal to 0")
    if resource_names.whole_numbers_only(name) and amount.milli() % 1000:
        yield invalid(_AMOUNT, where, str(amount), "must be an integer")
    if resource_names.is_hugepages(name) and not _whole_pages(name, amount):
        text = f"{amount} is not positive integer multiple of {name}"
        yield invalid(_AMOUNT, where, str(amount), text)


def _whole_pages(name: str, amount: Quantity) -> bool:
    try:
        size = parse(name.removeprefix(resource_names.HUGEPAGES))
    except QuantityError:
        return False
    if size.nano <= 0 or size.milli() % 1000:
        return False
    return amount.value() % size.value() == 0


def requirements(
    own: ResourceRequirements,
    claim_names: frozenset[str],
    where: Where,
    allowed: Callable[[str, Where], Iterator[FieldError]] = container_resource,
) -> Iterator[FieldError]:
    """Names, amounts, requests against limits, claims of one ``resources`` block."""
    limits = resource_lists.read(own.limits)
    requests = resource_lists.read(own.requests)
    for name, amount in sorted(limits.items()):
        at = (*where, "limits", Key(name))
        yield from allowed(name, at)
        yield from _amount(name, amount, at)
    for name, amount in sorted(requests.items()):
        at = (*where, "requests", Key(name))
        yield from allowed(name, at)
        yield from _amount(name, amount, at)
        limit = limits.get(name)
        flexible = resource_names.may_overcommit(name)
        if limit is not None:
            if amount.nano != limit.nano and not flexible:
                text = f"must be equal to {name} limit of {limit}"
                yield invalid(_LIMIT, (*where, "requests"), str(amount), text)
            elif amount.nano > limit.nano:
                text = f"must be less than or equal to {name} limit of {limit}"
                yield invalid(_LIMIT, (*where, "requests"), str(amount), text)
        elif not flexible:
            text = "Limit must be set for non overcommitable resources"
            yield required(_LIMIT, (*where, "limits"), text)
    named = limits.keys() | requests.keys()
    if not named & {"cpu", "memory"} and any(map(resource_names.is_hugepages, named)):
        yield forbidden(_LIMIT, where, "HugePages require cpu or memory")
    yield from claim_references(own.claims or (), claim_names, (*where, "claims"))


def claim_references(
    claims: tuple[ResourceClaimRef, ...], known: frozenset[str], where: Where
) -> Iterator[FieldError]:
    """containers[].resources.claims against spec.resourceClaims."""
    seen: dict[str, None] = {}
    for i, claim in enumerate(claims):
        at = (*where, i)
        if not claim.name:
            yield required(_CLAIM, at)
            continue
        if claim.name in seen:
            yield duplicate(_CLAIM, at, claim.name)
        else:
            key = claim.name
            if claim.request:
                for text in names.dns_label(claim.request):
                    yield invalid(_CLAIM, (*at, "request"), claim.request, text)
                key += f"/{claim.request}"
            if key in seen:
                yield duplicate(_CLAIM, at, key)
            elif not claim.request:
                for other in seen:
                    if "/" in other and other.split("/", 1)[0] == claim.name:
                        yield duplicate(_CLAIM, at, claim.name)
            seen[key] = None
        if claim.name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            text = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield not_found(_CLAIM, at, claim.name, text)


def pod_claims(claims: tuple[PodResourceClaim, ...], where: Where) -> Iterator[FieldError]:
    """spec.resourceClaims."""
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        at = (*where, i)
        if not claim.name:
            yield required(_CLAIM, (*at, "name"))
        elif claim.name in seen:
            yield duplicate(_CLAIM, (*at, "name"), claim.name)
        else:
            for text in names.dns_label(claim.name):
                yield invalid(_CLAIM, (*at, "name"), claim.name, text)
            seen.add(claim.name)
        one, other = claim.resourceClaimName, claim.resourceClaimTemplateName
        shown = json.dumps(
            {"Name": claim.name, "ResourceClaimName": one, "ResourceClaimTemplateName": other},
            separators=(",", ":"),
            ensure_ascii=False,
        )
        if one is not None and other is not None:
            text = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            yield FieldError(_CLAIM, at, "Invalid value", shown, text)
        if one is None and other is None:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield FieldError(_CLAIM, at, "Invalid value", shown, text)
        for field, name in (("resourceClaimName", one), ("resourceClaimTemplateName", other)):
            for text in names.dns_subdomain(name) if name is not None else ():
                yield invalid(_CLAIM, (*at, field), name, text)


def pod_level(pod: Pod, claim_names: frozenset[str]) -> Iterator[FieldError]:
    """Pod-level spec.resources, alone and against the containers."""
    own = pod.spec.resources
    if own is None:
        return
    where: Where = ("spec", "resources")
    if own.claims is not None:
        text = "claims may not be set for Resources at pod-level"
        yield forbidden(_CLAIM, (*where, "claims"), text)
    yield from requirements(own, claim_names, where, pod_resource)
    requests = resource_lists.read(own.requests)
    limits = resource_lists.read(own.limits)
    for name, amount in sorted(resource_lists.of_containers(pod, "requests").items()):
        have = requests.get(name)
        if have is not None and amount.nano > have.nano:
            text = f"must be greater than or equal to aggregate container requests of {amount}"
            yield invalid(_LIMIT, (*where, "requests", Key(name)), str(have), text)
    for name, amount in sorted(resource_lists.of_containers(pod, "limits").items()):
        have = limits.get(name)
        if resource_names.is_hugepages(name) and have is not None and amount.nano > have.nano:
            text = f"must be greater than or equal to aggregate container limits of {amount}"
            yield invalid(_LIMIT, (*where, "limits", Key(name)), str(have), text)
    for i, container in enumerate(pod.spec.containers or ()):
        one = resource_lists.read(resource_lists.side(container.resources, "limits"))
        for name, amount in sorted(one.items()):
            have = limits.get(name)
            if have is not None and amount.nano > have.nano:
                at = (*where, "containers", i, Key(name), "limits")
                text = f"must be less than or equal to pod limits of {have}"
                yield invalid(_LIMIT, at, str(amount), text)

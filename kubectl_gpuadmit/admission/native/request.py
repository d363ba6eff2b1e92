"""What is created, as the API server describes it to a policy.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/cel/condition.go (CreateAdmissionRequest,
CreateNamespaceObject).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.admission.native import pod_defaults
from kubectl_gpuadmit.admission.native.typed import typed
from kubectl_gpuadmit.cel.values import Unknown, Unsure
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.objects import Pod, ServiceAccount

Json = dict[str, Any]

NAME_LABEL = "kubernetes.io/metadata.name"
USER = Unknown("who creates the object (request.userInfo)")
OPTIONS = Unknown("the options of the request")


class Partial(dict[str, Any]):
    """Fields of which only some are known: reading another one is unknown, not absent."""

    what: str = ""
    absent: frozenset[str] = frozenset()
    """Fields that are known to be absent."""

    @classmethod
    def of(cls, what: str, known: Json, absent: Iterable[str] = ()) -> Partial:
        made = cls(known)
        made.what, made.absent = what, frozenset(absent)
        return made

    def __missing__(self, key: str) -> Any:
        if key in self.absent:
            raise KeyError(key)
        raise Unsure(f"{self.what}.{key}")

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        if key in self.absent:
            return False
        raise Unsure(f"{self.what}.{key}")

    def get(self, key: str, default: Any = None) -> Any:
        found = key in self
        return self[key] if found else default

    def __len__(self) -> int:
        raise Unsure(self.what)

    def __iter__(self) -> Iterator[str]:
        raise Unsure(self.what)

    def items(self) -> Any:
        raise Unsure(self.what)

    def __copy__(self) -> Partial:
        return Partial.of(self.what, {**self}, self.absent)

    def __deepcopy__(self, memo: Any) -> Partial:
        known = {key: copy.deepcopy(self[key], memo) for key in self.keys()}
        return Partial.of(self.what, known, self.absent)


def whole(value: Any) -> Any:
    """The known fields alone, as plain data."""
    if isinstance(value, dict):
        return {key: whole(value[key]) for key in dict.keys(value)}
    return [whole(one) for one in value] if isinstance(value, list) else value


class Request(Struct, frozen=True):
    """The creation of one object. ``object`` is plain data as the API server would show it."""

    group: str
    version: str
    resource: str
    kind: str
    namespace: str
    name: str
    """'' while a name is still to be generated."""
    labels: dict[str, str]
    object: Json
    user: Any = USER
    """The variable ``request.userInfo``."""

    @property
    def qualified(self) -> str:
        """``pods``, ``deployments.apps``."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def variable(self) -> Json:
        """The variable ``request``."""
        kind = {"group": self.group, "version": self.version, "kind": self.kind}
        resource = {"group": self.group, "version": self.version, "resource": self.resource}
        found: Json = {
            "uid": "",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": self.name,
            "operation": "CREATE",
            "userInfo": self.user,
            "object": None,
            "oldObject": None,
            "dryRun": False,
            "options": OPTIONS,
        }
        if not self.name:
            del found["name"]
        if self.namespace:
            found["namespace"] = self.namespace
        return found


def namespace_variable(name: str, cluster: Cluster) -> Any:
    """The variable ``namespaceObject``: what is known of the namespace."""
    found = cluster.namespace(name)
    what = f"Namespace {name}"
    if found is None:
        known: Json = {"name": name}
        return Partial.of(what, {"metadata": Partial.of(f"{what} metadata", known)})
    known = {
        "name": name,
        "labels": {**found.labels, NAME_LABEL: name},
        "annotations": Partial.of(f"{what} annotation", dict(found.annotations)),
    }
    parts: Json = {"metadata": Partial.of(f"{what} metadata", known, ("generateName", "namespace"))}
    if found.status.phase:
        parts["status"] = Partial.of(f"{what} status", {"phase": found.status.phase})
    return Partial.of(what, parts)


def new_pod(template: Json, given: Pod, pod: Pod, cluster: Cluster, *, token: bool = True) -> Json:
    """The pod as the mutating plugins leave it, from the template as it was written.

    ``given`` is the template decoded, ``pod`` the same after admission: what differs between the
    two is carried over. ``token``: whether the service account plugin mounts its token.
    """
    raw: Json = typed(copy.deepcopy(template), "v1.Pod")
    raw["apiVersion"], raw["kind"] = "v1", "Pod"
    pod_defaults.fill(raw)
    _carry(raw["spec"], _plain(given.spec), _plain(pod.spec))
    meta = pod.metadata
    head: Json = dict(raw.get("metadata") or {})
    for field, value in (
        ("name", meta.name),
        ("generateName", meta.generateName),
        ("namespace", meta.namespace),
        ("labels", dict(pod.labels) or None),
        ("annotations", dict(pod.annotations) or None),
    ):
        head.pop(field, None)
        if value:
            head[field] = value
    head["managedFields"] = Unknown("metadata.managedFields")
    raw["metadata"] = head
    spec = raw["spec"]
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    raw = {**typed(raw, "v1.Pod"), "apiVersion": "v1", "kind": "Pod"}
    spec = raw["spec"]
    if token and _mounts_token(spec, pod.namespace or "default", cluster):
        pod_defaults.mount_token(spec)
    return raw


def _mounts_token(spec: Json, namespace: str, cluster: Cluster) -> bool:
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        account = cluster.get(
            "ServiceAccount", namespace, str(spec.get("serviceAccountName") or "default")
        )
        wanted = (
            account.automountServiceAccountToken if isinstance(account, ServiceAccount) else None
        )
    return wanted is not False


def of_pod(raw: Json, pod: Pod, user: Any = USER) -> Request:
    """The creation of this pod."""
    metadata = raw["metadata"]
    return Request(
        group="",
        version="v1",
        resource="pods",
        kind="Pod",
        namespace=pod.namespace or "default",
        name=metadata.get("name", ""),
        labels=dict(metadata.get("labels") or {}),
        object=raw,
        user=user,
    )


def stored(raw: Json) -> Json:
    """The same pod prepared for storing: as validating plugins see it."""
    after = copy.copy(raw)
    head = dict(raw["metadata"])
    if not head.get("name") and head.get("generateName"):
        head["name"] = f"{head['generateName'][:58]}xxxxx"
    head["uid"] = Unknown("metadata.uid")
    head["creationTimestamp"] = Unknown("metadata.creationTimestamp")
    head["generation"] = 1
    after["metadata"] = head
    after["status"] = {"phase": "Pending", "qosClass": quality(raw["spec"])}
    return after


def quality(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from requests and limits of cpu and memory."""
    from kubectl_gpuadmit.kube import quantity

    def amounts(holder: Json, part: str) -> dict[str, int]:
        listed = (holder.get("resources") or {}).get(part) or {}
        found = {}
        for name in ("cpu", "memory"):
            if name in listed:
                nano = quantity.parse(listed[name]).nano
                if nano > 0:
                    found[name] = nano
        return found

    holders = [one for kind in ("initContainers", "containers") for one in spec.get(kind) or ()]
    if spec.get("resources"):
        holders = [spec]
    pairs = [(amounts(one, "requests"), amounts(one, "limits")) for one in holders]
    if not any(wanted or most for wanted, most in pairs):
        return "BestEffort"
    whole = all(len(most) == 2 and wanted == most for wanted, most in pairs)
    return "Guaranteed" if whole else "Burstable"


def _plain(value: Any) -> Any:
    return _without_none(msgspec.to_builtins(value))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_without_none(one) for one in value]
    return value


def _carry(raw: Any, before: Json, after: Json) -> None:
    """Brings what changed from ``before`` to ``after`` into ``raw``."""
    for key in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        here = raw.get(key)
        if isinstance(old, dict) and isinstance(new, dict) and isinstance(here, dict):
            _carry(here, old, new)
        elif (
            isinstance(old, list)
            and isinstance(new, list)
            and isinstance(here, list)
            and len(old) == len(new) == len(here)
            and all(isinstance(one, dict) for one in (*old, *new, *here))
        ):
            for place, one in enumerate(here):
                _carry(one, old[place], new[place])
        elif new is None:
            raw.pop(key, None)
        elif key not in raw or raw[key] != new:
            raw[key] = copy.deepcopy(new)

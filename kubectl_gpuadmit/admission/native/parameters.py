"""The parameters of a policy: which objects a binding refers to, and what is known of them.

Whether the API server serves the kind, and whether everything that bindings refer to was read, is
said by objects ``PolicyParameters`` (gpu-admit.io/v1), which a live reading makes and a snapshot
keeps. Where there is none, the kind must have been exported.

Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/generic/policy_dispatcher.go
(CollectParams), policy_source.go, policy/validating/dispatcher.go (wrappedParam).
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kubectl_gpuadmit.admission.native.request import Partial, Request
from kubectl_gpuadmit.cel.values import Fail, Unknown, Unsure
from kubectl_gpuadmit.cluster import Cluster
from kubectl_gpuadmit.kube.decode import kind_name
from kubectl_gpuadmit.kube.objects import ConfigMap, Generic, KubeObject, LabelSelector
from kubectl_gpuadmit.kube.policy_parameters import KIND, kept, record_name
from kubectl_gpuadmit.kube.selectors import label_selector

Json = dict[str, Any]

_NAMESPACED = frozenset({"ConfigMap", "Secret", "LimitRange", "ResourceQuota", "ServiceAccount"})


class _Kind(Struct, frozen=True):
    api_version: str
    kind: str
    served: bool | None
    """None: nobody has asked."""
    namespaced: bool | None

    @property
    def index(self) -> str:
        """The name under which the cluster has its objects."""
        return kind_name(self.api_version, self.kind)


def _kind(given: Any, cluster: Cluster) -> _Kind | None:
    if not isinstance(given, dict):
        return None
    version, kind = str(given.get("apiVersion", "")), str(given.get("kind", ""))
    found = cluster.get(KIND, "", record_name(version, kind))
    spec = found.document.get("spec") if isinstance(found, Generic) else None
    if isinstance(spec, dict):
        return _Kind(version, kind, bool(spec.get("served")), bool(spec.get("namespaced")))
    return _Kind(version, kind, None, None)


def not_served(given: Any, cluster: Cluster) -> str:
    """Why the API server has no such kind, '' where it has or nobody knows."""
    kind = _kind(given, cluster)
    if kind is None or kind.served is not False:
        return ""
    group, _, version = kind.api_version.rpartition("/")
    return f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind.kind}'"


def params(spec: Json, ref: Any, request: Request, cluster: Cluster, *, bare: bool) -> list[Any]:
    """The values of ``params`` with which the policy is evaluated; [None] where it takes none.

    ``bare``: built-in kinds come without kind and apiVersion, as mutating policies see them. Raises
    Fail with the configuration error, Unsure where the parameters are not known.
    """
    kind = _kind(spec.get("paramKind"), cluster)
    if kind is None or not isinstance(ref, dict):
        return [None]
    if kind.kind == "Secret" and kind.api_version == "v1":
        raise Unsure("Secrets, the parameters of the policy: never read")
    if kind.served is None and not cluster.knows(kind.index):
        raise Unsure(f"{kind.kind} objects, the parameters of the policy: not in the snapshot")
    found = _chosen(kind, ref, request, cluster)
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise Fail("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [_param(kind, one, bare=bare) for one in found]


def _chosen(kind: _Kind, ref: Json, request: Request, cluster: Cluster) -> list[KubeObject]:
    everyone = list(cluster.every(kind.index))
    home = ""
    if _lives_in_namespaces(kind, ref, everyone):
        home = str(ref.get("namespace") or request.namespace)
        if not home:
            raise Fail(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped"
                " resources"
            )
    elif ref.get("namespace"):
        raise Fail("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if ref.get("name"):
        named = cluster.get(kind.index, home, str(ref["name"]))
        return [named] if named is not None else []
    if not isinstance(ref.get("selector"), dict):
        raise Fail("one of name or selector must be provided")
    chosen = label_selector(msgspec.convert(ref["selector"], LabelSelector))
    return [
        one
        for one in sorted(everyone, key=lambda o: o.name)
        if one.namespace == home and chosen.matches(one.labels)
    ]


def _lives_in_namespaces(kind: _Kind, ref: Json, everyone: list[KubeObject]) -> bool:
    if kind.namespaced is not None:
        return kind.namespaced
    if kind.index in _NAMESPACED:
        return True
    if everyone:
        return any(one.namespace for one in everyone)
    if ref.get("namespace"):
        raise Unsure(f"whether {kind.kind} objects live in namespaces")
    return False


def _param(kind: _Kind, obj: KubeObject, *, bare: bool) -> Any:
    what = f"{kind.kind} {obj.name}"
    metadata = _metadata(what, obj)
    if isinstance(obj, Generic):
        return _custom(kind, obj, what, metadata)
    known: Json = {"metadata": metadata}
    absent = ["status", "spec"] if isinstance(obj, ConfigMap) else []
    if bare:
        absent += ["apiVersion", "kind"]
    else:
        known |= {"apiVersion": kind.api_version, "kind": kind.kind}
    if isinstance(obj, ConfigMap):
        paths = kept(obj.annotations)
        if obj.data is None and paths is None:
            known["data"] = Unknown(f"the data of {what}: not kept in a snapshot")
        elif obj.data is None or (paths is None and not obj.data):
            absent.append("data")
        else:
            known["data"] = _part(f"{what} data", obj.data, "data", paths)
    return Partial.of(what, known, absent)


def _metadata(what: str, obj: KubeObject) -> Partial:
    head: Json = {"name": obj.name}
    absent = ["generateName", "selfLink"]
    for field, value in (("namespace", obj.namespace), ("labels", dict(obj.labels))):
        if value:
            head[field] = value
        else:
            absent.append(field)
    return Partial.of(f"{what} metadata", head, absent)


def _custom(kind: _Kind, obj: Generic, what: str, metadata: Partial) -> Any:
    if obj.apiVersion != kind.api_version:
        raise Unsure(f"{what} as {kind.api_version}: it was read as {obj.apiVersion}")
    paths = kept(obj.annotations)
    document = {key: value for key, value in obj.document.items() if key != "metadata"}
    if paths is None or "" in paths:
        if paths is None and document.keys() <= {"apiVersion", "kind"}:
            raise Unsure(f"{what}: its content is not kept in a snapshot")
        return {**document, "metadata": metadata}
    known = {"metadata": metadata, "apiVersion": kind.api_version, "kind": kind.kind}
    absent = []
    for path in paths:
        head = path.partition("/")[0]
        if head not in document:
            absent.append(head)
        elif head not in known:
            known[head] = _part(f"{what} {head}", document[head], head, paths)
    return Partial.of(what, known, absent)


def _part(what: str, held: Any, head: str, paths: tuple[str, ...] | None) -> Any:
    """``data`` or ``spec``; where only some keys of it are kept, the others are unknown."""
    if paths is None or {"", head} & {*paths} or not isinstance(held, dict):
        return dict(held) if isinstance(held, dict) else held
    inside = [path.partition("/")[2] for path in paths if path.startswith(f"{head}/")]
    return Partial.of(what, dict(held), [key for key in inside if key not in held])

"""One manifest being read: its pod groups, built from the templates where the kind keeps them.

Rules of this module
1. The user's own manifest is never changed; a template is copied as far as something is added.
2. An amount that a template engine should have replaced is left out of the decoded pod, and said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube import decode, quantity
from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.objects import Pod
from kubectl_gpuadmit.kube.pointers import token
from kubectl_gpuadmit.kube.workloads.access import (
    INT32,
    Access,
    ManifestDocument,
    ObjectSource,
    kind_of,
)
from kubectl_gpuadmit.kube.workloads.model import PodGroup
from kubectl_gpuadmit.kube.workloads.placeholders import unresolved

if TYPE_CHECKING:
    from kubectl_gpuadmit.kube.manifests import Document

__all__ = ["INT32", "ManifestDocument", "ObjectSource", "Reading"]


class Reading(Access):
    """What a kind's reader fills: ``group`` once for each kind of pod, ``charge`` for the rest."""

    def __init__(
        self, document: ManifestDocument, *, namespace: str, cluster: ObjectSource | None = None
    ) -> None:
        super().__init__(document, namespace=namespace, cluster=cluster)
        self.groups: list[PodGroup] = []

    def group(
        self,
        role: str,
        count: int,
        pointer: str,
        *,
        template: Mapping[str, Any] | None = None,
        paths: Sequence[tuple[str, str]] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        tolerations: Sequence[Mapping[str, Any]] = (),
        volumes: Sequence[Mapping[str, Any]] = (),
        containers: Sequence[Mapping[str, Any]] = (),
        defaults: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
        name: str = "",
        generate: str = "",
        names: str = "",
        first: int = 0,
        members: int = 1,
        daemonset: bool = False,
    ) -> None:
        """Adds ``count`` pods made from the template at ``pointer`` (or from ``template``, built).

        ``labels`` and ``annotations`` are set as the controller sets them; ``tolerations``,
        ``volumes`` and ``containers`` are appended; ``defaults`` fill fields of the spec that are
        absent, ``overrides`` replace them.
        """
        sorted_paths = tuple(sorted(paths, key=lambda pair: -len(pair[0])))
        if template is None and pointer and self.at(pointer) is None:
            self.fail(pointer, "there is no pod template", ref="missing-field")
        given = self.mapping(pointer) if template is None else template
        where = _Where(pointer, sorted_paths)
        metadata = self._object(given.get("metadata"), where.out("/metadata"))
        spec = self._object(given.get("spec"), where.out("/spec"))
        if labels or annotations:
            metadata = dict(metadata)
            for key, more in (("labels", labels), ("annotations", annotations)):
                if more:
                    own = self._object(metadata.get(key), where.out(f"/metadata/{key}"))
                    metadata[key] = {**own, **more}
        added = (("tolerations", tolerations), ("volumes", volumes), ("containers", containers))
        if defaults or overrides or tolerations or volumes or containers:
            spec = {**spec, **{k: v for k, v in (defaults or {}).items() if spec.get(k) is None}}
            spec.update(overrides or {})
            for key, items in added:
                if items:
                    own_items = spec.get(key)
                    if own_items is not None and not isinstance(own_items, list):
                        self.fail(
                            where.out(f"/spec/{key}"),
                            f"expected a list, found {kind_of(own_items)}",
                        )
                    spec[key] = [*(own_items or ()), *items]
        built = {"metadata": metadata, "spec": spec}
        if isinstance(given.get("status"), dict):
            built["status"] = given["status"]
        identity: dict[str, Any] = {"namespace": self.namespace}
        if names or name:
            identity["name"] = name or names.replace("{index}", str(first)).replace(
                "{group}", "0"
            ).replace("{member}", str(first))
        else:
            identity["generateName"] = generate or f"{self.base}-"
        self.groups.append(
            PodGroup(
                role=role,
                count=count,
                template=built,
                pod=self._pod(built, identity, where),
                pointer=pointer,
                scheduled_by_daemonset=daemonset,
                paths=sorted_paths,
                names=names,
                first=first,
                members=members,
            )
        )
        for volume in self._object_list(spec.get("volumes")):
            if isinstance(volume.get("ephemeral"), dict):
                self.charge("persistentvolumeclaims", count)

    @staticmethod
    def _object_list(value: Any) -> list[dict[str, Any]]:
        return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []

    def _object(self, value: Any, pointer: str) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fail(pointer, f"expected an object, found {kind_of(value)}")
        return value

    def _pod(self, template: dict[str, Any], identity: dict[str, Any], where: _Where) -> Pod:
        metadata = {k: v for k, v in template["metadata"].items() if k not in _NOT_A_PODS_OWN}
        spec = self._checked_quantities(template["spec"], where)
        data = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, **identity},
            "spec": spec,
        }
        if "status" in template:
            data["status"] = template["status"]
        return self.decode(data, where)

    def decode(self, data: dict[str, Any], where: _Where) -> Pod:
        """``data`` as a pod; what is refused is shown where it stands in the manifest."""
        placed = _Placed(self.document, where)
        try:
            return decode.convert(data, NewPod, document=cast("Document", placed))
        except BadManifest as refused:
            self.fail(where.out(placed.asked), refused.message, hint=refused.hint)

    def _checked_quantities(self, spec: dict[str, Any], where: _Where) -> dict[str, Any]:
        """The spec without quantities that are placeholders; others that are none end the
        reading."""
        cleaned = spec
        selector = spec.get("nodeSelector")
        if isinstance(selector, dict):
            marks = {key: unresolved(value) for key, value in selector.items()}
            for key, mark in marks.items():
                if mark:
                    pointer = where.out(f"/spec/nodeSelector/{token(str(key))}")
                    what = f"the node selector {key}"
                    self.note_unresolved(pointer, selector[key], mark, what=what)
            if any(marks.values()):
                kept = {key: value for key, value in selector.items() if not marks[key]}
                cleaned = {**spec, "nodeSelector": kept}
        for field in ("containers", "initContainers"):
            items = spec.get(field)
            if not isinstance(items, list):
                continue
            for index, item in enumerate(items):
                if not isinstance(item, dict):
                    continue
                at = f"/spec/{field}/{index}"
                mark = unresolved(item.get("image"))
                if mark:
                    self.note(
                        "spec/unresolved-template",
                        f"the image is still the placeholder {mark}",
                        where.out(f"{at}/image"),
                    )
                resources = item.get("resources")
                if not isinstance(resources, dict):
                    continue
                better = self._checked_resources(resources, f"{at}/resources", where)
                if better is not resources:
                    if cleaned is spec:
                        cleaned = dict(spec)
                    if cleaned[field] is items:
                        cleaned[field] = list(items)
                    cleaned[field][index] = {**item, "resources": better}
        pod_level = spec.get("resources")
        if isinstance(pod_level, dict):
            better = self._checked_resources(pod_level, "/spec/resources", where)
            if better is not pod_level:
                cleaned = {**cleaned, "resources": better}
        overhead = spec.get("overhead")
        if isinstance(overhead, dict):
            better = self._checked_list(overhead, "/spec/overhead", where)
            if better is not overhead:
                cleaned = {**cleaned, "overhead": better}
        return cleaned

    def _checked_resources(
        self, resources: dict[str, Any], at: str, where: _Where
    ) -> dict[str, Any]:
        better = resources
        for field in ("limits", "requests"):
            amounts = resources.get(field)
            if isinstance(amounts, dict):
                said = resources.get("limits") if field == "requests" else None
                checked = self._checked_list(amounts, f"{at}/{field}", where, said)
                if checked is not amounts:
                    better = {**better, field: checked}
        return better

    def _checked_list(
        self, amounts: dict[str, Any], at: str, where: _Where, said: object = None
    ) -> dict[str, Any]:
        """``said`` are the limits beside: a placeholder that stands there too is told only once."""
        dropped: list[str] = []
        for name, amount in amounts.items():
            if type(amount) is int:
                continue
            mark = unresolved(amount)
            pointer = where.out(f"{at}/{token(str(name))}")
            if mark:
                if not (isinstance(said, dict) and said.get(name) == amount):
                    self.note_unresolved(pointer, amount, mark, what=f"the amount of {name}")
                dropped.append(name)
                continue
            if isinstance(amount, bool) or not isinstance(amount, str | int | float):
                self.fail(pointer, f"expected a quantity, found {kind_of(amount)}")
            try:
                quantity.parse(amount)
            except quantity.QuantityError as error:
                self.fail(pointer, str(error), ref="bad-quantity", hint='e.g. "8", 500m or 64Gi')
        return {k: v for k, v in amounts.items() if k not in dropped} if dropped else amounts


_NOT_A_PODS_OWN = frozenset({"name", "generateName", "namespace"})


class _Where:
    """Turns a pointer inside the template into one inside the manifest."""

    __slots__ = ("_paths", "_pointer")

    def __init__(self, pointer: str, paths: tuple[tuple[str, str], ...]) -> None:
        self._pointer = "" if pointer == "-" else pointer
        self._paths = paths

    def out(self, path: str) -> str:
        for inside, outside in self._paths:
            if path == inside or path.startswith(f"{inside}/"):
                return outside + path[len(inside) :]
        return self._pointer + path


class _Placed:
    """The document as the decoder of a template sees it: remembers which place it asks for."""

    def __init__(self, document: ManifestDocument, where: _Where) -> None:
        self.file = document.file
        self.line = document.line
        self.asked = ""
        self._document = document
        self._where = where

    def position(self, pointer: str) -> tuple[int, int]:
        self.asked = pointer
        return self._document.position(self._where.out(pointer))

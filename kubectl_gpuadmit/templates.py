"""Changes pod templates by RFC 6902 and leads pointers from the pod back to the user's manifest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import ValidationError, convert, structs

from kubectl_gpuadmit.kube.new_pods import NewPod
from kubectl_gpuadmit.kube.workloads import PodGroup
from kubectl_gpuadmit.verdict import Finding


class NotApplicable(Exception):
    """A patch has no place in the template, or makes something of it that is no pod."""


def present(template: dict[str, Any], ops: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What stands now where the operations write, by path: a list may only be made longer."""
    from jsonpointer import JsonPointer, JsonPointerException

    before: dict[str, Any] = {}
    for op in ops:
        if op["op"] in ("add", "replace", "remove"):
            try:
                before[op["path"]] = JsonPointer(op["path"]).resolve(template)
            except JsonPointerException:
                continue
    return before


def changed(manifest: dict[str, Any], ops: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The whole manifest with operations on it applied, which are known to apply."""
    import jsonpatch

    after: dict[str, Any] = jsonpatch.apply_patch(manifest, list(ops), in_place=False)
    return after


def patched(group: PodGroup, ops: Iterable[dict[str, Any]]) -> PodGroup:
    """The group with its template changed. Raises NotApplicable.

    The pod's identity (names, namespace, owner) stays the controller's.
    """
    import jsonpatch

    try:
        template = jsonpatch.apply_patch(group.template, list(ops), in_place=False)
        pod = convert({"apiVersion": "v1", **template, "kind": "Pod"}, NewPod)
    except (
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
        ValidationError,
        TypeError,
    ) as problem:
        raise NotApplicable(str(problem)) from None
    metadata = structs.replace(
        group.pod.metadata, labels=pod.metadata.labels, annotations=pod.metadata.annotations
    )
    return structs.replace(group, template=template, pod=structs.replace(pod, metadata=metadata))


def rooted(found: Finding, group: PodGroup) -> Finding:
    """Pod-rooted pointers become pointers into the user's manifest, in suggested patches too."""
    root = group.pointer
    if not root:
        return found

    def place(path: str) -> str:
        if not path or (root != "-" and path.startswith(f"{root}/")):
            return path
        return group.in_manifest(path) or ""

    suggest = []
    for remedy in found.suggest:
        patch = tuple({**op, "path": place(op["path"])} for op in remedy.patch)
        if all(op["path"] for op in patch):
            suggest.append(structs.replace(remedy, patch=patch))
    return structs.replace(found, field=place(found.field), suggest=tuple(suggest))

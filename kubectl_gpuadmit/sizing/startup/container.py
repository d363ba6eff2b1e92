"""One container as it starts: environment, command and the files that ConfigMaps mount into it.

Rules of this module
1. Templates are plain data that the API's decoder has seen, so shapes are right where the API has
   a schema; whatever is not as expected is treated as absent.
2. A ConfigMap that the source does not have is a blank that names it, never an empty text.

Order of the environment: k8s.io/kubernetes v1.37.2 pkg/kubelet/kubelet_pods.go
makeEnvironmentVariables: ``envFrom`` first, then ``env`` in order, each seeing those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from posixpath import normpath
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.sizing.startup.blanks import Blanks, cleared
from kubectl_gpuadmit.sizing.startup.expansion import expanded

ConfigData = Callable[[str], "Mapping[str, str] | str"]
"""Name of a ConfigMap in the pod's namespace -> its data, or the sentence that says why not."""


class Variable(Struct, frozen=True):
    value: str
    where: str
    """``env MODEL_ID`` or ``ConfigMap llm key MODEL_ID``."""
    pointer: str
    """Inside the template."""


class File(Struct, frozen=True):
    """A text that is mounted; a blank where its ConfigMap is not there."""

    text: str
    where: str


class Started(Struct, frozen=True):
    """What is known of a container before its image has a say."""

    name: str
    image: str
    pointer: str
    environment: dict[str, Variable]
    command: tuple[str, ...]
    args: tuple[str, ...]
    files: Files
    blanks: Blanks
    given: Mapping[str, Any]
    """The container as the template has it."""

    def value(self, name: str) -> str | None:
        found = self.environment.get(name)
        return found.value if found is not None else None


def started(
    container: Mapping[str, Any],
    pointer: str,
    *,
    spec: Mapping[str, Any],
    metadata: Mapping[str, Any],
    config: ConfigData,
    supplied: Mapping[str, str] | None = None,
) -> Started:
    """``supplied`` are variables that a controller adds (``LWS_GROUP_SIZE``)."""
    blanks = Blanks()
    environment = _environment(container, pointer, metadata, config, blanks)
    for name, value in (supplied or {}).items():
        environment.setdefault(name, Variable(value, f"env {name} of the controller", pointer))
    values = {name: variable.value for name, variable in environment.items()}
    name = _text(container.get("name"))
    return Started(
        name=name,
        image=_text(container.get("image")),
        pointer=pointer,
        environment=environment,
        command=tuple(expanded(word, values) for word in _texts(container.get("command"))),
        args=tuple(expanded(word, values) for word in _texts(container.get("args"))),
        files=Files(container, spec, config, blanks),
        blanks=blanks,
        given=container,
    )


def _environment(
    container: Mapping[str, Any],
    pointer: str,
    metadata: Mapping[str, Any],
    config: ConfigData,
    blanks: Blanks,
) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for index, source in enumerate(_objects(container.get("envFrom"))):
        name = _text(_object(source.get("configMapRef")).get("name"))
        if not name:
            continue  # a Secret: its keys are not known, and what is not found is blank anyway
        prefix = _text(source.get("prefix"))
        data = config(name)
        if not isinstance(data, str):
            for key, value in data.items():
                found[prefix + key] = Variable(
                    cleared(value), f"ConfigMap {name} key {key}", f"{pointer}/envFrom/{index}"
                )
    for index, item in enumerate(_objects(container.get("env"))):
        name = _text(item.get("name"))
        at = f"{pointer}/env/{index}"
        value = _text(item.get("value"))
        where = f"env {name}"
        if value:
            value = expanded(value, {k: v.value for k, v in found.items()})
        elif item.get("valueFrom"):
            value, where = _from(_object(item["valueFrom"]), name, metadata, config, blanks)
        found[name] = Variable(value, where, at)
    return found


def _from(
    source: Mapping[str, Any],
    name: str,
    metadata: Mapping[str, Any],
    config: ConfigData,
    blanks: Blanks,
) -> tuple[str, str]:
    reference = _object(source.get("configMapKeyRef"))
    if reference:
        key, owner = _text(reference.get("key")), _text(reference.get("name"))
        data = config(owner)
        if isinstance(data, str):
            return blanks.mark(data), f"env {name}"
        if key in data:
            return cleared(data[key]), f"ConfigMap {owner} key {key}"
        return blanks.mark(f"ConfigMap {owner} has no key {key}"), f"env {name}"
    secret = _object(source.get("secretKeyRef"))
    if secret:
        which = f"Secret {_text(secret.get('name'))} key {_text(secret.get('key'))}"
        return blanks.mark(f"{which}: Secrets are never read"), f"env {name}"
    path = _text(_object(source.get("fieldRef")).get("fieldPath"))
    for field in ("labels", "annotations"):
        if path.startswith(f"metadata.{field}['") and path.endswith("']"):
            key = path[len(field) + 11 : -2]
            table = _object(metadata.get(field))
            if key in table:
                return _text(table[key]), f"{field[:-1]} {key}"
    return blanks.mark(
        f"env {name}: {path or 'its source'} is known in the pod only"
    ), f"env {name}"


class Files:
    """What ConfigMaps put into a container's file system, and what its script writes there."""

    def __init__(
        self,
        container: Mapping[str, Any],
        spec: Mapping[str, Any],
        config: ConfigData,
        blanks: Blanks,
    ) -> None:
        self._mounts = [
            (normpath(_text(mount.get("mountPath"))), _text(mount.get("name")), mount)
            for mount in _objects(container.get("volumeMounts"))
            if mount.get("mountPath")
        ]
        self._mounts.sort(key=lambda mount: -len(mount[0]))
        self._volumes = {_text(v.get("name")): v for v in _objects(spec.get("volumes"))}
        self._config = config
        self._blanks = blanks
        self._written: dict[str, File] = {}

    def write(self, path: str, text: str, where: str) -> None:
        """Notes a file that a script makes."""
        self._written[normpath(path)] = File(text, where)

    def read(self, path: str) -> File | None:
        """The file at an absolute path; None where no ConfigMap reaches it."""
        path = normpath(path)
        if path in self._written:
            return self._written[path]
        for at, volume, mount in self._mounts:
            if path == at or path.startswith(f"{at.rstrip('/')}/"):
                inside = path[len(at) :].strip("/")
                part = _text(mount.get("subPath")).strip("/")
                return self._of(volume, "/".join(p for p in (part, inside) if p))
        return None

    def volume_of(self, path: str) -> str:
        """What is mounted over a path (``PersistentVolumeClaim models``), empty for nothing."""
        path = normpath(path)
        for at, name, _ in self._mounts:
            if path == at or path.startswith(f"{at.rstrip('/')}/"):
                volume = self._volumes.get(name, {})
                claim = _text(_object(volume.get("persistentVolumeClaim")).get("claimName"))
                if claim:
                    return f"PersistentVolumeClaim {claim}"
                kind = next((k for k in volume if k != "name"), "volume")
                return f"{kind} volume {name}"
        return ""

    def place(self, path: str) -> tuple[str, str] | None:
        """The volume that a path lies in, and the path inside it."""
        path = normpath(path)
        for at, volume, mount in self._mounts:
            if path == at or path.startswith(f"{at.rstrip('/')}/"):
                part = _text(mount.get("subPath")).strip("/")
                return volume, "/".join(p for p in (part, path[len(at) :].strip("/")) if p)
        return None

    def _of(self, volume: str, inside: str) -> File | None:
        given = self._volumes.get(volume, {})
        sources = [_object(given.get("configMap"))]
        sources += [
            _object(s.get("configMap"))
            for s in _objects(_object(given.get("projected")).get("sources"))
        ]
        unknown: File | None = None
        for source in sources:
            name = _text(source.get("name"))
            if not name:
                continue
            data = self._config(name)
            if isinstance(data, str):
                unknown = File(self._blanks.mark(data), f"ConfigMap {name}")
                continue
            key = _key(source, inside)
            if key is not None and key in data:
                return File(cleared(data[key]), f"ConfigMap {name} key {key}")
        return unknown


def _key(source: Mapping[str, Any], inside: str) -> str | None:
    """The key that stands at a path of the volume: ``items`` choose and rename."""
    items = _objects(source.get("items"))
    if not items:
        return inside
    for item in items:
        if normpath(_text(item.get("path"))) == normpath(inside):
            return _text(item.get("key"))
    return None


LEFT_OUT = "(dropped)"
"""What a file that was written without secrets has in the place of a word
(``snapshots.secrets.DROPPED``); to a shell it would mean something else."""
DROPPED = "_dropped_"
"""What stands for it here: a word without a meaning."""


def _text(value: Any) -> str:
    return cleared(value).replace(LEFT_OUT, DROPPED) if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    return [_text(v) for v in value if isinstance(v, str)] if isinstance(value, list) else []


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []

"""Asks an MLflow tracking server what its registered models say they need.

Registry names, versions, aliases and tags over the REST API 2.0 (mlflow/protos/service.proto,
model_registry.proto; the paths are those of MLflow's own RestStore). Only these are read: no run,
no artifact. A server that cannot be asked is a sentence, never an exception: whether that matters
is the policy's to say.
"""

from __future__ import annotations

import base64
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from kubectl_gpuadmit.policy.models import gibibytes
from kubectl_gpuadmit.sizing.registry import Entry

TIMEOUT_SECONDS = 5.0
MOST_BYTES = 4 << 20

MEMORY_TAGS = (
    "gpu-admit.io/memory",
    "gpu_memory_gb",
    "gpu_memory",
    "required_vram_gb",
    "required_vram",
    "vram_gb",
    "vram",
)
"""Tags that say how much GPU memory one replica needs, the first one there counts."""

LIKE_TAGS = ("gpu-admit.io/like", "base_model", "hf_model_id", "huggingface_model_id")
"""Tags that name a public model of the same shape."""

_REFERENCE = re.compile(
    r"(?:models:/)?(?P<name>[^@:]+?)(?:@(?P<alias>[\w.-]+)|[:/](?P<version>[0-9]{1,9}))?/?"
)


class Asked(Struct, frozen=True):
    """What a server said of some names."""

    entries: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    """Models that it has and that say nothing of use, in words."""
    problem: str = ""
    """Why it could not be asked, in one sentence."""


class _Refused(Exception):
    """The server answers, but not what was asked; ``missing``: there is no such thing."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


def ask(url: str, names: Iterable[str]) -> Asked:
    """What the server at ``url`` knows of ``names``.

    Each is ``NAME``, ``NAME@ALIAS``, ``NAME:VERSION`` or a ``models:/`` URI of these.
    """
    server = _Server(url)
    entries: list[Entry] = []
    notes: list[str] = []
    for name in dict.fromkeys(names):
        try:
            found = _entry(server, name)
        except (OSError, _Refused, ValueError) as problem:
            return Asked(tuple(entries), tuple(notes), f"MLflow at {server.shown}: {_why(problem)}")
        if isinstance(found, Entry):
            entries.append(found)
        elif found:
            notes.append(found)
    return Asked(tuple(entries), tuple(notes))


def _entry(server: _Server, asked: str) -> Entry | str:
    """An entry, '' for a model that is not registered, or why a registered one is of no use."""
    parsed = _REFERENCE.fullmatch(asked.strip())
    if parsed is None:
        return ""
    name = parsed["name"].rpartition("/")[2]  # MLflow's names hold no slash
    model = server.get("registered-models/get", name=name) if name else None
    if model is None:
        return ""
    tags = _tags(model.get("registered_model"))
    version, of = _version(server, name, model, parsed["alias"], parsed["version"])
    if version is None:
        return f"MLflow has {name}, and no {of}"
    tags.update(_tags(version))
    source = f"MLflow {name}" + (f" {of}" if of else "")
    memory = gibibytes(next((tags[t] for t in MEMORY_TAGS if tags.get(t)), None))
    like = next((tags[t] for t in LIKE_TAGS if tags.get(t)), "")
    if memory is None and not like:
        return f"MLflow has {name}, and no tag {MEMORY_TAGS[0]} or {LIKE_TAGS[0]} on it"
    return Entry(name=asked, source=source, like=like, memory_gib=memory)


def _version(
    server: _Server, name: str, model: dict[str, Any], alias: str | None, number: str | None
) -> tuple[dict[str, Any] | None, str]:
    """The version that a reference means, and how it is called: by alias, by number, else the
    newest one; of a model without any version its own tags are all there is."""
    if alias:
        found = server.get("registered-models/alias", name=name, alias=alias)
        version = _object(found, "model_version")
        return version, f"alias {alias}" + (
            f" (version {version.get('version')})" if version else ""
        )
    if number:
        found = server.get("model-versions/get", name=name, version=number)
        return _object(found, "model_version"), f"version {number}"
    registered = _object(model, "registered_model") or {}
    listed = registered.get("latest_versions")
    numbers = [
        (int(v["version"]), v)
        for v in (listed if isinstance(listed, list) else ())
        if isinstance(v, dict) and str(v.get("version", "")).isdecimal()
    ]
    if not numbers:
        return {}, ""
    newest, version = max(numbers, key=lambda pair: pair[0])
    return version, f"version {newest}"


def _tags(found: Any) -> dict[str, str]:
    tags = found.get("tags") if isinstance(found, dict) else None
    return {
        str(tag["key"]): str(tag.get("value", ""))
        for tag in (tags if isinstance(tags, list) else ())
        if isinstance(tag, dict) and "key" in tag
    }


def _object(found: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    inner = found.get(key) if found else None
    return inner if isinstance(inner, dict) else None


class _Server:
    """One tracking server. Credentials come from MLflow's own variables and are never shown."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        place = host + (f":{parts.port}" if parts.port else "")
        self.base = f"{parts.scheme}://{place}{parts.path.rstrip('/')}/api/2.0/mlflow"
        self.shown = f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
        self._authorization = _authorization(parts)

    def get(self, path: str, **query: str) -> dict[str, Any] | None:
        """The answer as an object, None where there is no such thing. Raises OSError, _Refused."""
        request = urllib.request.Request(f"{self.base}/{path}?{urllib.parse.urlencode(query)}")
        if self._authorization:
            request.add_header("Authorization", self._authorization)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:
                raw = reply.read(MOST_BYTES + 1)
        except urllib.error.HTTPError as problem:
            with problem:
                if problem.code in (400, 404) and _is_missing(problem.read(MOST_BYTES)):
                    return None
            raise _Refused(_status(problem.code)) from None
        if len(raw) > MOST_BYTES:
            raise _Refused(f"its answer is larger than {MOST_BYTES >> 20} MiB")
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError):
            raise _Refused("its answer is no JSON: is it an MLflow server?") from None
        if not isinstance(data, dict):
            raise _Refused("its answer is no JSON object: is it an MLflow server?")
        return data


def _authorization(parts: urllib.parse.SplitResult) -> str:
    if token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
        return f"Bearer {token}"
    user = urllib.parse.unquote(parts.username or "") or os.environ.get("MLFLOW_TRACKING_USERNAME")
    password = urllib.parse.unquote(parts.password or "") or os.environ.get(
        "MLFLOW_TRACKING_PASSWORD"
    )
    if user and password:
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    return ""


def _is_missing(raw: bytes) -> bool:
    """MLflow's own word for what is not there; an alias that is not set is a bad request to it."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    code = data.get("error_code") if isinstance(data, dict) else None
    message = str(data.get("message", "")) if isinstance(data, dict) else ""
    return code == "RESOURCE_DOES_NOT_EXIST" or (
        code == "INVALID_PARAMETER_VALUE" and ("not found" in message or "alias" in message)
    )


def _status(code: int) -> str:
    match code:
        case 401:
            return "it asks for credentials (MLFLOW_TRACKING_TOKEN)"
        case 403:
            return "it forbids the request"
        case 404:
            return "it knows no such address: is it an MLflow server?"
    return f"it answers with status {code}"


def _why(problem: BaseException) -> str:
    """One sentence; what the system calls the failure, without the address."""
    if isinstance(problem, _Refused):
        return str(problem)
    reason = getattr(problem, "reason", problem)
    if isinstance(reason, TimeoutError) or "timed out" in str(reason):
        return f"no answer within {TIMEOUT_SECONDS:.0f} s"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror.lower()
    return "cannot be asked"

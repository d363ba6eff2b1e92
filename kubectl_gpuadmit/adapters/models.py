"""Reads what ``--models`` names: a catalogue, a model's folder, a GGUF file, or a folder of these.

Only headers are read of weights. What a folder holds besides is left alone; a model file that is
broken is one clear error.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubectl_gpuadmit.adapters.files import read_file
from kubectl_gpuadmit.errors import BadInput, BadManifest, BadModelFile
from kubectl_gpuadmit.kube.manifests import read_documents
from kubectl_gpuadmit.policy import models as policylib
from kubectl_gpuadmit.policy.schema import MODEL
from kubectl_gpuadmit.policy.shape import UNSOUND, Severity, dotted, sound
from kubectl_gpuadmit.sizing.architecture import Architecture
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.formats import config, gguf, safetensors
from kubectl_gpuadmit.sizing.registry import Entry
from kubectl_gpuadmit.sizing.trial import Trial

_CONFIG = "config.json"
_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"
_MODELOPT = "hf_quant_config.json"
KINDS = "a catalogue in YAML, a folder with config.json, or a .gguf file"


def read_models(path: str) -> tuple[Entry, ...]:
    """Every model at a path. Raises BadInput: no such path, a broken file, or no model in it."""
    root = Path(path)
    try:
        is_folder = root.is_dir()
    except OSError:
        is_folder = False
    found = tuple(_in_folder(root)) if is_folder else tuple(_file(root))
    if not found:
        raise BadInput(
            "no-models",
            "holds no model that this program can read",
            file=path,
            hint=KINDS,
        )
    return found


def read_model(folder: Path) -> tuple[Architecture, Checkpoint | None]:
    """One Hugging Face folder: its configuration, and what its safetensors headers list."""
    beside = folder / _MODELOPT
    modelopt = read_file(beside) if beside.is_file() else None
    file = folder / _CONFIG
    return (
        config.architecture(_small(file), str(file), modelopt=modelopt),
        read_checkpoint(folder),
    )


def read_config(path: str) -> Trial:
    """The model of a folder or of one configuration file, under its engine's defaults. Beside a
    file of another name than config.json no tensors are looked for."""
    given = Path(path)
    if given.is_dir():
        folder, (architecture, checkpoint) = given, read_model(given)
    else:
        folder = given.parent
        architecture = config.architecture(read_file(given), path)
        checkpoint = read_checkpoint(folder) if given.name == _CONFIG else None
    return Trial(
        model=folder.resolve().name or path,
        source=path,
        architecture=architecture,
        checkpoint=checkpoint,
    )


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The tensors of a folder; the index's total where its files are not all there; None without
    safetensors."""
    if (folder / _INDEX).is_file():
        stated, names = safetensors.index(_small(folder / _INDEX), str(folder / _INDEX))
        files = [folder / name for name in names]
        if all(file.is_file() for file in files):
            return safetensors.together((read_safetensors(f) for f in files), str(folder / _INDEX))
        return stated if stated.total_bytes else None
    single = folder / _SINGLE
    return read_safetensors(single) if single.is_file() else None


def read_safetensors(path: Path) -> Checkpoint:
    """The header of one file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            first = stream.read(safetensors.LENGTH_BYTES)
            length = safetensors.header_length(first, str(path))
            return safetensors.header(first + stream.read(length), str(path), size=size)
    except OSError as problem:
        raise _unreadable(path, problem) from None


def read_gguf(path: Path) -> gguf.Read:
    """The header of one file, which is mapped, not read: vocabularies are tens of megabytes."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            if size == 0:
                return gguf.read(b"", str(path))
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                return gguf.read(mapped, str(path), size=size)
    except FileNotFoundError:
        raise BadInput("no-such-path", "no such file or directory", file=str(path)) from None
    except OSError as problem:
        raise _unreadable(path, problem) from None


def _in_folder(root: Path) -> Iterator[Entry]:
    if (root / _CONFIG).is_file():
        yield _folder(root, root.resolve().name)
        return
    for place, folders, files in os.walk(root):
        folders.sort()
        folder = Path(place)
        if _CONFIG in files:
            folders.clear()
            yield _folder(folder, _name(folder.relative_to(root)))
            continue
        for name in sorted(files):
            if name.endswith(".gguf") or (name.endswith((".yaml", ".yml")) and folder == root):
                yield from _file(folder / name)


def _folder(folder: Path, name: str) -> Entry:
    architecture, checkpoint = read_model(folder)
    return Entry(
        name=name,
        also=(folder.name,) if folder.name != name else (),
        source=str(folder / _CONFIG),
        architecture=architecture,
        checkpoint=checkpoint,
    )


def _name(inside: Path) -> str:
    """``models--org--name/snapshots/…`` of the Hub's cache is ``org/name``; else the path."""
    for part in inside.parts:
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/", 1)
    return inside.as_posix()


def read_gguf_model(path: Path) -> Entry:
    """The model of a GGUF file, whatever its name ends in; of a split one its first file is meant.
    Raises BadInput."""
    read = read_gguf(path)
    number, parts = read.split
    if number != 1:
        raise BadInput(
            "no-models",
            f"is part {number} of {parts} of a model",
            file=str(path),
            hint="name the first part",
        )
    return Entry(
        name=path.stem,
        also=(read.name,) if read.name else (),
        source=str(path),
        architecture=read.architecture,
        checkpoint=read.checkpoint if parts == 1 else _all_parts(path, parts),
    )


def read_gguf_trial(path: str) -> Trial:
    """The same of a GGUF file. Raises BadInput for one that does not describe its model."""
    entry = read_gguf_model(Path(path))
    if entry.architecture is None:
        raise BadInput("no-models", "says nothing of the model's architecture", file=path)
    return Trial(
        model=entry.name,
        source=path,
        architecture=entry.architecture,
        checkpoint=entry.checkpoint,
    )


def _file(path: Path) -> Iterator[Entry]:
    if path.name.endswith(".gguf"):
        if read_gguf(path).split[0] == 1:
            yield read_gguf_model(path)
        return
    if path.name == _CONFIG:
        yield _folder(path.parent, path.resolve().parent.name)
        return
    yield from _catalogue(read_file(path), str(path))


def _all_parts(path: Path, parts: int) -> Checkpoint | None:
    """All files of a split model; None where one of them is not there."""
    stem = path.name.removesuffix(f"-00001-of-{parts:05d}.gguf")
    files = [path.with_name(f"{stem}-{n:05d}-of-{parts:05d}.gguf") for n in range(1, parts + 1)]
    if stem == path.name or not all(file.is_file() for file in files):
        return None
    return safetensors.together((read_gguf(file).checkpoint for file in files), str(path))


def _catalogue(raw: bytes, file: str) -> Iterator[Entry]:
    for document in read_documents(raw, file):
        if isinstance(document, BadManifest):
            document.hint = document.hint or KINDS
            raise document
        data: Any = document.data
        if isinstance(data, dict) and data.get("kind") == "ConfigMap":
            inner = data.get("data")
            for key, text in (inner if isinstance(inner, dict) else {}).items():
                if isinstance(text, str):
                    yield from _catalogue(text.encode(), f"{file} data.{key}")
            continue
        listed = data
        if isinstance(data, dict):
            inside = data.get("models")
            listed = data.get("catalogue") or (
                inside.get("catalogue") if isinstance(inside, dict) else inside
            )
        if isinstance(listed, list):
            yield from _entries(listed, file)


def _entries(listed: list[Any], file: str) -> tuple[Entry, ...]:
    def report(
        pointer: str, ref: str, message: str, hint: str = "", severity: Severity = "error"
    ) -> None:
        raise BadModelFile(ref, message, file=file, field=dotted(pointer), hint=hint)

    clean = sound(listed, {"type": "array", "items": MODEL}, "", report)
    return () if clean is UNSOUND else policylib.catalogue(clean, report, "", file)


def _small(path: Path) -> bytes:
    try:
        if path.stat().st_size > config.MOST_BYTES:
            raise BadModelFile(
                "model-file-too-large", "is no configuration: it is too large", file=str(path)
            )
    except OSError as problem:
        raise _unreadable(path, problem) from None
    return read_file(path)


def _unreadable(path: Path, problem: OSError) -> BadInput:
    reason = problem.strerror or type(problem).__name__
    return BadInput("unreadable", f"cannot be read: {reason}", file=str(path))

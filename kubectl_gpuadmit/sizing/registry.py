"""Which model a name means: the policy's own entries, those of a registry, then the catalogue.

Entries are values that somebody else has read (policy file, ``--models``, MLflow); nothing here
reads. A name that nobody knows is unknown, and says who was asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, structs

from kubectl_gpuadmit.sizing.architecture import Architecture, Quantization
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
from kubectl_gpuadmit.sizing.recognition import Naming


class Entry(Struct, frozen=True, kw_only=True):
    """One model that an organisation has written down."""

    name: str
    source: str
    """``policy models.catalogue``, ``MLflow llama version 3``, a file."""
    also: tuple[str, ...] = ()
    like: str = ""
    """Another model of the same shape, by its name in the catalogue."""
    memory_gib: float | None = None
    """GPU memory that one replica needs in all, as its owner measured or decided."""
    architecture: Architecture | None = None
    checkpoint: Checkpoint | None = None


class Models(Struct, frozen=True, kw_only=True):
    """Everything beside the shipped catalogue."""

    naming: Naming = Naming()
    entries: tuple[Entry, ...] = ()
    mlflow: str = ""
    """Address of the tracking server, '' for none."""
    asked: tuple[str, ...] = ()
    """Registries that were asked, in words."""
    silent: tuple[str, ...] = ()
    """Registries that could not be asked, and why, in sentences."""

    def with_entries(self, more: Iterable[Entry]) -> Models:
        """``more`` win over those that are there."""
        return structs.replace(self, entries=(*more, *self.entries))

    def of_names(self, names: Iterable[str]) -> Models:
        """With the entries alone that ``look_up`` takes for these names."""
        used = [found for name in names if (found := _entry(self, name)) is not None]
        return structs.replace(self, entries=tuple(e for e in self.entries if e in used))


NONE = Models()
"""The shipped catalogue alone."""


class Facts(Struct, frozen=True, kw_only=True):
    """What is known of one model; one of ``architecture`` and ``memory_gib`` is there."""

    name: str
    architecture: Architecture | None = None
    checkpoint: Checkpoint | None = None
    memory_gib: float | None = None
    draft: Architecture | None = None
    """Of the model that guesses ahead, where the engine loads one."""
    source: str = ""
    assumed: tuple[str, ...] = ()
    """What was taken for granted to get there."""


def look_up(models: Models, name: str) -> Facts | str:
    """The facts, or the sentence that says what is missing."""
    own = _own(models, name)
    if own is not None:
        return own
    found = _catalogued(name)
    if found is not None:
        return found
    if name.startswith(("/", "./")):
        return (
            f"model at {name}: the folder is not to be seen from here; name the model in "
            "annotation gpu-admit.io/model"
        )
    also = f", nor to {', '.join(models.asked)}" if models.asked else ""
    silent = f"; {'; '.join(models.silent)}" if models.silent else ""
    return f"model {name}: not known to the catalogue{also}{silent}"


def _own(models: Models, name: str) -> Facts | None:
    entry = _entry(models, name)
    return _of_entry(entry) if entry is not None else None


def _entry(models: Models, name: str) -> Entry | None:
    wanted = name.strip().rstrip("/").lower()
    last = wanted.rpartition("/")[2]
    for exact in (True, False):
        for entry in models.entries:
            names = [n.lower() for n in (entry.name, *entry.also)]
            if wanted in names or (not exact and last in [n.rpartition("/")[2] for n in names]):
                return entry
    return None


def _of_entry(entry: Entry) -> Facts | None:
    facts = Facts(
        name=entry.name,
        architecture=entry.architecture,
        checkpoint=entry.checkpoint,
        memory_gib=entry.memory_gib,
        source=entry.source,
    )
    if entry.architecture is not None or not entry.like:
        return facts if entry.architecture is not None or entry.memory_gib is not None else None
    found = _catalogued(entry.like)
    if found is None:
        return facts if entry.memory_gib is not None else None
    assumed = (
        f"{entry.name} has the shape of {found.name}, as {entry.source} says",
        *found.assumed,
    )
    return structs.replace(facts, architecture=found.architecture, assumed=assumed)


def _catalogued(name: str) -> Facts | None:
    from kubectl_gpuadmit.sizing import catalogue

    plain, file_type = gguf_name(name)
    found = catalogue.find(plain)
    if found is None:
        return None
    assumed = [found.assumed] if found.assumed else []
    architecture = found.architecture
    if file_type:
        architecture = structs.replace(
            architecture, quantization=Quantization(method="gguf", format=file_type)
        )
        assumed.append(f"{file_type}, as the file's name says")
    if name.startswith("/"):
        assumed.append(f"{name} holds {found.known.name}, as the folder's name says")
    return Facts(
        name=name.rstrip("/").rpartition("/")[2] if name.startswith("/") else name,
        architecture=architecture,
        source=f"catalogue: {found.known.name}",
        assumed=tuple(assumed),
    )


_GGUF_TYPE = re.compile(
    r"[-.:_]((?:UD-)?(?:I?Q[1-8]_[A-Z0-9_]+|Q[48]_[01]|BF16|F16|F32|MXFP4(?:_MOE)?))$",
    re.IGNORECASE,
)


def gguf_name(name: str) -> tuple[str, str]:
    """``Qwen3-8B-Q4_K_M.gguf`` -> the model's name and file type; the name and '' for others."""
    plain = re.sub(r"(?:-[0-9]{5}-of-[0-9]{5})?\.gguf$", "", name, flags=re.IGNORECASE)
    is_file = plain != name
    found = _GGUF_TYPE.search(plain)
    kind = (
        found[1].upper().removeprefix("UD-")
        if found and (is_file or "gguf" in name.lower())
        else ""
    )
    if kind and found:
        plain = plain[: found.start()]
    plain = re.sub(r"[-_]gguf$", "", plain.rstrip("/"), flags=re.IGNORECASE)
    return plain, kind

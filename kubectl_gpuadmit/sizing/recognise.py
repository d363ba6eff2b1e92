"""Which model a pod serves and how, from its template alone; every finding says where it stood.

Rules of this module
1. Nothing is guessed: an argument whose value cannot be known is named with what is missing.
2. A container without any sign of a serving engine is no model; one with a sign and without a model
   is unknown.
3. An annotation that names the model counts before the engine's arguments, these before the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct, convert, structs

from kubectl_gpuadmit.kube import gpus as gpulib
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.sizing import objects
from kubectl_gpuadmit.sizing.downloads import Downloads, downloads
from kubectl_gpuadmit.sizing.engines import images, nim, reading
from kubectl_gpuadmit.sizing.engines.arguments import Parsed, contradictions, placeholder
from kubectl_gpuadmit.sizing.engines.starts import Start, start
from kubectl_gpuadmit.sizing.recognition import Naming, Recognised, Recognition
from kubectl_gpuadmit.sizing.serving import Engine, Serving
from kubectl_gpuadmit.sizing.signs import RUNS_TO_AN_END, serves_nothing, sign, why_silent
from kubectl_gpuadmit.sizing.startup.blanks import is_known
from kubectl_gpuadmit.sizing.startup.commands import Program, programs
from kubectl_gpuadmit.sizing.startup.container import ConfigData, Started, started

_ENGINES: dict[str, Engine] = {
    "vllm": "vllm",
    "dynamo-vllm": "vllm",
    "kserve-huggingface": "vllm",
    "ray": "vllm",
    "sglang": "sglang",
    "dynamo-sglang": "sglang",
    "tensorrt-llm": "tensorrt-llm",
    "dynamo-trtllm": "tensorrt-llm",
    "tgi": "tgi",
    "llama.cpp": "llama.cpp",
    "nim": "nim",
    "triton": "triton",
}


class _Container(Struct, frozen=True):
    """One container, and what its pod and its workload say about it."""

    container: Started
    gpus: int
    hint: objects.Hint
    named: tuple[str, str] | None
    """The model that the pod names, and where."""
    naming: Naming
    serves: bool
    """False for kinds that run to an end."""

    @property
    def own(self) -> str:
        """The engine of its image."""
        return images.engine(self.container.image)

    @property
    def by_image(self) -> tuple[str, str] | None:
        image = self.container.image
        for pattern, model in self.naming.images.items():
            if image == pattern or fnmatchcase(image, pattern):
                return model, f"image {image}, by the policy's models.images"
        return None


def recognised(
    manifest: Mapping[str, Any],
    kind: str,
    role: str,
    template: Mapping[str, Any],
    *,
    naming: Naming,
    config: ConfigData,
) -> Recognition:
    """``template`` is the pod template, ``manifest`` the object that it comes from."""
    spec, metadata = _object(template.get("spec")), _object(template.get("metadata"))
    hint = objects.hint(kind, manifest, role)
    supplied = objects.variables(kind, manifest)
    fetched = downloads(
        _objects(spec.get("initContainers")), spec=spec, metadata=metadata, config=config
    )
    named = _named(metadata, naming)
    serves = kind not in RUNS_TO_AN_END
    found: list[Recognised] = []
    reasons: list[str] = []
    certain = True
    for pointer, written in _containers(spec):
        amount = container_gpus(written)
        if not amount and not _claims(written) and not _only(spec, written):
            continue
        container = started(
            written, pointer, spec=spec, metadata=metadata, config=config, supplied=supplied
        )
        read = _read(_Container(container, amount, hint, named, naming, serves))
        if isinstance(read, str):
            reasons.append(read)
            certain = certain and (not serves or serves_nothing(container))
        else:
            found.append(_downloaded(read, container, fetched))
    if found:
        return Recognition(tuple(found))
    return Recognition((), "; ".join(dict.fromkeys(reasons)), certain)


def _read(one: _Container) -> Recognised | str:
    """The engine of the container; why there is none, in a sentence."""
    starts = _starts(one)
    if one.hint.settings is not None and not starts:
        return _finished(one, one.hint.engine, one.hint.settings)
    if not starts:
        return _without_start(one)
    engines = [s for s in starts if s.engine != "follower"]
    if not engines:
        return Recognised(
            engine="follower",
            serving=Serving(engine="unknown"),
            container=one.container.name,
            pointer=one.container.pointer,
            gpus=one.gpus,
            follows=True,
        )
    readable = [s for s in engines if s.engine in reading.READABLE]
    if not readable:
        return _opaque(one, engines[0].engine, one.named)
    container = one.container
    answers = [
        _finished(one, s.engine, reading.arguments(s, container, gpus=one.gpus)) for s in readable
    ]
    first = answers[0]
    if any((a.model, a.serving) != (first.model, first.serving) for a in answers[1:]):
        said = ", ".join(dict.fromkeys(a.model or "an unknown model" for a in answers))
        why = f"container {container.name} starts several engines ({said}): which one is not known"
        return structs.replace(first, model="", missing=(*first.missing, why))
    return first


def _starts(one: _Container) -> list[Start]:
    container, hint = one.container, one.hint
    by_itself = images.starts_itself(container.image)
    listed = programs(container) if container.command or container.args or not by_itself else []
    found = [s for p in listed for s in (start(p),) if s is not None]
    if found:
        return found
    kinds_own = hint.engine if hint.engine in reading.READABLE else ""
    if container.command or not (by_itself or kinds_own):
        return []
    engine = kinds_own or one.own
    words = (*container.args, *hint.arguments(container))
    skip = 1 if words[:1] == ("serve",) else 0
    pointers = tuple(f"{container.pointer}/args/{i}" for i in range(len(container.args)))
    program = Program(words, pointers, "args")
    return [Start(engine, program, skip)] if engine else []


def _without_start(one: _Container) -> Recognised | str:
    """No engine is started that we know: the model may be named all the same."""
    model = one.named or one.by_image or one.hint.named
    why = one.hint.why or (sign(one.container) if one.serves else "")
    if model is not None or one.own or why:
        return _opaque(one, one.own or "unknown", model, why=why)
    told = one.container.command or one.container.args
    runs = "starts a program that is" if told else "starts what its image starts:"
    return f"container {one.container.name} {runs} no serving engine known here"


def _opaque(
    one: _Container, engine: str, named: tuple[str, str] | None, *, why: str = ""
) -> Recognised:
    """An engine that loads what a volume or a request names."""
    container = one.container
    model = named or one.by_image
    return Recognised(
        engine=engine,
        serving=Serving(
            engine=_ENGINES.get(engine, "unknown"), version=images.version(container.image)
        ),
        model=model[0] if model else "",
        model_from=model[1] if model else "",
        container=container.name,
        pointer=container.pointer,
        gpus=one.gpus,
        missing=() if model else (why or why_silent(engine, container.name),),
    )


def _finished(one: _Container, engine: str, parsed: Parsed) -> Recognised:
    """Arguments as a ``Serving``, and the model that they or something else names."""
    container, named = one.container, one.named
    missing = list(parsed.missing)
    if one.hint.more is not None:
        parsed.add(one.hint.more)
    told = _told(one, engine, parsed)
    chosen = named or told or one.by_image
    twice = list(contradictions(parsed.given, _counts))
    if named and told and not _same(named[0], told[0]) and not told[0].startswith("/"):
        twice.append(f"{named[1]} says {named[0]}, {told[1]} {told[0]}: the former counts")
    if chosen is None and "model" not in parsed.unknown_fields:
        missing.append(f"nothing names the model that container {container.name} loads")
    return Recognised(
        engine=engine,
        serving=_serving(one, engine, parsed),
        model=chosen[0] if chosen else "",
        model_from=chosen[1] if chosen else "",
        container=container.name,
        pointer=container.pointer,
        gpus=one.gpus,
        given=tuple(parsed.given),
        missing=tuple(dict.fromkeys(missing)),
        contradictions=tuple(twice),
    )


def _told(one: _Container, engine: str, parsed: Parsed) -> tuple[str, str] | None:
    """The model that the engine is told to load, by whatever way it is told, and where."""
    said = parsed.last("model")
    if "model" in parsed.unknown_fields and said is None:
        return None
    directory = parsed.value("model_dir") or (said.value if said else None)
    if one.hint.named and (said is None or directory == "/mnt/models"):
        return one.hint.named
    if said is not None:
        return str(said.value), f"{said.where} of container {one.container.name}"
    by_image = nim.model_of_image(one.container.image) if engine == "nim" else ""
    return (by_image, f"image of container {one.container.name}") if by_image else None


_FIELDS = frozenset(Serving.__struct_fields__) - {
    "engine",
    "version",
    "contradictions",
    "not_understood",
}


def _counts(field: str) -> bool:
    return field in _FIELDS or field == "model"


def _serving(one: _Container, engine: str, parsed: Parsed) -> Serving:
    """A field whose value is not known is listed with why: the engine's default does not hold."""
    values: dict[str, Any] = {g.field: g.value for g in parsed.given if g.field in _FIELDS}
    unknown = sorted(parsed.unknown_fields & _FIELDS)
    for field in unknown:
        values.pop(field, None)
    container = one.container
    allocator = (container.value("PYTORCH_CUDA_ALLOC_CONF"), container.value("PYTORCH_ALLOC_CONF"))
    if any("expandable_segments" in (text or "") for text in allocator):
        values["expandable_segments"] = True
    estimated = container.value("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
    if estimated is not None and is_known(estimated):
        values["profile_cuda_graphs"] = estimated not in ("0", "false", "False", "")
    return convert(
        {
            **values,
            "engine": _ENGINES.get(engine, "unknown"),
            "version": images.version(container.image) if one.own == engine else "",
            "not_understood": (*dict.fromkeys(parsed.odd), *unknown),
        },
        Serving,
    )


# -- names -----------------------------------------------------------------------------------------


def _named(metadata: Mapping[str, Any], naming: Naming) -> tuple[str, str] | None:
    for field, keys in (("annotations", naming.annotations), ("labels", naming.labels)):
        table = _object(metadata.get(field))
        for key in keys:
            value = table.get(key)
            if isinstance(value, str) and value.strip() and not placeholder(value):
                return value.strip(), f"{field[:-1]} {key}"
    return None


def _same(one: str, other: str) -> bool:
    return one.lower().rpartition("/")[2] == other.lower().rpartition("/")[2]


def _downloaded(read: Recognised, container: Started, fetched: Downloads) -> Recognised:
    """Told a path only: the model is what an init container put there."""
    place = container.files.place(read.model) if read.model.startswith("/") else None
    if place is None or place not in fetched:
        return read
    model, source = fetched[place]
    return structs.replace(read, model=model, model_from=source)


# -- pods ------------------------------------------------------------------------------------------


def container_gpus(container: Mapping[str, Any]) -> int:
    """Whole devices, slices or shares that one container asks for by resource."""
    resources = _object(container.get("resources"))
    asked = {**_object(resources.get("requests")), **_object(resources.get("limits"))}
    total = 0
    for name, amount in asked.items():
        meaning = gpulib.means(name) if isinstance(name, str) else None
        if meaning is not None and meaning.counts_devices and gpulib.is_gpu(name):
            try:
                total += quantity.value(amount)
            except (quantity.QuantityError, TypeError):
                continue
    return total


def _claims(container: Mapping[str, Any]) -> bool:
    return bool(_object(container.get("resources")).get("claims"))


def _only(spec: Mapping[str, Any], container: Mapping[str, Any]) -> bool:
    """The only container of a pod: its GPUs may be booked by annotation."""
    listed = _objects(spec.get("containers"))
    return len(listed) == 1 and listed[0] is container


def _containers(spec: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Containers that run beside each other: the pod's own, and init containers that stay."""
    found = [(f"/spec/containers/{i}", c) for i, c in enumerate(_objects(spec.get("containers")))]
    found += [
        (f"/spec/initContainers/{i}", c)
        for i, c in enumerate(_objects(spec.get("initContainers")))
        if c.get("restartPolicy") == "Always"
    ]
    return found


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []

"""Which model a pod serves and how, from its template alone; every finding says where it stood.

Rules of this module
1. Nothing is guessed: an argument whose value cannot be known is named with what is missing.
2. A container without any sign of a serving engine is no model; one with a sign and without a model
   is unknown.
3. An annotation that names the model counts before the engine's arguments, these before the image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct, convert, structs

from kubectl_gpuadmit.kube import gpus as gpulib
from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.sizing import objects
from kubectl_gpuadmit.sizing.engines import images, nim, reading
from kubectl_gpuadmit.sizing.engines.arguments import Given, Parsed, contradictions, placeholder
from kubectl_gpuadmit.sizing.engines.starts import Start, start
from kubectl_gpuadmit.sizing.serving import Engine, Serving
from kubectl_gpuadmit.sizing.startup.blanks import is_known
from kubectl_gpuadmit.sizing.startup.commands import Program, programs
from kubectl_gpuadmit.sizing.startup.container import ConfigData, Started, started

ANNOTATIONS = ("gpu-admit.io/model", "svr.sivaro.io/model")
"""Annotations of the pod that name its model."""

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


class Naming(Struct, frozen=True):
    """What a policy adds: where else a pod names its model."""

    annotations: tuple[str, ...] = ANNOTATIONS
    labels: tuple[str, ...] = ()
    images: dict[str, str] = {}
    """Pattern over the whole image -> model."""


class Recognised(Struct, frozen=True, kw_only=True):
    """One engine of a pod."""

    engine: str
    """As people call it: ``vllm``, ``dynamo-sglang``, ``nim``; ``unknown`` where only the model is
    named."""
    serving: Serving
    model: str = ""
    """As it is named; '' where it is not known."""
    model_from: str = ""
    """Where: ``annotation gpu-admit.io/model``, ``args of container vllm``."""
    container: str = ""
    pointer: str = ""
    """The container inside the template."""
    gpus: int = 0
    """GPUs of the container; 0 where they come by claim."""
    given: tuple[Given, ...] = ()
    missing: tuple[str, ...] = ()
    """What was given and cannot be known, in sentences."""
    contradictions: tuple[str, ...] = ()
    """What was said twice and differently: the last one counts, as the engines have it."""
    follows: bool = False
    """It joins the engine of another pod of its group and takes that one's arguments."""

    @property
    def known(self) -> bool:
        return bool(self.model)


class Recognition(Struct, frozen=True):
    """All engines of one pod; where there is none, why, and whether it is certain that there is
    none: a Job, or nothing but programs that serve nothing."""

    found: tuple[Recognised, ...] = ()
    why: str = ""
    certain: bool = False


NOTHING = Recognition()


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
    downloads = _downloads(spec, metadata, config)
    named = _named(metadata, naming)
    found: list[Recognised] = []
    reasons: list[str] = []
    certain = True
    for pointer, container in _containers(spec):
        amount = container_gpus(container)
        if not amount and not _claims(container) and not _only(spec, container):
            continue
        one = started(
            container, pointer, spec=spec, metadata=metadata, config=config, supplied=supplied
        )
        read = _container(one, amount, hint, named, naming, serves=kind not in _RUNS_TO_AN_END)
        if isinstance(read, str):
            reasons.append(read)
            certain = certain and (kind in _RUNS_TO_AN_END or _serves_nothing(one))
        else:
            found.append(_downloaded(read, one, downloads))
    if found:
        return Recognition(tuple(found))
    return Recognition((), "; ".join(dict.fromkeys(reasons)), certain)


def _container(
    one: Started,
    gpus: int,
    hint: objects.Hint | None,
    named: tuple[str, str] | None,
    naming: Naming,
    *,
    serves: bool,
) -> Recognised | str:
    starts = _starts(one, hint)
    own = images.engine(one.image)
    if hint is not None and hint.settings is not None and not starts:
        return _finished(one, hint.engine, hint.settings, gpus, hint, named, naming, own)
    if not starts:
        return _without_start(one, own, gpus, hint, named, naming, serves=serves)
    engines = [s for s in starts if s.engine != "follower"]
    if not engines:
        return Recognised(
            engine="follower",
            serving=Serving(engine="unknown"),
            container=one.name,
            pointer=one.pointer,
            gpus=gpus,
            follows=True,
        )
    readable = [s for s in engines if s.engine in reading.READABLE]
    if not readable:
        return _opaque(one, engines[0].engine, gpus, named, naming)
    answers = [
        _finished(
            one,
            s.engine,
            reading.arguments(s, one, gpus=gpus),
            gpus,
            hint,
            named,
            naming,
            own,
        )
        for s in readable
    ]
    first = answers[0]
    if any((a.model, a.serving) != (first.model, first.serving) for a in answers[1:]):
        said = ", ".join(dict.fromkeys(a.model or "an unknown model" for a in answers))
        why = f"container {one.name} starts several engines ({said}): which one is not known"
        return structs.replace(first, model="", missing=(*first.missing, why))
    return first


def _starts(one: Started, hint: objects.Hint | None) -> list[Start]:
    listed = programs(one) if one.command or one.args or not images.starts_itself(one.image) else []
    found = [s for p in listed for s in (start(p),) if s is not None]
    if found:
        return found
    own = images.engine(one.image)
    kinds_own = hint.engine if hint is not None and hint.engine in reading.READABLE else ""
    if one.command or not (images.starts_itself(one.image) or kinds_own):
        return []
    engine = kinds_own or own
    words = (*one.args, *(hint.arguments(one) if hint else ()))
    skip = 1 if words[:1] == ("serve",) else 0
    pointers = tuple(f"{one.pointer}/args/{i}" for i in range(len(one.args)))
    program = Program(words, pointers, "args")
    return [Start(engine, program, skip)] if engine else []


def _without_start(
    one: Started,
    own: str,
    gpus: int,
    hint: objects.Hint | None,
    named: tuple[str, str] | None,
    naming: Naming,
    *,
    serves: bool,
) -> Recognised | str:
    """No engine is started that we know: the model may be named all the same."""
    model = named or _by_image(one.image, naming) or (hint.named if hint else None)
    why = (hint.why if hint is not None else "") or (_sign(one) if serves else "")
    if model is not None or own or why:
        return _opaque(one, own or "unknown", gpus, model, naming, why=why)
    runs = (
        "starts a program that is" if one.command or one.args else "starts what its image starts:"
    )
    return f"container {one.name} {runs} no serving engine known here"


_RUNS_TO_AN_END = frozenset(
    {"Job", "CronJob", "JobSet", "PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob"}
    | {"JAXJob", "TrainJob", "RayJob", "Workflow", "CronWorkflow", "NIMCache", "RunaiJob"}
)
"""Kinds whose programs are trained or computed, so that a model's name is no sign of serving."""

_SERVES_NOTHING = frozenset(
    {"sleep", "pause", "tail", "true", "echo", "nvidia-smi", "rocm-smi", "clinfo", "gpu_burn"}
    | {"gpu-burn", "vectorAdd", "vectoradd", "nbody", "dcgmi", "dcgm-exporter", "jupyter"}
    | {"jupyter-lab", "jupyter-notebook", "start-notebook.sh", "sshd", "all_reduce_perf", "cat"}
    | {
        "mkdir",
        "ls",
        "set",
        "cd",
        "trap",
        "wait",
        "printf",
        "date",
        "env",
        "[",
        "test",
        ":",
        "exit",
    }
)
"""Programs that load no model, whatever their arguments."""


def _serves_nothing(one: Started) -> bool:
    listed = programs(one)
    return bool(listed) and all(
        program.words[0].rpartition("/")[2] in _SERVES_NOTHING for program in listed
    )


_SIGNS = re.compile(
    r"--(?:model|model[-_]path|model[-_]id|model[-_]dir|model[-_]name[-_]or[-_]path"
    r"|pretrained[-_]model[-_]name[-_]or[-_]path|triton[-_]model[-_]repo[-_]dir)(?:=|$)"
)
_SIGN_VARIABLES = ("MODEL_ID", "HF_MODEL_ID", "MODEL_NAME", "MODEL_PATH")


def _sign(one: Started) -> str:
    """A flag or variable by which programs are told a model, of a program that is not known."""
    for program in programs(one):
        for word in program.words:
            if _SIGNS.match(word):
                flag = word.partition("=")[0]
                return (
                    f"container {one.name} tells {flag} to a program that is no engine known here"
                )
    for name in _SIGN_VARIABLES:
        if one.value(name):
            return f"container {one.name} has env {name} and starts no engine known here"
    return ""


def _opaque(
    one: Started,
    engine: str,
    gpus: int,
    named: tuple[str, str] | None,
    naming: Naming,
    *,
    why: str = "",
) -> Recognised:
    """An engine that loads what a volume or a request names."""
    model = named or _by_image(one.image, naming)
    if not why:
        why = _OPAQUE.get(engine, f"nothing in the pod says which model container {one.name} loads")
    return Recognised(
        engine=engine,
        serving=Serving(engine=_ENGINES.get(engine, "unknown"), version=images.version(one.image)),
        model=model[0] if model else "",
        model_from=model[1] if model else "",
        container=one.name,
        pointer=one.pointer,
        gpus=gpus,
        missing=() if model else (why,),
    )


_OPAQUE = {
    "ollama": "Ollama loads the models that requests name",
    "triton": "Triton loads what its model repository holds",
    "sglang": "the SGLang image starts nothing by itself, and no arguments name a model",
    "dynamo": "no arguments name a model",
    "lmdeploy": "LMDeploy's arguments are not read by this version",
}


def _finished(
    one: Started,
    engine: str,
    parsed: Parsed,
    gpus: int,
    hint: objects.Hint | None,
    named: tuple[str, str] | None,
    naming: Naming,
    own: str,
) -> Recognised:
    """Arguments as a ``Serving``, and the model that they or something else names."""
    missing = list(parsed.missing)
    if hint is not None and hint.more is not None:
        parsed.add(hint.more)
    said = parsed.last("model")
    model = (str(said.value), f"{said.where} of container {one.name}") if said else None
    directory = parsed.value("model_dir") or (said.value if said else None)
    if hint is not None and hint.named and (model is None or directory == "/mnt/models"):
        model = hint.named
    if model is None and engine == "nim":
        name = nim.model_of_image(one.image)
        model = (name, f"image of container {one.name}") if name else None
    if "model" in parsed.unknown_fields and said is None:
        model = None
    by_image = _by_image(one.image, naming)
    chosen = named or model or by_image
    twice = list(contradictions(parsed.given, _counts))
    if named and model and not _same(named[0], model[0]) and not model[0].startswith("/"):
        twice.append(f"{named[1]} says {named[0]}, {model[1]} {model[0]}: the former counts")
    if chosen is None and "model" not in parsed.unknown_fields:
        missing.append(f"nothing names the model that container {one.name} loads")
    serving = _serving(engine, parsed, one, own)
    return Recognised(
        engine=engine,
        serving=serving,
        model=chosen[0] if chosen else "",
        model_from=chosen[1] if chosen else "",
        container=one.name,
        pointer=one.pointer,
        gpus=gpus,
        given=tuple(parsed.given),
        missing=tuple(dict.fromkeys(missing)),
        contradictions=tuple(twice),
    )


_FIELDS = frozenset(Serving.__struct_fields__) - {
    "engine",
    "version",
    "contradictions",
    "not_understood",
}


def _counts(field: str) -> bool:
    return field in _FIELDS or field == "model"


def _serving(engine: str, parsed: Parsed, one: Started, own: str) -> Serving:
    """A field whose value is not known is listed with why: the engine's default does not hold."""
    values: dict[str, Any] = {g.field: g.value for g in parsed.given if g.field in _FIELDS}
    unknown = sorted(parsed.unknown_fields & _FIELDS)
    for field in unknown:
        values.pop(field, None)
    if "expandable_segments" in (one.value("PYTORCH_CUDA_ALLOC_CONF") or "") + (
        one.value("PYTORCH_ALLOC_CONF") or ""
    ):
        values["expandable_segments"] = True
    estimated = one.value("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
    if estimated is not None and is_known(estimated):
        values["profile_cuda_graphs"] = estimated not in ("0", "false", "False", "")
    return convert(
        {
            **values,
            "engine": _ENGINES.get(engine, "unknown"),
            "version": images.version(one.image) if own == engine else "",
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


def _by_image(image: str, naming: Naming) -> tuple[str, str] | None:
    for pattern, model in naming.images.items():
        if image == pattern or fnmatchcase(image, pattern):
            return model, f"image {image}, by the policy's models.images"
    return None


def _same(one: str, other: str) -> bool:
    return one.lower().rpartition("/")[2] == other.lower().rpartition("/")[2]


# -- models that an init container fetches ---------------------------------------------------------


def _downloads(
    spec: Mapping[str, Any], metadata: Mapping[str, Any], config: ConfigData
) -> dict[tuple[str, str], tuple[str, str]]:
    """(volume, path in it) -> the model that an init container downloads there, and who says so."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for index, container in enumerate(_objects(spec.get("initContainers"))):
        one = started(
            container,
            f"/spec/initContainers/{index}",
            spec=spec,
            metadata=metadata,
            config=config,
        )
        for program in programs(one):
            words = program.words
            if words[0].rpartition("/")[2] not in ("huggingface-cli", "hf") or len(words) < 3:
                continue
            if words[1] != "download" or "--local-dir" not in words:
                continue
            at = words.index("--local-dir") + 1
            place = one.files.place(words[at]) if at < len(words) else None
            if place and is_known(words[2]) and not words[2].startswith("-"):
                found[place] = (words[2], f"init container {one.name} downloads it")
    return found


def _downloaded(
    read: Recognised, one: Started, downloads: Mapping[tuple[str, str], tuple[str, str]]
) -> Recognised:
    place = one.files.place(read.model) if read.model.startswith("/") else None
    if place is None or place not in downloads:
        return read
    model, source = downloads[place]
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

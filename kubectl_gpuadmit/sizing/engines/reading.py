"""One start of an engine -> its arguments by one name; the image, environment and files included.

Later sources override earlier ones as the engine itself orders them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from kubectl_gpuadmit.sizing.engines import (
    kserve,
    llama_cpp,
    lmdeploy,
    nim,
    sglang,
    tei,
    tensorrt_llm,
    tgi,
    vllm,
)
from kubectl_gpuadmit.sizing.engines.arguments import (
    Flag,
    Given,
    Parsed,
    Style,
    parse,
    settings,
    take,
)
from kubectl_gpuadmit.sizing.engines.starts import Start
from kubectl_gpuadmit.sizing.startup.blanks import is_known
from kubectl_gpuadmit.sizing.startup.container import Started

TABLES: dict[str, tuple[tuple[Flag, ...], Iterable[str], Style | None]] = {
    "vllm": (vllm.FLAGS, vllm.BARE, None),
    "dynamo-vllm": (vllm.FLAGS, vllm.BARE, None),
    "sglang": (sglang.FLAGS, sglang.BARE, None),
    "dynamo-sglang": (sglang.FLAGS, sglang.BARE, None),
    "tensorrt-llm": (tensorrt_llm.FLAGS, tensorrt_llm.BARE, Style(abbreviations=False)),
    "dynamo-trtllm": (tensorrt_llm.FLAGS, tensorrt_llm.BARE, None),
    "tgi": (tgi.FLAGS, (), Style(underscores=False, abbreviations=False, negations=False)),
    "llama.cpp": (llama_cpp.FLAGS, ("-fit", "--jinja", "--no-webui", "--mlock"), llama_cpp.STYLE),
    "kserve-huggingface": (kserve.FLAGS, kserve.BARE, None),
    "tei": (tei.FLAGS, (), Style(underscores=False, abbreviations=False, negations=False)),
    "lmdeploy": (lmdeploy.FLAGS, lmdeploy.BARE, Style(negations=False)),
    "nim": ((), (), None),
}

VARIABLES: dict[str, tuple[tuple[str, Flag], ...]] = {
    "tei": tei.VARIABLES,
    "tgi": tgi.VARIABLES,
    "llama.cpp": llama_cpp.VARIABLES,
    "nim": nim.VARIABLES,
}

READABLE = frozenset(TABLES)
"""Engines whose arguments say what they load; others load what a volume or a request names."""


def arguments(start: Start, started: Started, *, gpus: int) -> Parsed:
    """Everything that one start was told. ``gpus`` are those of its container."""
    flags, bare, style = TABLES[start.engine]
    found = _environment(start, started)
    line = parse(
        start.arguments,
        flags,
        started.blanks,
        where=start.program.where,
        pointers=start.pointers,
        style=style,
        bare=bare,
    )
    file = line.last("config_file")
    options = _file(file, start.engine, flags, started, line) if file is not None else None
    overrides = start.engine in ("tensorrt-llm", "dynamo-trtllm")
    if options is not None and not overrides:
        found.add(options)
    found.add(line)
    if options is not None and overrides:
        found.add(options)
    _positional_model(found, line, start, started)
    _refine(found, start.engine, gpus)
    return found


def _environment(start: Start, started: Started) -> Parsed:
    found = Parsed.empty()
    own = dict(start.program.environment)
    for name, flag in VARIABLES.get(start.engine, ()):
        variable = started.environment.get(name)
        value = own.get(name, variable.value if variable is not None else None)
        if value:
            where = variable.where if variable is not None and name not in own else f"env {name}"
            pointer = variable.pointer if variable is not None and name not in own else ""
            text = f"{name}={value}"
            take(found, flag, value, text, started.blanks, where=where, pointer=pointer)
    return found


def _file(
    named: Given, engine: str, flags: tuple[Flag, ...], started: Started, line: Parsed
) -> Parsed | None:
    path = str(named.value)
    file = started.files.read(path) if path.startswith("/") else None
    if file is None:
        volume = started.files.volume_of(path) if path.startswith("/") else ""
        line.missing.append(f"{named.text}: the file lies in {volume or 'the image'}")
        return None
    if not is_known(file.text):
        line.missing += [f"{named.text}: {r}" for r in started.blanks.reasons(file.text)][:1]
        if not file.text.strip("\ue0000123456789\ue001"):
            return None
    data = _yaml(file.text)
    if data is None:
        line.missing.append(f"{named.text}: {file.where} is no YAML object")
        return None
    if engine in ("tensorrt-llm", "dynamo-trtllm"):
        return tensorrt_llm.from_file(data, started.blanks, where=file.where)
    return settings(data, flags, started.blanks, where=file.where)


def _yaml(text: str) -> Mapping[str, Any] | None:
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return data if isinstance(data, dict) else None


_TAKES_POSITIONAL = frozenset({"lmdeploy", "vllm", "tensorrt-llm", "tgi", "dynamo-trtllm"})


def _positional_model(found: Parsed, line: Parsed, start: Start, started: Started) -> None:
    """``vllm serve MODEL`` and its like; a ``--model`` beside it yields (arg_utils.py: the
    positional ``model_tag`` wins)."""
    takes = start.engine in _TAKES_POSITIONAL
    for word in line.positional[1 if takes else 0 :]:
        if not is_known(word):  # it may hold any number of arguments
            reasons = "; ".join(started.blanks.reasons(word))
            found.odd.append(f"the argument {started.blanks.shown(word)} ({reasons})")
    if not takes or not line.positional:
        return
    word = line.positional[0]
    at = start.arguments.index(word) if word in start.arguments else -1
    pointer = start.pointers[at] if 0 <= at < len(start.pointers) else ""
    flag = Flag(("MODEL",), "model")
    take(found, flag, word, word, started.blanks, where=start.program.where, pointer=pointer)


def _refine(found: Parsed, engine: str, gpus: int) -> None:
    match engine:
        case "vllm" | "dynamo-vllm" | "kserve-huggingface":
            vllm.refine(found)
        case "sglang" | "dynamo-sglang":
            sglang.refine(found)
        case "tgi":
            _every_gpu(found, gpus, "TGI shards over every GPU", found.value("sharded") != "false")
        case "nim":
            _every_gpu(found, gpus, "NIM picks the profile for every GPU", True)
        case "llama.cpp":
            _llama(found, gpus)


def _every_gpu(found: Parsed, gpus: int, why: str, applies: bool) -> None:
    field = "tensor_parallel_size"
    told = found.last(field) is not None or field in found.unknown_fields
    if applies and gpus > 1 and not told:
        found.given.append(Given(field, gpus, f"{why}: {gpus}", "its default"))


def _llama(found: Parsed, gpus: int) -> None:
    """Layers, or rows, are spread over every GPU that the container has."""
    mode = found.value("split_mode") or "layer"
    if gpus > 1 and mode in ("layer", "row"):
        field = "pipeline_parallel_size" if mode == "layer" else "tensor_parallel_size"
        text = f"llama.cpp spreads {mode}s over every GPU: {gpus}"
        found.given.append(Given(field, gpus, text, "its default"))
    repository = found.last("hf_repo")
    if repository is not None:
        name = str(repository.value).partition(":")[0]
        found.given.append(
            Given("model", name, repository.text, repository.where, repository.pointer)
        )
    flash = found.last("flash_attention_text")
    if flash is not None and flash.value in ("on", "off", "1", "0"):
        on = flash.value in ("on", "1")
        found.given.append(Given("flash_attention", on, flash.text, flash.where, flash.pointer))

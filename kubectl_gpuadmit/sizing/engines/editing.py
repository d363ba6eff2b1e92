"""Changes one argument of an engine where it stands: a word, a script, a variable; or adds it.

Operations are RFC 6902 against the pod template. What cannot be changed with certainty (an argument
that comes out of a ConfigMap, a script without a place to add to) gives none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from kubectl_gpuadmit.kube.pointers import resolve
from kubectl_gpuadmit.sizing.engines.arguments import Given
from kubectl_gpuadmit.sizing.recognition import Recognised

FLAGS: dict[str, dict[str, str]] = {
    "vllm": {
        "max_model_len": "--max-model-len",
        "max_num_seqs": "--max-num-seqs",
        "max_num_batched_tokens": "--max-num-batched-tokens",
        "kv_cache_dtype": "--kv-cache-dtype",
        "quantization": "--quantization",
        "tensor_parallel_size": "--tensor-parallel-size",
        "gpu_memory_utilization": "--gpu-memory-utilization",
    },
    "sglang": {
        "max_model_len": "--context-length",
        "max_num_seqs": "--max-running-requests",
        "max_num_batched_tokens": "--chunked-prefill-size",
        "kv_cache_dtype": "--kv-cache-dtype",
        "quantization": "--quantization",
        "tensor_parallel_size": "--tp",
        "mem_fraction_static": "--mem-fraction-static",
    },
    "tgi": {
        "max_model_len": "--max-total-tokens",
        "kv_cache_dtype": "--kv-cache-dtype",
        "quantization": "--quantize",
        "tensor_parallel_size": "--num-shard",
    },
    "tensorrt-llm": {
        "max_model_len": "--max_seq_len",
        "max_num_seqs": "--max_batch_size",
        "max_num_batched_tokens": "--max_num_tokens",
        "tensor_parallel_size": "--tp_size",
    },
    "llama.cpp": {"max_model_len": "--ctx-size", "max_num_seqs": "--parallel"},
}
"""Engine -> field -> the flag to add where it is not given yet."""

_SAME = {
    "dynamo-vllm": "vllm",
    "kserve-huggingface": "vllm",
    "dynamo-sglang": "sglang",
}


def flag_of(one: Recognised, field: str) -> str:
    """The flag by which the engine is told this field, '' for none that is known."""
    return FLAGS.get(_SAME.get(one.engine, one.engine), {}).get(field, "")


def changed(
    one: Recognised, template: Mapping[str, Any], field: str, value: object
) -> tuple[dict[str, Any], ...]:
    """Operations that set ``field`` to ``value``; () where nobody can say how."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    given = next((g for g in reversed(one.given) if g.field == field and g.pointer), None)
    if given is not None:
        return _replaced(template, given, text)
    if any(g.field == field and g.where != "its default" for g in one.given):
        return ()  # it stands in a file, or in the object
    flag = flag_of(one, field)
    return _added(one, template, flag, text) if flag else ()


def _replaced(template: Mapping[str, Any], given: Given, text: str) -> tuple[dict[str, Any], ...]:
    place = resolve(template, given.pointer)
    if isinstance(place, dict):  # a variable
        if not isinstance(place.get("value"), str):
            return ()
        old = str(place["value"])
        new = text if old.strip() == str(given.value) else _in_script(old, given, text)
        if new is None:
            return ()
        return ({"op": "replace", "path": f"{given.pointer}/value", "value": new},)
    if not isinstance(place, str):
        return ()
    flag = given.text.partition("=")[0].split()[0]
    if place == flag:  # the value is the next word
        head, _, number = given.pointer.rpartition("/")
        following = f"{head}/{int(number) + 1}"
        if not isinstance(resolve(template, following), str):
            return ()
        return ({"op": "replace", "path": following, "value": text},)
    if place.startswith(f"{flag}=") and " " not in place:
        return ({"op": "replace", "path": given.pointer, "value": f"{flag}={text}"},)
    script = _in_script(place, given, text)
    return ({"op": "replace", "path": given.pointer, "value": script},) if script else ()


def _in_script(script: str, given: Given, text: str) -> str | None:
    """The script with the flag's last value replaced; None where it is not plainly there."""
    flag = given.text.partition("=")[0].split()[0]
    pattern = re.compile(rf"(?<!\S)({re.escape(flag)}(?:=|\s+))(['\"]?)[^\s'\"\\;|&]+(['\"]?)")
    found = list(pattern.finditer(script))
    if not found or str(given.value) not in found[-1][0]:
        return None
    last = found[-1]
    return f"{script[: last.start()]}{last[1]}{last[2]}{text}{last[3]}{script[last.end() :]}"


def _added(
    one: Recognised, template: Mapping[str, Any], flag: str, text: str
) -> tuple[dict[str, Any], ...]:
    """Behind the last argument, or in a script behind the model's name."""
    model = next((g for g in reversed(one.given) if g.field == "model" and g.pointer), None)
    container = resolve(template, one.pointer)
    if not isinstance(container, dict):
        return ()
    if model is None or not re.search(r"/(?:args|command)/\d+$", model.pointer):
        words = container.get("args")
        if model is None and isinstance(words, list) and words and one.engine != "nim":
            return _appended(f"{one.pointer}/args", len(words), flag, text)
        if one.engine == "tgi" and container.get("env"):
            name = flag.lstrip("-").replace("-", "_").upper()
            variable = {"name": name, "value": text}
            return ({"op": "add", "path": f"{one.pointer}/env/-", "value": variable},)
        return ()
    place = resolve(template, model.pointer)
    if not isinstance(place, str):
        return ()
    if " " not in place.strip() and "\n" not in place:
        part = "args" if isinstance(container.get("args"), list) else "command"
        return _appended(f"{one.pointer}/{part}", len(container.get(part) or ()), flag, text)
    name = re.escape(str(model.value))
    found = list(re.finditer(rf"(?<!\S)(?:--model[= ]+)?['\"]?{name}['\"]?(?!\S)", place))
    if len(found) != 1:
        return ()
    at = found[0].end()
    script = f"{place[:at]} {flag} {shlex.quote(text)}{place[at:]}"
    return ({"op": "replace", "path": model.pointer, "value": script},)


def _appended(path: str, count: int, flag: str, text: str) -> tuple[dict[str, Any], ...]:
    """Two words behind the last of ``count``, each at a place of its own."""
    return tuple(
        {"op": "add", "path": f"{path}/{count + number}", "value": word}
        for number, word in enumerate((flag, text))
    )


def both(
    first: tuple[dict[str, Any], ...], second: tuple[dict[str, Any], ...]
) -> tuple[dict[str, Any], ...]:
    """Two changes of one engine after each other: words that both append stand in a row; () where
    they change the same place."""
    taken = {op["path"] for op in first}
    moved: list[dict[str, Any]] = []
    for op in second:
        path = str(op["path"])
        while op["op"] == "add" and path in taken:
            head, _, number = path.rpartition("/")
            if not number.isdecimal():
                return ()
            path = f"{head}/{int(number) + 1}"
        if path in taken:
            return ()
        taken.add(path)
        moved.append({**op, "path": path})
    return (*first, *moved)

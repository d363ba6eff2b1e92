"""``kubectl gpu-admit fit``: would a model fit, on what would it, and did a log say otherwise."""

from __future__ import annotations

import enum
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kubectl_gpuadmit.cli import output
from kubectl_gpuadmit.errors import (
    EXIT_CLEAR,
    EXIT_DENIED,
    EXIT_UNANSWERED,
    BadInput,
    NothingChecked,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rich.text import Text

    from kubectl_gpuadmit.sizing.startlog import StartLog
    from kubectl_gpuadmit.sizing.trial import Asked, Trial


class Output(enum.StrEnum):
    """What ``-o`` takes."""

    table = "table"
    json = "json"
    yaml = "yaml"


Model = Annotated[
    str, typer.Option("--model", metavar="NAME", help="A model of the catalogue, by its name.")
]
Config = Annotated[
    str, typer.Option("--config", metavar="PATH", help="Its config.json, or the folder of it.")
]
Gguf = Annotated[str, typer.Option("--gguf", metavar="FILE", help="A GGUF file.")]
FromLog = Annotated[
    str,
    typer.Option("--from-log", metavar="FILE", help="An engine's start-up log, or - (stdin)."),
]
Gpu = Annotated[
    str,
    typer.Option(
        "--gpu", metavar="PRODUCT", help="A GPU or MIG slice: 'H100 80GB', L4, or MiB of memory."
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", metavar="NAME[@VERSION]", help="vllm, sglang, tensorrt-llm, ..."),
]
Tensor = Annotated[
    int | None,
    typer.Option("--tp", min=1, max=4096, help="Tensor-parallel size.", show_default=False),
]
Pipeline = Annotated[
    int | None,
    typer.Option("--pp", min=1, max=4096, help="Pipeline-parallel size.", show_default=False),
]
Experts = Annotated[
    int | None,
    typer.Option("--ep", min=1, max=4096, help="Expert-parallel size.", show_default=False),
]
Data = Annotated[
    int | None,
    typer.Option("--dp", min=1, max=4096, help="Data-parallel size.", show_default=False),
]
Length = Annotated[
    int | None,
    typer.Option(
        "--max-model-len", min=1, metavar="TOKENS", help="Longest request.", show_default=False
    ),
]
Share = Annotated[
    float | None,
    typer.Option(
        "--gpu-memory-utilization",
        metavar="SHARE",
        help="The engine's share of memory, in its own sense.",
        show_default=False,
    ),
]
CacheType = Annotated[str, typer.Option("--kv-cache-dtype", metavar="TYPE", help="auto, fp8, ...")]
Quantization = Annotated[
    str, typer.Option("--quantization", metavar="METHOD", help="fp8, awq, gptq, ...")
]
Dtype = Annotated[str, typer.Option("--dtype", metavar="TYPE", help="bfloat16, float16, auto.")]
Sequences = Annotated[
    int | None,
    typer.Option("--max-num-seqs", min=1, help="Most requests at once.", show_default=False),
]
Batched = Annotated[
    int | None,
    typer.Option(
        "--max-num-batched-tokens", min=1, help="Most tokens of a step.", show_default=False
    ),
]
Eager = Annotated[bool, typer.Option("--enforce-eager", help="No CUDA graphs.")]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency", min=1, help="Requests at once that must fit.", show_default=False
    ),
]
Context = Annotated[
    int | None,
    typer.Option(
        "--context", min=1, metavar="TOKENS", help="Length of these requests.", show_default=False
    ),
]
Advise = Annotated[
    bool, typer.Option("--advise", help="List the smallest configurations that fit.")
]
Table = Annotated[bool, typer.Option("--table", help="Print known GPUs by context.")]
Written = Annotated[Output, typer.Option("-o", "--output", help="What is written to stdout.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of a fault of this program.")
]


def fit(
    model: Model = "",
    config: Config = "",
    gguf: Gguf = "",
    from_log: FromLog = "",
    gpu: Gpu = "",
    engine: Engine = "",
    tp: Tensor = None,
    pp: Pipeline = None,
    dp: Data = None,
    ep: Experts = None,
    max_model_len: Length = None,
    gpu_memory_utilization: Share = None,
    kv_cache_dtype: CacheType = "",
    quantization: Quantization = "",
    dtype: Dtype = "",
    max_num_seqs: Sequences = None,
    max_num_batched_tokens: Batched = None,
    enforce_eager: Eager = False,
    concurrency: Concurrency = None,
    context: Context = None,
    advise: Advise = False,
    table: Table = False,
    form: Written = Output.table,
    debug: Debug = False,
) -> int:
    """Say whether a model fits a GPU, and what it would hold there.

    Weights, activations, overhead and cache of each GPU, as ranges with what they rest on; for a
    target of --concurrency requests of --context tokens too.

    Exit code: 0 fits, 1 exceeds, 2 unreadable or nothing named, 3 not known.
    """
    from msgspec import structs

    from kubectl_gpuadmit.sizing import logged, stated
    from kubectl_gpuadmit.sizing.envelope import Want

    arguments = {
        "tensor_parallel_size": tp,
        "pipeline_parallel_size": pp,
        "data_parallel_size": dp,
        "expert_parallel_size": ep,
        "max_model_len": max_model_len,
        "kv_cache_dtype": kv_cache_dtype or None,
        "quantization": quantization or None,
        "dtype": dtype or None,
        "max_num_seqs": max_num_seqs,
        "max_num_batched_tokens": max_num_batched_tokens,
        "enforce_eager": enforce_eager or None,
    }
    share = gpu_memory_utilization
    if sum(map(bool, (model, config, gguf))) > 1:
        raise _usage("--model, --config and --gguf name one model each: give one of them")
    if advise + table + bool(from_log) > 1:
        raise _usage("--advise, --table and --from-log are questions of their own: ask one")
    if from_log:
        log = _log(from_log)
        how = stated.serving(engine or log.serving.engine, arguments, share)
        trial = _model(model, config, gguf)
        product = stated.product(gpu)
        return _compare(log, logged.started(log, from_log, how, model=trial, product=product), form)
    trial = _model(model, config, gguf)
    if trial is None:
        raise NothingChecked(
            "no-model",
            "no model is named",
            hint="kubectl gpu-admit fit --model Qwen/Qwen3-8B --gpu L4",
        )
    how = stated.serving(engine or ("llama.cpp" if gguf else "vllm"), arguments, share)
    trial = structs.replace(
        stated.as_served(trial, how),
        product=stated.product(gpu),
        want=Want(concurrency=concurrency, context=context),
    )
    if advise:
        return _advise(trial, form)
    return _table(trial, form) if table else _one(trial, form)


def _usage(message: str) -> BadInput:
    return BadInput("usage", message, hint="kubectl gpu-admit fit --help")


def _model(name: str, config: str, gguf: str) -> Trial | None:
    """The model that is named one way or another, None where none is."""
    if config:
        from kubectl_gpuadmit.adapters.models import read_config

        return read_config(config)
    if gguf:
        from kubectl_gpuadmit.adapters.models import read_gguf_trial

        return read_gguf_trial(gguf)
    from kubectl_gpuadmit.sizing import stated

    return stated.model(name) if name else None


def _log(path: str) -> StartLog:
    from kubectl_gpuadmit.adapters.files import read_file
    from kubectl_gpuadmit.sizing.startlog import read_log

    raw = sys.stdin.buffer.read() if path == "-" else read_file(Path(path))
    log = read_log(raw.decode("utf-8", "replace"))
    if not log.says_anything:
        raise BadInput(
            "no-start-log",
            "says nothing of an engine's memory",
            file=path,
            hint="the log of vLLM, SGLang or llama.cpp from its start",
        )
    return log


def _one(trial: Trial, form: Output) -> int:
    from kubectl_gpuadmit.render.fit import data, text
    from kubectl_gpuadmit.sizing.advice import alternatives

    found = trial.envelope()
    fitting = alternatives(trial, found) if found.fits == "exceeds" else ()
    _write(
        form,
        partial(text.fit, trial, found, fitting),
        partial(data.document, trial, found, fitting),
    )
    return {"fits": EXIT_CLEAR, "exceeds": EXIT_DENIED}.get(found.fits, EXIT_UNANSWERED)


def _advise(trial: Trial, form: Output) -> int:
    from kubectl_gpuadmit.render.fit import data, text
    from kubectl_gpuadmit.sizing.advice import advise

    missing = trial.envelope().unknown
    if missing and missing != ("the memory of the GPU",):
        return _one(trial, form)
    found = advise(trial, products=(trial.product,) if trial.product else None)
    _write(form, partial(text.advice, trial, found), partial(data.advice_document, trial, found))
    return EXIT_CLEAR if found else EXIT_DENIED


def _table(trial: Trial, form: Output) -> int:
    from kubectl_gpuadmit.render.fit import data, text
    from kubectl_gpuadmit.sizing.advice import by_context

    found = by_context(trial, products=(trial.product,) if trial.product else None)
    _write(form, partial(text.by_context, trial, found), partial(data.table_document, trial, found))
    verdicts = {cell.envelope.fits for line in found for cell in line.cells}
    if "fits" in verdicts:
        return EXIT_CLEAR
    return EXIT_DENIED if "exceeds" in verdicts else EXIT_UNANSWERED


def _compare(log: StartLog, asked: Asked, form: Output) -> int:
    from kubectl_gpuadmit.render.fit import data, text
    from kubectl_gpuadmit.sizing.trial import Trial

    found = asked.envelope() if isinstance(asked, Trial) else None
    _write(
        form, partial(text.log, asked, log, found), partial(data.log_document, asked, log, found)
    )
    return EXIT_UNANSWERED if found is None else EXIT_CLEAR


def _write(form: Output, page: Callable[..., Text], document: Callable[[], dict[str, Any]]) -> None:
    from kubectl_gpuadmit.render.encoding import as_json, as_yaml

    match form:
        case Output.table:
            output.write_text(page(width=output.width(), ascii=output.in_ascii()))
        case Output.json:
            output.write_data(as_json(document()))
        case Output.yaml:
            output.write_data(as_yaml(document()))

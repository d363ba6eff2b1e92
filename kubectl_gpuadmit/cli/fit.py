"""``kubectl gpu-admit fit``: would a model fit, on what would it, and did a log say otherwise."""

from __future__ import annotations

import enum
import sys
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
    Unanswerable,
)

if TYPE_CHECKING:
    from typing import Any

    from kubectl_gpuadmit.render.fit import Asked
    from kubectl_gpuadmit.sizing.advice import Alternative
    from kubectl_gpuadmit.sizing.architecture import Architecture
    from kubectl_gpuadmit.sizing.checkpoint import Checkpoint
    from kubectl_gpuadmit.sizing.envelope import Envelope, Want
    from kubectl_gpuadmit.sizing.products import Product
    from kubectl_gpuadmit.sizing.serving import Serving


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

_ENGINES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "trt-llm": "tensorrt-llm",
    "tgi": "tgi",
    "llama.cpp": "llama.cpp",
    "llamacpp": "llama.cpp",
    "nim": "nim",
}


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
    from kubectl_gpuadmit.sizing.envelope import Want

    given: dict[str, Any] = {
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
    named = {"--model": model, "--config": config, "--gguf": gguf}
    if sum(map(bool, named.values())) > 1:
        raise _usage("--model, --config and --gguf name one model each: give one of them")
    if advise + table + bool(from_log) > 1:
        raise _usage("--advise, --table and --from-log are questions of their own: ask one")
    if from_log:
        return _from_log(from_log, named, engine, gpu, given, gpu_memory_utilization, form)
    if not any(named.values()):
        raise NothingChecked(
            "no-model",
            "no model is named",
            hint="kubectl gpu-admit fit --model Qwen/Qwen3-8B --gpu L4",
        )
    asked, architecture, checkpoint = _model(named)
    serving = _serving(engine, given, gpu_memory_utilization, gguf=bool(gguf))
    want = Want(concurrency=concurrency, context=context)
    asked = _with(asked, serving)
    if advise:
        return _advise(asked, architecture, checkpoint, want, gpu, form)
    if table:
        return _table(asked, architecture, checkpoint, gpu, form)
    return _one(asked, architecture, checkpoint, want, gpu, form)


def _usage(message: str) -> BadInput:
    return BadInput("usage", message, hint="kubectl gpu-admit fit --help")


def _with(asked: Asked, serving: Serving) -> Asked:
    from msgspec import structs

    from kubectl_gpuadmit.sizing.catalogue import find

    found = find(asked.model)
    pools = found is not None and found.known.task in ("embed", "rerank")
    if pools and serving.engine == "vllm":
        serving = structs.replace(serving, runner="pooling")
    return structs.replace(asked, serving=serving)


def _model(named: dict[str, str]) -> tuple[Asked, Architecture, Checkpoint | None]:
    """The architecture, what is stored, and where both were read."""
    from kubectl_gpuadmit.render.fit import Asked
    from kubectl_gpuadmit.sizing.serving import Serving

    if path := named["--config"]:
        from kubectl_gpuadmit.adapters.models import read_model

        folder = Path(path)
        if not folder.is_dir():
            folder = folder.parent
        architecture, checkpoint = read_model(folder) if Path(path).is_dir() else _config(path)
        name = folder.resolve().name or path
        return Asked(model=name, source=path, serving=Serving()), architecture, checkpoint
    if path := named["--gguf"]:
        from kubectl_gpuadmit.adapters.models import read_gguf_model

        entry = read_gguf_model(Path(path))
        if entry.architecture is None:
            raise BadInput("no-models", "says nothing of the model's architecture", file=path)
        asked = Asked(model=entry.name, source=path, serving=Serving())
        return asked, entry.architecture, entry.checkpoint
    from kubectl_gpuadmit.sizing.catalogue import suggestions
    from kubectl_gpuadmit.sizing.registry import Models, look_up

    facts = look_up(Models(), named["--model"])
    if isinstance(facts, str) or facts.architecture is None:
        near = suggestions(named["--model"])
        raise Unanswerable(
            "unknown-model",
            f"{named['--model'][:120]!r} is no model of the catalogue",
            hint=f"did you mean {', '.join(near)}?" if near else "name its config.json: --config",
        )
    asked = Asked(model=facts.name, source=facts.source, serving=Serving(), assumed=facts.assumed)
    return asked, facts.architecture, facts.checkpoint


def _config(path: str) -> tuple[Architecture, Checkpoint | None]:
    """A configuration by its file: tensors beside it are read where they lie there."""
    from kubectl_gpuadmit.adapters.files import read_file
    from kubectl_gpuadmit.adapters.models import read_checkpoint
    from kubectl_gpuadmit.sizing.formats import config

    file = Path(path)
    architecture = config.architecture(read_file(file), path)
    return architecture, read_checkpoint(file.parent) if file.name == "config.json" else None


def _serving(
    engine: str, given: dict[str, Any], share: float | None, *, gguf: bool = False
) -> Serving:
    from kubectl_gpuadmit.sizing.serving import Serving
    from kubectl_gpuadmit.sizing.versions import version_of

    name, _, version = (engine or ("llama.cpp" if gguf else "vllm")).partition("@")
    known = _ENGINES.get(name.strip().lower())
    if known is None:
        raise BadInput(
            "unknown-engine",
            f"{name[:60]!r} is no engine that is known here",
            hint=f"one of {', '.join(sorted(set(_ENGINES.values())))}, as vllm@0.11",
        )
    if version and version_of(version) is None:
        raise BadInput(
            "unknown-engine", f"{version[:60]!r} is no version", hint="as vllm@0.11 or vllm@0.11.2"
        )
    field = {
        "sglang": "mem_fraction_static",
        "tensorrt-llm": "free_gpu_memory_fraction",
    }.get(known, "gpu_memory_utilization")
    if share is not None and not 0 < share <= 1:
        raise _usage(f"--gpu-memory-utilization {share:g} is no share: above 0, at most 1")
    values = {name: value for name, value in given.items() if value is not None}
    if share is not None:
        values[field] = share
    return Serving(engine=known, version=version, **values)  # type: ignore[arg-type]


def _product(gpu: str) -> Product | None:
    from kubectl_gpuadmit.sizing.products import ADVISED, named

    if not gpu:
        return None
    product = named(gpu)
    if product is None:
        short = ", ".join(name.removeprefix("NVIDIA-") for name, _ in ADVISED[2:9:3])
        raise BadInput(
            "unknown-gpu",
            f"{gpu[:60]!r} is no GPU that is known here",
            hint=f"its memory in MiB as nvidia-smi says it, or a product: {short}",
        )
    return product


def _ask(
    asked: Asked, architecture: Architecture, checkpoint: Checkpoint | None, want: Want | None
) -> Envelope:
    from kubectl_gpuadmit.sizing.envelope import envelope

    product = asked.product
    return envelope(
        architecture,
        asked.serving,
        device_mib=product.mib if product else None,
        product=product.name if product else "",
        checkpoint=checkpoint,
        want=want,
    )


def _one(
    asked: Asked,
    architecture: Architecture,
    checkpoint: Checkpoint | None,
    want: Want,
    gpu: str,
    form: Output,
) -> int:
    from msgspec import structs

    from kubectl_gpuadmit.render import fit as rendered

    asked = structs.replace(asked, product=_product(gpu))
    found = _ask(asked, architecture, checkpoint, want)
    fitting: tuple[Alternative, ...] = ()
    if found.fits == "exceeds" and asked.product is not None:
        from kubectl_gpuadmit.sizing.advice import alternatives

        fitting = alternatives(
            architecture, asked.serving, asked.product, found, want=want, checkpoint=checkpoint
        )
    if form is Output.table:
        page = rendered.fit(asked, found, fitting, width=output.width(), ascii=output.in_ascii())
        output.write_text(page)
    else:
        _write(rendered.document(asked, found, fitting), form)
    return {"fits": EXIT_CLEAR, "exceeds": EXIT_DENIED}.get(found.fits, EXIT_UNANSWERED)


def _advise(
    asked: Asked,
    architecture: Architecture,
    checkpoint: Checkpoint | None,
    want: Want,
    gpu: str,
    form: Output,
) -> int:
    from kubectl_gpuadmit.render import fit as rendered
    from kubectl_gpuadmit.sizing.advice import advise

    product = _product(gpu)
    missing = _ask(asked, architecture, checkpoint, want).unknown
    if missing and missing != ("the memory of the GPU",):
        return _one(asked, architecture, checkpoint, want, gpu, form)
    found = advise(
        architecture,
        asked.serving,
        want=want,
        checkpoint=checkpoint,
        products=(product,) if product else None,
    )
    if form is Output.table:
        page = rendered.advice(asked, found, width=output.width(), ascii=output.in_ascii())
        output.write_text(page)
    else:
        _write(rendered.advice_document(asked, found), form)
    return EXIT_CLEAR if found else EXIT_DENIED


def _table(
    asked: Asked,
    architecture: Architecture,
    checkpoint: Checkpoint | None,
    gpu: str,
    form: Output,
) -> int:
    from kubectl_gpuadmit.render import fit as rendered
    from kubectl_gpuadmit.sizing.advice import by_context

    product = _product(gpu)
    found = by_context(
        architecture,
        asked.serving,
        checkpoint=checkpoint,
        products=(product,) if product else None,
    )
    if form is Output.table:
        page = rendered.by_context(asked, found, width=output.width(), ascii=output.in_ascii())
        output.write_text(page)
    else:
        _write(rendered.table_document(asked, found), form)
    verdicts = {cell.envelope.fits for line in found for cell in line.cells}
    if "fits" in verdicts:
        return EXIT_CLEAR
    return EXIT_DENIED if "exceeds" in verdicts else EXIT_UNANSWERED


def _from_log(
    path: str,
    named: dict[str, str],
    engine: str,
    gpu: str,
    given: dict[str, Any],
    share: float | None,
    form: Output,
) -> int:
    from msgspec import structs

    from kubectl_gpuadmit.adapters.files import read_file
    from kubectl_gpuadmit.render import fit as rendered
    from kubectl_gpuadmit.sizing.products import Product
    from kubectl_gpuadmit.sizing.registry import Models, look_up
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
    stated = _serving(engine or log.serving.engine, given, share)
    serving = structs.replace(
        log.serving,
        **{
            name: value
            for name in stated.__struct_fields__
            if (value := getattr(stated, name)) not in (None, "", ())
        },
    )
    architecture: Architecture | None = None
    checkpoint: Checkpoint | None = None
    asked = rendered.Asked(model=log.model, source=path, serving=serving)
    if any(named.values()):
        asked, architecture, checkpoint = _model(named)
        asked = structs.replace(asked, serving=serving)
    elif log.model:
        facts = look_up(Models(), log.model)
        if not isinstance(facts, str) and facts.architecture is not None:
            architecture, checkpoint = facts.architecture, facts.checkpoint
            asked = structs.replace(asked, source=f"{path}, {facts.source}", assumed=facts.assumed)
    product = _product(gpu)
    if product is None and log.total is not None:
        product = Product("", round(log.total / (1 << 20) / (1 - 0.0095)))
    asked = structs.replace(asked, product=product)
    found = None if architecture is None else _ask(asked, architecture, checkpoint, None)
    if form is Output.table:
        page = rendered.log(asked, log, found, width=output.width(), ascii=output.in_ascii())
        output.write_text(page)
    else:
        _write(rendered.log_document(asked, log, found), form)
    return EXIT_CLEAR if found is not None else EXIT_UNANSWERED


def _write(data: dict[str, Any], form: Output) -> None:
    from kubectl_gpuadmit.render import fit as rendered

    output.write_data(rendered.to_yaml(data) if form is Output.yaml else rendered.to_json(data))

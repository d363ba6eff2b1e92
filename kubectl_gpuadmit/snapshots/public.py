"""Words that tell nobody who wrote them: engines' programs and images, models of the catalogue."""

from __future__ import annotations

from functools import cache

from kubectl_gpuadmit.sizing.engines import flags, images

_REGISTRIES = frozenset({"docker.io", "ghcr.io", "nvcr.io", "quay.io", "public.ecr.aws"})
_OWNERS = frozenset(
    {"vllm", "lmsysorg", "ollama", "ggml-org", "huggingface", "nvidia", "nim", "kserve", "rocm"}
)


_VALUES = frozenset(
    {"serve", "auto", "fp8", "fp8_e4m3", "fp8_e5m2", "awq", "awq_marlin", "gptq", "gptq_marlin"}
    | {"bitsandbytes", "bitsandbytes-nf4", "compressed-tensors", "modelopt", "mxfp4", "nvfp4"}
    | {"int8", "bfloat16", "float16", "float32", "half", "float", "f16", "q8_0", "q4_0", "layer"}
    | {"row", "none", "on", "off", "true", "false", "embed", "generate", "pooling", "api_server"}
)
"""What engines are told that is no name."""


def is_public(word: str) -> bool:
    """A program that starts an engine, a value that it takes, or a model by its full name on the
    Hub."""
    return word in flags.PROGRAMS or word in _VALUES or is_public_model(word)


def is_public_model(word: str) -> bool:
    """``Qwen/Qwen3-8B``: a model of the catalogue by its full name on the Hub."""
    return "/" in word and word.lower() in _models()


def is_public_image(image: str) -> bool:
    """An engine's image as its makers publish it."""
    repository = images.split(image).repository
    host, slash, rest = repository.partition("/")
    path = rest if slash and host in _REGISTRIES else repository
    owner = path.partition("/")[0]
    return bool(images.engine(image)) and "." not in owner and owner in _OWNERS


@cache
def _models() -> frozenset[str]:
    from kubectl_gpuadmit.sizing import catalogue

    return frozenset(
        name.lower()
        for known in catalogue.models()
        for name in (known.name, *known.also)
        if "/" in name
    )

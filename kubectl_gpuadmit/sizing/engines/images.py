"""What an image's name says: which engine it starts by itself, and which version of it.

Sources: the engines' own Dockerfiles (ENTRYPOINT) and their published tags.
"""

from __future__ import annotations

import re

from msgspec import Struct


class Image(Struct, frozen=True):
    repository: str
    tag: str

    @property
    def base(self) -> str:
        return self.repository.rpartition("/")[2].lower()


def split(image: str) -> Image:
    """``registry:5000/org/name:tag@sha256:…`` in its parts."""
    path = image.partition("@")[0]
    head, colon, tag = path.rpartition(":")
    if colon and "/" not in tag:
        return Image(head, tag)
    return Image(path, "")


_ENGINES: tuple[tuple[str, str], ...] = (
    # found in the repository's last part or path; the first match wins
    (r"^nvcr\.io/nim/", "nim"),
    (r"text-embeddings-inference", "tei"),
    (r"text-generation-inference|(^|/)tgi(-|$)", "tgi"),
    (r"huggingfaceserver", "kserve-huggingface"),
    (r"tensorrtllm-runtime|sglang-runtime|vllm-runtime", "dynamo"),
    (r"vllm-openai|(^|/)vllm(-|$)|/llm-d(-|$)|pytorch-vllm-serve|rocm/vllm", "vllm"),
    (r"(^|/)sglang", "sglang"),
    (r"tritonserver", "triton"),
    (r"tensorrt[-_]?llm|trtllm", "tensorrt-llm"),
    (r"llama\.cpp|llama-cpp|llama_cpp|llamacpp", "llama.cpp"),
    (r"(^|/)ollama", "ollama"),
    (r"lmdeploy", "lmdeploy"),
)

_ENTRY = frozenset({"vllm", "tgi", "tei", "nim", "kserve-huggingface", "llama.cpp", "ollama"})
"""Engines whose images start the server when the pod gives arguments only, or nothing."""

_OWN_TAGS = re.compile(r"(vllm-openai|vllm|sglang|text-generation-inference)$")
_VERSION = re.compile(r"v?([0-9]+\.[0-9]+(?:\.[0-9]+)?(?:[.-]?(?:rc|dev|post)[0-9.]*)?)(?=$|[-_+])")
_NAMED = re.compile(r"(?:vllm|sglang|tgi)[-_]?v?([0-9]+\.[0-9]+(?:\.[0-9]+)?)", re.IGNORECASE)


def engine(image: str) -> str:
    """The engine that an image's name means, '' for none."""
    repository = split(image).repository.lower()
    return next((name for pattern, name in _ENGINES if re.search(pattern, repository)), "")


def starts_itself(image: str) -> bool:
    return engine(image) in _ENTRY


def version(image: str) -> str:
    """The engine's version where the tag is certain to mean it, '' otherwise.

    ``vllm/vllm-openai:v0.11.0`` and ``rocm/vllm:…_vllm_0.6.4`` are; ``nvcr.io/nvidia/vllm:25.09``
    names a monthly release.
    """
    parts = split(image)
    named = _NAMED.search(parts.tag)
    if named is not None:
        return named[1]
    found = _VERSION.match(parts.tag)
    if found is None or not _OWN_TAGS.search(parts.base):
        return ""
    major = int(found[1].split(".")[0])
    return found[1] if major < 10 else ""

"""Which engine a program is: its command lines as people write them."""

from __future__ import annotations

import re
from posixpath import basename

from msgspec import Struct

from kubectl_gpuadmit.sizing.startup.commands import Program
from kubectl_gpuadmit.sizing.startup.container import DROPPED


class Start(Struct, frozen=True):
    """One start of an engine, with the words that are its arguments."""

    engine: str
    """As ``images.engine``; ``follower`` for a process that joins another pod's engine."""
    program: Program
    skip: int
    """Words of the program that are not arguments."""

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.program.words[self.skip :]

    @property
    def pointers(self) -> tuple[str, ...]:
        return self.program.pointers[self.skip :]


_MODULES: tuple[tuple[str, str], ...] = (
    (r"vllm\.entrypoints\.(openai\.)?(api_server|run_batch|grpc_server)", "vllm"),
    (r"vllm(\.entrypoints\.cli\.main)?", "vllm"),
    (r"sglang\.launch_server", "sglang"),
    (r"dynamo\.vllm", "dynamo-vllm"),
    (r"dynamo\.sglang(\..*)?", "dynamo-sglang"),
    (r"dynamo\.trtllm", "dynamo-trtllm"),
    (r"huggingfaceserver", "kserve-huggingface"),
    (r"llama_cpp\.server", "llama.cpp"),
    (r"tensorrt_llm\.commands\.serve", "tensorrt-llm"),
)
MODULES: tuple[str, ...] = (
    *("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server", "vllm"),
    *("sglang.launch_server", "dynamo.vllm", "dynamo.sglang", "dynamo.trtllm"),
    *("huggingfaceserver", "llama_cpp.server"),
)
"""The modules as people name them."""

PROGRAMS: dict[str, tuple[str, int]] = {
    # name: engine, words that follow it and belong to it
    "vllm": ("vllm", 1),
    "sglang": ("sglang", 1),
    "text-generation-launcher": ("tgi", 0),
    "text-generation-server": ("tgi", 1),
    "text-embeddings-router": ("tei", 0),
    "trtllm-serve": ("tensorrt-llm", 0),
    "tritonserver": ("triton", 0),
    "llama-server": ("llama.cpp", 0),
    "ollama": ("ollama", 1),
    "lmdeploy": ("lmdeploy", 2),
}
_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
LAUNCHERS = frozenset(
    {"trtllm-llmapi-launch", "mpirun", "mpiexec", "torchrun", "nsys", "ddtrace-run"}
)


def start(program: Program) -> Start | None:
    """The engine that this program is; None for any other program."""
    words = program.words
    first = next((at for at, word in enumerate(words) if word != DROPPED), len(words))
    if first:  # a file that was written without secrets has lost what stood before
        kept = Program(words[first:], program.pointers[first:], program.where, program.conditional)
        return start(kept) if kept.words else None
    if not words:
        return None
    name = basename(words[0])
    if name in LAUNCHERS:
        for at, word in enumerate(words[1:], start=1):
            if basename(word) in PROGRAMS or _PYTHON.fullmatch(basename(word)):
                found = _at(program, at)
                if found is not None:
                    return found
        return None
    return _at(program, 0)


def _at(program: Program, at: int) -> Start | None:
    words = program.words
    name = basename(words[at])
    following = words[at + 1 : at + 2]
    if name == "ray" and following == ("start",):
        return Start("follower", program, at + 2)
    if name in ("bash", "sh") and following and following[0].endswith("multi-node-serving.sh"):
        return Start("follower", program, at + 2)
    if name.endswith("multi-node-serving.sh"):
        return Start("follower", program, at + 1)
    if name in PROGRAMS:
        engine, own = PROGRAMS[name]
        if name in ("vllm", "sglang", "ollama") and following != ("serve",):
            return None  # vllm bench, ollama pull
        if name == "lmdeploy" and words[at + 1 : at + 3] != ("serve", "api_server"):
            return None
        own += name == "trtllm-serve" and following == ("serve",)
        return Start(engine, program, at + 1 + own)
    if not _PYTHON.fullmatch(name):
        return _script(program, at)
    here = at + 1
    while here < len(words) and words[here].startswith("-") and words[here] != "-m":
        here += 2 if words[here] in ("-W", "-X") else 1
    if words[here : here + 1] != ("-m",) or here + 1 >= len(words):
        return _script(program, here) if here < len(words) else None
    module = words[here + 1]
    for pattern, engine in _MODULES:
        if re.fullmatch(pattern, module):
            skip = here + 2
            if module in ("vllm", "vllm.entrypoints.cli.main"):
                if words[skip : skip + 1] != ("serve",):
                    return None
                skip += 1
            return Start(engine, program, skip)
    return None


def _script(program: Program, at: int) -> Start | None:
    """``…/vllm/entrypoints/openai/api_server.py`` run as a file."""
    if re.search(r"vllm/entrypoints/(openai/)?api_server\.py$", program.words[at]):
        return Start("vllm", program, at + 1)
    if re.search(r"sglang/launch_server\.py$", program.words[at]):
        return Start("sglang", program, at + 1)
    return None

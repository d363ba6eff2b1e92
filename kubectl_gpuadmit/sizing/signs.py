"""What a container tells of a model where no engine that is read starts in it: nothing for certain,
a sign of one, or why the engine does not say."""

from __future__ import annotations

import re

from kubectl_gpuadmit.sizing.startup.commands import programs
from kubectl_gpuadmit.sizing.startup.container import Started

RUNS_TO_AN_END = frozenset(
    {
        *("Job", "CronJob", "JobSet", "PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob"),
        *("JAXJob", "TrainJob", "RayJob", "Workflow", "CronWorkflow", "NIMCache", "RunaiJob"),
    }
)
"""Kinds whose programs train or compute, so that a model's name is no sign of serving."""

_SERVES_NOTHING = frozenset(
    {
        *("sleep", "pause", "tail", "true", "echo", "cat", "mkdir", "ls", "set", "cd", "trap"),
        *("wait", "printf", "date", "env", "[", "test", ":", "exit", "sshd"),
        *("nvidia-smi", "rocm-smi", "clinfo", "dcgmi", "dcgm-exporter"),
        *("gpu_burn", "gpu-burn", "vectorAdd", "vectoradd", "nbody", "all_reduce_perf"),
        *("jupyter", "jupyter-lab", "jupyter-notebook", "start-notebook.sh"),
    }
)
"""Programs that load no model, whatever their arguments."""


def serves_nothing(one: Started) -> bool:
    listed = programs(one)
    return bool(listed) and all(
        program.words[0].rpartition("/")[2] in _SERVES_NOTHING for program in listed
    )


_SIGNS = re.compile(
    r"--(?:model|model[-_]path|model[-_]id|model[-_]dir|model[-_]name[-_]or[-_]path"
    r"|pretrained[-_]model[-_]name[-_]or[-_]path|triton[-_]model[-_]repo[-_]dir)(?:=|$)"
)
_SIGN_VARIABLES = ("MODEL_ID", "HF_MODEL_ID", "MODEL_NAME", "MODEL_PATH")


def sign(one: Started) -> str:
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


_OPAQUE = {
    "ollama": "Ollama loads the models that requests name",
    "triton": "Triton loads what its model repository holds",
    "sglang": "the SGLang image starts nothing by itself, and no arguments name a model",
    "dynamo": "no arguments name a model",
    "lmdeploy": "the LMDeploy image starts nothing by itself, and no arguments name a model",
}


def why_silent(engine: str, container: str) -> str:
    """Why the container does not say which model this engine loads there."""
    return _OPAQUE.get(engine, f"nothing in the pod says which model container {container} loads")

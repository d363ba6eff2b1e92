"""KServe's Hugging Face server and the places where a KServe object names its model.

Source: kserve/kserve python/huggingfaceserver/huggingfaceserver/__main__.py (its own flags; the
rest goes to vLLM), pkg/apis/serving (storageUri, LLMInferenceService spec.model).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_gpuadmit.sizing.engines import vllm
from kubectl_gpuadmit.sizing.engines.arguments import Flag

FLAGS = (
    Flag(("--model-id",), "model"),
    Flag(("--model-dir",), "model_dir"),
    Flag(("--model-name",), "served_model_name"),
    Flag(("--backend",), "backend"),
    *(flag for flag in vllm.FLAGS if flag.to not in ("model", "served_model_name", "config_file")),
)

BARE = vllm.BARE | {"--disable-lower-case", "--return-token-type-ids", "--tensor-input-names"}


def hub_name(uri: str) -> str:
    """``hf://org/name[:revision]`` -> ``org/name``; '' for storage of another kind."""
    if not uri.startswith("hf://"):
        return ""
    return uri[len("hf://") :].partition(":")[0].strip("/")


def storage_uri(manifest: Mapping[str, Any], component: str) -> str:
    """What an InferenceService's predictor is told to load, '' if it does not say."""
    spec = manifest.get("spec")
    part = spec.get(component or "predictor") if isinstance(spec, dict) else None
    for block in part.values() if isinstance(part, dict) else ():
        if isinstance(block, dict):
            for value in (block.get("storageUri"), (block.get("storage") or {})):
                if isinstance(value, str) and value:
                    return value
                if isinstance(value, dict) and isinstance(value.get("storageUri"), str):
                    return str(value["storageUri"])
    return ""


def parallelism(manifest: Mapping[str, Any], role: str) -> dict[str, Any]:
    """``spec.parallelism`` of an LLMInferenceService, of its prefill part where that is meant."""
    spec = manifest.get("spec")
    if isinstance(spec, dict) and role.startswith("prefill"):
        spec = spec.get("prefill")
    found = spec.get("parallelism") if isinstance(spec, dict) else None
    return found if isinstance(found, dict) else {}


PARALLELISM = (
    Flag(("tensor",), "tensor_parallel_size", "int"),
    Flag(("pipeline",), "pipeline_parallel_size", "int"),
    Flag(("data",), "data_parallel_size", "int"),
    Flag(("expert",), "enable_expert_parallel", "flag"),
)

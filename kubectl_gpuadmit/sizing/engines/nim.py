"""NVIDIA NIM for LLMs: the image is the model, the environment tells the rest.

Source: NVIDIA NIM for LLMs documentation, "Configuring a NIM" (NIM_* variables) and "Model
profiles" (a profile fixes precision and number of GPUs; without one the best that fits is chosen).
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.engines.arguments import Flag

VARIABLES = (
    ("NIM_MODEL_NAME", Flag(("NIM_MODEL_NAME",), "model")),
    ("NIM_SERVED_MODEL_NAME", Flag(("NIM_SERVED_MODEL_NAME",), "served_model_name")),
    ("NIM_MAX_MODEL_LEN", Flag(("NIM_MAX_MODEL_LEN",), "max_model_len", "int")),
    (
        "NIM_TENSOR_PARALLEL_SIZE",
        Flag(("NIM_TENSOR_PARALLEL_SIZE",), "tensor_parallel_size", "int"),
    ),
    (
        "NIM_PIPELINE_PARALLEL_SIZE",
        Flag(("NIM_PIPELINE_PARALLEL_SIZE",), "pipeline_parallel_size", "int"),
    ),
    ("NIM_MODEL_PROFILE", Flag(("NIM_MODEL_PROFILE",), "profile")),
    ("NIM_KVCACHE_PERCENT", Flag(("NIM_KVCACHE_PERCENT",), "gpu_memory_utilization", "float")),
    ("NIM_MAX_LORA_RANK", Flag(("NIM_MAX_LORA_RANK",), "max_lora_rank", "int")),
    ("NIM_MAX_GPU_LORAS", Flag(("NIM_MAX_GPU_LORAS",), "max_loras", "int")),
)

IMAGE = "nvcr.io/nim/"


def model_of_image(image: str) -> str:
    """``nvcr.io/nim/meta/llama-3.1-8b-instruct:1.3.3`` -> ``meta/llama-3.1-8b-instruct``; '' for
    an image that is no NIM of one model."""
    path = image.partition("@")[0]
    head, colon, tag = path.rpartition(":")
    path = head if colon and "/" not in tag else path
    if not path.startswith(IMAGE):
        return ""
    name = path[len(IMAGE) :]
    return name if name.count("/") == 1 and not name.endswith("/llm-nim") else ""

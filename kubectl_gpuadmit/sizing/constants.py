"""Figures that no formula gives: measured, each with its cause; whoever uses one gives a range.

None is fitted to one row of anybody's log. ``python -m tests.sizing`` leaves each out of its own
fit and shows what error that makes.
"""

from __future__ import annotations

from msgspec import Struct

GIB = 1 << 30
MIB = 1 << 20


class Constant(Struct, frozen=True):
    """``likely`` between ``low`` and ``high``, and why it is there at all."""

    low: float
    likely: float
    high: float
    cause: str


SORTED_SAMPLING = Constant(
    9.0,
    9.6,
    10.2,
    "float32 copies of the logits at the peak of top-k and top-p by sorting: logits in two types, "
    "sorted values, their 64-bit indices, the sort's own buffers, probabilities and sums "
    "(vLLM v1/sample/ops/topk_topp_sampler.py, model_executor/layers/sampler.py)",
)
SAMPLING = Constant(
    2.5,
    3.5,
    4.5,
    "the same without a sort: logits in two types, probabilities, noise "
    "(vLLM v1/sample/ops/topk_topp_triton.py)",
)
LIBRARIES = Constant(
    0.02 * GIB,
    0.05 * GIB,
    0.2 * GIB,
    "kernels and cuBLAS workspaces of 8 MiB made while profiling (vLLM utils/mem_utils.py, "
    "non_torch_increase: without the CUDA context, which is there before; PyTorch "
    "CUDABlas, CUBLAS_WORKSPACE_CONFIG)",
)
LIBRARIES_HOPPER = Constant(
    0.06 * GIB,
    0.13 * GIB,
    0.3 * GIB,
    "the same from compute capability 9.0, where a cuBLAS workspace takes 32 MiB (PyTorch "
    "aten/src/ATen/cuda/CublasHandlePool.cpp)",
)
PEER = Constant(
    0.01 * GIB,
    0.08 * GIB,
    0.25 * GIB,
    "NCCL's channels to each neighbour in rings and trees over PCIe or NVLink pairs, of which a "
    "GPU has three at most (NCCL user guide, NCCL_BUFFSIZE 4 MiB a channel; NCCL_ALGO)",
)
PEER_FABRIC = Constant(
    0.2 * GIB,
    0.31 * GIB,
    0.45 * GIB,
    "the same behind NVSwitch: more channels, NVLS and symmetric buffers of custom all-reduce "
    "(NCCL user guide, NCCL_NVLS_ENABLE; vLLM custom_all_reduce.py)",
)
OUTSIDE_LEAK = Constant(
    0.3 * GIB,
    1.6 * GIB,
    4.0 * GIB,
    "vLLM 0.6.4 counts CUDA context and what torch holds back as not torch's "
    "(vllm-project/vllm#10511, #11230)",
)
CONTEXT = Constant(
    0.3 * GIB,
    0.5 * GIB,
    0.75 * GIB,
    "CUDA context and loaded modules of a process (NVIDIA CUDA programming guide, lazy loading)",
)
GRAPH = Constant(
    6 * MIB,
    12 * MIB,
    40 * MIB,
    "private memory of one CUDA graph as vLLM extrapolates it (gpu_model_runner.py, "
    "profile_cudagraph_memory; vllm-project/vllm#45178 says why it is too much)",
)
STATE_GRAPH = Constant(
    15 * MIB,
    40 * MIB,
    110 * MIB,
    "the same for models with recurrent states, whose decode graphs hold buffers of every sequence "
    "(vllm-project/recipes#551 and #831 leave 20 and 60 to 100 MiB for each)",
)
TENSORRT_BASE = Constant(
    1.8 * GIB,
    2.5 * GIB,
    3.5 * GIB,
    "CUDA context, NCCL, sampler and attention workspaces outside torch's allocator "
    "(TensorRT-LLM pyexecutor/_util.py, configure_kv_cache_capacity)",
)
LLAMA_CPP_BASE = Constant(
    0.25 * GIB,
    0.4 * GIB,
    0.7 * GIB,
    "CUDA context and cuBLAS of llama.cpp (ggml-cuda.cu)",
)
RESERVED = Constant(
    0.0045,
    0.0095,
    0.018,
    "share of NVML's total that the driver keeps for itself (nvmlMemory_v2_t.reserved; an H100 of "
    "81559 MiB gives 79.18 GiB, an L4 of 23034 MiB 22.16)",
)
RESERVED_OF = {
    # share kept by the driver: cudaMemGetInfo's total (PyTorch's messages) against NVML's
    "T4": 0.0173,
    "L4": 0.0148,
    "L40S": 0.0104,
    "A100-40": 0.0152,
    "A100-80": 0.0098,
    "H100": 0.0059,
    "H200": 0.0043,
    "RTX-3090": 0.0147,
    "RTX-4080": 0.0,
    "GB10": 0.008,
}
RECOVERY = Constant(
    0.02,
    0.05,
    0.10,
    "share of the budget that fragmentation takes after hours of work (PyTorch CUDA semantics, "
    "memory management), to be left free where restarts are dear",
)

ALL = {name: value for name, value in list(globals().items()) if isinstance(value, Constant)}

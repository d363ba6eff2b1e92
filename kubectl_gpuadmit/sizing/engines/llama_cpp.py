"""llama.cpp's server: ``llama-server`` and its ``LLAMA_ARG_…`` environment.

Source: ggml-org/llama.cpp common/arg.cpp.
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.engines.arguments import Flag, Style

FLAGS = (
    Flag(("-m", "--model"), "model"),
    Flag(("-hf", "-hfr", "--hf-repo"), "hf_repo"),
    Flag(("-hff", "--hf-file"), "hf_file"),
    Flag(("-mu", "--model-url"), "model_url"),
    Flag(("-a", "--alias"), "served_model_name"),
    Flag(("-c", "--ctx-size"), "max_model_len", "int"),
    Flag(("-np", "--parallel"), "max_num_seqs", "int"),
    Flag(("-ub", "--ubatch-size"), "max_num_batched_tokens", "int"),
    Flag(("-ngl", "--gpu-layers", "--n-gpu-layers"), "n_gpu_layers", "int"),
    Flag(("-ctk", "--cache-type-k"), "kv_cache_dtype"),
    Flag(("-ctv", "--cache-type-v"), "cache_type_v"),
    Flag(("-sm", "--split-mode"), "split_mode"),
    Flag(("-fa", "--flash-attn"), "flash_attention_text"),
    Flag(("-kvu", "--kv-unified"), "kv_unified", "flag"),
    Flag(("-md", "--model-draft"), "speculative_model"),
    Flag(("--draft-max", "--draft", "--draft-n"), "num_speculative_tokens", "int"),
    Flag(("-ot", "--override-tensor"), ""),
    Flag(("-ncmoe", "--n-cpu-moe"), ""),
    Flag(("-cmoe", "--cpu-moe"), ""),
)

STYLE = Style(underscores=True, abbreviations=False, negations=False)

VARIABLES = tuple(
    (name, next(flag for flag in FLAGS if flag.to == field))
    for name, field in (
        ("LLAMA_ARG_MODEL", "model"),
        ("LLAMA_ARG_HF_REPO", "hf_repo"),
        ("LLAMA_ARG_HF_FILE", "hf_file"),
        ("LLAMA_ARG_MODEL_URL", "model_url"),
        ("LLAMA_ARG_CTX_SIZE", "max_model_len"),
        ("LLAMA_ARG_N_PARALLEL", "max_num_seqs"),
        ("LLAMA_ARG_UBATCH", "max_num_batched_tokens"),
        ("LLAMA_ARG_N_GPU_LAYERS", "n_gpu_layers"),
        ("LLAMA_ARG_CACHE_TYPE_K", "kv_cache_dtype"),
        ("LLAMA_ARG_SPLIT_MODE", "split_mode"),
    )
)

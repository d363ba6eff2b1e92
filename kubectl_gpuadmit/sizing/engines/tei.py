"""Text Embeddings Inference: ``text-embeddings-router``, told by flags or its environment.

Source: huggingface/text-embeddings-inference router/src/main.rs.
"""

from __future__ import annotations

from kubectl_gpuadmit.sizing.engines.arguments import Flag

FLAGS = (
    Flag(("--model-id",), "model"),
    Flag(("--revision",), "revision"),
    Flag(("--dtype",), "dtype"),
    Flag(("--max-concurrent-requests",), "max_num_seqs", "int"),
    Flag(("--max-batch-tokens",), "max_num_batched_tokens", "int"),
)

VARIABLES = tuple((flag.names[0].lstrip("-").replace("-", "_").upper(), flag) for flag in FLAGS)

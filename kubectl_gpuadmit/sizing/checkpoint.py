"""The tensors that a checkpoint stores, as safetensors or GGUF headers list them; reads no file."""

from __future__ import annotations

from msgspec import Struct


class StoredTensor(Struct, frozen=True):
    """``dtype`` as the header names it: ``BF16``, ``F8_E4M3``, ``I32``; GGUF: ``Q4_K``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


class Checkpoint(Struct, frozen=True, kw_only=True):
    """What is stored; without ``tensors`` where only ``metadata.total_size`` is known."""

    source: str
    """Where it was read: ``model.safetensors.index.json``."""
    total_bytes: int
    tensors: tuple[StoredTensor, ...] = ()

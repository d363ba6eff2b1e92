"""safetensors headers and index files -> ``Checkpoint``.

Source: huggingface/safetensors README (format: 8 bytes little-endian length, JSON header of at most
100 MB, ``data_offsets`` into what follows) and safetensors/src/tensor.rs for the types.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import msgspec

from kubectl_gpuadmit.errors import BadModelFile
from kubectl_gpuadmit.sizing.checkpoint import Checkpoint, StoredTensor
from kubectl_gpuadmit.sizing.formats.config import decoded
from kubectl_gpuadmit.sizing.formats.fields import MOST, Fields, kind_of

LENGTH_BYTES = 8
MOST_HEADER = 100_000_000

_BITS: dict[str, int] = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}


def header_length(first: bytes, file: str) -> int:
    """How many bytes of header follow the first eight. Raises BadModelFile."""
    if len(first) < LENGTH_BYTES:
        raise _cut(file, f"has {len(first)} bytes, fewer than a safetensors file begins with")
    length = int.from_bytes(first[:LENGTH_BYTES], "little")
    if not 2 <= length <= MOST_HEADER:
        raise BadModelFile(
            "model-file-unreadable",
            f"is no safetensors file: its header would have {length:,} bytes",
            file=file,
        )
    return length


def header(raw: bytes, file: str, *, size: int | None = None) -> Checkpoint:
    """The tensors that a file lists. ``raw`` begins with the file's first byte and holds at least
    the header; ``size`` is the size of the whole file where it is known. Raises BadModelFile.
    """
    length = header_length(raw, file)
    text = raw[LENGTH_BYTES : LENGTH_BYTES + length]
    if len(text) < length:
        raise _cut(file, f"its header should have {length:,} bytes and ends after {len(text):,}")
    try:
        listed = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadModelFile(
            "model-file-unreadable", f"its header is no JSON: {problem}", file=file
        ) from None
    if not isinstance(listed, dict):
        raise BadModelFile("model-file-unreadable", "its header is no JSON object", file=file)
    tensors = [
        _tensor(name, entry, file) for name, entry in listed.items() if name != "__metadata__"
    ]
    stored = sum(tensor.nbytes for tensor, _ in tensors)
    end = max((last for _, last in tensors), default=0)
    if size is not None and size < LENGTH_BYTES + length + end:
        raise _cut(file, f"has {size:,} bytes, its tensors end at {LENGTH_BYTES + length + end:,}")
    return Checkpoint(source=file, total_bytes=stored, tensors=tuple(t for t, _ in tensors))


def index(raw: bytes, file: str) -> tuple[Checkpoint, tuple[str, ...]]:
    """``model.safetensors.index.json``: the total that it states, and the files that it names."""
    data = Fields(decoded(raw, file), file=file)
    weights = data.inner("weight_map")
    if weights is None:
        data.fail("weight_map", "weight_map is missing", ref="model-field-missing")
    for name, shard in weights.data.items():
        if not isinstance(shard, str) or "/" in shard or "\\" in shard or shard.startswith("."):
            weights.fail(str(name)[:80], f"expected a file's name, found {kind_of(shard)}")
    metadata = data.inner("metadata")
    total = metadata.count("total_size", most=1 << 60) if metadata is not None else None
    shards = tuple(sorted(set(weights.data.values())))
    return Checkpoint(source=file, total_bytes=total or 0), shards


def together(parts: Iterable[Checkpoint], source: str) -> Checkpoint:
    """Shards as one checkpoint."""
    listed = list(parts)
    return Checkpoint(
        source=source,
        total_bytes=sum(part.total_bytes for part in listed),
        tensors=tuple(tensor for part in listed for tensor in part.tensors),
    )


def _tensor(name: str, entry: object, file: str) -> tuple[StoredTensor, int]:
    """The tensor, and where its bytes end among the data."""
    short = name if len(name) <= 120 else f"{name[:117]}..."
    if not isinstance(entry, dict):
        raise BadModelFile(
            "model-field", f"expected an object, found {kind_of(entry)}", file=file, field=short
        )
    fields = Fields(entry, file=file, at=short)
    dtype, shape, offsets = (
        fields.text("dtype"),
        fields.counts("shape"),
        fields.counts("data_offsets"),
    )
    if dtype not in _BITS:
        fields.fail("dtype", f"{dtype[:20]!r} is no type of safetensors that this program knows")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        fields.fail("data_offsets", "expected a first and a last byte")
    if len(shape) > 16 or prod(shape) > MOST * 64:
        fields.fail("shape", "is larger than any tensor")
    nbytes = offsets[1] - offsets[0]
    wanted = -(-prod(shape) * _BITS[dtype] // 8)
    if nbytes != wanted:
        fields.fail("data_offsets", f"span {nbytes:,} bytes, shape and type need {wanted:,}")
    return StoredTensor(name, dtype, shape, nbytes), offsets[1]


def _cut(file: str, message: str) -> BadModelFile:
    return BadModelFile("model-file-cut", message, file=file, hint="copy it again")

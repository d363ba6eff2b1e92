"""The parts of a model, layer by layer, as an engine holds them: shapes, not bytes nor ranks."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Split = Literal["column", "row", "none", "vocab"]
"""How tensor parallelism divides a matrix: its outputs, its inputs, not at all, by vocabulary."""


class Part(Struct, frozen=True):
    """Rows that one matrix is fused of. ``heads`` > 0: dealt out head by head, and a head is copied
    to several ranks where there are more ranks than heads."""

    rows: int
    heads: int = 0


class Matrix(Struct, frozen=True, kw_only=True):
    """One weight tensor of an engine, ``parts`` × ``cols``, ``stack`` times (experts)."""

    name: str
    parts: tuple[Part, ...]
    cols: int
    split: Split = "column"
    stack: int = 1
    bias: bool = False
    linear: bool = True
    """False: never quantised, whatever the method (convolutions, embeddings, positions)."""
    router: bool = False
    """Engines and checkpoints keep it as it is."""

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def elements(self) -> int:
        return self.stack * self.rows * (self.cols + self.bias)


def embedding(name: str, vocabulary: int, width: int) -> Matrix:
    """A table that is looked up, cut by its rows."""
    return Matrix(name=name, parts=(Part(vocabulary),), cols=width, split="vocab", linear=False)


class Cache(Struct, frozen=True, kw_only=True):
    """What a layer keeps for each token of a sequence."""

    kind: Literal["full", "sliding", "chunked", "latent"]
    heads: int
    k_dim: int
    v_dim: int
    window: int = 0
    index_dim: int = 0
    """Keys of a sparse-attention indexer, kept beside (DeepSeek V3.2)."""


class State(Struct, frozen=True, kw_only=True):
    """What a layer keeps for each sequence, however long: a convolution's tail and a state."""

    kind: str
    conv_channels: int
    conv_tail: int
    """Columns: kernel - 1."""
    heads: int
    rows: int
    cols: int
    float32: bool = False
    """The family keeps the state in float32 whatever the model's type."""


class Layer(Struct, frozen=True, kw_only=True):
    """One decoder layer. ``vectors`` counts norms and other small tensors, in elements."""

    matrices: tuple[Matrix, ...]
    vectors: int = 0
    cache: Cache | None = None
    state: State | None = None
    width: int = 0
    """Widest intermediate of a token in the feed-forward, gate and up together; for activations."""
    experts_per_token: int = 0
    copies: int = 0
    """Elements that the checkpoint stores again and an engine shares."""

    @property
    def elements(self) -> int:
        return self.vectors + sum(matrix.elements for matrix in self.matrices)


class Plan(Struct, frozen=True, kw_only=True):
    """A whole model. ``head`` is None where the embedding serves as output too."""

    hidden: int
    vocabulary: int
    embeddings: tuple[Matrix, ...]
    layers: tuple[Layer, ...]
    head: Matrix | None
    tail: int = 0
    """Elements of final norms and the like."""
    towers: tuple[Layer, ...] = ()
    """Encoders and projectors; each entry is one layer of one."""
    tower_hidden: int = 0
    """Width of the encoder for images."""
    tower_elements: int = 0
    """Of towers of which only the total is known."""
    prediction: tuple[Layer, ...] = ()
    """Layers for multi-token prediction: stored, loaded only for speculative decoding."""
    encoder_only: bool = False
    rotary_dim: int = 0
    """Width of the tables of sines and cosines that are kept, all tables together."""
    positions: int = 0
    """Rows of such a table."""
    deepstack: int = 0
    """Layers of the encoder whose features are kept beside its output."""
    token_buffer: int = 0
    """Elements that the model keeps for each token of a step, beside its weights."""

    @property
    def text_elements(self) -> int:
        """Parameters of the text model."""
        return (
            sum(matrix.elements for matrix in self.embeddings)
            + sum(layer.elements for layer in self.layers)
            + (self.head.elements if self.head else 0)
            + self.tail
        )

    @property
    def elements(self) -> int:
        """All parameters but those of multi-token prediction."""
        return (
            self.text_elements + sum(layer.elements for layer in self.towers) + self.tower_elements
        )

    @property
    def stored_elements(self) -> int:
        """All parameters of the checkpoint, with those of multi-token prediction."""
        extra = sum(layer.elements + layer.copies for layer in self.prediction)
        return self.elements + extra


class NoPlan(Exception):
    """Not enough is known of a model to count its parts: ``args`` say what is missing."""

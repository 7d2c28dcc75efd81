"""What the tokens of a stack see: one another, what was kept of earlier ones, and another stack's tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.request import Request
from costcalc.reference.tape import Table


class Forms(NamedTuple):
    """The forms that components run in which have two of them, as `Sight` says."""

    latent: str | None = None
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """What goes with a stack's tokens through all of its layers.

    start: the position of the first of them. causal: nobody sees a later token, as in a decoder; in an encoder all look
    both ways. request: what keeps keys and values for later passes; None where nothing is kept. memory: (B, M, D), the
    tokens that cross-attention makes keys and values of: those of the encoder in the pass that starts a request, none
    in later ones. asks: whether there are any such tokens, now or kept. table: the one table of relative positions.
    latent: the form of latent attention, "expanded" or "absorbed"; None for expanded where a request starts, and
    absorbed later. chunked: recurrent mixers that have a chunked form run it, but for a decode step. embeddings:
    (B, T, D), what enters the first layer, for those that join it with what they are given. tokens: (B, T), the row
    numbers that those were looked up by. layer, layers: the number
    of the present layer, and of all, in the stack. shared: of each layer with a shared block that held weights of its
    own so far, its fields and its path. made: by name of a layer,
    the keys and values of the latest one of that name, of all tokens that it sees, for layers that make none. carried:
    by its width, what the latest router's network made of the tokens, (B·T, width), for routers that add it (ZAYA1).
    blocks: (B, T, D) each, the stream behind each block of layers that is finished, for layers that choose among them.
    sum_table: the table of relative positions of sums of blocks (LongT5). global_tokens: rows before the text that go
    through all layers with it (Pegasus-X).
    shortcuts: by number of a layer, what a network of the layer before gave for it, (B, T, D).
    chosen: the keys that the latest indexer chose for each of the T queries, (B, s) of row numbers.
    """

    start: int = 0
    causal: bool = True
    request: Request | None = None
    memory: Array | None = None
    asks: bool = False
    table: Table | None = None
    latent: str | None = None
    chunked: bool = False
    embeddings: Array | None = None
    tokens: Array | None = None
    layer: int = 0
    layers: int = 1
    shared: list[tuple[Fields, str]] = field(default_factory=list)
    made: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    sum_table: Table | None = None
    global_tokens: int = 0
    carried: dict[int, Array] = field(default_factory=dict)
    chosen: list[Array] = field(default_factory=list)
    shortcuts: dict[int, Array] = field(default_factory=dict)
    blocks: list[Array] = field(default_factory=list)

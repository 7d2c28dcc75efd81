"""One layer of a stack: its sublayers, and what the stack puts around each layer's."""

from __future__ import annotations

import numpy as np

from costcalc.reference.altup import updated
from costcalc.reference.arrays import Array, Fields
from costcalc.reference.block import block
from costcalc.reference.block_residuals import through_blocks
from costcalc.reference.convolution_beside import with_convolution
from costcalc.reference.hyper_connections import connected
from costcalc.reference.per_layer_input import per_layer_input
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

ALONE: Fields = {"altup": None, "per_layer_input": None, "hyper_connections": None}
"""What a layer outside of a stack has around it."""


def layer(
    fields: Fields, x: Array, at: Scope, *, sight: Sight, around: Fields = ALONE, own: Array | None = None
) -> Array:
    """The residual stream behind a layer. x: (B, T, D) -> (B, T, D); with AltUp or hyper-connections
    (A, B, T, D) -> (A, B, T, D).

    around: the stack. own: (B, T, W), what this layer has of each token where the stack has per-layer inputs. They are
    added to the stream, or with AltUp to all states but the first (`Gemma3nTextDecoderLayer`).
    """

    def sublayers(y: Array) -> Array:
        return block(fields, y, at, sight=sight)

    if around.get("hyper_connections"):
        return connected(around["hyper_connections"], fields, x, at, sight=sight)  # (A, B, T, D)
    if fields.get("block_residuals"):
        return through_blocks(fields, x, at, sight=sight)  # (B, T, D)
    read, states = x, x
    if around["altup"]:
        states, read = updated(around["altup"], x, at.under("altup"), norm_of=fields["norm"], sublayers=sublayers)
    else:
        states = read = sublayers(x)  # (B, T, D)
    if own is not None:
        added = per_layer_input(around["per_layer_input"], read, own, at, norm_of=fields["norm"])  # (B, T, D)
        states = np.concatenate([states[:1], states[1:] + added]) if around["altup"] else states + added
    if fields.get("convolution"):
        states = with_convolution(fields["convolution"], x, states, at, norm_of=fields["norm"])  # (B, T, D)
    if fields["layer_scale"]:
        states = states * at.gain("layer_scale", 1, role=fields["layer_scale"])  # one number for all
    return states

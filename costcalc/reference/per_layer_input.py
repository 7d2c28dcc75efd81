"""Per-layer inputs, as Gemma-3n and Gemma-4 have them: each layer has an embedding of its own of each token."""

from __future__ import annotations

import math

import numpy as np

from costcalc.reference.activations import ACTIVATIONS
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.norms import norm
from costcalc.reference.tape import Scope


def own_numbers(fields: Fields, tokens: Array, x: Array, at: Scope, *, norm_of: Fields, layers: int) -> Array:
    """What all layers have of each token: rows of one table, and a product of the embeddings, normed layer by layer.

    Of a token beyond the table the first row. tokens: (B, T); x: (B, T, D), the embeddings; result: (B, T, L, W).
    """
    width, here = fields["width"], at.under("per_layer_input")
    rows = np.where(tokens < fields["vocab_size"], tokens, 0)  # (B, T)
    looked_up = here.table("embedding", fields["vocab_size"], layers * width).rows(rows)  # (B, T, L·W)
    made = here.linear("projection", x, layers * width, bias=False)  # (B, T, D) x (D, L·W)
    made = made.reshape(*tokens.shape, layers, width) * FLOAT(1 / math.sqrt(x.shape[-1]))  # (B, T, L, W)
    made = norm(norm_of, made, at, "per_layer_input_norm")  # (B, T, L, W)
    looked_up = looked_up.reshape(*tokens.shape, layers, width) * FLOAT(math.sqrt(width))  # (B, T, L, W)
    return (made + looked_up) * FLOAT(math.sqrt(0.5))


def per_layer_input(fields: Fields, x: Array, own: Array, at: Scope, *, norm_of: Fields) -> Array:
    """norm(activation(x W_gate) * own · W_projection), which a layer adds.

    x: (B, T, D); own: (B, T, W), this layer's; result: (B, T, D).
    """
    here = at.under("per_layer_input")
    activation = of_kind(ACTIVATIONS, fields["activation"], "activation")
    gate = activation(here.linear("gate", x, fields["width"], bias=False))  # (B, T, D) x (D, W)
    added = here.linear("projection", gate * own, x.shape[-1], bias=False)  # (B, T, W) x (W, D)
    return norm(norm_of, added, at, "per_layer_input_norm")

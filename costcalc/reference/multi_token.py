"""Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): modules beside a model that look further."""

from __future__ import annotations

import numpy as np

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.layer import layer
from costcalc.reference.norms import norm
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope, Table, Tape


def multi_token(fields: Fields, tokens: Array, x: Array, table: Table, tape: Tape, *, sight: Sight) -> None:
    """Of each module what a head would make logits of, one token further on than those of the one before it.

    Module k joins the hidden states of token i with the embedding of token i + k, so that the last k tokens have none.
    It is no part of the model's pass: of all that it does, only its parameters are on the tape, with a role of their
    own. Later passes of a request hold those and run nothing. tokens: (B, T); x: (B, T, D), the model's hidden states.
    What is made, (B, T - k, D), is on the tape.
    """
    modules, own = fields["multi_token"]["repeat"], Tape(tape.weights)
    starts = sight.start == 0
    for k in range(1, modules + 1):
        at = Scope(own, "multi_token")
        at = at.one_of(k - 1, modules) if modules > 1 else at
        rows = max(tokens.shape[1] - k, 0) if starts else 0
        further = tokens[:, k : k + rows]  # (B, T - k)
        x = _module(fields, further, x[:, :rows], table, at, latent=sight.latent)  # (B, T - k, D)
        tape.ahead += [x] if starts else []
    for path, (elements, _) in own.parameters.items():
        tape.allocated(path, elements, "extra")


def _module(fields: Fields, further: Array, x: Array, table: Table, at: Scope, *, latent: str | None) -> Array:
    """Equations 21 to 23: two norms side by side, a projection, one layer, the norm below a head.

    further: (B, T - k); x: (B, T - k, D); result: (B, T - k, D).
    """
    some, width = fields["multi_token"], fields["d_model"]
    if some["own_tables"]:  # published files hold copies of the model's
        table = at.table("embedding", fields["vocab_size"], width)
        at.table("head", fields["vocab_size"], width)
    words = table.rows(further) * FLOAT(fields["embedding"]["scale"])  # (B, T - k, D)
    parts = norm(some["norm"], x, at, "hidden_norm"), norm(some["norm"], words, at, "embedding_norm")
    joined = at.linear("projection", np.concatenate(parts, axis=-1), width, bias=False)  # (B, T - k, 2D) x (2D, D)
    y = layer(some["layer"], joined, at.under("layer"), sight=Sight(latent=latent))  # (B, T - k, D)
    return norm(some["norm"], y, at, "final_norm")

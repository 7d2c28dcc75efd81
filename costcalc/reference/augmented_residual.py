"""LAuReL, a learned augmented residual (arXiv 2411.07501, section 2.2), as Gemma-3n has it beside the attention."""

from __future__ import annotations

import math

from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.norms import norm
from costcalc.reference.tape import Scope


def augmented(fields: Fields, attended: Array, heard: Array, at: Scope, *, norm_of: Fields) -> Array:
    """(attended + h + norm(h W_down W_up)) / √2, where h is what the attention heard, and `attended` the sum behind it.

    attended, heard: (B, T, D); result: (B, T, D).
    """
    here = at.under("augmented_residual")
    low = here.linear("down", heard, fields["rank"], bias=False)  # (B, T, D) x (D, R)
    added = norm(norm_of, here.linear("up", low, heard.shape[-1], bias=False), at, "augmented_residual_norm")
    return (attended + heard + added) * FLOAT(math.sqrt(0.5))  # (B, T, D)

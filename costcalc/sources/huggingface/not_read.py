"""Text models of `transformers` that are not read, each with the reason: nothing is guessed."""

from __future__ import annotations

NOT_READ: dict[str, str] = {
    "blt": "its patches are cut where a model of bytes is surprised, so that their number is the text's own",
    "cpmant": "each pass has 32 rows of a prompt before the text, which are not described",
    "funnel": "its rows are pooled between blocks, so that layers see texts of several lengths, which is not described",
    "gemma4_unified_assistant": "its layers look at keys and values of another model, which is not described",
    "neomme": "its value embeddings, mixed with a first state, are not described",
    "perceiver": "its rows are latents that look at bytes, which is not described",
    "reformer": "its keys are met by hashes, which is not described",
}
"""model_type -> what of it is not described here."""

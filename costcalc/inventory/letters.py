"""The field's letters: what the axes of records and the symbols of formulas mean."""

LETTERS = {
    "B": "sequences of a batch",
    "T": "new tokens of a sequence",
    "p": "past tokens, cached already",
    "S": "tokens of a sequence (its context)",
    "P": "parameters",
    "M": "memory (encoder) tokens",
    "L": "layers that the line stands for",
    "D": "model width",
    "W": "embedding width",
    "N": "query heads",
    "K": "key/value heads",
    "H": "head size",
    "F": "feed-forward width",
    "V": "vocabulary",
    "length": "rows of the position table",
    "E": "experts",
    "X": "experts used per token",
    "R": "latent rank",
    "t": "tokens trained on",
    "P_non_embedding": "parameters without vocabulary and position tables",
    "P_layers": "weights of the layers' matrices",
    "P_matrices": "weights that multiply every token, the head's too",
    "bits": "bits a weight",
    "blocks": "blocks of the engine",
}
"""Letter -> meaning, in the order in which a legend lists them."""

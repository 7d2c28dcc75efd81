"""The configs that `record_long.py` records: a small one of each type, changes to it, and what the library refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

ENCODER: Config = {
    "vocab_size": 97,
    "hidden_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 53,
    "max_position_embeddings": 128,
    "pad_token_id": 1,
}
TYPES: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "fnet": (("FNetForMaskedLM", "FNetModel"), (16, 48)),
}
"""Type -> its classes, the usual one first, and the lengths of the passes of small models."""
SMALL: dict[str, Config] = {
    "fnet": {key: value for key, value in ENCODER.items() if key != "num_attention_heads"},
}
# Changes to the small config, `;` between cases; `class=` is another class than the usual one.
CASES = {
    "fnet": """
    num_hidden_layers=1; num_hidden_layers=5 vocab_size=53; tie_word_embeddings=false; class="FNetModel";
    hidden_size=35 intermediate_size=17; hidden_act="relu"; type_vocab_size=1; max_position_embeddings=48;
    tie_word_embeddings=false class="FNetModel" type_vocab_size=7; use_tpu_fourier_optimizations=false
    """,
}
# What the library will not build, or will not run.
REFUSED = {
    "fnet": """hidden_act="geluu"; hidden_size=null; type_vocab_size=null""",
}


def raw(model_type: str, case: str) -> Config:
    """A whole `config.json`: the small one with the changes of a case."""
    changes = dict(word.split("=", 1) for word in case.split())
    made = {key: json.loads(value) for key, value in changes.items()}
    name = made.pop("class", TYPES[model_type][0][0])
    return {"model_type": model_type, "architectures": [name], **SMALL[model_type], **made}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`; the small config itself comes first."""
    if model_type in CASES and text == CASES[model_type]:
        yield "small", raw(model_type, "")
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield case.replace(" ", ",").replace('"', ""), raw(model_type, case)

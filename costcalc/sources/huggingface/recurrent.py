"""What recurrent and hybrid lineages share: words for kinds of layers, old and new, and what states are stored in.

A lineage module states what differs in fields; nothing here looks at a model's name.
"""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, NO_POSITIONS, Written
from costcalc.sources.huggingface.sparse import words

LINEAR, HYBRID = "linear_attention", "hybrid"
"""Words of `layer_types`: a recurrent layer of whichever kind the class builds, and one of both kinds."""

OLD_WORDS = {"mamba": LINEAR, "attention": FULL}
"""What files from before transformers 5 call them."""

STATE_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def kinds_of_layers(config: Config, key: str, layers: int, known: tuple[str, ...]) -> list[str] | None:
    """A list of one known word a layer, old ones under their new names; None where the key is null or absent."""
    old = tuple(word for word, now in OLD_WORDS.items() if now in known)
    listed = words(config, key, layers, (*known, *old))
    return None if listed is None else [OLD_WORDS.get(word, word) for word in listed]


def either(*, attends: bool, attention: Written, mixer: Written, positions: Written) -> Written:
    """What a layer has of the two: attention with its positions, or a mixer, which has none."""
    return {"positions": positions, "attention": attention} if attends else {"positions": NO_POSITIONS, "mixer": mixer}


def state_dtype(config: Config, key: str) -> str:
    """Our name of what recurrent states are stored in: float32 where the key is null or absent."""
    value = config[key]
    if value is None:
        return "fp32"
    name = value.removeprefix("torch.") if isinstance(value, str) else value
    if not isinstance(name, str) or name not in STATE_DTYPES:
        what = f"`{key}` {shown(value)} is not a dtype of states that is read"
        raise config.refusal(what, f"one of: {', '.join(STATE_DTYPES)}", key)
    return STATE_DTYPES[name]


def agree(config: Config, **derived: object) -> None:
    """Refuse keys that say again what others say, where they say something else; null and absent are fine."""
    for key, value in derived.items():
        said = config[key]
        if said is not None and (type(said) is not type(value) or said != value):
            what = f"`{key}` is {shown(said)}, but by the other keys it is {shown(value)}"
            if isinstance(value, list):
                what = f"`{key}` is not what the other keys say"
            raise config.refusal(what, "take it out, or change what it does not agree with", key)

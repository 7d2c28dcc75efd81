"""The configs that `record_further_pairs.py` records: a small one of each type, changes to it, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

IDS: Config = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"), 1)
BOTH: Config = {
    "vocab_size": 97,
    "d_model": 42,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 7,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 41,
    "max_position_embeddings": 53,
    **IDS,
}
"""Sizes of BART's kin: small and odd."""

SMALL: dict[str, Config] = {
    "whisper": {
        **{key: value for key, value in BOTH.items() if key != "max_position_embeddings"},
        "max_target_positions": 53,
        "max_source_positions": 19,
    },
    "trocr": {key: value for key, value in BOTH.items() if not key.startswith("encoder")},
    "fsmt": {
        **{key: value for key, value in BOTH.items() if key != "vocab_size"},
        "src_vocab_size": 97,
        "tgt_vocab_size": 97,
        "forced_eos_token_id": 1,
    },
}
USUAL = {
    "whisper": "WhisperForCausalLM",
    "trocr": "TrOCRForCausalLM",
    "fsmt": "FSMTForConditionalGeneration",
}

SWITCHES_OF_BART = """
    decoder_layers=1; decoder_layers=3; decoder_ffn_dim=13 decoder_attention_heads=6;
    scale_embedding=true; scale_embedding=false activation_function="relu"; tie_word_embeddings=false;
    tie_word_embeddings=true vocab_size=53
"""
CASES = {
    "whisper": f"""{SWITCHES_OF_BART};
    max_target_positions=77; d_model=36 decoder_attention_heads=4; is_encoder_decoder=false;
    encoder_layers=7 encoder_ffn_dim=5 num_mel_bins=128; num_hidden_layers=5; max_source_positions=1500
    """,
    "trocr": f"""{SWITCHES_OF_BART};
    max_position_embeddings=77; use_learned_position_embeddings=false; layernorm_embedding=false;
    use_learned_position_embeddings=false layernorm_embedding=false scale_embedding=true;
    cross_attention_hidden_size=42; cross_attention_hidden_size=31; hidden_size=36 num_attention_heads=4;
    num_hidden_layers=3 tie_word_embeddings=false cross_attention_hidden_size=64 is_decoder=true
    """,
    "fsmt": """
    decoder_layers=1; encoder_layers=1 decoder_layers=3; decoder_ffn_dim=13 decoder_attention_heads=6;
    scale_embedding=false activation_function="gelu"; tie_word_embeddings=true; src_vocab_size=53;
    tgt_vocab_size=53 tie_word_embeddings=true src_vocab_size=53; vocab_size=61 src_vocab_size=23;
    max_position_embeddings=77 pad_token_id=3; class=FSMTModel; class=FSMTModel tie_word_embeddings=true;
    src_vocab_size=53 tie_word_embeddings=true; num_hidden_layers=2 hidden_size=36 encoder_attention_heads=4
    decoder_attention_heads=4
    """,
}
# What the library will not build, or will not run.
REFUSED = {
    "whisper": "decoder_attention_heads=5; max_target_positions=null",
    "trocr": "decoder_attention_heads=5; use_learned_position_embeddings=false pad_token_id=null",
    "fsmt": "decoder_attention_heads=5; pad_token_id=null; src_vocab_size=null",
}


# Other names of fields that cases use; each takes the place of the field's own.
NAMES = {
    "whisper": {"num_hidden_layers": "encoder_layers"},
    "trocr": {
        "hidden_size": "d_model",
        "num_hidden_layers": "decoder_layers",
        "num_attention_heads": "decoder_attention_heads",
    },
    "fsmt": {"hidden_size": "d_model", "num_hidden_layers": "encoder_layers", "vocab_size": "tgt_vocab_size"},
}


def raw(model_type: str, case: str) -> Config:
    """A whole `config.json`: the small one with the changes of a case."""
    changes = dict(word.split("=", 1) for word in case.split())
    named = changes.pop("class", USUAL[model_type])
    made = {key: json.loads(value) for key, value in changes.items()}
    named_otherwise = {NAMES.get(model_type, {}).get(key) for key in made}
    kept = {key: value for key, value in SMALL[model_type].items() if key not in named_otherwise}
    return {"model_type": model_type, "architectures": [named], **kept, **made}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield case.replace(" ", ",").replace('"', ""), raw(model_type, case)

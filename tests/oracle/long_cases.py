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
    "longformer": (("LongformerForMaskedLM", "LongformerModel"), (16, 48)),
    "led": (("LEDForConditionalGeneration", "LEDModel"), (16, 48)),
    "big_bird": (("BigBirdForMaskedLM", "BigBirdModel", "BigBirdForCausalLM"), (16, 48, 67)),
    "bigbird_pegasus": (
        ("BigBirdPegasusForConditionalGeneration", "BigBirdPegasusModel", "BigBirdPegasusForCausalLM"),
        (16, 48, 67),
    ),
    "longt5": (("LongT5ForConditionalGeneration", "LongT5Model", "LongT5EncoderModel"), (16, 48)),
    "pegasus_x": (("PegasusXForConditionalGeneration", "PegasusXModel"), (16, 48)),
    "nystromformer": (("NystromformerForMaskedLM", "NystromformerModel"), (16, 48)),
    "yoso": (("YosoForMaskedLM", "YosoModel"), (16, 48)),
    "mra": (("MraForMaskedLM", "MraModel"), ()),
}
"""Type -> its classes, the usual one first, and the lengths of the passes of small models."""
PAIR: Config = {
    "vocab_size": 97,
    "d_model": 36,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 53,
    "decoder_ffn_dim": 41,
}
SMALL: dict[str, Config] = {
    "nystromformer": {**ENCODER, "conv_kernel_size": 5},
    "mra": ENCODER,
    "yoso": {**ENCODER, "conv_window": None},
    "longformer": {**ENCODER, "attention_window": 8},
    "led": {
        **PAIR,
        "max_encoder_position_embeddings": 96,
        "max_decoder_position_embeddings": 80,
        "attention_window": 8,
    },
    "big_bird": {**ENCODER, "block_size": 4, "num_random_blocks": 2},
    "bigbird_pegasus": {**PAIR, "max_position_embeddings": 96, "block_size": 4, "num_random_blocks": 2},
    "longt5": {
        **{"vocab_size": 97, "d_model": 36, "d_kv": 7, "d_ff": 53, "num_layers": 2, "num_decoder_layers": 3},
        **{"num_heads": 5, "local_radius": 4, "global_block_size": 3},
    },
    "pegasus_x": {**PAIR, "block_size": 8, "num_global_tokens": 3},
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
BIG_BIRD = """
    num_random_blocks=1; num_random_blocks=3 block_size=2; block_size=64;
    block_size=5 num_random_blocks=1; attention_type="original_full"
"""
CASES |= {
    "longformer": """
    num_hidden_layers=1; num_hidden_layers=3 vocab_size=53; tie_word_embeddings=false; class="LongformerModel";
    attention_window=[4,8]; attention_window=[4,8,8] num_hidden_layers=3; attention_window=4; attention_window=12;
    attention_window=64; hidden_size=42 intermediate_size=17 hidden_act="relu"; type_vocab_size=1; pad_token_id=0;
    max_position_embeddings=67; tie_word_embeddings=false class="LongformerModel"; onnx_export=true
    """,
    "led": """
    encoder_layers=1; decoder_layers=1 vocab_size=53; class="LEDModel"; attention_window=[4,8]; attention_window=6;
    attention_window=[8,4,8] encoder_layers=3; attention_window=64; d_model=24 activation_function="relu";
    encoder_attention_heads=1 decoder_attention_heads=9; max_encoder_position_embeddings=64
    """,
    "big_bird": f"""{BIG_BIRD};
    num_hidden_layers=1; num_hidden_layers=3 vocab_size=53; tie_word_embeddings=false; class="BigBirdModel";
    use_bias=false; rescale_embeddings=true; class="BigBirdForCausalLM"; class="BigBirdForCausalLM" is_decoder=true;
    class="BigBirdForCausalLM" is_decoder=true add_cross_attention=true use_bias=false; type_vocab_size=5;
    class="BigBirdForCausalLM" is_decoder=true attention_type="original_full"; hidden_act="relu" hidden_size=42
    """,
    "bigbird_pegasus": f"""{BIG_BIRD};
    encoder_layers=1; decoder_layers=1 vocab_size=53; class="BigBirdPegasusModel"; use_bias=true;
    class="BigBirdPegasusForCausalLM" decoder_layers=2;
    class="BigBirdPegasusForCausalLM" decoder_layers=2 use_bias=true; scale_embedding=false;
    class="BigBirdPegasusForCausalLM" decoder_layers=2 tie_word_embeddings=false; d_model=24 activation_function="relu"
    """,
    "longt5": """
    num_layers=1; num_decoder_layers=1 vocab_size=53; num_decoder_layers=null; class="LongT5Model";
    class="LongT5EncoderModel"; encoder_attention_type="transient-global"; local_radius=1; local_radius=31;
    encoder_attention_type="transient-global" global_block_size=16;
    encoder_attention_type="transient-global" global_block_size=17 local_radius=7;
    encoder_attention_type="transient-global" class="LongT5EncoderModel" global_block_size=1;
    encoder_attention_type="transient-global" global_block_size=50; feed_forward_proj="gated-gelu";
    relative_attention_num_buckets=12 relative_attention_max_distance=40 encoder_attention_type="transient-global"
    """,
    "pegasus_x": """
    encoder_layers=1; encoder_layers=5 decoder_layers=1 vocab_size=53; class="PegasusXModel"; block_size=4;
    block_size=64; num_global_tokens=2; stagger_local_blocks=false; stagger_local_blocks=false block_size=7;
    scale_embedding=false; d_model=24 activation_function="relu"; encoder_layers=4
    """,
}
CASES |= {
    "nystromformer": """
    num_hidden_layers=1; num_hidden_layers=3 vocab_size=53; tie_word_embeddings=false; class="NystromformerModel";
    conv_kernel_size=65; conv_kernel_size=1; type_vocab_size=1 hidden_act="relu"; hidden_size=42;
    segment_means_seq_len=128 num_landmarks=128; max_position_embeddings=48;
    class="NystromformerForSequenceClassification" num_labels=5; class="NystromformerForTokenClassification";
    class="NystromformerForQuestionAnswering"
    """,
    "yoso": """
    num_hidden_layers=1; num_hidden_layers=3 vocab_size=53; tie_word_embeddings=false; class="YosoModel";
    conv_window=5; conv_window=33; type_vocab_size=3 hidden_act="relu"; hidden_size=42; max_position_embeddings=48;
    hash_code_len=5 num_hash=7 use_fast_hash=false lsh_backward=false; class="YosoForQuestionAnswering";
    class="YosoForSequenceClassification" num_labels=5; class="YosoForTokenClassification" num_labels=3
    """,
}
CASES["mra"] = """
    num_hidden_layers=1; num_hidden_layers=3 vocab_size=53; tie_word_embeddings=false; class="MraModel"; hidden_size=42;
    approx_mode="sparse" block_per_row=1; type_vocab_size=3 hidden_act="relu"; class="MraForQuestionAnswering";
    initial_prior_first_n_blocks=1 initial_prior_diagonal_n_blocks=2; class="MraForTokenClassification";
    class="MraForSequenceClassification" num_labels=5
"""
for _type, _stem in (("fnet", "FNet"), ("longformer", "Longformer"), ("big_bird", "BigBird")):
    _more = [f'class="{_stem}ForSequenceClassification" num_labels=5', f'class="{_stem}ForTokenClassification"']
    CASES[_type] += "; " + "; ".join(_more + ['class="FNetForQuestionAnswering"'] * (_type == "fnet"))
# What the library will not build, or will not run.
REFUSED = {
    "nystromformer": """hidden_size=37; hidden_act="geluu"; conv_kernel_size=4; num_landmarks=null;
    conv_kernel_size=null""",
    "mra": """hidden_size=37; hidden_act="geluu" """,
    "yoso": """hidden_size=37; hidden_act="geluu"; conv_window=4""",
    "longformer": """attention_window=7; attention_window=0; attention_window=[8]; hidden_size=37; hidden_act="geluu";
    attention_window=[4,6]; attention_window=null""",
    "led": "attention_window=7; attention_window=0; attention_window=[8]; attention_window=[4,6]; d_model=37",
    "big_bird": """hidden_size=37; attention_type="full"; add_cross_attention=true; hidden_act="geluu"; block_size=0""",
    "bigbird_pegasus": """d_model=37; attention_type="full"; decoder_attention_heads=5; block_size=0""",
    "longt5": """encoder_attention_type="global"; feed_forward_proj="gated"; local_radius=null""",
    "pegasus_x": "d_model=37; block_size=7; block_size=0",
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

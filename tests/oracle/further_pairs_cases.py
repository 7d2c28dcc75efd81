"""The configs that `record_further_pairs.py` records: a small one of each type, changes to it, and what is refused."""

from __future__ import annotations

import copy
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

OF_BERT: Config = {
    "vocab_size": 97,
    "hidden_size": 42,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 37,
    "max_position_embeddings": 53,
    **IDS,
}
OF_GEMMA: Config = {
    "vocab_size": 97,
    "hidden_size": 42,
    "intermediate_size": 37,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 10,
    "sliding_window": 64,
}
OF_IMAGES: Config = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}
ASKING: Config = {"is_decoder": True, "add_cross_attention": True}
SEAMLESS: Config = {
    **{"hidden_size" if key == "d_model" else key: value for key, value in BOTH.items()},
    "speech_encoder_layers": 1,
    "speech_encoder_attention_heads": 2,
    "t2u_encoder_layers": 1,
    "t2u_decoder_layers": 1,
}

SMALL: dict[str, Config] = {
    "whisper": {
        **{key: value for key, value in BOTH.items() if key != "max_position_embeddings"},
        "max_target_positions": 53,
        "max_source_positions": 19,
    },
    "trocr": {key: value for key, value in BOTH.items() if not key.startswith("encoder")},
    "encoder-decoder": {},
    "seamless_m4t": {**SEAMLESS, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2},
    "seamless_m4t_v2": SEAMLESS,
    "switch_transformers": {
        "vocab_size": 97,
        "d_model": 42,
        "d_kv": 5,
        "d_ff": 37,
        "num_layers": 4,
        "num_decoder_layers": 3,
        "num_heads": 6,
        "num_experts": 5,
        "num_sparse_encoder_layers": 2,
        "num_sparse_decoder_layers": 1,
        "relative_attention_num_buckets": 7,
    },
    "prophetnet": {
        "vocab_size": 97,
        "hidden_size": 42,
        "num_encoder_layers": 3,
        "num_decoder_layers": 2,
        "num_encoder_attention_heads": 6,
        "num_decoder_attention_heads": 7,
        "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 41,
        "max_position_embeddings": 83,
    },
    "t5gemma2": {
        "encoder": {"text_config": OF_GEMMA, "vision_config": OF_IMAGES},
        "decoder": {**OF_GEMMA, "num_hidden_layers": 2},
    },
    "t5gemma": {"encoder": OF_GEMMA, "decoder": {**OF_GEMMA, "num_hidden_layers": 2}},
    "nllb-moe": {**BOTH, "encoder_layers": 4, "num_experts": 5, "encoder_sparse_step": 2, "decoder_sparse_step": 2},
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
    "encoder-decoder": "EncoderDecoderModel",
    "seamless_m4t": "SeamlessM4TForTextToText",
    "seamless_m4t_v2": "SeamlessM4Tv2ForTextToText",
    "switch_transformers": "SwitchTransformersForConditionalGeneration",
    "nllb-moe": "NllbMoeForConditionalGeneration",
    "t5gemma": "T5GemmaForConditionalGeneration",
    "t5gemma2": "T5Gemma2ForConditionalGeneration",
    "prophetnet": "ProphetNetForConditionalGeneration",
}
SIDES: dict[str, Config] = {
    "images-and-text": {
        "text_config": {
            **OF_GEMMA,
            "num_hidden_layers": 8,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "head_dim": 8,
            "intermediate_size": 23,
            "attention_bias": True,
        },
        "vision_config": OF_IMAGES,
    },
    "bert": {"model_type": "bert", **OF_BERT},
    "wide": {"model_type": "bert", **OF_BERT, "hidden_size": 36, "num_attention_heads": 4},
    "roberta": {"model_type": "roberta", **OF_BERT, "pad_token_id": 1, "type_vocab_size": 1},
    "electra": {"model_type": "electra", **OF_BERT, "embedding_size": 13},
    "albert": {"model_type": "albert", **OF_BERT, "embedding_size": 13, "inner_group_num": 1},
    "distilbert": {
        "model_type": "distilbert",
        **IDS,
        "vocab_size": 61,
        "dim": 36,
        "n_heads": 4,
        "n_layers": 3,
        "hidden_dim": 37,
        "max_position_embeddings": 53,
    },
    "generation": {"model_type": "bert-generation", **OF_BERT},
    "asking": {"model_type": "bert", **OF_BERT, **ASKING},
    "asking-roberta": {"model_type": "roberta", **OF_BERT, **ASKING, "pad_token_id": 1, "type_vocab_size": 1},
    "asking-generation": {"model_type": "bert-generation", **OF_BERT, **ASKING},
    "gpt2": {
        "model_type": "gpt2",
        "add_cross_attention": True,
        "vocab_size": 83,
        "n_embd": 42,
        "n_head": 6,
        "n_layer": 2,
        "n_positions": 53,
    },
    "plain-gpt2": {"model_type": "gpt2", "vocab_size": 83, "n_embd": 42, "n_head": 6, "n_layer": 2},
    "bart": {"model_type": "bart", **BOTH, "forced_eos_token_id": 1},
    "trocr": {"model_type": "trocr", **{key: value for key, value in BOTH.items() if not key.startswith("encoder")}},
}
"""Models that may be one half of another."""

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
CASES |= {
    "encoder-decoder": """
    encoder=@bert decoder=@asking; encoder=@bert decoder=@asking decoder.vocab_size=53 encoder.num_hidden_layers=3;
    encoder=@wide decoder=@asking; encoder=@bert decoder=@gpt2; encoder=@roberta decoder=@asking-roberta;
    encoder=@electra decoder=@gpt2; encoder=@albert decoder=@asking-roberta; encoder=@distilbert decoder=@gpt2;
    encoder=@generation decoder=@asking-generation; encoder=@bert decoder=@bart; encoder=@wide decoder=@trocr;
    encoder=@wide decoder=@trocr decoder.cross_attention_hidden_size=36; encoder=@bert encoder.is_decoder=false;
    encoder=@wide decoder=@asking decoder.tie_word_embeddings=false;
    tie_word_embeddings=false encoder=@bert decoder=@gpt2; encoder=@bert decoder=@asking decoder.type_vocab_size=3;
    encoder=@bert decoder=@gpt2 decoder.tie_word_embeddings=false
    """,
    **dict.fromkeys(
        ("seamless_m4t", "seamless_m4t_v2"),
        f"""{SWITCHES_OF_BART};
    encoder_layers=1 encoder_ffn_dim=13; encoder_attention_heads=7 max_position_embeddings=77; num_hidden_layers=3;
    layer_norm_eps=1e-6 speech_encoder_layers=2 t2u_encoder_ffn_dim=5
    """,
    ),
    "switch_transformers": """
    num_layers=1; num_layers=6 num_sparse_encoder_layers=3; num_layers=5 num_sparse_encoder_layers=5;
    num_sparse_encoder_layers=0; num_sparse_decoder_layers=0 num_sparse_encoder_layers=1; num_decoder_layers=null;
    num_sparse_decoder_layers=7; encoder_sparse_step=1; encoder_sparse_step=3 decoder_sparse_step=0; router_bias=true;
    num_experts=1; num_experts=7 d_ff=13; tie_word_embeddings=false; dense_act_fn="gelu" vocab_size=53;
    d_kv=7 num_heads=3;
    class=SwitchTransformersModel; class=SwitchTransformersEncoderModel; num_hidden_layers=3;
    class=SwitchTransformersEncoderModel tie_word_embeddings=false; num_hidden_layers=5 num_decoder_layers=null;
    class=SwitchTransformersModel tie_word_embeddings=false; relative_attention_num_buckets=16 router_dtype="bfloat16";
    expert_capacity=128 router_jitter_noise=0.1 add_router_probs=true
    """,
    "prophetnet": """
    num_decoder_layers=1 decoder_ffn_dim=13; num_encoder_layers=1 encoder_ffn_dim=13; ngram=1; ngram=3; num_buckets=8;
    num_buckets=17 relative_max_distance=64; max_position_embeddings=64; vocab_size=53 activation_function="relu";
    num_decoder_attention_heads=6 num_encoder_attention_heads=7; hidden_size=36 num_decoder_attention_heads=4;
    tie_word_embeddings=false; class=ProphetNetModel; class=ProphetNetModel tie_word_embeddings=false;
    class=ProphetNetForCausalLM; class=ProphetNetForCausalLM tie_word_embeddings=false ngram=3;
    class=ProphetNetForCausalLM add_cross_attention=false num_encoder_layers=7; disable_ngram_loss=true eps=0.1;
    class=ProphetNetForCausalLM num_decoder_layers=3 num_buckets=5 num_attention_heads=5
    """,
    "t5gemma2": """
    decoder.num_hidden_layers=7; decoder.num_hidden_layers=1 decoder.num_key_value_heads=6; decoder.attention_bias=true;
    decoder.intermediate_size=41 decoder.head_dim=14; decoder.final_logit_softcapping=30.0; decoder.sliding_window=96;
    encoder=@images-and-text;
    tie_word_embeddings=false; class=T5Gemma2Model; class=T5Gemma2Model tie_word_embeddings=false; vocab_size=61;
    decoder.tie_word_embeddings=false; decoder.sliding_window_pattern=2;
    decoder.layer_types=["full_attention","full_attention"]
    """,
    "t5gemma": """
    decoder.num_hidden_layers=5 encoder.num_hidden_layers=1; encoder.hidden_size=60 encoder.intermediate_size=41;
    decoder.hidden_size=36 decoder.num_attention_heads=4; encoder.num_key_value_heads=6 decoder.num_key_value_heads=1;
    tie_word_embeddings=false; encoder.vocab_size=53; decoder.vocab_size=53 vocab_size=61; encoder.attention_bias=true;
    decoder.attention_bias=true decoder.attn_logit_softcapping=null decoder.final_logit_softcapping=null;
    encoder.sliding_window=8 decoder.sliding_window=64; decoder.layer_types=["full_attention","full_attention"];
    encoder.head_dim=14 decoder.head_dim=8; class=T5GemmaModel; class=T5GemmaModel tie_word_embeddings=false;
    class=T5GemmaEncoderModel is_encoder_decoder=false; encoder.tie_word_embeddings=false decoder.rope_theta=5e4;
    decoder.tie_word_embeddings=false; dropout_rate=0.1 decoder.query_pre_attn_scalar=144
    """,
    "nllb-moe": f"""{SWITCHES_OF_BART};
    encoder_sparse_step=1 decoder_sparse_step=0; encoder_sparse_step=3; num_experts=2; router_bias=true;
    class=NllbMoeModel; class=NllbMoeModel tie_word_embeddings=false; encoder_layers=1 encoder_ffn_dim=13;
    expert_capacity=1 moe_token_dropout=0.0 batch_prioritized_routing=true; num_hidden_layers=2
    """,
}
# What the library will not build, or will not run.
REFUSED = {
    "whisper": "decoder_attention_heads=5; max_target_positions=null",
    "trocr": "decoder_attention_heads=5; use_learned_position_embeddings=false pad_token_id=null",
    "fsmt": "decoder_attention_heads=5; pad_token_id=null; src_vocab_size=null",
    "encoder-decoder": """
    encoder=@bert decoder=@plain-gpt2; encoder=@bert decoder=@bert; encoder=@wide decoder=@trocr
    decoder.cross_attention_hidden_size=37; encoder=@bart decoder=@gpt2
    """,
    "seamless_m4t": "decoder_attention_heads=5; encoder_ffn_dim=null",
    "seamless_m4t_v2": "decoder_attention_heads=5; encoder_ffn_dim=null",
    "switch_transformers": "num_experts=0; num_layers=null",
    "prophetnet": "num_decoder_attention_heads=5; pad_token_id=null; add_cross_attention=false; ngram=0",
    "t5gemma2": """
    decoder.hidden_size=48; decoder.vocab_size=53; is_encoder_decoder=false; decoder.num_attention_heads=5
    """,
    "t5gemma": """
    class=T5GemmaEncoderModel; class=T5GemmaModel is_encoder_decoder=false; encoder.num_attention_heads=5;
    decoder.sliding_window=null
    """,
    "nllb-moe": "decoder_attention_heads=5; num_experts=0",
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
    "prophetnet": {"num_attention_heads": "num_encoder_attention_heads"},
    "seamless_m4t": {"num_hidden_layers": "decoder_layers"},
    "seamless_m4t_v2": {"num_hidden_layers": "decoder_layers"},
    "switch_transformers": {"num_hidden_layers": "num_layers"},
    "nllb-moe": {"num_hidden_layers": "encoder_layers"},
}


TELLING = {
    **dict.fromkeys(("bart", "mbart", "mvp"), ("ForSequenceClassification", "ForQuestionAnswering")),
    "plbart": ("ForSequenceClassification",),
    **dict.fromkeys(
        ("t5", "mt5", "umt5"), ("ForSequenceClassification", "ForQuestionAnswering", "ForTokenClassification")
    ),
}
"""Classes of the pairs of `record_pairs.py` that tell labels: how their names end."""
LABELS: tuple[Config, ...] = ({}, {"num_labels": 5}, {"id2label": {"0": "a", "1": "b", "2": "c"}})


def telling(stems: dict[str, str]) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case of those classes. The ends of an answer are two, whatever is said."""
    of_t5 = {key: SMALL["switch_transformers"][key] for key in ("vocab_size", "d_model", "d_kv", "d_ff", "num_heads")}
    for model_type, endings in TELLING.items():
        sizes = {**BOTH, "forced_eos_token_id": 1} if "t5" not in model_type else {**of_t5, "num_layers": 2}
        for ending in endings:
            named = f"{stems[model_type]}{ending}"
            for said in (*LABELS, {"tie_word_embeddings": False}):
                if ending == "ForQuestionAnswering" and (said.keys() & {"num_labels", "id2label"}):
                    continue
                name = ",".join(f"{key}={len(v) if isinstance(v, dict) else v}" for key, v in said.items()) or "plain"
                config = {"model_type": model_type, "architectures": [named], **sizes, **said}
                yield f"{model_type}/{named}/{name}", config


def raw(model_type: str, case: str) -> Config:
    """A whole `config.json`: the small one with the changes of a case."""
    changes = dict(word.split("=", 1) for word in case.split())
    named = changes.pop("class", USUAL[model_type])
    made: Config = {}
    for key, value in changes.items():
        outer, dot, inner = key.partition(".")
        found = copy.deepcopy(SIDES[value[1:]]) if value.startswith("@") else json.loads(value)
        if dot:
            made.setdefault(outer, copy.deepcopy(SMALL[model_type].get(outer, {})))[inner] = found
        else:
            made[key] = found
    named_otherwise = {NAMES.get(model_type, {}).get(key) for key in made}
    kept = {key: value for key, value in SMALL[model_type].items() if key not in named_otherwise}
    return {"model_type": model_type, "architectures": [named], **kept, **made}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield case.replace(" ", ",").replace('"', ""), raw(model_type, case)

"""The configs that `record_bert_kin.py` records: of each type a small one, changes to it, and what the library refuses.

In a case `class=` is what follows the stem in the name of a class; where it is not written, the first of a type's is
meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Config = dict[str, Any]

SIZES: Config = {
    "vocab_size": 97,
    "hidden_size": 42,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 61,
    "max_position_embeddings": 67,
}
XLM: Config = {"vocab_size": 97, "emb_dim": 42, "n_layers": 3, "n_heads": 3, "max_position_embeddings": 67}
STEMS = {
    "rembert": "RemBert",
    "roc_bert": "RoCBert",
    "roformer": "RoFormer",
    "ibert": "IBert",
    "layoutlm": "LayoutLM",
    "tapas": "Tapas",
    "luke": "Luke",
    "mpnet": "MPNet",
    "xlm": "XLM",
    "flaubert": "Flaubert",
    "esmc": "Esmc",
    "gte": "Gte",
    "ultrabert": "Ultrabert",
    "deberta": "Deberta",
    "deberta-v2": "DebertaV2",
    "squeezebert": "SqueezeBert",
    "convbert": "ConvBert",
    "xlnet": "XLNet",
    "xmod": "Xmod",
    "mobilebert": "MobileBert",
}
USUAL = {"xlnet": "LMHeadModel", "xlm": "WithLMHeadModel", "flaubert": "WithLMHeadModel"}
"""The first class of a type, where that is not ForMaskedLM."""
SMALL: dict[str, Config] = {
    **dict.fromkeys(STEMS, SIZES),
    "rembert": {**SIZES, "input_embedding_size": 17, "output_embedding_size": 29},
    "roc_bert": {
        **SIZES,
        "pronunciation_embed_dim": 11,
        "pronunciation_vocab_size": 23,
        "shape_embed_dim": 7,
        "shape_vocab_size": 31,
    },
    "layoutlm": {**SIZES, "max_2d_position_embeddings": 53},
    "luke": {**SIZES, "entity_vocab_size": 31, "entity_emb_size": 17},
    "xlm": XLM,
    "flaubert": XLM,
    "deberta": {**SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False},
    "deberta-v2": {
        **SIZES,
        "relative_attention": True,
        "pos_att_type": "p2c|c2p",
        "position_biased_input": False,
        "position_buckets": 8,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
    },
    "squeezebert": {
        **SIZES,
        "embedding_size": 42,
        "intermediate_size": 60,
        **dict.fromkeys(("q_groups", "k_groups", "v_groups", "intermediate_groups", "output_groups"), 2),
    },
    "xmod": {**SIZES, "languages": ["en_XX", "de_DE", "fr_XX"], "default_language": "de_DE"},
    "mobilebert": {**SIZES, "embedding_size": 17, "intra_bottleneck_size": 30, "num_feedforward_networks": 3},
    "xlnet": {"vocab_size": 97, "d_model": 42, "n_layer": 3, "n_head": 3, "d_inner": 61},
    "convbert": {**SIZES, "embedding_size": 17, "num_attention_heads": 6, "conv_kernel_size": 5},
    "ultrabert": {**SIZES, "sliding_window": 3, "prediction_head_size": 23},
}

COMMON = """
    num_hidden_layers=1; num_hidden_layers=7 tie_word_embeddings=false; tie_word_embeddings=true; class=Model;
    class=Model tie_word_embeddings=false; vocab_size=1009; intermediate_size=3; num_attention_heads=1;
    hidden_size=64 num_attention_heads=4 max_position_embeddings=77
"""
RELU = '; hidden_act="relu"'
BERT = f"{COMMON}; type_vocab_size=1; type_vocab_size=7; pad_token_id=3"
CAUSAL = """;
    class=ForCausalLM; class=ForCausalLM is_decoder=true; class=ForCausalLM is_decoder=true add_cross_attention=true;
    class=ForCausalLM is_decoder=true tie_word_embeddings=false
"""
XLMS = """
    n_layers=1; n_layers=7 tie_word_embeddings=false; tie_word_embeddings=true; class=Model; emb_dim=60 n_heads=4;
    class=Model tie_word_embeddings=false; vocab_size=1009; n_heads=1; gelu_activation=false; n_langs=5; causal=true;
    n_langs=5 use_lang_emb=false; sinusoidal_embeddings=true; n_langs=2 class=Model max_position_embeddings=77;
    hidden_size=60 num_attention_heads=6 num_hidden_layers=2; sinusoidal_embeddings=true n_langs=7
"""
LLAMAS = """; attention_bias=true; mlp_bias=true; attention_bias=true mlp_bias=true hidden_act="relu" class=Model"""
DEBERTAS = """;
    relative_attention=false norm_rel_ebd="none"; pos_att_type=["c2p"]; pos_att_type="p2c"; pos_att_type=null;
    position_biased_input=true; max_relative_positions=5; max_relative_positions=5 position_biased_input=true;
    type_vocab_size=2; legacy=false; legacy=false tie_word_embeddings=false; legacy=false class=Model;
    relative_attention=false position_biased_input=true norm_rel_ebd="none" type_vocab_size=3 legacy=false
"""
CASES = {
    "rembert": f"""{BERT}{RELU}{CAUSAL}; input_embedding_size=42; output_embedding_size=42;
    input_embedding_size=29 tie_word_embeddings=true; input_embedding_size=7 output_embedding_size=3 class=ForCausalLM
    """,
    "roc_bert": f"""{BERT}{RELU}{CAUSAL}; enable_shape=false; enable_pronunciation=false; concat_input=false;
    enable_shape=false enable_pronunciation=false; shape_embed_dim=1 pronunciation_vocab_size=4;
    enable_shape=false enable_pronunciation=false tie_word_embeddings=false class=Model;
    concat_input=false shape_embed_dim=42 pronunciation_embed_dim=42 class=ForCausalLM is_decoder=true
    """,
    "roformer": f"""{BERT}{RELU}{CAUSAL}; rotary_value=true; embedding_size=17; embedding_size=42; embedding_size=null;
    embedding_size=17 tie_word_embeddings=false; embedding_size=61 class=Model; rotary_value=true embedding_size=5
    class=ForCausalLM is_decoder=true; max_position_embeddings=131
    """,
    "ibert": f'{BERT}; max_position_embeddings=131 pad_token_id=0; force_dequant="gelu"; quant_mode=false',
    "layoutlm": f"{BERT}{RELU}; max_2d_position_embeddings=7; max_2d_position_embeddings=1024 type_vocab_size=3",
    "tapas": f"""{COMMON}{RELU}; type_vocab_sizes=[3,5,7,2,11,13,4]; type_vocab_sizes=[2,3,4]; num_aggregation_labels=4;
    reset_position_index_per_cell=false; type_vocab_sizes=[3,256,256,2,256,256,10] max_position_embeddings=512
    """,
    "luke": f"""{BERT}{RELU}; entity_vocab_size=7; entity_emb_size=42; use_entity_aware_attention=false;
    entity_emb_size=3 entity_vocab_size=500 class=Model; use_entity_aware_attention=false class=Model type_vocab_size=1;
    tie_word_embeddings=false entity_emb_size=42 type_vocab_size=3
    """,
    "mpnet": f"{COMMON}{RELU}; max_position_embeddings=131; relative_attention_num_buckets=64; pad_token_id=0",
    "xlm": XLMS,
    "flaubert": f"{XLMS}; pre_norm=true; pre_norm=true n_langs=3 class=Model; layerdrop=0.3",
    "esmc": f"""{COMMON}{LLAMAS}; num_key_value_heads=3; head_dim=14; head_dim=null num_key_value_heads=null;
    rope_theta=5e4; rope_parameters={{"rope_type":"default","rope_theta":7e4}}
    """,
    "gte": f"""{BERT}{RELU}; type_vocab_size=0; rope_theta=5e4; head_dim=6 num_attention_heads=5;
    rope_parameters={{"rope_type":"default","rope_theta":7e4}}; head_dim=10; type_vocab_size=0 class=Model
    """,
    "deberta": f"""{COMMON}{RELU}{DEBERTAS}; max_relative_positions=64 pos_att_type=["p2c"]; talking_head=false""",
    "deberta-v2": f"""{COMMON}{RELU}{DEBERTAS}; share_att_key=false; share_att_key=false pos_att_type="c2p";
    share_att_key=false pos_att_type="p2c" norm_rel_ebd="none"; position_buckets=-1; position_buckets=40;
    position_buckets=-1 max_relative_positions=5; position_buckets=12 max_relative_positions=96; norm_rel_ebd="none";
    conv_kernel_size=3; conv_kernel_size=5 conv_act="gelu" conv_groups=7; conv_kernel_size=1 num_hidden_layers=1;
    conv_kernel_size=3 class=Model relative_attention=false norm_rel_ebd="none"; conv_kernel_size=0 conv_act="gelu";
    share_att_key=true relative_attention=false norm_rel_ebd="none"; position_buckets=2; attention_head_size=14
    """,
    "squeezebert": f"""{COMMON.replace("hidden_size=64", "embedding_size=64 hidden_size=64")}{RELU};
    q_groups=3 v_groups=1; k_groups=6 output_groups=3; post_attention_groups=7 intermediate_groups=6; type_vocab_size=7;
    q_groups=1 k_groups=1 v_groups=1 intermediate_groups=1 output_groups=1
    """.replace("intermediate_size=3;", "intermediate_size=62;"),
    "convbert": f"""{COMMON}{RELU}; embedding_size=42; embedding_size=5 class=Model; head_ratio=1 num_attention_heads=7;
    head_ratio=9; conv_kernel_size=1; conv_kernel_size=9 num_groups=3 intermediate_size=60; num_groups=1;
    num_groups=7 intermediate_size=70 embedding_size=42 tie_word_embeddings=false; type_vocab_size=5 pad_token_id=0
    """,
    "xmod": f"""{BERT}{RELU}{CAUSAL}; pre_norm=true; adapter_layer_norm=true; adapter_reuse_layer_norm=false;
    ln_before_adapter=false; pre_norm=true adapter_layer_norm=true ln_before_adapter=false adapter_reduction_factor=4;
    languages=["de_DE"]; adapter_reduction_factor=1; adapter_reduction_factor=5 adapter_reuse_layer_norm=false;
    pre_norm=true class=ForCausalLM is_decoder=true languages=["de_DE","en_XX"]; pre_norm=true class=Model
    """,
    "mobilebert": f"""{COMMON.replace("hidden_size=64", "intra_bottleneck_size=64 hidden_size=64")};
    hidden_act="gelu"; trigram_input=false; embedding_size=42; intra_bottleneck_size=42; num_feedforward_networks=1;
    use_bottleneck=false; use_bottleneck=false trigram_input=false normalization_type="layer_norm";
    use_bottleneck_attention=true; use_bottleneck_attention=true key_query_shared_bottleneck=false;
    key_query_shared_bottleneck=false intra_bottleneck_size=42; normalization_type="layer_norm"; type_vocab_size=5;
    num_feedforward_networks=7 embedding_size=3 tie_word_embeddings=false; classifier_activation=false class=Model;
    normalization_type="layer_norm" use_bottleneck_attention=true class=Model
    """,
    "xlnet": """
    n_layer=1; n_layer=7 tie_word_embeddings=false; tie_word_embeddings=true; class=Model; vocab_size=1009; d_inner=3;
    n_head=1; d_model=60 n_head=4; class=Model tie_word_embeddings=false; d_head=14; mem_len=null; clamp_len=5;
    ff_activation="relu"; same_length=true; n_head=21
    """,
    "ultrabert": f"""{COMMON}{LLAMAS}; num_key_value_heads=1; head_dim=10 num_attention_heads=4 hidden_size=44;
    sliding_window=8; layer_types=FSS; layer_types=SSS sliding_window=1; layer_types=FFF; prediction_head_size=42;
    prediction_head_size=1 tie_word_embeddings=true; attention_windows=[0,5,5]; num_hidden_layers=5 sliding_window=64;
    num_key_value_heads=null head_dim=null; attention_windows=[7,0,7] class=Model; rope_theta=[1e4,1e4,5e5];
    rope_parameters={{"full_attention":{{"rope_theta":7e4}},"sliding_attention":{{"rope_theta":1e4}}}}
    """,
}
# What the library will not build, or will not run.
_BERT = 'hidden_size=43; hidden_act="geluu"; num_attention_heads=0'
_DECODER = f"{_BERT}; add_cross_attention=true; class=ForCausalLM add_cross_attention=true"
REFUSED = {
    **dict.fromkeys(STEMS, _BERT),
    "rembert": _DECODER,
    "roc_bert": _DECODER,
    "roformer": 'add_cross_attention=true; hidden_act="geluu"; num_attention_heads=0',
    "ibert": f'{_BERT}; hidden_act="relu"',
    "mpnet": f"{_BERT}; relative_attention_num_buckets=17",
    "xlm": "emb_dim=43; is_encoder=false; n_heads=0",
    "flaubert": "emb_dim=43; is_encoder=false; n_heads=0",
    "esmc": f"{_BERT}; num_key_value_heads=1; head_dim=10",
    "gte": 'hidden_act="geluu"; num_attention_heads=0; hidden_size=45',
    "deberta-v2": f"{_BERT}; conv_kernel_size=2; conv_kernel_size=3 conv_groups=5",
    "squeezebert": f"{_BERT}; q_groups=5; intermediate_groups=7; embedding_size=21",
    "xmod": f"{_DECODER}; languages=[]",
    "mobilebert": """num_attention_heads=4; hidden_act="geluu"; num_attention_heads=0; normalization_type="rms_norm";
    key_query_shared_bottleneck=false""",
    "xlnet": "d_model=43; d_head=7; n_head=0",
    "convbert": f"{_BERT}; conv_kernel_size=4; head_ratio=3; num_groups=5; is_decoder=true add_cross_attention=true",
    "ultrabert": f"{_BERT}; num_key_value_heads=2; head_dim=7; layer_types=SS",
}
# Of these and other encoders the classes that tell labels.
OTHER_STEMS = {
    "bert": "Bert",
    "ernie": "Ernie",
    "megatron-bert": "MegatronBert",
    "roberta": "Roberta",
    "camembert": "Camembert",
    "data2vec-text": "Data2VecText",
    "xlm-roberta": "XLMRoberta",
    "roberta-prelayernorm": "RobertaPreLayerNorm",
    "xlm-roberta-xl": "XLMRobertaXL",
    "electra": "Electra",
    "albert": "Albert",
    "distilbert": "DistilBert",
    "modernbert": "ModernBert",
    "modernbert-decoder": "ModernBertDecoder",
    "eurobert": "EuroBert",
    "nomic_bert": "NomicBert",
    "jina_embeddings_v3": "JinaEmbeddingsV3",
}
SMALL |= dict.fromkeys(OTHER_STEMS, SIZES) | {
    "electra": {**SIZES, "embedding_size": 17},
    "albert": {**SIZES, "embedding_size": 17},
    "distilbert": {"vocab_size": 97, "dim": 42, "n_layers": 3, "n_heads": 3, "hidden_dim": 61},
    **{key: {**SIZES, "pad_token_id": 0} for key in ("modernbert", "modernbert-decoder", "eurobert")},
}
TEXTS = """
    class=ForSequenceClassification; class=ForSequenceClassification num_labels=7 tie_word_embeddings=true;
    class=ForSequenceClassification id2label={"0":"a"} num_hidden_layers=1
"""
TOKENS = """; class=ForTokenClassification id2label={"0":"a","1":"b","2":"c"}; class=ForTokenClassification"""
ALL = f"{TEXTS}{TOKENS}; class=ForQuestionAnswering"
HEADS = {
    **dict.fromkeys((*STEMS, *OTHER_STEMS), ALL),
    **dict.fromkeys(("eurobert", "nomic_bert", "gte", "esmc"), f"{TEXTS}{TOKENS}"),
    **dict.fromkeys(
        ("xlm", "flaubert"), f"{TEXTS}{TOKENS}; class=ForQuestionAnsweringSimple".replace("num_hidden", "n")
    ),
    "xlnet": f"""{ALL}Simple; class=ForSequenceClassification summary_use_proj=false;
    class=ForSequenceClassification summary_type="first" """.replace("num_hidden_layers", "n_layer"),
    "tapas": TEXTS,
    "mobilebert": f"{ALL}; class=ForSequenceClassification classifier_activation=false",
    "deberta": f"""{ALL}; class=ForSequenceClassification pooler_hidden_act="tanh" """,
    "electra": f'{ALL}; class=ForPreTraining; class=ForPreTraining embedding_size=42 hidden_act="relu"',
    "distilbert": ALL.replace("num_hidden_layers", "n_layers"),
    "modernbert": f"""{ALL}; class=ForSequenceClassification classifier_pooling="mean" classifier_bias=true;
    class=ForTokenClassification classifier_bias=true norm_bias=true classifier_activation="relu"
    """,
    "modernbert-decoder": f"{TEXTS}; class=ForSequenceClassification classifier_bias=true",
    "ultrabert": f"""{ALL}; class=ForSequenceClassification classifier_pooling="mean" """,
}
HEADS["eurobert"] += """; class=ForSequenceClassification classifier_pooling="mean";
    class=ForSequenceClassification classifier_pooling="bos" num_labels=3 """
WORDS = {"S": "sliding_attention", "F": "full_attention"}


def raw(model_type: str, case: str) -> Config:
    """A whole `config.json`: the small one with the changes of a case."""
    changes = dict(word.split("=", 1) for word in case.split())
    usual = USUAL.get(model_type, "ForCausalLM" if model_type == "modernbert-decoder" else "ForMaskedLM")
    name = {**STEMS, **OTHER_STEMS}[model_type] + changes.pop("class", usual)
    made = {key: json.loads(value) for key, value in changes.items() if key != "layer_types"}
    if "layer_types" in changes:
        made["layer_types"] = [WORDS[letter] for letter in changes["layer_types"]]
    olds = ("d_model", "n_head", "n_layer") if model_type == "xlnet" else ("emb_dim", "n_heads", "n_layers")
    renamed = dict(zip(("hidden_size", "num_attention_heads", "num_hidden_layers"), olds, strict=True))
    dropped = {renamed[key] for key in made if key in renamed}
    small = {key: value for key, value in SMALL[model_type].items() if key not in dropped}
    return {"model_type": model_type, "architectures": [name], **small, **made}


def cases(model_type: str, text: str) -> Iterator[tuple[str, Config]]:
    """The name and the config of each case in `text`."""
    for case in filter(None, (" ".join(case.split()) for case in text.split(";"))):
        yield re.sub(r'[ "{}]', lambda found: "," if found[0] == " " else "", case), raw(model_type, case)

"""Encoder-decoder classes: worked-out sums, published totals, old keys, and what is refused instead of guessed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters, verify

Config = dict[str, Any]

# V=19, D=42, encoder: L=3, N=6, F=37; decoder: L=2, N=7, F=41; 11 positions.
BART_SIZES = {
    "vocab_size": 19, "d_model": 42, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 6,
    "decoder_attention_heads": 7, "encoder_ffn_dim": 37, "decoder_ffn_dim": 41, "max_position_embeddings": 11,
}  # fmt: skip
STEMS = {
    "bart": "Bart",
    "mbart": "MBart",
    "plbart": "PLBart",
    "mvp": "Mvp",
    "blenderbot": "Blenderbot",
    "blenderbot-small": "BlenderbotSmall",
    "pegasus": "Pegasus",
    "marian": "Marian",
    "m2m_100": "M2M100",
}
SMALL: dict[str, Config] = {name: {"model_type": name, **BART_SIZES} for name in STEMS}
POST = ("bart", "plbart", "mvp", "blenderbot-small", "marian")

# Four matrices with biases; two matrices with biases; a LayerNorm.
MHA, NORM = 4 * 42 * 42 + 4 * 42, 2 * 42
ENCODER = MHA + 2 * 42 * 37 + 37 + 42 + 2 * NORM
DECODER = 2 * MHA + 2 * 42 * 41 + 41 + 42 + 3 * NORM
LAYERS = 3 * ENCODER + 2 * DECODER
TABLE = 19 * 42
# Beside one table and the layers: positions of each stack, norms of embeddings, final norms.
BESIDE = {
    "bart": 2 * 13 * 42 + 2 * NORM,
    "mbart": 2 * 13 * 42 + 2 * NORM + 2 * NORM,
    "plbart": 2 * 13 * 42 + 2 * NORM,
    "mvp": 2 * 13 * 42 + 2 * NORM,
    "blenderbot": 2 * 11 * 42 + 2 * NORM,
    "blenderbot-small": 2 * 11 * 42 + 2 * NORM,
    "pegasus": 2 * 11 * 42 + 2 * NORM,
    "marian": 2 * 11 * 42,
    "m2m_100": 2 * NORM,
}

# V=19, D=42, N=6, H=5 (N·H = 30), F=37, encoder L=3, decoder L=2, 7 buckets.
T5_SIZES = {
    "vocab_size": 19, "d_model": 42, "num_heads": 6, "d_kv": 5, "d_ff": 37, "num_layers": 3, "num_decoder_layers": 2,
    "relative_attention_num_buckets": 7, "feed_forward_proj": "relu",
}  # fmt: skip
T5: dict[str, Config] = {name: {"model_type": name, **T5_SIZES} for name in ("t5", "mt5", "umt5")}
T5_LAYERS = 3 * (4 * 42 * 30 + 2 * 42 * 37 + 2 * 42) + 2 * (8 * 42 * 30 + 2 * 42 * 37 + 3 * 42) + 2 * 42


def _total(config: Config) -> int:
    return parameters(load(config)).total


def _named(model_type: str, ending: str) -> Config:
    return {**SMALL[model_type], "architectures": [f"{STEMS[model_type]}{ending}"]}


# ---------------------------------------------------------------------------------------------------- worked-out sums


@pytest.mark.parametrize("model_type", SMALL)
def test_the_kin_of_bart(model_type):
    arch = load(SMALL[model_type])
    count = parameters(arch)
    assert count.total == TABLE + LAYERS + BESIDE[model_type]
    frozen = 2 * 11 * 42 if model_type in ("marian", "pegasus") else 0
    assert count.total - count.trainable == frozen
    assert count.buffers == (0 if model_type == "m2m_100" else 19)  # final_logits_bias
    assert {group.block.norms for group in arch.groups} == {"post" if model_type in POST else "pre"}
    assert arch.context_length == 11
    assert arch.longest() == (None if model_type == "m2m_100" else 11)


@pytest.mark.parametrize("model_type", [name for name in SMALL if name != "m2m_100"])
def test_the_decoder_alone(model_type):
    """Its cross-attention is there and idle: 2·B·T·D·(4·D + 2·F) a layer of decoder, without 4·D² for the encoder's."""
    arch = load(_named(model_type, "ForCausalLM"))
    assert arch.family == "decoder-only"
    count = parameters(arch)
    assert count.total == TABLE + 2 * DECODER + BESIDE[model_type] // 2
    assert count.buffers == 0
    weights = flops(arch, Workload(new_tokens=5)).weights
    assert weights == 2 * 5 * (2 * (4 * 42 * 42 + 2 * 42 * 41) + TABLE)
    assert kv_cache(arch, 5).elements == 2 * 2 * 5 * 42
    untied = load({**_named(model_type, "ForCausalLM"), "tie_word_embeddings": False})
    assert parameters(untied).total == count.total + TABLE
    other_encoder = {"encoder_layers": 7, "encoder_ffn_dim": 23, "encoder_attention_heads": 5}
    assert load({**_named(model_type, "ForCausalLM"), **other_encoder}).inventory == arch.inventory


@pytest.mark.parametrize("model_type", SMALL)
def test_the_pair_without_a_head(model_type):
    whole, bare = load(SMALL[model_type]), load(_named(model_type, "Model"))
    assert parameters(bare).total == parameters(whole).total
    assert parameters(bare).buffers == 0
    work = Workload(new_tokens=5, memory_tokens=7)
    assert flops(whole, work).forward - flops(bare, work).forward == 2 * 5 * TABLE


def test_a_pass_of_bart():
    """7 source, 5 target tokens: 3 and 2 layers, D = N·H = 42; 49 pairs, 15 attended, 35 with the encoder's tokens."""
    counted = flops(load(SMALL["bart"]), Workload(new_tokens=5, memory_tokens=7))
    encoder = 7 * (4 * 42**2 + 2 * 42 * 37) + 2 * 49 * 42
    decoder = 5 * (6 * 42**2 + 2 * 42 * 41) + 7 * 2 * 42**2 + 2 * (15 + 35) * 42
    assert counted.forward == 2 * (3 * encoder + 2 * decoder + 5 * TABLE)
    kept = kv_cache(load(SMALL["bart"]), 5, memory_tokens=7)
    assert (kept.elements, kept.cross_elements) == (2 * 2 * 5 * 42, 2 * 2 * 7 * 42)


@pytest.mark.parametrize(
    ("changes", "tables"),
    [
        ({}, 19),
        ({"decoder_vocab_size": 19}, 19),
        ({"share_encoder_decoder_embeddings": False}, 19 + 19),
        ({"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}, 3 * 19),
        ({"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 23}, 19 + 23),
        ({"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 23, "tie_word_embeddings": False}, 19 + 46),
    ],
)
def test_tables_of_marian(changes, tables):
    arch = load({**SMALL["marian"], **changes})
    assert parameters(arch).total == tables * 42 + LAYERS + BESIDE["marian"]
    assert arch.vocab_size == changes.get("decoder_vocab_size", 19)
    assert parameters(arch).buffers == arch.vocab_size


@pytest.mark.parametrize(
    ("model_type", "changes", "total"),
    [
        ("t5", {}, TABLE + T5_LAYERS + 2 * 7 * 6),
        ("t5", {"tie_word_embeddings": None}, TABLE + T5_LAYERS + 2 * 7 * 6),
        ("t5", {"tie_word_embeddings": False}, 2 * TABLE + T5_LAYERS + 2 * 7 * 6),
        ("mt5", {"tie_word_embeddings": False}, 2 * TABLE + T5_LAYERS + 2 * 7 * 6),
        ("umt5", {}, TABLE + T5_LAYERS + 5 * 7 * 6),
        ("t5", {"feed_forward_proj": "gated-gelu"}, TABLE + T5_LAYERS + 2 * 7 * 6 + 5 * 42 * 37),
        ("t5", {"num_decoder_layers": None}, TABLE + T5_LAYERS + 2 * 7 * 6 + 8 * 42 * 30 + 2 * 42 * 37 + 3 * 42),
        ("t5", {"architectures": ["T5WithLMHeadModel"]}, TABLE + T5_LAYERS + 2 * 7 * 6),
        ("t5", {"architectures": ["T5Model"], "tie_word_embeddings": False}, TABLE + T5_LAYERS + 2 * 7 * 6),
        (
            "t5",
            {"architectures": ["T5EncoderModel"], "tie_word_embeddings": False},
            TABLE + 3 * (4 * 42 * 30 + 2 * 42 * 37 + 2 * 42) + 42 + 7 * 6,
        ),
        (
            "umt5",
            {"architectures": ["UMT5EncoderModel"], "is_encoder_decoder": False},
            TABLE + 3 * (4 * 42 * 30 + 2 * 42 * 37 + 2 * 42) + 42 + 3 * 7 * 6,
        ),
    ],
)
def test_the_kin_of_t5(model_type, changes, total):
    assert _total({**T5[model_type], **changes}) == total


@pytest.mark.parametrize("config", [*SMALL.values(), *T5.values()], ids=lambda config: config["model_type"])
def test_the_reference_agrees(config):
    assert verify(load({**config, "max_position_embeddings": 97} if "d_kv" not in config else config)).agrees


# ------------------------------------------------------------------------------------------------- published totals

T5_11 = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}


def _t5(width: int, d_ff: int, layers: int, heads: int, d_kv: int = 64, **more: Any) -> Config:
    sizes = {"d_model": width, "d_ff": d_ff, "num_layers": layers, "num_heads": heads, "d_kv": d_kv}
    return {"model_type": "t5", **sizes, **more}


def _even(model_type: str, **more: Any) -> Config:
    """Encoder and decoder of one shape."""
    sides = {"layers", "ffn_dim", "attention_heads"} & more.keys()
    both = {f"{side}_{key}": more[key] for key in sides for side in ("encoder", "decoder")}
    return {"model_type": model_type, **both, **{key: value for key, value in more.items() if key not in sides}}


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (_t5(768, 3072, 12, 12), 222_903_552),  # t5-base
        (_t5(1024, 4096, 24, 16), 737_668_096),  # t5-large
        (_t5(1024, 16384, 24, 32, 128), 2_851_598_336),  # t5-3b
        (_t5(512, 1024, 8, 6, **T5_11), 76_961_152),  # flan-t5-small
        (_t5(1024, 2816, 24, 16, **T5_11), 783_150_080),  # flan-t5-large
        (_t5(2048, 5120, 24, 32, **T5_11), 2_849_757_184),  # flan-t5-xl
        (_t5(4096, 10240, 24, 64, **T5_11), 11_135_332_352),  # flan-t5-xxl
        (_t5(1472, 3584, 12, 6, num_decoder_layers=4, vocab_size=384, **T5_11), 299_637_760),  # byt5-small
        ({"model_type": "mt5", "tie_word_embeddings": False}, 300_176_768),  # mt5-small
        ({**_t5(768, 2048, 12, 12, tie_word_embeddings=False), "model_type": "mt5"}, 582_401_280),  # mt5-base
        ({"model_type": "umt5", "vocab_size": 256384, "tie_word_embeddings": False}, 306_601_984),  # umt5-small
        ({"model_type": "bart", "vocab_size": 50264}, 406_290_432),  # bart-large-cnn
        ({"model_type": "mbart", "vocab_size": 250027}, 610_851_840),  # mbart-large-cc25
        ({"model_type": "mbart", "vocab_size": 250054}, 610_879_488),  # mbart-large-50
        (_even("pegasus", vocab_size=96103, layers=16), 570_797_056),  # pegasus-large
        (
            _even("marian", d_model=512, layers=6, ffn_dim=2048, attention_heads=8, max_position_embeddings=512),
            74_410_496,
        ),  # opus-mt-en-de
        ({"model_type": "m2m_100"}, 483_905_536),  # m2m100_418M
        ({"model_type": "m2m_100", "vocab_size": 256206}, 615_073_792),  # nllb-200-distilled-600M
        (_even("m2m_100", vocab_size=256206, layers=24, ffn_dim=8192), 1_370_638_336),  # nllb-200-distilled-1.3B
        (
            _even("blenderbot", d_model=1280, encoder_layers=2, decoder_layers=12, ffn_dim=5120),
            364_802_560,
        ),  # blenderbot-400M-distill
        ({"model_type": "blenderbot"}, 2_696_268_800),  # blenderbot-3B
        ({"model_type": "blenderbot-small", "vocab_size": 54944}, 87_508_992),  # blenderbot_small-90M
        ({"model_type": "plbart"}, 139_220_736),  # plbart-base
    ],
)
def test_published_totals(config, total):
    """As model pages print them; each config is what the published file changes of its class defaults."""
    assert _total(config) == total


# ------------------------------------------------------------------------------------------------- what is read beside


@pytest.mark.parametrize(("written", "scale"), [(True, math.sqrt(42)), (False, 1.0)])
@pytest.mark.parametrize("model_type", SMALL)
def test_the_scale_of_embeddings(model_type, written, scale):
    assert load({**SMALL[model_type], "scale_embedding": written}).embedding.scale == scale


@pytest.mark.parametrize(
    ("changes", "scale"),
    [
        ({}, 42**-0.5),
        ({"tie_word_embeddings": False}, 1.0),
        ({"tie_word_embeddings": True, "scale_decoder_outputs": False}, 1.0),
        ({"scale_decoder_outputs": True}, 42**-0.5),
    ],
)
def test_the_scale_before_the_head_of_t5(changes, scale):
    assert load({**T5["t5"], **changes}).head.scale == scale


def test_a_key_of_the_published_files_of_umt5():
    assert load({**T5["umt5"], "scalable_attention": True}).inventory == load(T5["umt5"]).inventory


def test_what_does_not_show_in_a_total():
    arch = load({**T5["t5"], "n_positions": 23, "relative_attention_max_distance": 77})
    assert arch.context_length == 23
    for group in arch.groups:
        block = group.block
        assert (block.norms, block.attention.scale, block.positions.max_distance) == ("pre", 1.0, 77)
        assert block.cross_attention is None or block.cross_attention.scale == 1.0
    bart = load(SMALL["bart"])
    assert (bart.decoder.positions.length, bart.decoder.positions.offset) == (13, 2)
    assert [group.block.attention.heads for group in bart.groups] == [6, 7]
    assert bart.groups[1].block.cross_attention == bart.groups[1].block.attention
    assert bart.groups[0].block.norm.eps == 1e-5


@pytest.mark.parametrize(
    ("proj", "kind", "activation"),
    [
        ("relu", "dense", "relu"),
        ("gelu", "dense", "gelu"),
        ("gelu_new", "dense", "gelu_new"),
        ("gated-gelu", "gated", "gelu_new"),
        ("gated-silu", "gated", "silu"),
        ("gated-gelu_new", "gated", "gelu_new"),
    ],
)
def test_the_network_of_t5(proj, kind, activation):
    network = load({**T5["t5"], "feed_forward_proj": proj}).groups[0].block.feed_forward
    assert (network.kind, network.activation) == (kind, activation)
    derived = {"is_gated_act": kind == "gated", "dense_act_fn": "quick_gelu"}
    assert load({**T5["t5"], "feed_forward_proj": proj, **derived}).groups[0].block.feed_forward.kind == kind


PUBLISHED_KEYS = {
    "add_bias_logits": False, "classif_dropout": 0.0, "extra_pos_embeddings": 2, "num_hidden_layers": 3,
    "force_bos_token_to_be_generated": False, "encoder_layerdrop": 0.05, "decoder_layerdrop": 0.05, "save_step": None,
}  # fmt: skip
OLD_KEYS = {
    "bart": {"normalize_before": False, "add_final_layer_norm": False, "normalize_embedding": True},
    "mbart": {"normalize_before": True, "add_final_layer_norm": True, "normalize_embedding": True},
    "pegasus": {"normalize_before": True, "normalize_embedding": False, "static_position_embeddings": True},
    "marian": {"normalize_before": False, "normalize_embedding": False, "static_position_embeddings": True},
    "blenderbot": {"layernorm_variant": "prelayernorm", "extra_pos_embeddings": 0, "extra_layer_norm": False},
    "blenderbot-small": {"variant": "xlm", "do_blenderbot_90_layernorm": True, "extra_pos_embeddings": 0},
}


@pytest.mark.parametrize("model_type", OLD_KEYS)
def test_old_keys_that_say_what_is_built(model_type):
    config = {**SMALL[model_type], **PUBLISHED_KEYS, **OLD_KEYS[model_type]}
    assert load(config).inventory == load(SMALL[model_type]).inventory


@pytest.mark.parametrize("key", ["normalize_before", "normalize_embedding", "static_position_embeddings"])
@pytest.mark.parametrize("model_type", SMALL)
def test_an_old_key_is_read_by_the_classes_that_it_describes_alone(refusal, model_type, key):
    built = {
        "normalize_before": model_type not in POST,
        "normalize_embedding": model_type not in ("blenderbot", "pegasus", "marian", "m2m_100"),
        "static_position_embeddings": model_type in ("pegasus", "marian", "m2m_100"),
    }[key]
    assert load({**SMALL[model_type], key: built}).inventory == load(SMALL[model_type]).inventory
    assert f"`{key}`" in refusal({**SMALL[model_type], key: not built}).what


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("model_type", "key", "value"),
    [
        ("bart", "extra_pos_embeddings", 0),
        ("blenderbot", "extra_pos_embeddings", 2),
        ("pegasus", "extra_pos_embeddings", 3),
        ("m2m_100", "add_bias_logits", True),
        ("bart", "extra_layer_norm", True),
        ("bart", "layernorm_variant", "prelayernorm"),
        ("blenderbot", "do_blenderbot_90_layernorm", True),
        ("blenderbot-small", "do_blenderbot_90_layernorm", False),
        ("mvp", "use_prompt", True),
        ("bart", "use_prompt", True),
        ("bart", "is_encoder_decoder", False),
        ("bart", "scale_embedding", 1),
        ("bart", "num_hidden_layers", 5),
        ("bart", "num_attention_heads", 7),
        ("bart", "decoder_vocab_size", 23),
        ("bart", "attention_window", 16),
        ("marian", "share_encoder_decoder_embeddings", None),
        ("marian", "decoder_vocab_size", 23),
        ("bart", "tie_encoder_decoder", True),
        ("bart", "add_cross_attention", True),
    ],
)
def test_a_key_that_would_build_something_else(refusal, model_type, key, value):
    assert f"`{key}`" in refusal({**SMALL[model_type], key: value}).what


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("feed_forward_proj", "gelu-gated"),
        ("feed_forward_proj", "gated-gelu-new"),
        ("feed_forward_proj", "gated-"),
        ("feed_forward_proj", "-relu"),
        ("feed_forward_proj", "xielu"),
        ("feed_forward_proj", None),
        ("feed_forward_proj", 7),
        ("is_gated_act", True),
        ("dense_act_fn", "xielu"),
        ("tie_word_embeddings", "false"),
        ("scale_decoder_outputs", 1),
        ("is_encoder_decoder", False),
        ("num_decoder_layers", 0),
        ("relative_attention_num_buckets", None),
        ("encoder_attention_type", "local"),
        ("scalable_attention", True),
        ("num_experts", 8),
        ("layer_norm_epsilon", 0),
    ],
)
def test_a_key_that_t5_would_build_something_else_of(refusal, key, value):
    assert f"`{key}`" in refusal({**T5["t5"], key: value}).what


@pytest.mark.parametrize("model_type", T5)
def test_the_depth_of_t5s_decoder(refusal, model_type):
    """It follows `num_layers`; another name of that comes too late for it, and the class keeps its default there."""
    config = {key: value for key, value in T5[model_type].items() if key not in ("num_layers", "num_decoder_layers")}
    assert "`num_hidden_layers`" in refusal({**config, "num_hidden_layers": 2}).what
    assert "`num_hidden_layers`" in refusal({**config, "num_hidden_layers": 2, "num_decoder_layers": None}).what
    both = load({**config, "num_hidden_layers": 2, "num_decoder_layers": 3})
    assert [stack.depth for stack in both.stacks.values()] == [2, 3]
    same = load({**config, "num_hidden_layers": 2, "num_layers": 2})
    assert [stack.depth for stack in same.stacks.values()] == [2, 2]
    alone = {"architectures": [f"{model_type.upper()}EncoderModel"], "num_hidden_layers": 2}
    assert load({**config, **alone}).encoder.depth == 2


@pytest.mark.parametrize("model_type", T5)
def test_an_encoder_of_t5_that_says_it_is_a_decoder(refusal, model_type):
    config = {**T5[model_type], "architectures": [f"{model_type.upper()}EncoderModel"]}
    assert "`is_decoder`" in refusal({**config, "is_decoder": True}).what
    assert load({**config, "is_decoder": False}).family == "encoder-only"


@pytest.mark.parametrize("flag", [None, False])
def test_a_gate_that_another_key_takes_away(refusal, flag):
    assert "`is_gated_act`" in refusal({**T5["t5"], "feed_forward_proj": "gated-gelu", "is_gated_act": flag}).what


@pytest.mark.parametrize("flag", [True, False])
def test_the_decoder_alone_always_has_cross_attention(flag):
    config = {**SMALL["bart"], "architectures": ["BartForCausalLM"], "add_cross_attention": flag}
    assert load(config).decoder.layers[0].cross_attention is not None


@pytest.mark.parametrize("model_type", SMALL)
def test_a_pair_that_is_not_tied(model_type):
    """Three tables more: one for each stack, the head's, and one that nothing looks up."""
    untied = load({**SMALL[model_type], "tie_word_embeddings": False})
    assert parameters(untied).total == parameters(load(SMALL[model_type])).total + 3 * TABLE
    work = Workload(new_tokens=5, memory_tokens=7)
    assert flops(untied, work).forward == flops(load(SMALL[model_type]), work).forward
    bare = load({**_named(model_type, "Model"), "tie_word_embeddings": False})
    assert parameters(bare).total == parameters(load(_named(model_type, "Model"))).total + 2 * TABLE


def test_heads_that_do_not_divide(refusal):
    assert "heads 5" in refusal({**SMALL["bart"], "encoder_attention_heads": 5}).what
    assert "heads 5" in refusal({**SMALL["marian"], "decoder_attention_heads": 5}).what


@pytest.mark.parametrize(
    ("model_type", "named"),
    [
        ("bart", "BartForTokenClassification"),
        ("plbart", "PLBartForQuestionAnswering"),
        ("bart", "BartEncoderModel"),
        ("bart", "MBartForConditionalGeneration"),
        ("m2m_100", "M2M100ForCausalLM"),
        ("marian", "MarianForConditionalGeneration"),
    ],
)
def test_classes_that_are_not_read(refusal, model_type, named):
    error = refusal({**SMALL[model_type], "architectures": [named]})
    assert error.what == f"`architectures` '{named}' is not read for {model_type}: its head may differ"
    assert STEMS[model_type] in error.hint


# ----------------------------------------------------------------------------------------------------------- GPT-2


def test_gpt2_with_cross_attention():
    """For another model's encoder: 4·D² and 4·D more, and a norm; idle while no encoder tokens are given."""
    sizes = {"vocab_size": 19, "n_positions": 11, "n_embd": 42, "n_head": 6, "n_layer": 3, "n_inner": 37}
    plain = load({"model_type": "gpt2", **sizes})
    crossed = load({"model_type": "gpt2", **sizes, "add_cross_attention": True})
    assert parameters(crossed).total == parameters(plain).total + 3 * (MHA + NORM)
    assert flops(crossed, Workload(new_tokens=5)) == flops(plain, Workload(new_tokens=5))
    with_memory = flops(crossed, Workload(new_tokens=5, memory_tokens=7)).forward
    # q and output over 5 tokens, k and v over 7, 35 pairs.
    assert with_memory - flops(plain, Workload(new_tokens=5)).forward == 2 * 3 * (
        5 * 2 * 42**2 + 7 * 2 * 42**2 + 2 * 35 * 42
    )

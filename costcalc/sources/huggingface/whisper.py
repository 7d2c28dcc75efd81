"""The text decoders of speech and image models: Whisper (arXiv 2212.04356) and TrOCR (2109.10282).

Layers of BART's kin, which look at what another model's encoder gives. Whisper's reads sound: it is named, not counted.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.pair import Kin, bottom, stack

SPEECH, BARE, CAUSAL = "WhisperForConditionalGeneration", "WhisperModel", "WhisperForCausalLM"
WHISPER = Kin(norms="pre", embedding_norm=False, key_bias=False)
OF_THE_ENCODER = """
    apply_spec_augment classifier_proj_size encoder_attention_heads encoder_ffn_dim encoder_layers is_encoder_decoder
    mask_feature_length mask_feature_min_masks mask_feature_prob mask_time_length mask_time_min_masks mask_time_prob
    max_source_positions median_filter_width num_mel_bins use_weighted_layer_sum
"""


def read_whisper(config: Config) -> Written:
    """Keys have no bias. Sound is always `max_source_positions` tokens of memory (30 seconds are 1,500)."""
    config.note(*OF_THE_ENCODER.split())
    written = _decoder(config, WHISPER, WHISPER.table(config, "max_target_positions"))
    if config.model_class == BARE:
        written |= {"tie_embeddings": False, "head": {"kind": "none"}}
    if config.model_class != CAUSAL:
        written["not_counted"] = ["audio encoder"]
    return {**written, "context_length": config.size("max_target_positions")}


def read_trocr(config: Config) -> Written:
    """Post-norm, as BART. `cross_attention_hidden_size`: the width of the encoder, where it is another."""
    config.note("is_encoder_decoder", "add_cross_attention", "is_decoder")  # the class says them itself
    learned = config.flag("use_learned_position_embeddings")
    kin = Kin(norms="post", embedding_norm=config.flag("layernorm_embedding"), offset=2)
    if not learned:
        kin = Kin(norms="post", embedding_norm=kin.embedding_norm, positions="sinusoidal")
        config.whole("pad_token_id")
    written = _decoder(config, kin, kin.table(config))
    memory_width = config.size_or_none("cross_attention_hidden_size")
    if memory_width not in (None, written["d_model"]):
        (layer,) = written["decoder"]["layers"]
        layer["cross_attention"] = {**layer["cross_attention"], "memory_width": memory_width}
    return {**written, "context_length": config.size("max_position_embeddings")}


def _decoder(config: Config, kin: Kin, positions: Written) -> Written:
    d_model = config.size("d_model")
    return {
        "vocab_size": config.size("vocab_size"),
        "d_model": d_model,
        "embedding": bottom(config, kin, d_model),
        "tie_embeddings": config.flag("tie_word_embeddings"),
        "head": {"kind": "vocabulary"},
        "decoder": stack(config, "decoder", kin, positions),
    }


READERS = {"whisper": read_whisper, "trocr": read_trocr}
CLASSES = {"whisper": (SPEECH, BARE, CAUSAL), "trocr": ("TrOCRForCausalLM",)}

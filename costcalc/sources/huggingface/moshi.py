"""Moshi (arXiv 2410.00037): the decoder of text, Llama-like, that its other parts stand beside."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, llama_like, width_per_head, with_rows_beyond

WHOLE, ALONE = "MoshiForConditionalGeneration", "MoshiForCausalLM"
PARTS = ["audio codec", "depth decoder", "audio embeddings"]
OF_PARTS = ("audio_encoder_config", "depth_decoder_config", "audio_vocab_size", "num_codebooks")


def read_moshi(config: Config) -> Written:
    """The table has one row beyond the vocabulary, for the start of a text; `ffn_dim` is that of both of the network's
    first matrices together. Every layer keeps a window.
    """
    derived, both = width_per_head(config), config.size("ffn_dim")
    if both % 2:
        raise config.refusal(f"`ffn_dim` {both} is odd: it is split in two", 'write "ffn_dim": 22528', "ffn_dim")
    config.overrule("tie_word_embeddings", False)  # the class does not tie, whatever it says
    config.note(*OF_PARTS)
    network = {"kind": "gated", "d_ff": both // 2, "activation": config.activation("hidden_act"), "bias": False}
    written = llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size("head_dim") if config["head_dim"] else derived,
        windows=[config.size("sliding_window")] * layer_count(config),
        attention={},
        feed_forward=network,
    )
    return {**with_rows_beyond(written, 1), "not_counted": PARTS if config.model_class == WHOLE else []}


READERS = {"moshi": read_moshi}
CLASSES = {"moshi": (WHOLE, ALONE)}

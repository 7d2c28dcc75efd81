"""Qwen3NextForCausalLM, Qwen3_5ForCausalLM and Qwen3_5MoeForCausalLM: Gated DeltaNet (arXiv 2412.06464) in three layers
of four, and in the fourth attention whose heads' outputs are behind a gate; a quarter of each head is rotated.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rms_norm
from costcalc.sources.huggingface.delta import NAMES, by_interval, delta_net
from costcalc.sources.huggingface.recurrent import either, state_dtype
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    gated,
    later_tokens,
    layers_by_kind,
    mixture,
    numbered,
    per_head,
    rotations,
    whole,
)

EVERY, ROTATED = 4, 0.25


def read_qwen3_next(config: Config) -> Written:
    """A mixture in every `decoder_sparse_step`-th layer, unless `mlp_only_layers` names the layer."""
    layers, step = layer_count(config), config.size("decoder_sparse_step")
    dense = numbered(config, "mlp_only_layers", layers)
    kinds = [DENSE if layer in dense or (layer + 1) % step else SPARSE for layer in range(layers)]
    config.note("intermediate_size")  # where no layer has one network
    networks: Written = {SPARSE: _experts(config, normalize=config.flag("norm_topk_prob"))}
    if DENSE in kinds:
        networks[DENSE] = gated(config, config.size("intermediate_size"))
    return _read(config, kinds, networks)


def read_qwen3_5(config: Config) -> Written:
    """One network in every layer."""
    return _read(config, [DENSE] * layer_count(config), {DENSE: gated(config, config.size("intermediate_size"))})


def read_qwen3_5_moe(config: Config) -> Written:
    """A mixture in every layer; the chosen experts' scores are divided by their sum whatever `norm_topk_prob` says."""
    config.note("intermediate_size", "norm_topk_prob")  # no layer has one network
    return _read(config, [SPARSE] * layer_count(config), {SPARSE: _experts(config, normalize=True)})


def _experts(config: Config, *, normalize: bool) -> Written:
    """And one for all tokens, behind a gate of its own."""
    shared = gated(config, config.size("shared_expert_intermediate_size"))
    expert = gated(config, config.size("moe_intermediate_size"))
    return mixture(config, expert, router={"normalize": normalize}, shared=shared, shared_gate=True)


def _read(config: Config, kinds: list[str], networks: dict[str, Written]) -> Written:
    """`attention_bias` is on the gate and the output as well."""
    config.expect("attn_output_gate", None, True)
    config.expect("output_gate_type", None, "swish", "silu")
    types, norm, head_dim = by_interval(config, len(kinds), EVERY), rms_norm(config), config.size("head_dim")
    positions = rotations(config, head_dim, theta=1e4, part=ROTATED)
    bias = config.flag("attention_bias")
    more = {"bias": bias, "out_bias": bias, "output_gate": "per_channel", "gate_bias": bias}
    kv_heads = config.size("num_key_value_heads")  # a null has no meaning to these classes
    core = attention(config, head_dim=head_dim, kv_heads=kv_heads, qk_norm=per_head(norm), **more)
    mixer = mixer_of(config, state_dtype=state_dtype(config, "mamba_ssm_dtype"))

    def layer_of(word: str, kind: str) -> Written:
        mixed = either(attends=word == NAMES[FULL], attention=core, mixer=mixer, positions=positions)
        return {"norm": norm, **mixed, "feed_forward": networks[kind]}

    order = layers_by_kind(list(zip([NAMES[word] for word in types], kinds, strict=True)), layer_of)
    of_module = layer_of(NAMES[FULL], kinds[-1])
    return whole(config, norm, positions, order, **_later(config, norm, of_module))


def _later(config: Config, norm: Written, layer: Written) -> Written:
    """One module that guesses a token further on, whose layer attends, with the tables of the model: so checkpoints of
    one such layer hold it (`mtp.*`). What several hold is not known.
    """
    key = "mtp_num_hidden_layers"
    own_tables = config["mtp_use_dedicated_embeddings"]
    if config[key] == 1 and own_tables is False:
        return {"multi_token": {"repeat": 1, "norm": norm, "own_tables": False, "layer": layer}}
    return later_tokens(config, key)


def mixer_of(config: Config, **more: str) -> Written:
    """Gated DeltaNet with the keys of these classes."""
    return delta_net(
        config,
        heads=config.size("linear_num_value_heads"),
        key_heads=config.size("linear_num_key_heads"),
        key_dim=config.size("linear_key_head_dim"),
        value_dim=config.size("linear_value_head_dim"),
        **more,
    )


READERS = {
    "qwen3_next": read_qwen3_next,
    "qwen3_5_text": read_qwen3_5,
    "qwen3_5_moe_text": read_qwen3_5_moe,
}
CLASSES = {
    "qwen3_next": ("Qwen3NextForCausalLM",),
    "qwen3_5_text": ("Qwen3_5ForCausalLM",),
    "qwen3_5_moe_text": ("Qwen3_5MoeForCausalLM",),
}

"""HunYuanMoEV1ForCausalLM (Hunyuan-A13B) and HYV3ForCausalLM: QK-norm per head, an expert for all tokens."""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import FULL, Written, layer_count, rms_norm
from costcalc.sources.huggingface.sparse import (
    DENSE,
    SPARSE,
    attention,
    dense_first,
    gated,
    head_size,
    later_tokens,
    layers_by_kind,
    mixture,
    per_head,
    rotations,
    whole,
    words,
)

OF_OTHERS = """
    anyres_pooling_size anyres_vit_max_image_size anyres_vit_two_views add_classification_head class_num
    cla_share_factor dense_list eod_token_id group_limited_greedy im_end_id im_newline_id im_start_id
    mask_init_id max_image_size moe_drop_tokens moe_random_routing_dropped_token num_media_embeds org_vocab_size pad_id
    pool_type skip_cls_token text_end_id text_start_id video_end_id video_start_id vit_add_patchemb_bias
    vit_input_resolution vit_mapping_type vit_norm_type vit_patch vit_path vit_remove_prenorm vit_token vit_type
    vit_used_rms_norm xdrope_section
"""
"""Keys of published files that are about other models of the same code, about tokens, or about training."""

BUILT: dict[str, tuple[Any, ...]] = {
    "kv_lora_rank": (None,),
    "moe_layer_num_skipped": (None, 0),
    "n_group": (None, 1),
    "norm_topk_prob": (None, True),
    "norm_type": (None, "rms"),
    "position_embedding_xdrope": (None, False),
    "q_lora_rank": (None,),
    "qk_nope_head_dim": (None,),
    "qk_rope_head_dim": (None,),
    "topk_group": (None, 1),
    "use_cla": (None, False),
    "use_mixed_mlp_moe": (None, True),
    "use_mla": (None, False),
    "use_qk_norm": (None, True),
    "use_rotary_pos_emb": (None, True),
    "v_head_dim": (None,),
}
"""What the switches of Tencent's own code may say: all that the library's class builds."""


def read_hunyuan_v1_moe(config: Config) -> Written:
    """All experts, the shared one included, are `intermediate_size` wide; `moe_topk` may be a list with a number for
    each layer. `attention_bias` is on the output as well.
    """
    config.note(*OF_OTHERS.split())
    for key, allowed in BUILT.items():
        config.expect(key, *allowed)
    layers, bias, head_dim = layer_count(config), config.flag("attention_bias"), head_size(config)
    config.layer_types(layers, (FULL,))
    config.expect("attention_head_dim", None, head_dim)
    width = config.size("intermediate_size")
    for key, number in (("moe_intermediate_size", width), ("num_shared_expert", 1)):
        config.expect(key, None, number, [number] * layers)
    chosen = _one_number(config, "moe_topk", layers)
    norm, expert = rms_norm(config), gated(config, width)
    positions = rotations(config, head_dim, theta=1e4)
    config.values["moe_topk"] = chosen
    layer: Written = {
        "norm": norm,
        "positions": positions,
        "attention": attention(config, head_dim=head_dim, bias=bias, out_bias=bias, qk_norm=per_head(norm)),
        "feed_forward": mixture(config, expert, router={}, shared=expert, used="moe_topk"),
    }
    return whole(config, norm, positions, [layer] * layers)


def _one_number(config: Config, key: str, layers: int) -> Any:
    """A number, or a list of the same number for each layer."""
    value = config[key]
    if isinstance(value, list) and value == value[:1] * layers:
        return value[0]
    return value


def read_hy_v3(config: Config) -> Written:
    """`attention_bias` is on the output as well, `mlp_bias` on the networks for all tokens; dense in the first layer
    where `mlp_layer_types` is null.
    """
    config.note("enable_moe_fp32_combine")
    layers, bias, mlp_bias = layer_count(config), config.flag("attention_bias"), config.flag("mlp_bias")
    config.layer_types(layers, (FULL,))
    norm, head_dim, width = rms_norm(config), head_size(config), config.size("moe_intermediate_size")
    positions = rotations(config, head_dim, theta=11_158_840.0)
    router = {"correction": "buffer", "scores": "sigmoid", "scale": config.number("router_scaling_factor")}
    shared = gated(config, config.size("num_shared_experts") * width, bias=mlp_bias)
    networks = {
        DENSE: gated(config, config.size("intermediate_size"), bias=mlp_bias),
        SPARSE: mixture(config, gated(config, width), router=router, shared=shared),
    }

    def layer_of(kind: str) -> Written:
        return {
            "norm": norm,
            "positions": positions,
            "attention": attention(config, head_dim=head_dim, bias=bias, out_bias=bias, qk_norm=per_head(norm)),
            "feed_forward": networks[kind],
        }

    kinds = words(config, "mlp_layer_types", layers, (DENSE, SPARSE)) or dense_first(layers, 1)
    written = whole(config, norm, positions, layers_by_kind([(kind,) for kind in kinds], layer_of))
    return {**written, **later_tokens(config, "num_nextn_predict_layers")}


READERS = {"hunyuan_v1_moe": read_hunyuan_v1_moe, "hy_v3": read_hy_v3}
CLASSES = {"hunyuan_v1_moe": ("HunYuanMoEV1ForCausalLM",), "hy_v3": ("HYV3ForCausalLM",)}

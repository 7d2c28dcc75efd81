"""DebertaForMaskedLM (arXiv 2006.03654) and DebertaV2ForMaskedLM, which DeBERTa-v3 (arXiv 2111.09543) is as well."""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.encoder import (
    MASKED,
    bert_bias,
    dense_network,
    layer_norm,
    multi_head,
    names,
    transform_head,
    use_of,
    whole,
)
from costcalc.sources.huggingface.task_heads import TEXTS, dense_first

NAMES = {"deberta": names("Deberta", causal=None), "deberta-v2": names("DebertaV2", causal=None)}
TO, FROM = "c2p", "p2c"
"""Words of `pos_att_type`: content to position, and position to content."""


def read_deberta(config: Config) -> Written:
    """One product makes queries, keys and values, with biases on queries and values; a text's length trims the rows."""
    config.expect("talking_head", None, False)
    config.note("norm_rel_ebd", "position_buckets", "share_att_key")  # of the second version
    span = _reach(config) if config.flag("relative_attention") else None
    positions = _positions(config, span)
    made = {"trimmed": True, "key_bias": False}
    attention = _attention(config, span, made) if span else {**multi_head(config), "key_bias": False}
    return _whole(config, positions, attention)


def read_deberta_v2(config: Config) -> Written:
    """Rows for buckets of distances, normed where `norm_rel_ebd` says so; a convolution beside the first layer."""
    config.expect("attention_head_size", None, config.size("hidden_size") // config.size("num_attention_heads"))
    if not config.flag("relative_attention"):
        config.note("position_buckets", "share_att_key", "norm_rel_ebd")
        if _is_normed(config):
            what = "`norm_rel_ebd` norms rows of distances, and without `relative_attention` there are none"
            raise config.refusal(what, 'write "norm_rel_ebd": "none"', "norm_rel_ebd")
        return _whole(config, _positions(config, None), multi_head(config), convolution=_convolution(config))
    reach, buckets = _reach(config), _above_zero(config, "position_buckets")
    span = buckets or reach
    more: Written = {"max_distance": reach} if buckets and reach > buckets // 2 + 1 and buckets >= 4 else {}
    if _is_normed(config):
        more["norm"] = layer_norm(config)
    config.expect("share_att_key", None, True, False)
    made: Written = {"weights": "shared"} if config["share_att_key"] else {}
    attention = _attention(config, span, made)
    return _whole(config, {**_positions(config, span), **more}, attention, convolution=_convolution(config))


def _reach(config: Config) -> int:
    """`max_relative_positions`, or where that is below 1 the rows of the position table."""
    return _above_zero(config, "max_relative_positions") or config.size("max_position_embeddings")


def _above_zero(config: Config, key: str) -> int | None:
    """A whole number of at least 1; None where the key is absent, or below that."""
    return None if config[key] is None or config.whole(key) < 1 else config.whole(key)


def _is_normed(config: Config) -> bool:
    """`norm_rel_ebd` is one word, or several between bars."""
    word = config["norm_rel_ebd"]
    if word is not None and not isinstance(word, str):
        raise config.refusal(f"`norm_rel_ebd` must be text, got {shown(word)}", 'write "layer_norm"', "norm_rel_ebd")
    return "layer_norm" in [part.strip() for part in (word or "none").lower().split("|")]


def _attention(config: Config, span: int, made: Written) -> Written:
    heads, width, types = config.size("num_attention_heads"), config.size("hidden_size"), config["pos_att_type"]
    if width % heads:
        what = f"`hidden_size` {width} is not a multiple of `num_attention_heads` {heads}"
        raise config.refusal(what, "change one of the two", "hidden_size")
    if isinstance(types, str):
        types = [part.strip() for part in types.lower().split("|")]
    types = types or []
    if not isinstance(types, list) or any(word not in (TO, FROM) for word in types) or len(types) > len(set(types)):
        what = f"`pos_att_type` must have words out of {TO} and {FROM}, got {shown(config['pos_att_type'])}"
        raise config.refusal(what, f'write "pos_att_type": "{FROM}|{TO}"', "pos_att_type")
    asked = {"to_position": TO in types, "from_position": FROM in types}
    return {"kind": "disentangled", "heads": heads, "span": span, **asked, **made}


def _positions(config: Config, span: int | None) -> Written:
    """A learned table where `position_biased_input` adds one, and rows of distances."""
    length = config.size("max_position_embeddings")
    config.note("max_relative_positions", "pos_att_type")  # void without `relative_attention`
    is_added = config.flag("position_biased_input")
    if span is None:
        return {"kind": "learned", "length": length} if is_added else {"kind": "none"}
    return {"kind": "relative_rows", "span": span, **({"length": length} if is_added else {})}


def _convolution(config: Config) -> Written | None:
    """With `conv_kernel_size` above 0."""
    taps = _above_zero(config, "conv_kernel_size")
    if taps is None:
        config.note("conv_act", "conv_groups")
        return None
    if taps % 2 == 0:
        what = f"`conv_kernel_size` {taps} gives other places than tokens"
        raise config.refusal(what, "write an odd number", "conv_kernel_size")
    activation = "tanh" if config["conv_act"] is None else config.activation("conv_act")
    groups, width = config.size_or_none("conv_groups") or 1, config.size("hidden_size")
    if width % groups:
        what = f"`hidden_size` {width} is not a multiple of `conv_groups` {groups}"
        raise config.refusal(what, "change one of the two", "conv_groups")
    return {"taps": taps, "groups": groups, "activation": activation}


def _whole(config: Config, positions: Written, attention: Written, *, convolution: Written | None = None) -> Written:
    """The newer head (`legacy`: false) is always tied. A head of texts has a dense layer on the first token's row."""
    use, width, norm, layers = (
        use_of(config, NAMES),
        config.size("hidden_size"),
        layer_norm(config),
        layer_count(config),
    )
    config.expect("is_decoder", None, False)
    config.note("pooler_dropout", "cls_dropout", "pooler_hidden_act")
    config.expect("embedding_size", None, width)
    config.expect("pooler_hidden_size", None, width)
    network, is_legacy = dense_network(config), config.flag("legacy")
    layer = {"norm": norm, "positions": positions, "norms": "post", "attention": attention, "feed_forward": network}
    entries = [{**layer, "repeat": layers}]
    if convolution is not None:
        entries = [{"name": "first", **layer, "repeat": 1, "convolution": convolution}]
        entries += [{"name": "later", **layer, "repeat": layers - 1}] if layers > 1 else []
    token_types = config.whole("type_vocab_size")
    written = whole(
        config,
        use,
        {"norm": norm, "positions": positions, "layers": entries},
        head=transform_head(norm, network["activation"], bias=bert_bias(config) if is_legacy else True),
        texts=dense_first(config.activation("pooler_hidden_act")) if use == TEXTS else {},
        d_model=width,
        context_length=config.size("max_position_embeddings"),
        embedding={"norm": norm, **({"token_types": token_types} if token_types > 0 else {})},
    )
    return written if is_legacy or use != MASKED else {**written, "tie_embeddings": True}


READERS = {"deberta": read_deberta, "deberta-v2": read_deberta_v2}
CLASSES = {model_type: tuple(named.values()) for model_type, named in NAMES.items()}

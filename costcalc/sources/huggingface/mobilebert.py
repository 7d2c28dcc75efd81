"""MobileBertForMaskedLM (arXiv 2004.02984): layers inside of bottlenecks, each with several networks."""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    bert_bias,
    dense_network,
    equal_layers,
    layer_norm,
    learned,
    names,
    transform_head,
    use_of,
    whole,
)

NAMES = {"mobilebert": names("MobileBert", causal=None)}
NORMS = {"layer_norm": True, "no_norm": False}


def read_mobilebert(config: Config) -> Written:
    """Rows of three tokens side by side make one of the model's; the head's table is that of the embedding, and a part
    of its own beside it.
    """
    config.expect("is_decoder", None, False)
    width, narrow, positions = config.size("hidden_size"), config.size("embedding_size"), learned(config)
    word = config["normalization_type"]
    if word not in NORMS:
        what = f"`normalization_type` must be one of {', '.join(NORMS)}, got {shown(word)}"
        raise config.refusal(what, 'write "no_norm"', "normalization_type")
    norm, has_three = layer_norm(config), config.flag("trigram_input")
    if narrow > width or (narrow == width and not has_three):
        what = f"`embedding_size` {narrow} leaves a projection that nothing reads, or none, in a model {width} wide"
        raise config.refusal(what, "write a smaller one", "embedding_size")
    of_layers = {**norm, "normalized": NORMS[word]}
    bottleneck = _bottleneck(config, width)
    inner, heads = bottleneck["width"] or width, config.size("num_attention_heads")
    config.expect("true_hidden_size", None, inner)  # the class writes it beside the keys that it follows
    if inner % heads:
        what = f"{inner} numbers are not a multiple of `num_attention_heads` {heads}"
        raise config.refusal(what, "change the heads", "num_attention_heads")
    attention = {"kind": "grouped_query", "heads": heads, "head_dim": inner // heads, "bias": True, "out_bias": True}
    network = dense_network(config)
    stack = equal_layers(config, of_layers, positions, norms="post", attention=attention, feed_forward=network)
    stack["layers"][0]["bottleneck"] = bottleneck
    head = transform_head(norm, network["activation"], bias=bert_bias(config))
    has_pooler = config.flag("classifier_activation")
    table = {"width": narrow, "bias": True, "neighbours": has_three}
    return whole(
        config,
        use_of(config, NAMES),
        stack,
        pooler=has_pooler,
        reads_first=not has_pooler,
        head={**head, "beside": narrow < width},
        d_model=width,
        context_length=positions["length"],
        embedding={"token_types": config.size("type_vocab_size"), "norm": of_layers, **table},
    )


def _bottleneck(config: Config, width: int) -> Written:
    """`use_bottleneck_attention` beats `key_query_shared_bottleneck`, whose matrix is held all the same."""
    networks = config.size("num_feedforward_networks", largest=1_000)
    is_shared, is_input = config.flag("key_query_shared_bottleneck"), config.flag("use_bottleneck_attention")
    if not config.flag("use_bottleneck"):
        config.note("intra_bottleneck_size")
        return {"width": None, "attends": "stream", "networks": networks}
    inner = config.size("intra_bottleneck_size")
    attends = "input" if is_input else "shared" if is_shared else "stream"
    if attends == "stream" and inner != width:
        what = f"queries of the stream's {width} numbers meet a matrix for {inner}"
        raise config.refusal(what, "write `key_query_shared_bottleneck`: true", "key_query_shared_bottleneck")
    return {"width": inner, "attends": attends, "networks": networks, "spare": is_input and is_shared}


READERS = {"mobilebert": read_mobilebert}
CLASSES = {"mobilebert": tuple(NAMES["mobilebert"].values())}

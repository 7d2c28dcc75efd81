"""XmodForMaskedLM (arXiv 2205.06266): RoBERTa with a small network for each language behind each layer's own."""

from __future__ import annotations

from costcalc.errors import shown
from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    after_padding,
    bert_bias,
    dense_network,
    equal_layers,
    layer_norm,
    learned,
    looks_back,
    multi_head,
    names,
    transform_head,
    use_of,
    whole,
)
from costcalc.sources.huggingface.task_heads import dense_first

NAMES = {"xmod": names("Xmod")}


def read_xmod(config: Config) -> Written:
    """A text goes through the adapter of its language, which stands behind the sum of the network and the stream."""
    use = use_of(config, NAMES)
    is_decoder = looks_back(config, use, NAMES, pooler=True)
    norm, network, attention = layer_norm(config), dense_network(config), multi_head(config)
    positions = learned(config, offset=after_padding(config))
    config.note("default_language")
    sublayers: Written = {"attention": attention, "feed_forward": network}
    if is_decoder and config.flag("add_cross_attention"):
        sublayers["cross_attention"] = attention
    is_first = config.flag("pre_norm")
    stack = equal_layers(config, norm, positions, norms="pre" if is_first else "post", **sublayers)
    stack["layers"][0]["adapters"] = _adapters(config, str(network["activation"]))
    return whole(
        config,
        use,
        stack,
        is_decoder=is_decoder,
        pooler=True,
        head=transform_head(norm, "gelu", bias=bert_bias(config)),
        texts=dense_first(),
        d_model=config.size("hidden_size"),
        context_length=positions["length"] - positions["offset"],
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm},
    )


def _adapters(config: Config, activation: str) -> Written:
    """One for each of `languages`, as wide as the model over `adapter_reduction_factor`, rounded down."""
    languages, width = config["languages"], config.size("hidden_size")
    is_list = isinstance(languages, list | tuple) and all(isinstance(word, str) for word in languages)
    if not is_list or not languages or len(set(languages)) < len(languages):
        what = f"`languages` must be a list of different codes, got {shown(languages)}"
        raise config.refusal(what, 'write ["en_XX"]', "languages")
    narrow = width // config.size("adapter_reduction_factor")
    if narrow < 1:
        what = f"`adapter_reduction_factor` leaves no number of {width}"
        raise config.refusal(what, "write a smaller one", "adapter_reduction_factor")
    own, shared = config.flag("adapter_layer_norm"), config.flag("adapter_reuse_layer_norm")
    norm = "own" if own else "shared" if shared else None
    is_plain = norm is not None and not config.flag("ln_before_adapter")
    config.note("ln_before_adapter")
    residual = "plain" if is_plain else "normed"
    sizes = {"languages": len(languages), "width": narrow, "activation": activation}
    return {**sizes, "reads": norm, "residual": residual}


READERS = {"xmod": read_xmod}
CLASSES = {"xmod": tuple(NAMES["xmod"].values())}

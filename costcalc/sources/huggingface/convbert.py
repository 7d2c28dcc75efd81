"""ConvBertForMaskedLM (arXiv 2008.02496): ELECTRA's generator with half of its attention in convolutions of spans."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    dense_network,
    equal_layers,
    layer_norm,
    learned,
    names,
    transform_head,
    use_of,
    whole,
)
from costcalc.sources.huggingface.task_heads import dense_first

NAMES = {"convbert": names("ConvBert", causal=None)}


def read_convbert(config: Config) -> Written:
    """`head_ratio` heads make one, and half of its numbers attend. A projection only where `embedding_size` differs."""
    for key in ("is_decoder", "add_cross_attention"):
        config.expect(key, False)
    width, narrow = config.size("hidden_size"), config.size("embedding_size")
    norm, positions, network = layer_norm(config), learned(config), dense_network(config)
    groups = config.size("num_groups")
    if groups > 1:
        if width % groups or network["d_ff"] % groups:
            what = f"`num_groups` {groups} does not divide {width} and {network['d_ff']}"
            raise config.refusal(what, "change one of the three", "num_groups")
        network |= {"up_groups": groups, "down_groups": groups}
    heads = max(config.size("num_attention_heads") // config.size("head_ratio"), 1)
    taps = config.size("conv_kernel_size")
    if width % (2 * heads):
        what = f"`hidden_size` {width} is not a multiple of twice the {heads} heads"
        raise config.refusal(what, "change the heads", "hidden_size")
    if taps % 2 == 0:
        raise config.refusal(
            f"`conv_kernel_size` {taps} gives other places than tokens", "write an odd number", "conv_kernel_size"
        )
    attention: Written = {"kind": "mixed_convolution", "heads": heads, "taps": taps}
    projection = {} if narrow == width else {"width": narrow, "bias": True, "project": "after"}
    return whole(
        config,
        use_of(config, NAMES),
        equal_layers(config, norm, positions, norms="post", attention=attention, feed_forward=network),
        head=transform_head(norm, "gelu"),
        texts=dense_first(network["activation"]),
        d_model=width,
        context_length=positions["length"],
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm, **projection},
    )


READERS = {"convbert": read_convbert}
CLASSES = {"convbert": tuple(NAMES["convbert"].values())}

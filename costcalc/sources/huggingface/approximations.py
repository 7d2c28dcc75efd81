"""NystromformerForMaskedLM (arXiv 2102.03902), YosoForMaskedLM (2111.09714) and MraForMaskedLM (2207.10284).

They are BERT with other attentions.

The first two rows of their position tables are of no position.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    bert_bias,
    dense_network,
    equal_layers,
    layer_norm,
    multi_head,
    names,
    transform_head,
    use_of,
    whole,
)
from costcalc.sources.huggingface.task_heads import dense_first

NAMES = {"nystromformer": names("Nystromformer", causal=None), "yoso": names("Yoso", causal=None)}
NAMES["mra"] = names("Mra", causal=None)
MRA_BLOCK = 32
"""Of the class's kernels, whatever the config says."""
UNUSED = 2


def read_nystromformer(config: Config) -> Written:
    """As many landmarks as `segment_means_seq_len` are no landmarks at all; fewer work for texts of that length."""
    length, landmarks = config.size("segment_means_seq_len"), config.size("num_landmarks")
    config.expect("inv_coeff_init_option", False)  # the class reads a key for it that there is not
    if length % landmarks:
        what = f"`segment_means_seq_len` {length} is not a multiple of `num_landmarks` {landmarks}"
        raise config.refusal(what, "change one of the two", "num_landmarks")
    attention = {**multi_head(config), "kind": "landmarks", "taps": _odd(config, "conv_kernel_size")}
    few = length != landmarks
    return _read(config, {**attention, "landmarks": landmarks if few else None}, length if few else None)


def read_yoso(config: Config) -> Written:
    """`use_expectation` false draws hashes, in a kernel of its own: what that multiplies is not known here."""
    config.expect("use_expectation", True)
    config.note("num_hash", "use_fast_hash", "lsh_backward")  # of hashes that are drawn
    attention = {**multi_head(config), "kind": "collisions", "bits": config.size("hash_code_len")}
    taps = None if config["conv_window"] is None else _odd(config, "conv_window")
    return _read(config, {**attention, "taps": taps}, None)


def read_mra(config: Config) -> Written:
    """Of the longest text `block_per_row` blocks are in full for each block; "sparse" leaves the others out."""
    config.expect("approx_mode", "full", "sparse")
    config.note("initial_prior_first_n_blocks", "initial_prior_diagonal_n_blocks")  # which are chosen, not how many
    rows = config.size("max_position_embeddings") // MRA_BLOCK
    if rows < 1:
        what = f"`max_position_embeddings` {config['max_position_embeddings']} is less than a block of {MRA_BLOCK}"
        raise config.refusal(what, 'write "max_position_embeddings": 512', "max_position_embeddings")
    chosen = min(rows * config.size("block_per_row"), rows**2)
    attention = {**multi_head(config), "kind": "multi_resolution", "block": MRA_BLOCK, "blocks": chosen}
    return _read(config, {**attention, "coarse": config["approx_mode"] == "full"}, None)


def _odd(config: Config, key: str) -> int:
    """Tokens of the convolution, as many before a token as behind it."""
    taps = config.size(key)
    if taps % 2 == 0:
        raise config.refusal(f"`{key}` {taps} is even: the class cannot add what comes out", f'write "{key}": 65', key)
    return taps


def _read(config: Config, attention: Written, only: int | None) -> Written:
    """only: the one length that the class can read, where there is one."""
    norm, network = layer_norm(config), dense_network(config)
    length = config.size("max_position_embeddings")
    positions: Written = {"kind": "learned", "length": length + UNUSED, "offset": UNUSED}
    return whole(
        config,
        use_of(config, NAMES),
        equal_layers(config, norm, positions, norms="post", attention=attention, feed_forward=network),
        texts=dense_first(str(network["activation"])),
        head=transform_head(norm, network["activation"], bias=bert_bias(config)),
        d_model=config.size("hidden_size"),
        context_length=length if only is None else min(length, only),
        embedding={"token_types": config.size("type_vocab_size"), "norm": norm},
    )


READERS = {"nystromformer": read_nystromformer, "yoso": read_yoso, "mra": read_mra}
CLASSES = {model_type: tuple(named.values()) for model_type, named in NAMES.items()}

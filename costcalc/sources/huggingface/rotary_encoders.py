"""Encoders with RoPE: EuroBERT (arXiv 2503.05500), a Llama that looks both ways; NomicBert (arXiv 2402.01613) and
jina-embeddings-v3 (arXiv 2409.10173), BERTs that rotate instead of adding positions, as GTE (arXiv 2407.19669) does.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import (
    FULL,
    Written,
    floor_width_per_head,
    free_head_dim,
    layer_count,
    llama_like,
    rotary,
    width_per_head,
)
from costcalc.sources.huggingface.encoder import (
    bert_bias,
    dense_network,
    equal_layers,
    layer_norm,
    names,
    transform_head,
    use_of,
    whole,
)
from costcalc.sources.huggingface.task_heads import POOLED, TEXTS, TOKENS, dense_first

NAMES = {
    "eurobert": names("EuroBert", causal=None, tasks=(TEXTS, TOKENS)),
    "nomic_bert": names("NomicBert", causal=None, tasks=(TEXTS, TOKENS)),
    "jina_embeddings_v3": names("JinaEmbeddingsV3", causal=None),
    "gte": names("Gte", causal=None, tasks=(TEXTS, TOKENS)),
}
POOLINGS = ("late", "bos", "mean")
"""Of EuroBERT: scores of all tokens, whose mean is told, or those of one row of each text."""


def read_eurobert(config: Config) -> Written:
    """No pooler; the head is a bare table, with a bias where `mlp_bias` puts one on the networks."""
    layers, bias, derived = layer_count(config), config.flag("attention_bias"), width_per_head(config)
    config.expect("is_decoder", None, False)
    config.layer_types(layers, (FULL,))
    mlp_bias = config.flag("mlp_bias")
    written = llama_like(
        config,
        kv_heads=config.size_or_none("num_key_value_heads"),
        head_dim=config.size_or_none("head_dim") or derived,
        windows=[None] * layers,
        attention={"bias": bias, "out_bias": bias},
        mlp_bias=mlp_bias,
    )
    stack = written.pop("decoder")
    use, texts = use_of(config, NAMES), POOLED
    if use == TEXTS:
        config.expect("classifier_pooling", *POOLINGS)
        texts = dense_first("gelu", of="token" if config["classifier_pooling"] == "late" else "text")
    return {**written, **whole(config, use, stack, head={"bias": mlp_bias}, texts=texts)}


def read_nomic_bert(config: Config) -> Written:
    """No biases in the layers, gated networks; no pooler by default."""
    head_dim = config.size_or_none("head_dim") or floor_width_per_head(config)
    attention = {"kind": "grouped_query", "heads": config.size("num_attention_heads"), "head_dim": head_dim}
    activation = config.activation("hidden_act")
    network = {"kind": "gated", "d_ff": config.size("intermediate_size"), "activation": activation}
    return _rotated_bert(config, attention, network, theta=1_000.0, head_activation=activation)


def read_jina_embeddings_v3(config: Config) -> Written:
    """Biases everywhere, as in RoBERTa, whose head it has: GELU whatever `hidden_act` says."""
    heads, head_dim = config.size("num_attention_heads"), floor_width_per_head(config)
    attention = {"kind": "grouped_query", "heads": heads, "head_dim": head_dim, "bias": True, "out_bias": True}
    network = dense_network(config)
    return _rotated_bert(
        config, attention, network, theta=20_000.0, head_activation="gelu", pooler=True, texts=dense_first()
    )


def read_gte(config: Config) -> Written:
    """Biases on the attention and on the last matrix of its gated networks; one bias of the head, tied or not."""
    heads, head_dim = config.size("num_attention_heads"), free_head_dim(config)
    attention = {"kind": "grouped_query", "heads": heads, "head_dim": head_dim, "bias": True, "out_bias": True}
    activation = config.activation("hidden_act")
    network = {
        "kind": "gated",
        "d_ff": config.size("intermediate_size"),
        "activation": activation,
        "out_bias": True,
    }
    has_types = config["type_vocab_size"] not in (0, None)
    return _rotated_bert(
        config,
        attention,
        network,
        theta=160_000.0,
        head_activation="gelu",
        head_bias=True,
        token_types=config.size("type_vocab_size") if has_types else None,
    )


def _rotated_bert(
    config: Config,
    attention: Written,
    network: Written,
    *,
    theta: float,
    head_activation: str,
    pooler: bool = False,
    texts: Written = POOLED,
    head_bias: str | bool | None = None,
    token_types: int | None = 0,
) -> Written:
    """Norms after each sublayer, and one over the embeddings and token types."""
    config.expect("is_decoder", None, False)
    if attention["head_dim"] % 2:
        what = f"RoPE rotates pairs, and a head of {attention['head_dim']} is odd"
        raise config.refusal(what, "change the heads", "hidden_size")
    norm, positions = layer_norm(config), {"theta": theta, **rotary(config)}
    return whole(
        config,
        use_of(config, NAMES),
        equal_layers(config, norm, positions, norms="post", attention=attention, feed_forward=network),
        pooler=pooler,
        texts=texts,
        head=transform_head(norm, head_activation, bias=bert_bias(config) if head_bias is None else head_bias),
        d_model=config.size("hidden_size"),
        context_length=config.size_or_none("max_position_embeddings"),
        embedding={"token_types": config.size("type_vocab_size") if token_types == 0 else token_types, "norm": norm},
    )


READERS = {
    "eurobert": read_eurobert,
    "nomic_bert": read_nomic_bert,
    "jina_embeddings_v3": read_jina_embeddings_v3,
    "gte": read_gte,
}
CLASSES = {model_type: tuple(named.values()) for model_type, named in NAMES.items()}

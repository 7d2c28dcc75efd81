"""BertForMaskedLM (arXiv 1810.04805), RobertaForMaskedLM (arXiv 1907.11692) and the classes that are built like them.

They differ in where the norms stand, in the rows of the position table that padding takes, and in the activation of
the head: RoBERTa's is always GELU.
"""

from __future__ import annotations

from typing import NamedTuple

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.encoder import (
    BARE,
    CAUSAL,
    Names,
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
from costcalc.sources.huggingface.task_heads import POOLED, dense_first


class Build(NamedTuple):
    """What differs. norms: of the layers. embedding_norm: one below them. padded: positions begin after padding's.

    head_gelu: the head's activation is GELU, whatever `hidden_act` says. plain: no token types, no pooler, and nothing
    before the head's table. dense_first: a head of texts has a dense layer of its own, in place of a pooler.
    """

    norms: str = "post"
    embedding_norm: bool = True
    padded: bool = False
    head_gelu: bool = False
    plain: bool = False
    dense_first: bool = False


BERT, ROBERTA = Build(), Build(padded=True, head_gelu=True, dense_first=True)
BUILDS = {
    "bert": BERT,
    "bert-generation": Build(plain=True),
    "ernie": BERT,
    "ibert": ROBERTA,
    "megatron-bert": Build(norms="pre", embedding_norm=False),
    "roberta": ROBERTA,
    "camembert": ROBERTA,
    "data2vec-text": ROBERTA,
    "xlm-roberta": ROBERTA,
    "roberta-prelayernorm": ROBERTA._replace(norms="pre"),
    "xlm-roberta-xl": ROBERTA._replace(norms="pre", embedding_norm=False),
}
NAMES: dict[str, Names] = {
    "bert": names("Bert", causal="LMHeadModel"),
    "bert-generation": {CAUSAL: "BertGenerationDecoder", BARE: "BertGenerationEncoder"},
    "ernie": names("Ernie"),
    "ibert": names("IBert", causal=None),
    "megatron-bert": names("MegatronBert"),
    "roberta": names("Roberta"),
    "camembert": names("Camembert"),
    "data2vec-text": names("Data2VecText"),
    "xlm-roberta": names("XLMRoberta"),
    "roberta-prelayernorm": names("RobertaPreLayerNorm"),
    "xlm-roberta-xl": names("XLMRobertaXL"),
}


def read_bert(config: Config) -> Written:
    """With `add_cross_attention` every layer of a decoder looks at an encoder."""
    build, use = BUILDS[config.model_type], use_of(config, NAMES)
    is_decoder = looks_back(config, use, NAMES, pooler=not build.plain)
    config.expect("embedding_size", None, config.size("hidden_size"))  # a remark of some files; the class has no other
    norm, attention, network = layer_norm(config), multi_head(config), dense_network(config)
    positions = learned(config, offset=after_padding(config) if build.padded else 0)
    sublayers = {"attention": attention, "feed_forward": network}
    if is_decoder and config.flag("add_cross_attention"):
        sublayers["cross_attention"] = attention
    return whole(
        config,
        use,
        equal_layers(config, norm, positions, norms=build.norms, **sublayers),
        is_decoder=is_decoder,
        pooler=not build.plain,
        texts=dense_first() if build.dense_first else POOLED,
        head=_head(config, build, norm, network),
        d_model=config.size("hidden_size"),
        context_length=positions["length"] - positions["offset"],
        embedding=_embedding(config, build, norm),
    )


def _head(config: Config, build: Build, norm: Written, network: Written) -> Written:
    bias = bert_bias(config)
    if build.plain:
        return {"bias": bias}
    return transform_head(norm, "gelu" if build.head_gelu else str(network["activation"]), bias=bias)


def _embedding(config: Config, build: Build, norm: Written) -> Written:
    token_types = {} if build.plain else {"token_types": config.size("type_vocab_size")}
    return {**token_types, "norm": norm} if build.embedding_norm else token_types


def read_ibert(config: Config) -> Written:
    """RoBERTa's, in integers where `quant_mode` says so (arXiv 2101.01321): then buffers of factors stand beside it."""
    config.expect("quant_mode", False)
    config.expect("hidden_act", "gelu")
    config.note("force_dequant")  # void without it
    return read_bert(config)


def read_ernie(config: Config) -> Written:
    """BERT's, and a table of task types (arXiv 1907.12412), which `use_task_id` adds to the embeddings."""
    written = read_bert(config)
    if not config.flag("use_task_id"):
        config.note("task_type_vocab_size")  # void without it
        return written
    table = {"name": "task_types", "rows": config.size("task_type_vocab_size")}
    return {**written, "embedding": {**written["embedding"], "tables": [table]}}


READERS = {**dict.fromkeys(BUILDS, read_bert), "ernie": read_ernie, "ibert": read_ibert}
CLASSES = {model_type: tuple(named.values()) for model_type, named in NAMES.items()}

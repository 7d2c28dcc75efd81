"""What BERT-like classes share: multi-head attention with biases, a dense network, LayerNorm, a masked-LM head.

Classes of a model type differ in what stands on top: the masked language model, the bare model (mostly with a pooler),
the causal language model, and those that tell labels (`task_heads.py`). `is_decoder` makes the layers look back only
and keep a cache.
A lineage module states what differs in fields; nothing here looks at a model's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count, width_per_head
from costcalc.sources.huggingface.task_heads import POOLED, TASKS, TEXTS, task_head

MASKED, BARE, CAUSAL = "masked", "bare", "causal"
WHAT = {MASKED: "masked language model"}
Names = dict[str, str]
"""Use of a class -> its name; the usual one first."""


def names(stem: str, *, causal: str | None = "ForCausalLM", tasks: Iterable[str] = tuple(TASKS)) -> Names:
    """The classes of a model type by the word that they begin with."""
    found = {MASKED: f"{stem}ForMaskedLM", BARE: f"{stem}Model"} | {task: f"{stem}{TASKS[task]}" for task in tasks}
    return found if causal is None else {**found, CAUSAL: f"{stem}{causal}"}


def use_of(config: Config, named: dict[str, Names]) -> str:
    """What the class of a config is for."""
    return next(use for use, name in named[config.model_type].items() if name == config.model_class)


def looks_back(config: Config, use: str, named: dict[str, Names], *, pooler: bool = False) -> bool:
    """`is_decoder`: the layers of a causal decoder. Only a class that takes a cache is read as one."""
    if CAUSAL not in named[config.model_type]:
        config.expect("is_decoder", None, False)
        config.expect("add_cross_attention", None, False)
        return False
    if not config.flag("is_decoder"):
        config.expect("add_cross_attention", False)  # the classes refuse it in an encoder as well
        return False
    if use != CAUSAL and (use != BARE or pooler):
        part = "a pooler is for an encoder" if use == BARE else f"a {WHAT.get(use, 'classifier')} keeps no cache"
        causal = named[config.model_type][CAUSAL]
        raise config.refusal(
            f"`is_decoder`: true of {config.model_class} is not read: {part}",
            f'write "architectures": ["{causal}"], or "is_decoder": false',
            "is_decoder",
        )
    return True


def whole(config: Config, use: str, stack: Written, *, is_decoder: bool = False, **parts: Any) -> Written:
    """The full form around one stack. `head` is what a vocabulary head has; any other one ties nothing.

    pooler: whether the bare class has one. texts: what a head of texts has before its last matrix; with none such, and
    no `reads_first`, it stands on a pooler. tokens: the same of a head of tokens.
    """
    tied, pooler, head = config.flag("tie_word_embeddings"), parts.pop("pooler", False), parts.pop("head")
    texts, tokens, first = parts.pop("texts", POOLED), parts.pop("tokens", {}), parts.pop("reads_first", False)
    is_language_model = use in (MASKED, CAUSAL)
    if is_language_model:
        made = {"kind": "vocabulary", **head}
    else:
        made = {"kind": "none"} if use == BARE else task_head(config, use, texts, tokens)
    return {
        "vocab_size": config.size("vocab_size"),
        "tie_embeddings": tied and is_language_model,
        "head": made,
        "pooler": pooler if use == BARE else use == TEXTS and not texts and not first,
        **parts,
        "decoder" if is_decoder else "encoder": stack,
    }


def layer_norm(config: Config, key: str = "layer_norm_eps") -> Written:
    """LayerNorm with the class's one eps."""
    return {"kind": "layernorm", "eps": config.number(key)}


def multi_head(config: Config, *, bias: bool = True) -> Written:
    """Multi-head attention of hidden_size / heads, which has to divide, with its biases."""
    width_per_head(config)
    return {"kind": "grouped_query", "heads": config.size("num_attention_heads"), "bias": bias, "out_bias": bias}


def dense_network(config: Config) -> Written:
    """Two matrices with biases."""
    activation = config.activation("hidden_act")
    return {"kind": "dense", "d_ff": config.size("intermediate_size"), "activation": activation, "bias": True}


def transform_head(norm: Written, activation: str, *, bias: str | bool = True) -> Written:
    """Dense, activation, norm, then the table and a bias of its own (BERT, arXiv 1810.04805)."""
    return {"transform": True, "activation": activation, "norm": norm, "bias": bias}


def bert_bias(config: Config) -> str | bool:
    """The bias of a head that has two names for it: where the tables are not tied they are two, of which one is read.

    So in the library's version 5; the older ones held one array under both names.
    """
    return True if config.flag("tie_word_embeddings") else "spare"


def learned(config: Config, *, offset: int = 0) -> Written:
    """A table of `max_position_embeddings` rows, the first `offset` of which no position uses."""
    length = config.size("max_position_embeddings")
    if offset >= length:
        what = f"`max_position_embeddings` {length} leaves no row: the first {offset} are for padding"
        raise config.refusal(what, "change `max_position_embeddings` or `pad_token_id`", "max_position_embeddings")
    return {"kind": "learned", "length": length, "offset": offset}


def after_padding(config: Config) -> int:
    """Rows of a RoBERTa-like position table that no position uses: positions begin at pad_token_id + 1."""
    padding = config.whole("pad_token_id")
    if padding < 0:
        raise config.refusal(
            f"`pad_token_id` {padding} gives no first position", 'write "pad_token_id": 1', "pad_token_id"
        )
    return padding + 1


def equal_layers(config: Config, norm: Written, positions: Written, *, norms: str, **sublayers: Written) -> Written:
    """Equal layers; norms "post" leaves no norm on top, "pre" one."""
    layer = {"norm": norm, "positions": positions, "norms": norms, "repeat": layer_count(config), **sublayers}
    return {"norm": norm, "positions": positions, "layers": [layer]}

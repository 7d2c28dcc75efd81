"""What encoder-decoder lineages share: which parts a class has, and BART's layers (arXiv 1910.13461) with their kin's.

BART, mBART, Blenderbot, Pegasus, Marian and M2M-100 have one and the same layer: multi-head attention and a dense
network with biases, LayerNorm. What differs is in `Kin`; nothing here looks at a model's name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.task_heads import ANSWERS, TEXTS, TOKENS, dense_first, task_head
from costcalc.sources.huggingface.task_heads import TASKS as ENDINGS

NORM: Written = {"kind": "layernorm", "eps": 1e-5}
"""The classes leave eps to their library, whose default this is."""


class Parts(NamedTuple):
    """What a class of a lineage has of the whole model. head: a vocabulary's. task: what labels are told of."""

    stacks: tuple[str, ...]
    head: bool = False
    task: str | None = None


WHOLE, BARE = Parts(("encoder", "decoder"), head=True), Parts(("encoder", "decoder"))
ENCODER, CAUSAL = Parts(("encoder",)), Parts(("decoder",), head=True)

TASKS = {task: Parts(("encoder", "decoder"), task=task) for task in (TEXTS, ANSWERS)}
TASKS[TOKENS] = Parts(("encoder",), task=TOKENS)

Classes = dict[str, Parts]
"""The classes that are read of one model type, the usual one first, and what each has."""


def bart_classes(stem: str, usual: str | None = None) -> Classes:
    """The language model, the pair of stacks without a head, and the decoder alone with one."""
    return {usual or f"{stem}ForConditionalGeneration": WHOLE, f"{stem}Model": BARE, f"{stem}ForCausalLM": CAUSAL}


def telling(stem: str, *tasks: str) -> Classes:
    """The classes that tell labels of these."""
    return {f"{stem}{ENDINGS[task]}": TASKS[task] for task in tasks}


def head_of(config: Config, parts: Parts, vocabulary: Written) -> Written:
    """What stands on the decoder, or on an encoder alone: labels of texts are told behind a dense layer."""
    if parts.task is not None:
        return task_head(config, parts.task, dense_first(), {})
    return vocabulary if parts.head else {"kind": "none"}


@dataclass(frozen=True, slots=True)
class Kin:
    """What tells one of BART's kin from another.

    positions: "learned", or "sinusoidal" with what is stored of them. offset: first rows of a table that no position
    uses. head_bias: the kind of `final_logits_bias`. key_bias: whether keys have a bias, as all else has.
    """

    norms: Literal["pre", "post"]
    embedding_norm: bool
    positions: Literal["learned", "sinusoidal"] = "learned"
    stored: Literal["no", "frozen"] = "no"
    offset: int = 0
    head_bias: str | bool = "buffer"
    key_bias: bool = True

    def table(self, config: Config, key: str = "max_position_embeddings") -> Written:
        """The positions of each stack; a table that is computed as it is needed has no end."""
        length = config.size(key)
        if self.positions == "learned":
            return {"kind": "learned", "length": length + self.offset, "offset": self.offset}
        if self.stored == "no":
            return {"kind": "sinusoidal"}
        return {"kind": "sinusoidal", "stored": self.stored, "length": length + self.offset}


def bart_like(
    config: Config, kin: Kin, parts: Parts, tables: Written | None = None, *, width: str = "d_model"
) -> Written:
    """The full form; `tables` says what vocabulary tables there are if not one for all. width: the key of d_model."""
    _read_old_keys(config, kin)
    d_model, positions = config.size(width), kin.table(config)
    if parts == CAUSAL:
        config.note("is_encoder_decoder", "encoder_layers", "encoder_ffn_dim", "encoder_attention_heads")
        config.note("add_cross_attention")  # these classes always have it
    else:
        config.expect("is_encoder_decoder", True)
    head: Written = {"kind": "vocabulary", "bias": kin.head_bias if parts == WHOLE else False}
    return {
        "d_model": d_model,
        "context_length": config.size("max_position_embeddings"),
        "embedding": bottom(config, kin, d_model),
        **(tables or one_table(config, parts)),
        "head": head_of(config, parts, head),
        **{side: stack(config, side, kin, positions) for side in parts.stacks},
    }


def bottom(config: Config, kin: Kin, d_model: int) -> Written:
    """Rows of the table, scaled and normed or not."""
    scaled: Written = {"scale": math.sqrt(d_model) if config.flag("scale_embedding") else 1.0}
    return {**scaled, "norm": NORM} if kin.embedding_norm else scaled


def one_table(config: Config, parts: Parts) -> Written:
    """One table for encoder, decoder and head.

    Untied, `transformers` 5 builds a table for each of them and one, `shared`, that nothing looks up; older versions
    had one table for both stacks all the same. No published file of these types is known to be untied.
    """
    tied, is_pair = config.flag("tie_word_embeddings"), len(parts.stacks) > 1
    return {
        "vocab_size": config.size("vocab_size"),
        "tie_embeddings": tied and parts.head,
        "share_embeddings": tied and is_pair,
        "spare_table": not tied and is_pair,
    }


def stack(config: Config, side: str, kin: Kin, positions: Written) -> Written:
    """All layers of one side, which are equal."""
    attention: Written = {
        "kind": "grouped_query",
        "heads": config.size(f"{side}_attention_heads"),
        "bias": True,
        "key_bias": kin.key_bias,
        "out_bias": True,
    }
    layer: Written = {
        "repeat": layer_count(config, f"{side}_layers"),
        "norm": NORM,
        "norms": kin.norms,
        "positions": positions,
        "attention": attention,
        "feed_forward": {
            "kind": "dense",
            "d_ff": config.size(f"{side}_ffn_dim"),
            "activation": config.activation("activation_function"),
            "bias": True,
        },
    }
    if side == "decoder":
        layer["cross_attention"] = attention
    return {"norm": NORM, "positions": positions, "layers": [layer]}


def _read_old_keys(config: Config, kin: Kin) -> None:
    """Switches of the first, common BART class, which today's classes ignore: they must say what is built."""
    post, learned = kin.norms == "post", kin.positions == "learned"
    said: dict[str, tuple[Any, ...]] = {
        "normalize_before": (not post,),
        "add_final_layer_norm": (not post,),
        "normalize_embedding": (kin.embedding_norm,),
        "static_position_embeddings": (not learned,),
        "extra_pos_embeddings": (kin.offset,) if learned else (0, 1, 2),
        "add_bias_logits": (False, bool(kin.head_bias)),
        "layernorm_variant": ("xlm", "bart") if post else ("prelayernorm",),
        "variant": ("xlm", "bart") if post else ("prelayernorm",),
        "extra_layer_norm": (False,),
    }
    for key, allowed in said.items():
        config.expect(key, None, *allowed)

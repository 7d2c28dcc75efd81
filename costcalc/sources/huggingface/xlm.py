"""XLMWithLMHeadModel (arXiv 1901.07291) and FlaubertWithLMHeadModel (arXiv 1912.05372), which is built like it.

Networks are four times as wide as the model. A table of languages is held where there are several, and looked up where
a text comes with its languages.
"""

from __future__ import annotations

from typing import Any

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written, layer_count
from costcalc.sources.huggingface.encoder import BARE, MASKED, Names, layer_norm, learned, use_of, whole
from costcalc.sources.huggingface.task_heads import ANSWERS, TEXTS, TOKENS

NAMES: dict[str, Names] = {
    model_type: {
        MASKED: f"{stem}WithLMHeadModel",
        BARE: f"{stem}Model",
        TEXTS: f"{stem}ForSequenceClassification",
        TOKENS: f"{stem}ForTokenClassification",
        ANSWERS: f"{stem}ForQuestionAnsweringSimple",
    }
    for model_type, stem in (("xlm", "XLM"), ("flaubert", "Flaubert"))
}


def read_xlm(config: Config) -> Written:
    """With `causal` a token sees no later one, and the class keeps keys and values."""
    return _whole(config, norms="post")


def read_flaubert(config: Config) -> Written:
    """`pre_norm` puts the norms before the sublayers, and none on top of them."""
    return _whole(config, norms="pre" if config.flag("pre_norm") else "post")


def _whole(config: Config, *, norms: str) -> Written:
    config.expect("asm", False)  # a softmax over parts of the vocabulary
    config.expect("is_encoder", True)
    config.note("lang_id", "mask_index", "unk_index", "bos_index", "eos_index", "pad_index", *OF_TASKS.split())
    config.flag("sinusoidal_embeddings")  # fills the position table at first
    width, heads, languages = config.size("emb_dim"), config.size("n_heads"), config.size("n_langs")
    if width % heads:
        what = f"`emb_dim` {width} is not a multiple of `n_heads` {heads}"
        raise config.refusal(what, "change one of the two", "emb_dim")
    use = use_of(config, NAMES)
    if use == TEXTS:  # one row of each text, and a matrix that makes the labels of it
        config.expect("summary_type", "first", "last", "mean", "cls_index")
        config.expect("summary_use_proj", True)
        config.expect("summary_proj_to_labels", True)
    norm, positions = layer_norm(config), learned(config)
    activation = "gelu" if config.flag("gelu_activation") else "relu"
    layer = {
        "norm": norm,
        "positions": positions,
        "norms": norms,
        "repeat": layer_count(config, "n_layers"),
        "attention": {"kind": "grouped_query", "heads": heads, "bias": True, "out_bias": True},
        "feed_forward": {"kind": "dense", "d_ff": 4 * width, "activation": activation, "bias": True},
    }
    several = config.flag("use_lang_emb") and languages > 1
    tables: Any = [{"name": "languages", "rows": languages, "use": "held"}] if several else []
    return whole(
        config,
        use,
        {"norm": norm, "positions": positions, "final_norm": False, "layers": [layer]},
        is_decoder=config.flag("causal"),
        head={"bias": True},
        reads_first=True,
        d_model=width,
        context_length=positions["length"],
        embedding={"norm": norm, "tables": tables},
    )


OF_TASKS = "start_n_top end_n_top embed_init_std lang2id id2lang"
READERS = {"xlm": read_xlm, "flaubert": read_flaubert}
CLASSES = {model_type: tuple(named.values()) for model_type, named in NAMES.items()}

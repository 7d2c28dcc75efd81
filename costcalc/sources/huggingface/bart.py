"""BART's kin with learned positions: BART, mBART, PLBART, MVP, Blenderbot and Blenderbot-small.

One vocabulary table for encoder, decoder and head. The decoder-only classes keep the weights of their cross-attention,
which does nothing while no encoder is given.
"""

from __future__ import annotations

from functools import partial

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.pair import Classes, Kin, bart_classes, bart_like, telling
from costcalc.sources.huggingface.task_heads import ANSWERS, TEXTS

PARTS: dict[str, Classes] = {
    "bart": {**bart_classes("Bart"), **telling("Bart", TEXTS, ANSWERS)},
    "mbart": {**bart_classes("MBart"), **telling("MBart", TEXTS, ANSWERS)},
    "plbart": {**bart_classes("PLBart"), **telling("PLBart", TEXTS)},
    "mvp": {**bart_classes("Mvp"), **telling("Mvp", TEXTS, ANSWERS)},
    "blenderbot": bart_classes("Blenderbot"),
    "blenderbot-small": bart_classes("BlenderbotSmall"),
}
BART = Kin(norms="post", embedding_norm=True, offset=2)
MBART = Kin(norms="pre", embedding_norm=True, offset=2)
BLENDERBOT = Kin(norms="pre", embedding_norm=False)
BLENDERBOT_SMALL = Kin(norms="post", embedding_norm=True)


def _read(config: Config, kin: Kin) -> Written:
    parts = PARTS[config.model_type][config.model_class]
    if parts.task == ANSWERS:  # the class makes it two, whatever the file says
        config.note("num_labels", "id2label")
        config.values |= {"num_labels": None, "id2label": None}
    return bart_like(config, kin, parts)


def read_bart(config: Config) -> Written:
    """Three labels, where the file does not say how many."""
    if config.values.get("id2label") is None:
        config.values.setdefault("num_labels", 3)
    return _read(config, BART)


def read_mvp(config: Config) -> Written:
    """BART, unless prompts are learned for each layer (`use_prompt`): those are not read."""
    config.expect("use_prompt", False)
    config.note("prompt_length", "prompt_mid_dim")
    return _read(config, BART)


def read_blenderbot(config: Config) -> Written:
    """Norms before each sublayer, none on the embeddings."""
    config.expect("do_blenderbot_90_layernorm", None, False)
    return _read(config, BLENDERBOT)


def read_blenderbot_small(config: Config) -> Written:
    """As BART, without unused rows. The decoder's embeddings are normed before positions are added: no other count."""
    config.expect("do_blenderbot_90_layernorm", None, True)
    return _read(config, BLENDERBOT_SMALL)


READERS = {
    "bart": read_bart,
    "mbart": partial(_read, kin=MBART),
    "plbart": partial(_read, kin=BART),
    "mvp": read_mvp,
    "blenderbot": read_blenderbot,
    "blenderbot-small": read_blenderbot_small,
}
CLASSES = {model_type: tuple(parts) for model_type, parts in PARTS.items()}

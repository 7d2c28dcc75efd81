"""The text parts of SeamlessM4T (arXiv 2308.11596) and its second version (2312.05187): BART's kin, with pre-norm and
sinusoids. Encoders of speech, units and the vocoder are named and not counted.
"""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.pair import CAUSAL, WHOLE, Kin, bart_like, one_table

SEAMLESS = Kin(norms="pre", embedding_norm=False, positions="sinusoidal", head_bias=False)
SPEECH, SPOKEN = ["speech encoder"], ["text-to-unit model", "vocoder"]
STEMS = {"seamless_m4t": "SeamlessM4T", "seamless_m4t_v2": "SeamlessM4Tv2"}
NOT_COUNTED = {
    "ForTextToText": [],
    "ForSpeechToText": SPEECH,
    "ForTextToSpeech": SPOKEN,
    "ForSpeechToSpeech": [*SPEECH, *SPOKEN],
    "Model": [*SPEECH, *SPOKEN],
}
"""What else a class has; those that read speech alone have no encoder of text."""


def read_seamless(config: Config) -> Written:
    """Whatever else the class has a key for is of the parts that are named."""
    stem = STEMS[config.model_type]
    ending = config.model_class.removeprefix(stem)
    parts = CAUSAL if ending.startswith("ForSpeech") else WHOLE
    tables = {**one_table(config, parts), "spare_table": not config.flag("tie_word_embeddings")}
    written = bart_like(config, SEAMLESS, parts, tables, width="hidden_size")
    config.note(*config.defaults)
    return {**written, "not_counted": NOT_COUNTED[ending]}


READERS = dict.fromkeys(STEMS, read_seamless)
CLASSES = {
    model_type: tuple(stem + ending for ending in ("Model", *(end for end in NOT_COUNTED if end != "Model")))
    for model_type, stem in STEMS.items()
}

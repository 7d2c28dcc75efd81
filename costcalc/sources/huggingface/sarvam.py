"""Sarvam's model of latent attention, which DeepseekV3ForCausalLM builds: no latent of queries, no groups."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.deepseek import read_without_modules
from costcalc.sources.huggingface.latent import agrees


def read_sarvam_mla(config: Config) -> Written:
    """Old files hold `q_head_dim`, the sum of a query head's two parts; of `head_dim` the class takes no notice: there
    they hold what is cached of a token.
    """
    nope, rope = config.size("qk_nope_head_dim"), config.size("qk_rope_head_dim")
    config.note("head_dim")
    agrees(config, "q_head_dim", nope + rope, f"{nope} + {rope} numbers of a head make its scores")
    return read_without_modules(config)


READERS = {"sarvam_mla": read_sarvam_mla}
CLASSES = {"sarvam_mla": ("DeepseekV3ForCausalLM", "SarvamMLAForCausalLM")}

"""GPTBigCodeForCausalLM (SantaCoder, arXiv 2301.03988; StarCoder, 2305.06161): GPT-2 with one key/value head."""

from __future__ import annotations

from costcalc.sources.huggingface.config import Config
from costcalc.sources.huggingface.decoder import Written
from costcalc.sources.huggingface.gpt2 import read_gpt2

KERNELS = (
    "attention_softmax_in_fp32",
    "inference_runner",
    "max_batch_size",
    "pad_key_length",
    "pre_allocate_kv_cache",
    "scale_attention_softmax_in_fp32",
    "validate_runner_input",
)
"""How the numbers are computed, never which."""


def read_gpt_bigcode(config: Config) -> Written:
    """`multi_query` false makes it GPT-2, whose cross-attention goes with nothing else."""
    config.note(*KERNELS)
    config.expect("add_cross_attention", False)
    kv_heads = 1 if config.flag("multi_query") else None
    config.expect("num_key_value_heads", None, kv_heads or config.size("n_head"))
    written = read_gpt2(config)
    layer = written["decoder"]["layers"][0]
    layers = [{**layer, "attention": {**layer["attention"], "kv_heads": kv_heads}}]
    return {**written, "decoder": {**written["decoder"], "layers": layers}}


READERS = {"gpt_bigcode": read_gpt_bigcode}
CLASSES = {"gpt_bigcode": ("GPTBigCodeForCausalLM", "GPTBigCodeLMHeadModel")}

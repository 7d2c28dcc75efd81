"""What papers and engines print about the caches of presets, and active parameters that papers print."""

import pytest

from costcalc import Workload, flops, kv_cache, load, parameters
from costcalc.calculators.kv_cache import without_windows

# arXiv 2505.09343, table 1: KB (of 1,000 bytes) a token in bf16: 70.272, 327.680, 516.096.
PER_TOKEN = {"deepseek-v3": 70_272, "qwen2.5-72b": 327_680, "llama-3.1-405b": 516_096}


@pytest.mark.parametrize("model", PER_TOKEN)
def test_bytes_a_token_as_deepseeks_paper_prints_them(model):
    assert kv_cache(load(model), 4096).bytes_per_token == PER_TOKEN[model]


def whole(model, context):
    return kv_cache_of(without_windows(load(model).inventory), context)


def kv_cache_of(inventory, context):
    return sum(cached.elements(Workload(new_tokens=context)) for cached in inventory.cached) * 2


@pytest.mark.parametrize(
    ("model", "context", "batch", "windowed", "full"),
    [
        ("gemma-3-27b", 131_072, 1, 10.40625, 62),
        ("gemma-3-1b", 32_768, 1, 139 / 1024, 832 / 1024),
        ("gpt-oss-20b", 8_192, 32, 6.09375, 12),
        ("llama-4-scout", 131_072, 1, 7.125, 24),
    ],
)
def test_gib_with_windows_and_without(model, context, batch, windowed, full):
    assert kv_cache(load(model), context, batch=batch).bytes == windowed * 2**30
    assert batch * whole(model, context) == full * 2**30


def test_what_papers_call_active():
    # arXiv 2401.04088: 13B; 2412.19437: 37B; 2505.09388, table 2: 3B and 22B; arXiv 2508.10925, table 1: 3.6B and 5.1B,
    # without the input table
    active = {
        name: (round(count.active / 1e9, 1), round(count.active_without_input_table / 1e9, 1))
        for name in ("mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "qwen3-235b-a22b", "gpt-oss-20b", "gpt-oss-120b")
        for count in [parameters(load(name))]
    }
    assert active == {
        "mixtral-8x7b": (12.9, 12.7),
        "deepseek-v3": (37.6, 36.6),
        "qwen3-30b-a3b": (3.4, 3.0),
        "qwen3-235b-a22b": (22.2, 21.6),
        "gpt-oss-20b": (4.2, 3.6),
        "gpt-oss-120b": (5.7, 5.1),
    }


def test_the_multi_token_module_of_deepseek_v3():
    """Its README: 671B of the model and 14B of the module, 685B on the hub: 11.61 B and two tables of 0.93 B."""
    counted = parameters(load("deepseek-v3"))
    assert (counted.buffers, counted.extra - 2 * 129_280 * 7_168) == (14_848, 11_610_068_224)
    assert round((counted.total + counted.extra) / 1e9, 1) == 684.5


def test_re_expanding_the_latents_of_the_past_is_dear():
    """At 4,096 tokens a whole decode step of DeepSeek-V3 costs 59 times as much, the cache of all heads 71 times."""
    model = load("deepseek-v3")
    step = {"new_tokens": 1, "past_tokens": 4096}
    expanded, absorbed = (flops(model, Workload(**step, latent=form)).forward for form in ("expanded", "absorbed"))
    assert round(expanded / absorbed) == 59
    text = {"new_tokens": 4096}
    expanded, absorbed = (flops(model, Workload(**text, latent=form)).forward for form in ("expanded", "absorbed"))
    assert expanded < absorbed
    latent, heads = (kv_cache_of(inventory, 65_536) for inventory in (model.inventory, model.inventory.decompressed))
    assert heads == 305 * 2**30
    assert round(heads / latent) == 71

from __future__ import annotations

import pytest
import yaml

from costcalc import Workload, flops, kv_cache, load, parameters
from costcalc.sources.presets import preset_aliases, preset_file, preset_names, presets_folder
from costcalc.units import matches_printed

# Published totals, as the requirement lists them; gpt3-175b's is printed as 174.6B (arXiv 2005.14165, table D.1).
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "mistral-7b-v0.1": 7_241_732_096,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-8b": 8_190_735_360,
    "gemma-2-9b": 9_241_705_984,
    "phi-2": 2_779_683_840,
    "gpt3-175b": "174.6B",
    "bert-base-uncased": 109_514_298,  # with the masked-LM head, as every encoder here
    "bert-large-uncased": 335_174_458,
    "roberta-base": 124_697_433,
    "xlm-roberta-base": 278_295_186,
    "distilbert-base-uncased": 66_985_530,
    "albert-base-v2": 11_221_680,
    "modernbert-base": 149_655_232,
    "t5-small": 60_506_624,
    "t5-11b": 11_307_321_344,
    "flan-t5-base": 247_577_856,
    "bart-base": 139_420_416,
    "bart-large": 406_291_456,
    "bloom-560m": 559_214_592,
    "mpt-7b": 6_649_286_656,
    "falcon-7b": 6_921_720_704,
    "falcon-rw-1b": 1_311_625_216,
    "command-r7b": 8_028_033_024,
    "falcon-40b": 41_303_293_952,
    "gemma-3-1b": 999_885_952,
    "gemma-3-4b": 3_880_263_168,
    "gemma-3-12b": 11_766_034_176,
    "gemma-3-27b": 27_009_346_304,
    "gpt-neox-20b": 20_554_567_680,
    "olmo-2-7b": 7_298_617_344,
    "palm-540b": "540.35B",
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "llama-4-scout": 107_769_861_120,  # the text model
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_404_352,
    "kimi-k2": "1T",
    "minicpm3-4b": "4.07B",
    "qwen2.5-72b": 72_706_203_648,
    "gemma-4-26b-a4b": "25.2B",
    "gemma-4-31b": "30.7B",
    "jamba-v0.1": 51_570_323_328,
    "mamba-2.8b": 2_768_345_600,
    "mamba-130m": 129_135_360,
    "mamba2-2.7b": "2.7B",
    "falcon-mamba-7b": 7_272_665_088,
    "bamba-9b": "9.78B",
    "falcon-h1-0.5b": "0.52B",
    "granite-4.0-h-tiny": "7B",
    "nemotron-h-8b": "8.1B",
    "nemotron-3-nano-30b-a3b": "31.6B",
    "zamba-7b": "7B",
    "zamba2-2.7b": "2.7B",
    "qwen3-next-80b-a3b": "80B",
    "qwen3.5-27b": "27B",
    "qwen3.5-35b-a3b": "35B",
    "minimax-01": "456B",
    "lfm2-1.2b": 1_170_340_608,
    "recurrentgemma-2b": "2.7B",
    "rwkv-4-169m": "169M",
    "xlstm-7b": "7B",
}
# Text models whose published totals are those of all parts; tests/sources/test_gemma_presets.py holds them to others.
OF_ALL_PARTS = {"gemma-3n-e2b", "gemma-3n-e4b", "gemma-4-e2b", "gemma-4-e4b"}
# The paper (arXiv 1706.03762, table 3) prints 65M and 213M; with its 37,000 tokens (section 5.1) they come to these.
OTHERWISE = {"transformer-base": ("65M", 63_045_632), "transformer-big": ("213M", 214_171_648)}

# Layers, d_model, query heads, key/value heads, head size, feed-forward width, vocabulary, context, tied head: from the
# papers' tables and the models' config.json. Heads do not show in a multi-head model's total, so they are held here.
SHAPES = {
    "gpt2": (12, 768, 12, 12, 64, 3072, 50257, 1024, True),
    "gpt2-medium": (24, 1024, 16, 16, 64, 4096, 50257, 1024, True),
    "gpt2-large": (36, 1280, 20, 20, 64, 5120, 50257, 1024, True),
    "gpt2-xl": (48, 1600, 25, 25, 64, 6400, 50257, 1024, True),
    "gpt3-175b": (96, 12288, 96, 96, 128, 49152, 50257, 2048, True),
    "llama-2-7b": (32, 4096, 32, 32, 128, 11008, 32000, 4096, False),
    "llama-2-13b": (40, 5120, 40, 40, 128, 13824, 32000, 4096, False),
    "llama-2-70b": (80, 8192, 64, 8, 128, 28672, 32000, 4096, False),
    "llama-3-8b": (32, 4096, 32, 8, 128, 14336, 128256, 8192, False),
    "llama-3-70b": (80, 8192, 64, 8, 128, 28672, 128256, 8192, False),
    "llama-3.1-405b": (126, 16384, 128, 8, 128, 53248, 128256, 131072, False),
    "llama-3.2-1b": (16, 2048, 32, 8, 64, 8192, 128256, 131072, True),
    "mistral-7b-v0.1": (32, 4096, 32, 8, 128, 14336, 32000, 32768, False),
    "qwen2.5-7b": (28, 3584, 28, 4, 128, 18944, 152064, 131072, False),
    "qwen2.5-72b": (80, 8192, 64, 8, 128, 29568, 152064, 131072, False),
    "qwen3-8b": (36, 4096, 32, 8, 128, 12288, 151936, 40960, False),
    "gemma-2-9b": (42, 3584, 16, 8, 256, 14336, 256000, 8192, True),
    "phi-2": (32, 2560, 32, 32, 80, 10240, 51200, 2048, False),
}
# In tests/sources/test_by_layer_presets.py.
BY_LAYER = {
    *(f"gemma-3-{size}" for size in ("1b", "4b", "12b", "27b")),
    *("command-r7b", "falcon-7b", "falcon-40b", "gpt-neox-20b", "olmo-2-7b", "palm-540b"),
}
# In tests/sources/test_mixture_presets.py.
MIXTURES = {
    *("mixtral-8x7b", "mixtral-8x22b", "qwen3-30b-a3b", "qwen3-235b-a22b"),
    *("gpt-oss-20b", "gpt-oss-120b", "llama-4-scout"),
}


# In tests/sources/test_latent_presets.py.
LATENT = {"deepseek-v2-lite", "deepseek-v2", "deepseek-v3", "kimi-k2", "minicpm3-4b"}
# In tests/sources/test_ssm_presets.py.
STATE_SPACE = {
    *("jamba-v0.1", "mamba-2.8b", "mamba-130m", "mamba2-2.7b", "falcon-mamba-7b", "bamba-9b", "falcon-h1-0.5b"),
    *("granite-4.0-h-tiny", "nemotron-h-8b", "nemotron-3-nano-30b-a3b", "zamba-7b", "zamba2-2.7b"),
}
# In tests/sources/test_linear_presets.py; Kimi-Linear's is printed as 48B, which its config.json does not come to.
LINEAR = {
    *("qwen3-next-80b-a3b", "qwen3.5-27b", "qwen3.5-35b-a3b", "kimi-linear-48b-a3b", "minimax-01", "lfm2-1.2b"),
    *("recurrentgemma-2b", "rwkv-4-169m", "xlstm-7b"),
}
# In tests/sources/test_gemma_presets.py.
GEMMA = {"gemma-4-26b-a4b", "gemma-4-31b"} | OF_ALL_PARTS


def test_every_preset_is_held_to_a_figure():
    assert set(preset_names()) == {*PUBLISHED, *OTHERWISE} | OF_ALL_PARTS | LINEAR
    assert preset_names() == sorted(preset_names())


def test_every_preset_that_was_a_decoder_from_the_start_has_its_shape():
    """Those of later ones are compared with their config.json, in files of their own."""
    decoders = {name for name in preset_names() if load(name).family == "decoder-only"}
    later = {"bloom-560m", "mpt-7b", "falcon-rw-1b"} | BY_LAYER | MIXTURES | GEMMA | LATENT | STATE_SPACE | LINEAR
    assert decoders - set(SHAPES) == later


def test_the_2017_transformer_worked_out():
    """V·D once; 18 attentions of 4·D^2, 12 networks of 2·D·F + F + D, 30 LayerNorms of 2·D."""
    for name, d_model, d_ff in (("transformer-base", 512, 2_048), ("transformer-big", 1_024, 4_096)):
        layers = 18 * 4 * d_model**2 + 12 * (2 * d_model * d_ff + d_ff + d_model) + 30 * 2 * d_model
        printed, total = OTHERWISE[name]
        arch = load(name)
        assert parameters(arch).total == 37_000 * d_model + layers == total
        assert (arch.published_parameters, matches_printed(total, printed)) == (printed, False)
        assert f"{total / 1e6:.2f}M" in arch.source


@pytest.mark.parametrize("name", PUBLISHED)
def test_total_is_the_published_one(name):
    arch = load(name)
    total = parameters(arch).total
    assert arch.published_parameters == PUBLISHED[name]
    if isinstance(PUBLISHED[name], int):
        assert total == PUBLISHED[name]
    assert matches_printed(total, PUBLISHED[name])


def test_gpt3_worked_out():
    # V·D + positions + 96 layers of 12·D^2 matrices, 9·D biases (3 + 1 + 4 + 1) and 4·D in two LayerNorms + final norm.
    d_model = 12_288
    layers = 96 * (12 * d_model**2 + 13 * d_model)
    assert (
        parameters(load("gpt3")).total == 50_257 * d_model + 2_048 * d_model + layers + 2 * d_model == 174_604_259_328
    )


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name):
    layers, d_model, heads, kv_heads, head_dim, d_ff, vocab_size, context, tied = SHAPES[name]
    arch = load(name)
    assert (arch.name, arch.decoder.depth, arch.d_model) == (name, layers, d_model)
    assert (arch.vocab_size, arch.context_length, arch.tie_embeddings) == (vocab_size, context, tied)
    assert arch.longest() == (context if name.startswith("gpt") else None)
    assert arch.source
    for group in arch.groups:
        attention = group.block.attention
        assert (attention.heads, *attention.sizes(d_model)) == (heads, kv_heads, head_dim)
        assert group.block.feed_forward.d_ff == d_ff
        assert group.block.feed_forward.kind == ("dense" if name.startswith(("gpt", "phi")) else "gated")
    # 2·L·K·H numbers a token while no window is full, 2 bytes each.
    assert kv_cache(arch, 1).bytes == 2 * layers * kv_heads * head_dim * 2


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("gpt2", 36),
        ("llama-2-7b", 512),
        ("llama-3-8b", 128),
        ("llama-2-70b", 320),
        ("qwen2.5-7b", 56),
        ("llama-3.1-405b", 504),
    ],
)
def test_cache_of_a_token_as_published(name, kib):
    """36, 512 and 128 KiB are the lesson's; 327,680 and 516,096 bytes are table 1 of arXiv 2505.09343."""
    assert kv_cache(load(name), 1000).bytes_per_token == kib * 1024


@pytest.mark.parametrize("name", SHAPES)
def test_windows(name):
    arch = load(name)
    windows = [group.block.attention.window for group in arch.groups]
    if name == "mistral-7b-v0.1":
        assert windows == [4096]
    elif name == "gemma-2-9b":
        assert windows == [4096, None]
        assert arch.inventory.layout["decoder"][:4] == tuple(f"decoder.layers.{n}" for n in ("local", "global") * 2)
        assert [group.times for group in arch.groups] == [21, 21]
    else:
        assert windows == [None]


def test_what_only_some_presets_have():
    assert load("phi-2").decoder.layers[0].parallel == "one_norm"
    assert load("phi-2").decoder.positions.rotary_dim == 32  # 0.4 of 80
    assert load("qwen3-8b").decoder.layers[0].attention.qk_norm.kind == "per_head"
    attention = load("qwen2.5-7b").decoder.layers[0].attention
    assert (attention.bias, attention.out_bias) == (True, False)


@pytest.mark.parametrize(
    ("name", "theta"),
    [
        ("llama-2-7b", 1e4),
        ("llama-3-8b", 5e5),
        ("mistral-7b-v0.1", 1e4),
        ("qwen2.5-7b", 1e6),
        ("qwen3-8b", 1e6),
        ("gemma-2-9b", 1e4),
    ],
)
def test_theta_is_a_number_however_it_is_written(name, theta):
    assert load(name).decoder.positions.theta == theta


def test_doubling_the_layers_doubles_what_the_layers_cost():
    data = yaml.safe_load(preset_file("llama-3-8b").read_text(encoding="utf-8"))
    data["positions"]["theta"] = float(data["positions"]["theta"])
    one, two = load(data), load({**data, "layers": [{**data["layers"][0], "repeat": 64}]})
    tables_and_final_norm = 2 * 128_256 * 4_096 + 4_096
    assert parameters(two).total - tables_and_final_norm == 2 * (parameters(one).total - tables_and_final_norm)
    assert kv_cache(two, 11).bytes == 2 * kv_cache(one, 11).bytes
    assert flops(two, Workload(new_tokens=11)).attention == 2 * flops(one, Workload(new_tokens=11)).attention


@pytest.mark.parametrize(
    ("alias", "name"), [("7b", "llama-2-7b"), ("8b", "llama-3-8b"), ("gpt2-small", "gpt2"), ("gpt3", "gpt3-175b")]
)
def test_aliases(alias, name):
    assert preset_aliases()[alias] == name
    assert preset_file(alias) == preset_file(name) == presets_folder() / "models" / f"{name}.yaml"
    assert load(alias).name == name


def test_every_alias_names_a_preset_and_hides_none():
    assert set(preset_aliases().values()) <= set(preset_names())
    assert not set(preset_aliases()) & set(preset_names())


@pytest.mark.parametrize("word", ["GPT2", "Llama-3-8B", "8B", "QWEN3-8b"])
def test_letter_case_does_not_matter(word):
    assert preset_file(word) is not None


@pytest.mark.parametrize(
    "word",
    ["", "gpt", "gpt2.yaml", "models/gpt2", "../models/gpt2", "..\\models\\gpt2", "gpt2\0", "a" * 5000, ".", "*"],
)
def test_what_is_no_preset(word):
    assert preset_file(word) is None

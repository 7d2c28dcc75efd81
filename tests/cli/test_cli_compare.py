"""`costcalc compare`: columns with ratios, and the price of each difference, on primes worked by hand."""

import csv
import io
import json
import random
import re
import time
from functools import reduce

import pytest

import costcalc
from costcalc.sources.presets import preset_names

# V=19, D=13, N=6, K=2, H=5, F=37, L=3, no positions; a layer has q and output of 390, k and v of 130, two matrices of
# D·F = 481, two norms of 13: 1,040 + 962 + 26 = 2,028. Total 3·2,028 + norm 13 + embedding 247 + head 247 = 6,591.
BASE = """\
name: base
vocab_size: 19
d_model: 13
context_length: 11
norm: rmsnorm
layers:
  - repeat: 3
    attention: {heads: 6, kv_heads: 2, head_dim: 5}
    feed_forward: {d_ff: 37}
"""
KEYS = ("added_parameters", "added_next_token_flops", "added_kv_cache_bytes")


@pytest.fixture
def spec(tmp_path):
    """spec("wide", "d_ff: 37", "d_ff: 41") -> a file of that name with pairs of texts replaced in BASE."""

    def write(name, *changes):
        pairs = list(zip(changes[::2], changes[1::2], strict=True))
        assert all(old in BASE for old, _ in pairs)
        text = reduce(lambda text, pair: text.replace(*pair), pairs, BASE.replace("name: base", f"name: {name}"))
        path = tmp_path / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def compared(fine):
    """The JSON of a comparison."""
    return lambda *words: json.loads(fine("compare", *words, "--json"))


def added(row):
    return tuple(row[key] for key in KEYS)


def singles(data):
    """field -> what it costs alone."""
    return {change["field"]: added(change) for change in data["changes"]}


def assert_closed(data):
    """Singles + together = all = the difference of the models, in every quantity."""
    base, other = data["models"]
    if data["baseline"] != base["model"]:
        base, other = other, base
    wanted = tuple(other[key] - base[key] for key in ("total_parameters", "next_token_flops", "kv_cache_bytes"))
    rows = [added(change) for change in data["changes"] if change["impossible_alone"] is None]
    assert added(data["all"]) == wanted
    assert tuple(map(sum, zip(*rows, added(data["together"]), strict=True))) == wanted


class TestColumns:
    """Models side by side."""

    def test_three_published_models(self, compared):
        data = compared("gpt2", "7b", "8b")
        keys = ["schema", "costcalc_version", "baseline", "context", "memory_tokens", "dtype", "models", "ratios"]
        assert list(data) == [*keys, "note"]
        assert data["memory_tokens"] == 0
        assert (data["schema"], data["baseline"], data["context"], data["dtype"]) == (
            "costcalc.compare/1",
            "gpt2",
            1_024,
            "bf16",
        )
        assert [model["model"] for model in data["models"]] == ["gpt2", "llama-2-7b", "llama-3-8b"]
        assert [model["total_parameters"] for model in data["models"]] == [124_439_808, 6_738_415_616, 8_030_261_248]
        # 2·12·768, 2·32·32·128 and 2·32·8·128 elements of 2 bytes, 1,024 times
        assert [model["kv_cache_bytes"] for model in data["models"]] == [37_748_736, 536_870_912, 134_217_728]
        assert [model["weight_bytes"]["bf16"] for model in data["models"]] == [
            248_879_616,
            13_476_831_232,
            16_060_522_496,
        ]
        assert [ratio["total_parameters"] for ratio in data["ratios"]] == [1.0, 54.1500, 64.5313]
        assert data["note"] == "1,024 tokens for all: the smallest context_length, gpt2's"

    def test_the_numbers_are_those_of_the_other_commands(self, compared, fine):
        words = ("gemma-2-9b", "--context", "5k", "--dtype", "q8_0")
        (model, _) = compared(words[0], "8b", *words[1:])["models"]
        shown = json.loads(fine("show", *words, "--json"))
        shared = {key: value for key, value in model.items() if key in shown}
        assert len(shared) == 12
        assert shared == {key: shown[key] for key in shared}
        params = json.loads(fine("params", "gemma-2-9b", "--json"))
        assert model["active_parameters"] == params["active_parameters"]
        assert sum(model["component_parameters"].values()) == params["total_parameters"]

    def test_weights_in_every_dtype(self, compared, spec):
        """6,591 parameters: times 4, 2 and 1; 34/32 is 7,002.9 up, 18/32 is 3,707.4 up."""
        wanted = {"fp32": 26_364, "bf16": 13_182, "fp8": 6_591, "q8_0": 7_003, "q4_0": 3_708}
        assert compared(spec("a"), spec("b"))["models"][1]["weight_bytes"] == wanted

    def test_ratios_of_every_number(self, compared, spec):
        """One layer more: (6,591 + 2,028) / 6,591; cache 4 / 3; what both lack has none."""
        data = compared(spec("base"), spec("deep", "repeat: 3", "repeat: 4"), "gpt2")
        one, deep, gpt2 = data["ratios"]
        assert {key: value for key, value in one.items() if value != 1.0 and not isinstance(value, dict)} == {
            "model": "base"
        }
        assert (deep["total_parameters"], deep["kv_cache_bytes"]) == (1.30769, 1.33333)
        assert deep["component_parameters"] == {
            "embedding": 1.0,
            "norms": 1.28571,
            "attention": 1.33333,
            "feed_forward": 1.33333,
            "head": 1.0,
        }
        assert gpt2["component_parameters"]["positions"] is None
        assert "head" not in gpt2["component_parameters"]

    def test_every_number_but_the_baselines_has_its_ratio_in_csv(self, fine, spec):
        rows = list(
            csv.reader(io.StringIO(fine("compare", spec("a"), spec("b", "37", "41"), "gpt2", "--format", "csv")))
        )
        assert rows[0] == ["section", "quantity", "unit", "a", "b", "gpt2", "status"]
        assert ["parameters", "total", "parameters", "6591", "6903", "124439808", "exact"] in rows
        assert ["parameters", "total", "ratio", "", "1.04734", "18880.3", "exact"] in rows
        assert ["by component", "positions", "parameters", "", "", "786432", "exact"] in rows

    def test_a_table_of_three_fits_80_columns(self, fine, terminal, monkeypatch):
        terminal(80)
        monkeypatch.setenv("NO_COLOR", "1")
        text = fine("compare", "gpt2", "7b", "8b")
        assert max(map(len, text.splitlines())) <= 80
        assert re.search(r"^total +124,439,808 +6,738,415,616 +8,030,261,248$", text, re.MULTILINE)
        assert re.search(r"^ +124\.44 M +6\.74 B  x 54\.15  8\.03 B  x 64\.53$", text, re.MULTILINE)

    @pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
    @pytest.mark.parametrize("models", [["gpt2", "8b"], ["gpt2", "7b", "8b"]], ids=len)
    def test_it_fits_every_screen_and_no_number_is_cut(self, fine, terminal, monkeypatch, models, width):
        data = json.loads(fine("compare", *models, "--json"))
        numbers = {value for model in data["models"] for value in model.values() if isinstance(value, int)}
        numbers |= {value for change in data.get("changes", []) for value in added(change) if value is not None}
        terminal(width)
        monkeypatch.setenv("NO_COLOR", "1")
        text = fine("compare", *models)
        assert max(map(len, text.splitlines())) <= width
        shown = {int(digits.replace(",", "")) for digits in re.findall(r"(?<![\w.,+])[-]?\d[\d,]*(?![\w.])", text)}
        shown |= {int(digits.replace(",", "")) for digits in re.findall(r"\+\d[\d,]*", text)}
        numbers -= {model["sequence_attention_flops"] for model in data["models"]}  # a share on a screen
        assert numbers <= shown

    def test_the_title_answers(self, fine):
        title = fine("compare", "7b", "8b").splitlines()[0]
        assert (
            title
            == "against llama-2-7b at 4,096 tokens: llama-3-8b x 1.19 parameters, x 1.12 FLOPs a token, x 0.25 cache"
        )

    def test_any_mix_of_sources(self, compared, tmp_path, spec):
        config = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        data = compared(spec("base"), path, "gpt2", "--context", "11")
        assert [model["total_parameters"] for model in data["models"]] == [6_591, 124_439_808, 124_439_808]
        data = compared("gpt2", path)
        assert data["changes"] == []  # the importer and the preset say the same

    def test_every_number_has_its_working(self, compared, fine, spec):
        """The same keys and values; components are sums of lines that are there."""
        paths = spec("a"), spec("b", "d_ff: 37", "d_ff: 41")
        models = compared(*paths)["models"]
        explained = json.loads(fine("compare", *paths, "--explain", "--json"))
        for model, told in zip(models, explained, strict=True):
            values = {number["name"]: number["value"] for number in told["numbers"]}
            for key, value in model.items():
                if isinstance(value, int):
                    assert values[key] == value, key
            for dtype, size in model["weight_bytes"].items():
                assert values[f"weight_bytes_{dtype}"] == size

    def test_all_presets(self, compared):
        names = [*preset_names(), "gpt2", "7b", "8b"]
        assert len(names) >= 38
        data = compared(*names, "--memory-tokens", "512")
        assert len(data["models"]) == len(data["ratios"]) == len(names)
        assert len({model["model"] for model in data["models"]}) == len(names)

    def test_twenty_models_take_no_time(self, compared):
        """Twenty. Aim: under a second, measured by tests/bench/startup.py; the bound is for a busy machine."""
        names = preset_names()[:20]
        compared(*names, "--memory-tokens", "512")
        start = time.process_time()
        compared(*names, "--memory-tokens", "512")
        assert time.process_time() - start < 5


class TestBaseline:
    """Whose ratios, and whose changes."""

    @pytest.mark.parametrize("word", ["llama-3-8b", "8b"])
    def test_by_its_name_or_as_it_was_typed(self, compared, word):
        data = compared("7b", "8b", "--baseline", word)
        assert data["baseline"] == "llama-3-8b"
        assert [ratio["kv_cache_bytes"] for ratio in data["ratios"]] == [4.0, 1.0]
        assert added(data["all"]) == (-1_291_845_632, -1_795_162_112, 1_610_612_736)
        assert_closed(data)

    def test_a_column_of_its_own_for_equal_names(self, compared):
        assert compared("gpt2", "7b", "gpt2", "--baseline", "gpt2 #2")["baseline"] == "gpt2 #2"
        assert compared("gpt2", "7b", "gpt2", "--baseline", "gpt2")["baseline"] == "gpt2 #1"
        assert compared("7b", "gpt2", "--baseline", "gpt2")["baseline"] == "gpt2"

    @pytest.mark.parametrize(
        ("word", "hint"),
        [("llama-3-9b", "did you mean --baseline 'llama-3-8b'?"), ("xyz", "gpt2, llama-3-8b"), ("", "gpt2")],
    )
    def test_an_unknown_one_is_refused_with_the_nearest(self, refused, word, hint):
        what, told = refused("compare", "gpt2", "8b", "--baseline", word)
        assert what == f"no model here is called {word!r}"
        assert hint in told

    @pytest.mark.parametrize(("word", "second"), [("7b", "gpt2"), ("gpt2", "8b")])
    def test_one_model_is_refused(self, refused, word, second):
        what, told = refused("compare", word)
        assert "one model" in what
        assert told == f"name two or more, such as costcalc compare {word} {second}"

    @pytest.mark.parametrize(
        ("word", "meant"),
        [
            ("8b,7b", "8b 7b"),
            ("llama-3.2-1b,8b,", "llama-3.2-1b 8b"),
            ("8b,", "8b, gpt2"),
            ("./a,b.yaml", "./a,b.yaml gpt2"),
        ],
    )
    def test_a_comma_is_no_second_model(self, refused, word, meant):
        assert refused("compare", word)[1] == f"name two or more, such as costcalc compare {meant}"

    def test_none_is_refused(self, refused):
        assert "MODEL" in refused("compare")[0]

    def test_an_unknown_dtype_is_refused(self, refused):
        assert "q8_0" in refused("compare", "gpt2", "8b", "--dtype", "q8")[1]


class TestContext:
    """One for all."""

    def test_the_smallest_that_is_known(self, compared, spec):
        data = compared("8b", spec("none", "context_length: 11\n", ""), "7b")
        assert (data["context"], data["note"]) == (
            4_096,
            "4,096 tokens for all: the smallest context_length, llama-2-7b's",
        )

    def test_as_asked(self, compared):
        data = compared("7b", "8b", "--context", "8k")
        assert data["context"] == 8_192
        assert "note" not in data

    def test_none_known(self, refused, spec):
        what, hint = refused("compare", *(spec(name, "context_length: 11\n", "") for name in "ab"))
        assert what == "none of the models has a context_length"
        assert "--context 8k" in hint

    def test_longer_than_a_table_of_positions(self, compared):
        assert "1,024 rows of gpt2's position table" in compared("gpt2", "8b", "--context", "2k")["note"]


class TestChanges:
    """What each difference of two models costs alone."""

    def test_worked_by_hand(self, compared, spec):
        """At 11 tokens, against 6,591 parameters and 3·2·2·5·11 elements of 2 bytes.

        vocab_size 19 -> 23: 4 rows of 13 in embedding and head, the head's matmul: 104 parameters, 2·52 FLOPs.
        d_ff 37 -> 41: 3 layers · 2 matrices · 13·4 = 312, and twice as many FLOPs.
        kv_heads 2 -> 3: 3 layers · k and v of 13·5 = 390 and 780 FLOPs; 3·2·5·11 elements = 660 bytes.
        None of them touches another's matrices, so that nothing is left for together.
        """
        data = compared(
            spec("base"), spec("wide", "vocab_size: 19", "vocab_size: 23", "37", "41", "kv_heads: 2", "kv_heads: 3")
        )
        assert singles(data) == {
            "vocab_size": (104, 104, 0),
            "attention.kv_heads": (390, 780, 660),
            "feed_forward.d_ff": (312, 624, 0),
        }
        assert added(data["together"]) == (0, 0, 0)
        assert added(data["all"]) == (806, 1_508, 660)

    def test_what_only_the_combination_does(self, compared, spec):
        """repeat 3 -> 5 and d_ff 37 -> 41: two layers of 2,028; 3·104; together the 2·104 of wider new layers.

        FLOPs of a new layer: 2·(1,040 + 962) and the core 2·2·11·6·5 = 1,320: 5,324; its cache 2·2·5·11·2 = 440 bytes.
        """
        data = compared(spec("base"), spec("deep", "repeat: 3", "repeat: 5", "37", "41"))
        assert singles(data) == {"repeat": (4_056, 10_648, 880), "feed_forward.d_ff": (312, 624, 0)}
        assert added(data["together"]) == (208, 416, 0)
        assert added(data["all"]) == (4_576, 11_688, 880)

    def test_what_costs_nothing_is_there(self, compared, spec):
        other = spec(
            "b",
            "context_length: 11",
            "context_length: 17",
            "norm: rmsnorm",
            "norm: {kind: rmsnorm, eps: 1e-5}",
            "d_ff: 37",
            "d_ff: 37, activation: relu",
            "head_dim: 5",
            "head_dim: 5, scale: 0.5",
        )
        data = compared(spec("a"), other)
        assert list(singles(data)) == ["context_length", "norm.eps", "attention.scale", "feed_forward.activation"]
        assert {*singles(data).values(), added(data["together"]), added(data["all"])} == {(0, 0, 0)}

    def test_another_kind_with_its_own_width(self, compared, fine, spec):
        """dense of 37 -> gated of 41: 3 layers · 13·(3·41 - 2·37) = 1,911 and twice as many FLOPs, in one row."""
        paths = spec("a"), spec("b", "{d_ff: 37}", "{kind: gated, d_ff: 41, bias: false}")
        (change,) = compared(*paths)["changes"]
        assert (change["field"], change["base"], change["other"], change["layers"]) == (
            "feed_forward",
            "dense",
            "gated",
            3,
        )
        assert change["with"] == [
            {"field": "d_ff", "base": 37, "other": 41},
            {"field": "activation", "base": "gelu", "other": "silu"},
        ]
        assert added(change) == (1_911, 3_822, 0)
        assert ["changes", "with d_ff", "", "37", "41", "", "", "", "exact"] in list(
            csv.reader(io.StringIO(fine("compare", *paths, "--format", "csv")))
        )

    def test_what_is_impossible_alone_says_why_and_the_sum_closes(self, compared, fine, spec):
        """8 heads on 4, or 6 on 3: 6 on 4 and 8 on 3 do not go."""
        paths = spec("a", "heads: 6, kv_heads: 2", "heads: 8, kv_heads: 4"), spec("b", "kv_heads: 2", "kv_heads: 3")
        data = compared(*paths)
        reasons = {change["field"]: change["impossible_alone"] for change in data["changes"]}
        assert reasons == {
            "attention.heads": "heads 6 is not a multiple of kv_heads 4",
            "attention.kv_heads": "heads 8 is not a multiple of kv_heads 3",
        }
        assert set(singles(data).values()) == {(None, None, None)}
        assert data["together"] == data["all"]
        assert_closed(data)
        text = fine("compare", *paths)
        assert re.search(r"^attention\.heads +8 +6 +- +- +-$", text, re.MULTILINE)
        assert (
            "\nnote: attention.heads alone is impossible, so that what it does is in together: heads 6 is not" in text
        )

    def test_what_was_left_out_is_shown_as_what_follows(self, compared, fine, spec):
        """12 / 2 = 6, against 5: the row says why it was 6."""
        paths = [
            spec(name, "d_model: 13", "d_model: 12", "heads: 6, kv_heads: 2, head_dim: 5", f"heads: 2{more}")
            for name, more in (("a", ""), ("b", ", head_dim: 5"))
        ]
        (change,) = compared(*paths)["changes"]
        assert (change["base"], change["base_derived_from"], change["other"]) == (6, "d_model / heads", 5)
        assert re.search(
            r"^attention\.head_dim +6 \(d_model / heads\) +5 +-288 ", fine("compare", *paths), re.MULTILINE
        )

    def test_what_was_left_out_is_priced_as_it_is_printed(self, compared, fine, spec):
        """H = 7 -> 29 / 1: 22 wider, so that 3 layers have 4 matrices of 29·22; K and V of 22, 11 times, 2 bytes."""
        paths = [
            spec(name, "d_model: 13", "d_model: 29", "heads: 6, kv_heads: 2, head_dim: 5", f"heads: 1{more}")
            for name, more in (("a", ", head_dim: 7"), ("b", ""))
        ]
        assert singles(compared(*paths)) == {"attention.head_dim": (7_656, 3 * (8 * 29 * 22 + 4 * 11 * 22), 2_904)}
        assert re.search(
            r"^attention\.head_dim +7 +29 \(d_model / heads\) +\+7,656 ", fine("compare", *paths), re.MULTILINE
        )

    def test_heads_alone_are_heads_alone(self, compared, spec):
        """D = 14, H = 7 = 14 / 2 on 2 -> 4 heads of the 7 that are written there: q and output of 3·2·14·14."""
        old = "heads: 6, kv_heads: 2, head_dim: 5"
        base = spec("a", "d_model: 13", "d_model: 14", old, "heads: 2, kv_heads: 1")
        other = spec("b", "d_model: 13", "d_model: 14", old, "heads: 4, kv_heads: 1, head_dim: 7")
        assert singles(compared(base, other)) == {"attention.heads": (1_176, 2 * 1_176 + 3 * 4 * 11 * 14, 0)}

    def test_key_value_heads_that_both_leave_out_go_with_the_heads(self, compared, fine, spec):
        """D 14 -> 21, N = K 2 -> 3, H 7: a head more is 3 layers · 4 · 14·7; its cache 3·2·7·11 numbers of 2 bytes."""
        old = "heads: 6, kv_heads: 2, head_dim: 5"
        base = spec("a", "d_model: 13", "d_model: 14", old, "heads: 2")
        other = spec("b", "d_model: 13", "d_model: 21", old, "heads: 3")
        data = compared(base, other)
        # D: 7 more in 3 · (4·14 + 2·37 + 2 norms), the last norm and two tables of 19
        assert singles(data) == {
            "d_model": (7 * (3 * (4 * 14 + 74 + 2) + 1 + 38), 2 * 7 * (3 * (56 + 74) + 19), 0),
            "attention.heads": (1_176, 2 * 1_176 + 3 * 4 * 11 * 7, 924),
        }
        assert data["changes"][1]["with"] == [{"field": "kv_heads", "base": 2, "other": 3}]
        assert_closed(data)
        assert re.search(r"^  with kv_heads +2 \(heads\) +3 \(heads\)", fine("compare", base, other), re.MULTILINE)

    def test_a_derived_size_that_differs_has_its_row(self, fine, spec):
        """14 / 2 and 26 / 2."""
        old = "heads: 6, kv_heads: 2, head_dim: 5"
        paths = [spec(name, "d_model: 13", f"d_model: {d}", old, "heads: 2") for name, d in (("a", 14), ("b", 26))]
        row = r"^attention\.head_dim +7 \(d_model / heads\) +13 \(d_model / heads\) +\+2,016 "  # 3 · 4 · 14 · 2·6
        assert re.search(row, fine("compare", *paths), re.MULTILINE)

    def test_one_model_written_in_two_ways(self, fine, spec):
        old = "heads: 6, kv_heads: 2, head_dim: 5"
        short = spec("a", "d_model: 13", "d_model: 14", old, "heads: 2", "repeat: 3", "repeat: 4")
        one = "  - {repeat: 2, attention: {heads: 2, kv_heads: 2, head_dim: 7}, feed_forward: {d_ff: 37}}\n"
        long = spec("b", "d_model: 13", "d_model: 14", BASE[BASE.index("  - repeat") :], one + one)
        assert "no field differs: a and b are one architecture" in fine("compare", short, long)

    def test_layers_of_one_depth_are_compared_one_by_one(self, fine, spec):
        """The last of three layers has 41: 2 · 13 · 4."""
        heads = "{{heads: 6, kv_heads: 2, head_dim: 5}}"
        one = "  - {{name: {}, repeat: {}, attention: " + heads + ", feed_forward: {{d_ff: {}}}}}\n"
        other = spec("b", BASE[BASE.index("  - repeat") :], one.format("x", 2, 37) + one.format("y", 1, 41))
        text = fine("compare", spec("a"), other)
        assert re.search(r"^feed_forward\.d_ff \(1 layer: 2\) +37 +41 +\+104 ", text, re.MULTILINE)
        assert "note: layers of another number" not in text

    def test_some_of_the_layers(self, fine, spec):
        layers = (
            "  - {name: x, repeat: 2, attention: {heads: 1}, feed_forward: {d_ff: 37}}\n  - {attention: {heads: 1}}\n"
        )
        start, end = BASE.index("  - repeat"), len(BASE)
        paths = [
            spec(name, BASE[start:end], layers.replace("d_ff: 37", f"d_ff: {d_ff}"))
            for name, d_ff in (("a", 37), ("b", 41))
        ]
        assert re.search(
            r"^feed_forward\.d_ff \(2 layers: 0-1\) +37 +41 +\+208 ", fine("compare", *paths), re.MULTILINE
        )

    def test_a_stack_apart_from_its_layers(self, fine, spec):
        """The final norm is the stack's: -13 for one bias less; the layers' own are named apart."""
        paths = [
            spec(
                name,
                "norm: rmsnorm",
                f"decoder: {{norm: {stack}, layers: [{{repeat: 3, norm: {own}, attention: {{heads: 1}}}}]}}",
                BASE[BASE.index("layers:") :],
                "",
            )
            for name, stack, own in (("a", "layernorm", "rmsnorm"), ("b", "rmsnorm", "layernorm"))
        ]
        text = fine("compare", *paths)
        assert re.search(r"^norm \(outside the layers\) +layernorm +rmsnorm +-13 ", text, re.MULTILINE)
        assert re.search(r"^norm \(3 layers: 0-2\) +rmsnorm +layernorm +\+39 ", text, re.MULTILINE)

    def test_other_structures_are_one_change(self, compared, fine):
        data = compared("8b", "gemma-2-9b")
        (layers,) = [change for change in data["changes"] if change["field"] == "layers"]
        assert (layers["base"], layers["other"], layers["layers"]) == ("32 layers", "42 layers of 2 kinds", 32)
        assert_closed(data)
        assert "note: layers of another number and in another structure are one change" in fine(
            "compare", "8b", "gemma-2-9b"
        )

    def test_values_as_people_write_them(self, fine):
        text = fine("compare", "gpt2", "8b")
        assert re.search(r"^tie_embeddings +true +false +\+38,597,376 ", text, re.MULTILINE)
        assert re.search(r"^norm +layernorm +rmsnorm +-19,200 ", text, re.MULTILINE)  # 25 biases of 768
        assert re.search(r"^positions +learned +rope +-786,432 ", text, re.MULTILINE)
        assert re.search(r"^attention\.kv_heads +12 \(heads\) +8 +- +- +-$", text, re.MULTILINE)
        text = fine("compare", "8b", "qwen3-8b")
        assert re.search(r"^norm\.eps +1e-05 +1e-06 +0 +0 +0$", text, re.MULTILINE)
        assert re.search(r"^positions\.theta +500,000 +1,000,000 +0 +0 +0$", text, re.MULTILINE)
        assert re.search(r"^attention\.qk_norm +none +per_head +\+8,192 ", text, re.MULTILINE)  # 32 layers · 2 · 128

    @pytest.mark.parametrize("form", ["table", "csv", "markdown"])
    def test_the_same_model_twice(self, fine, form):
        text = fine("compare", "gpt2", "gpt2", "--format", form)
        assert "no field differs: gpt2 #1 and gpt2 #2 are one architecture" in text.replace("\\", "")
        assert "together" not in text

    def test_the_same_model_twice_in_json(self, compared):
        data = compared("gpt2", "gpt2")
        assert data["changes"] == []
        assert added(data["all"]) == added(data["together"]) == (0, 0, 0)
        assert [model["model"] for model in data["models"]] == ["gpt2 #1", "gpt2 #2"]

    def test_three_models_have_no_changes(self, compared, fine):
        assert "changes" not in compared("gpt2", "7b", "8b")
        assert "changes" not in fine("compare", "gpt2", "7b", "8b")

    def test_the_cache_in_another_dtype(self, compared, spec):
        """q8_0: 60 elements a token, 11 tokens, 34/32: 701.25 up; 90 a token: 1,051.875 up; 702 + 350 = 1,052."""
        data = compared(spec("a"), spec("b", "kv_heads: 2", "kv_heads: 3"), "--dtype", "q8_0")
        assert [model["kv_cache_bytes"] for model in data["models"]] == [702, 1_052]
        assert added(data["all"])[2] == 350

    def test_the_keys(self, compared):
        data = compared("7b", "8b")
        assert list(data)[-4:] == ["changes", "together", "all", "note"]
        for change in data["changes"]:
            assert list(change) == [
                "field",
                "layers",
                "base",
                "base_derived_from",
                "other",
                "other_derived_from",
                "with",
                *KEYS,
                "impossible_alone",
            ]
        assert list(data["together"]) == list(data["all"]) == list(KEYS)


FIELDS = {
    # field -> the texts that a written spec may have for it
    "vocab_size": ("19", "23"),
    "d_model": ("12", "24", "13"),
    "context_length": ("11", "17"),
    "tie_embeddings": ("true", "false"),
    "norm": ("rmsnorm", "layernorm"),
    "positions": ("rope", "{kind: learned, length: 29}"),
    "repeat": ("3", "5"),
    "norms": ("pre", "sandwich", "post"),
    "attention.heads": ("2", "3", "4", "6"),
    "attention.kv_heads": ("null", "1", "2"),
    "attention.head_dim": ("null", "5"),
    "attention.window": ("null", "7"),
    "attention.bias": ("true", "false"),
    "feed_forward.d_ff": ("37", "41"),
}


def written(values):
    """The mapping of one choice; a null is left out."""
    data = {"layers": [{"attention": {}, "feed_forward": {}}]}
    for field, text in values.items():
        if text != "null":
            first, _, rest = field.partition(".")
            place = data["layers"][0] if field in ("repeat", "norms") or rest else data
            (place[first] if rest else place)[rest or first] = yaml_value(text)
    return data


def yaml_value(text):
    if text.startswith("{"):
        return {"kind": "learned", "length": 29}
    return {"true": True, "false": False}.get(text, int(text) if text.isdigit() else text)


def costs(values):
    """What the spec has, made from scratch, at 11 tokens; None where no such model is possible."""
    try:
        model = costcalc.load(written(values))
    except costcalc.CostcalcError:
        return None
    token = costcalc.flops(model, costcalc.Workload(new_tokens=1, past_tokens=10)).forward
    return costcalc.parameters(model).total, token, costcalc.kv_cache(model, 11).bytes


def stands_for(values):
    """What a choice leaves out, written."""
    heads, norms = values["attention.heads"], values["norms"]
    told = {
        "attention.kv_heads": heads,
        "attention.head_dim": str(int(values["d_model"]) // int(heads)),
        "final_norm": "false" if norms == "post" else "true",
    }
    return values | {field: text for field, text in told.items() if values.get(field, "null") == "null"}


def changed(field, base, other):
    """One field as it is there, and kv_heads with the heads where both leave them out."""
    new = stands_for(other)
    follows = field == "attention.heads" and base["attention.kv_heads"] == other["attention.kv_heads"] == "null"
    return {name: new[name] for name in (field, *["attention.kv_heads"] * follows)}


def test_random_pairs_add_up_and_every_single_change_is_what_its_own_spec_costs(compared, tmp_path):
    """60 pairs: each row against a spec written with that one field changed, then the sums."""
    rng = random.Random(7)
    pairs = impossible = 0
    while pairs < 60:
        base, other = ({field: rng.choice(texts) for field, texts in FIELDS.items()} for _ in range(2))
        start, end = costs(base), costs(other)
        if start is None or end is None:
            continue
        pairs += 1
        paths = []
        for name, values in (("a", base), ("b", other)):
            paths.append(tmp_path / f"{name}.yaml")
            paths[-1].write_text(json.dumps({"name": name, **written(values)}), encoding="utf-8")
        data = compared(*paths, "--context", "11")
        assert_closed(data)
        kept = stands_for(base)
        for change in data["changes"]:
            alone = costs({**kept, **changed(change["field"], base, other)})
            if alone is None:
                impossible += 1
                assert change["impossible_alone"]
                assert added(change) == (None, None, None)
            else:
                assert added(change) == tuple(then - now for then, now in zip(alone, start, strict=True))
    assert impossible > 10

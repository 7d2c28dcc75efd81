"""The JSON that scripts read: keys change only with a new `schema` number, so the examples are compared literally."""

import json
import re

import pytest

from costcalc.cli.main import run

# The contract as it was agreed on, word for word; "..." stands for components that are left out.
CONTRACT = r"""
$ costcalc params 8b --format json
{"schema": "costcalc.params/1", "costcalc_version": "0.1.0", "model": "llama-3-8b",
 "total_parameters": 8030261248, "embedding_parameters": 1050673152, "non_embedding_parameters": 6979588096,
 "active_parameters": 8030261248, "active_parameters_without_input_table": 7504924672, "active_parameters_without_tables": 6979588096,
 "trainable_parameters": 8030261248, "buffers": 0, "extra_parameters": 0,
 "components": [{"path": "decoder.embedding", "axes": {"V": 128256, "D": 4096}, "times": 1, "parameters": 525336576},
                {"path": "decoder.layers.attention.q", "axes": {"D": 4096, "N": 32, "H": 128}, "times": 32, "parameters": 536870912}, ...]}

$ costcalc flops 8b --seq-len 48 --counting rectangle --format json
{"schema": "costcalc.flops/1", "costcalc_version": "0.1.0", "model": "llama-3-8b",
 "workload": {"batch": 1, "new_tokens": 48, "past_tokens": 0, "memory_tokens": 0, "counting": "rectangle", "logits": "all", "latent": null},
 "forward_flops": 721655169024, "weight_flops": 720447209472, "attention_flops": 1207959552, "modelled_flops": 0, "train_flops": 2164965507072}

$ costcalc kv 8b --context 8k --dtype bf16 --format json
{"schema": "costcalc.kv/1", "costcalc_version": "0.1.0", "model": "llama-3-8b", "context": 8192, "memory_tokens": 0, "batch": 1, "dtype": "bf16",
 "kv_cache_elements": 536870912, "cross_cache_elements": 0, "state_elements": 0, "kv_cache_bytes": 1073741824, "kv_bytes_per_token": 131072, "state_bytes": 0}
"""  # noqa: E501 - literally
EXAMPLES = dict(re.findall(r"\$ costcalc (.*)\n((?:.+\n)+)", CONTRACT))
PARAMS, FLOPS, KV = EXAMPLES

PARAMS_KEYS = ["schema", "costcalc_version", "model", "total_parameters", "embedding_parameters"]
PARAMS_KEYS += ["non_embedding_parameters", "active_parameters", "active_parameters_without_input_table"]
PARAMS_KEYS += ["active_parameters_without_tables", "trainable_parameters", "buffers", "extra_parameters", "components"]


def pairs(text):
    """JSON with each object as a list of (key, value), so that the order counts; a float or NaN is refused."""

    def refuse(number):
        raise AssertionError(f"{number} is no whole number")

    return json.loads(text, object_pairs_hook=list, parse_float=refuse, parse_constant=refuse)


@pytest.fixture
def output(capsys):
    def call(line):
        code = run(line.split())
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return call


@pytest.mark.parametrize("line", [FLOPS, KV])
def test_the_object_is_literally_the_agreed_one(output, line):
    assert pairs(output(line)) == pairs(EXAMPLES[line])


def test_params_is_literally_the_agreed_one(output):
    wanted = dict(pairs(EXAMPLES[PARAMS].replace(", ...]", "]")))
    got = dict(pairs(output(PARAMS)))
    listed, components = wanted.pop("components"), got.pop("components")
    assert list(got.items()) == list(wanted.items())
    assert [component for component in components if component in listed] == listed


def test_the_components_add_up_to_the_total(output):
    data = json.loads(output(PARAMS))
    total = 0
    for component in data["components"]:
        assert list(component) == ["path", "axes", "times", "parameters"]
        product = component["times"]
        for size in component["axes"].values():
            product *= size
        assert product == component["parameters"]
        total += product
    assert total == data["total_parameters"] == 8_030_261_248


@pytest.mark.parametrize("line", EXAMPLES)
def test_numbers_are_whole_and_never_booleans(output, line):
    text = output(line)
    pairs(text)
    assert "true" not in text
    assert "false" not in text


@pytest.mark.parametrize("line", [line.replace(" 8b", " 7b 8b gpt2") for line in EXAMPLES])
def test_several_models_give_an_array_of_such_objects(output, line):
    one_by_one = [json.loads(output(line.replace(" 7b 8b gpt2", f" {name}"))) for name in ("7b", "8b", "gpt2")]
    assert json.loads(output(line)) == one_by_one
    assert [data["model"] for data in one_by_one] == ["llama-2-7b", "llama-3-8b", "gpt2"]


@pytest.mark.parametrize("line", EXAMPLES)
def test_json_is_short_for_format_json(output, line):
    assert output(line.replace("--format json", "--json")) == output(line)


@pytest.mark.parametrize(
    "options",
    [
        "--seq-len 1 --past-tokens 8191",  # decode
        "--seq-len 48 --logits last",  # prefill for generation
        "--seq-len 48 --past-tokens 1",  # a chunk of a prefill
    ],
)
def test_a_pass_that_trains_nothing_has_null_and_a_note(output, options):
    data = json.loads(output(f"flops 8b {options} --json"))
    assert data["train_flops"] is None
    assert list(data)[-2:] == ["train_flops", "note"]
    assert data["note"].startswith("train_flops is null: ")


def test_a_training_pass_has_no_note(output):
    data = json.loads(output("flops 8b --seq-len 48 --json"))
    assert list(data)[-1] == "train_flops"
    assert data["train_flops"] == 3 * data["forward_flops"]


@pytest.mark.parametrize("line", ["kv gpt2 --context {}", "flops gpt2 --seq-len {}", "show gpt2 --context {}"])
def test_a_text_longer_than_the_position_table_gets_a_note(output, line):
    """GPT-2 has 1,024 rows of learned positions."""
    assert "note" not in json.loads(output(f"{line.format(1024)} --json"))
    assert "1,024" in json.loads(output(f"{line.format(1025)} --json"))["note"]


def test_past_tokens_count_towards_the_position_table(output):
    """1,000 + 25 = 1,025 rows; and there are two things to say then."""
    note = json.loads(output("flops gpt2 --seq-len 25 --past-tokens 1000 --json"))["note"]
    assert "train_flops" in note
    assert "1,025" in note


def test_params_by_layer_adds_the_layers(output):
    data = json.loads(output("params gemma-2-9b --by layer --json"))
    assert list(data) == [*PARAMS_KEYS, "layers"]
    assert data["layers"][1] == {
        "stack": "decoder",
        "layer": 1,
        "group": "decoder.layers.global",
        "parameters": 198_195_200,
    }
    assert [layer["layer"] for layer in data["layers"]] == list(range(42))


@pytest.mark.parametrize("by", ["component", "tensor"])
def test_params_has_the_same_keys_by_component_and_by_tensor(output, by):
    assert list(json.loads(output(f"params 8b --by {by} --json"))) == PARAMS_KEYS


def test_show_names_its_numbers_as_the_other_commands_do(output):
    shown = json.loads(output("show 8b --context 8k --dtype q8_0 --json"))
    assert list(shown)[:3] == ["schema", "costcalc_version", "model"]
    assert shown["schema"] == "costcalc.show/1"
    params = json.loads(output("params 8b --json"))
    for key in ("total_parameters", "embedding_parameters", "non_embedding_parameters"):
        assert shown[key] == params[key]
    kv = json.loads(output("kv 8b --context 8k --dtype q8_0 --json"))
    for key in ("context", "dtype", "kv_cache_bytes", "kv_bytes_per_token"):
        assert shown[key] == kv[key]
    token = json.loads(output("flops 8b --seq-len 1 --past-tokens 8191 --json"))
    assert shown["next_token_flops"] == token["forward_flops"]
    assert shown["next_token_weight_flops"] == token["weight_flops"]
    assert shown["next_token_attention_flops"] == token["attention_flops"]
    sequence = json.loads(output("flops 8b --seq-len 8k --json"))
    assert shown["sequence_forward_flops"] == sequence["forward_flops"]
    assert shown["sequence_attention_flops"] == sequence["attention_flops"]
    assert shown["sequence_train_flops"] == sequence["train_flops"]
    assert shown["sequence_6nd_flops"] == 6 * 8_030_261_248 * 8_192


def test_presets_and_schema_say_which_schema_they_are(output):
    presets = json.loads(output("presets --json"))
    assert list(presets) == ["schema", "costcalc_version", "presets"]
    assert presets["schema"] == "costcalc.presets/1"
    assert presets["presets"][0].keys() == {"name", "aliases", "total_parameters", "context_length", "source"}
    assert json.loads(output("schema"))["$schema"] == "https://json-schema.org/draft/2020-12/schema"


# The later commands, word for word as well; lists of many entries show the first ones.
LATER = r"""
$ costcalc attention gpt2 --contexts 1k --json
{"schema": "costcalc.attention/1", "costcalc_version": "0.1.0", "model": "gpt2", "counting": "attended",
 "memory_tokens": 0, "dtype": "bf16",
 "contexts": [{"context": 1024, "next_token_forward_flops": 284812800, "next_token_attention_flops": 37748736,
               "next_token_weight_flops": 247064064, "sequence_forward_flops": 272339828736,
               "sequence_attention_flops": 19346227200, "sequence_weight_flops": 252993601536,
               "score_matrix_bytes": 301989888, "score_matrix_bytes_per_layer": 25165824}],
 "crossings": {"half_of_weights_context": {"next_token": 3352, "sequence": 6702},
               "equal_to_weights_context": {"next_token": 6703, "sequence": 13404}}}

$ costcalc train gpt2 --tokens 1M --json
{"schema": "costcalc.train/1", "costcalc_version": "0.1.0", "model": "gpt2", "tokens": 1000000, "seq_len": 1024,
 "memory_tokens": 0,
 "sequences": 976, "tokens_of_a_shorter_sequence": 576, "train_flops": 797856322977792,
 "conventions": [{"name": "exact_attended", "status": "exact", "train_flops": 797856322977792,
                  "weight_flops": 741192192000000, "attention_flops": 56664130977792, "ratio_to_exact": 1.0,
                  "formula": "weights_attended + core_attended",
                  "source": "3 times the forward pass, part by part",
                  "why": "what the mask and the windows let through"}, ...]}

$ costcalc weights gpt2 --memory 1GB --bits 3 --json
{"schema": "costcalc.weights/1", "costcalc_version": "0.1.0", "model": "gpt2", "total_parameters": 124439808,
 "memory_bytes": 1000000000,
 "formats": [{"format": "3 bits", "bits_per_weight": 3.0, "weight_bytes": 46664928, "left_bytes": 953335072, "status": "exact"},
             {"format": "fp64", "bits_per_weight": 64.0, "weight_bytes": 995518464, "left_bytes": 4481536, "status": "exact"}, ...]}

$ costcalc fits gpt2 --memory 1GB --json
{"schema": "costcalc.fits/1", "costcalc_version": "0.1.0", "model": "gpt2", "context": 1024, "memory_tokens": 0, "kv_dtype": "bf16", "weights": "bf16",
 "memory_bytes": 1000000000, "blocks": null, "block_size": 16, "window_slots": 0, "reserve_bytes": 0, "weight_bytes": 248879616,
 "pool_bytes": 751120384, "fits": true,
 "architectural": {"bytes_per_conversation": 37748736, "conversations": 19, "bytes_of_conversations": 717225984, "concurrency": 19.897895, "longest_context": 20375},
 "engine_reserved": {"bytes_per_conversation": 37748736, "conversations": 19, "bytes_of_conversations": 717225984, "concurrency": 19.897895, "longest_context": 20368},
 "note": "gpt2: the KV cache, not the weights, limits how many users fit: one more would make 720.00 MiB of cache beside 237.35 MiB of weights; gpt2: the memory would hold more tokens than its context_length of 1,024; blocks is null: the memory is given in bytes"}

$ costcalc fits gpt2 --blocks 64 --window-slots all --json
{"schema": "costcalc.fits/1", "costcalc_version": "0.1.0", "model": "gpt2", "context": 1024, "memory_tokens": 0, "kv_dtype": "bf16", "weights": null,
 "memory_bytes": null, "blocks": 64, "block_size": 16, "window_slots": null, "reserve_bytes": 0, "weight_bytes": null,
 "pool_bytes": 37748736, "fits": true,
 "architectural": {"bytes_per_conversation": 37748736, "conversations": 1, "bytes_of_conversations": 37748736, "concurrency": 1.0, "longest_context": 1024},
 "engine_reserved": {"bytes_per_conversation": 37748736, "conversations": 1, "bytes_of_conversations": 37748736, "concurrency": 1.0, "longest_context": 1024},
 "note": "memory_bytes, weights and weight_bytes are null: the blocks are what they left; window_slots is null: windows are ignored"}

$ costcalc explain gpt2 kv --json
{"schema": "costcalc.explain/1", "costcalc_version": "0.1.0", "model": "gpt2", "explained": ["kv_cache_bytes"],
 "numbers": [{"name": "decoder.layers.attention.k_cache", "unit": "elements", "value": 9437184, "status": "exact",
              "formula": "L\u00b7B\u00b7S\u00b7K\u00b7H", "latex": "L \\, B \\, S \\, K \\, H",
              "with_numbers": "12\u00b71\u00b71,024\u00b712\u00b764", "inputs": [], "source": null}, ...]}

$ costcalc explain gpt2 --json
{"schema": "costcalc.explain/1", "costcalc_version": "0.1.0", "model": "gpt2", "explained": [],
 "numbers": [{"name": "total_parameters", "unit": "parameters", "value": 124439808}, ...]}
"""  # noqa: E501 - literally
LATER_EXAMPLES = dict(re.findall(r"\$ costcalc (.*)\n((?:.+\n)+)", LATER))


def begins(got, wanted, *, is_cut):
    """Whether one is the other, key by key and in order; of a list that is cut, its first entries."""
    if isinstance(wanted, dict):
        return list(got) == list(wanted) and all(begins(got[key], wanted[key], is_cut=is_cut) for key in wanted)
    if is_cut and isinstance(wanted, list) and wanted and isinstance(wanted[0], dict):
        return len(got) > len(wanted) and got[: len(wanted)] == wanted and all(map(same_keys, got[:-1], got[1:]))
    return got == wanted and type(got) is type(wanted)


def same_keys(one, other):
    return [key for key in one if key != "note"] == [key for key in other if key != "note"]


@pytest.mark.parametrize("line", LATER_EXAMPLES)
def test_the_later_objects_are_literally_the_written_ones(output, line):
    text = LATER_EXAMPLES[line]
    got, wanted = json.loads(output(line)), json.loads(text.replace(", ...]", "]"))
    if line == "explain gpt2 --json":  # which number comes first says nothing
        got["numbers"].sort(key=lambda number: number["name"] != "total_parameters")
    assert begins(got, wanted, is_cut=", ...]" in text), json.dumps(got)[:2000]


@pytest.mark.parametrize("line", LATER_EXAMPLES)
def test_several_models_give_an_array_of_the_later_objects(output, line):
    if line.startswith("explain"):  # of one model only
        return
    both = json.loads(output(line.replace(" gpt2", " gpt2 gpt2")))
    assert both == [json.loads(output(line))] * 2


def test_a_convention_that_does_not_apply_has_nulls_and_a_note(output, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text("vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers: [{feed_forward: {d_ff: 37}}]\n")
    data = json.loads(output(f"train {path} --tokens 7 --seq-len 7 --json"))
    (kaplan,) = [way for way in data["conventions"] if way["name"] == "kaplan"]
    assert list(kaplan.items())[:8] == [
        ("name", "kaplan"),
        ("status", "estimate"),
        *[(key, None) for key in ("train_flops", "weight_flops", "attention_flops", "ratio_to_exact")],
        *[(key, None) for key in ("formula", "source")],
    ]
    assert list(kaplan)[8:] == ["why", "note"]


def test_trained_layers_add_a_note_and_no_key(output):
    assert list(json.loads(output("params gpt2 --train-layers last:2 --json"))) == [*PARAMS_KEYS, "note"]

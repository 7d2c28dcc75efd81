"""`costcalc params` on models small enough to add up by hand (conftest.py does)."""

import csv
import io
import json

import pytest


def rows(text):
    """(section, quantity) -> the other cells, of CSV."""
    return {(row[0], row[1]): row[2:] for row in csv.reader(io.StringIO(text))}


def test_totals_and_components(fine, tiny):
    """Norms 3·2·13 + 13; attention 3·1,040; feed-forward 3·1,443; shares of 8,177."""
    assert rows(fine("params", tiny, "--format", "csv")) == {
        ("section", "quantity"): ["unit", "tiny", "share", "status"],
        ("parameters", "total"): ["parameters", "8177", "", "exact"],
        ("parameters", "embedding tables"): ["parameters", "637", "", "exact"],
        ("parameters", "non-embedding"): ["parameters", "7540", "", "exact"],
        ("by component", "embedding"): ["parameters", "247", "0.030207", "exact"],
        ("by component", "positions"): ["parameters", "143", "0.017488", "exact"],
        ("by component", "norms"): ["parameters", "91", "0.011129", "exact"],
        ("by component", "attention"): ["parameters", "3120", "0.381558", "exact"],
        ("by component", "feed_forward"): ["parameters", "4329", "0.529412", "exact"],
        ("by component", "head"): ["parameters", "247", "0.030207", "exact"],
    }


def test_the_title_says_the_answer(fine, tiny):
    assert fine("params", tiny).splitlines()[0] == "tiny: 8,177 parameters (8.18 K)"


def parts(text):
    """label -> (each or shape, parameters) of the second table of `params MODEL --by layer|tensor`."""
    found = {key: cell for key, cell in rows(text).items() if key[0].startswith("by ")}
    return {key[1]: (cell[1], int(cell[2])) for key, cell in found.items()}


def test_by_layer_has_one_row_for_equal_layers(fine, windowed):
    """A layer here has two matrices of 481 in its feed-forward: 1,040 + 962 + 26 = 2,028; 2·247 + 13 stand outside."""
    assert parts(fine("params", windowed, "--by", "layer", "--format", "csv")) == {
        "decoder layers 0-1, 3-4 (4 local)": ("2028", 8_112),
        "decoder layer 2 (1 global)": ("2028", 2_028),
        "outside the layers": ("", 507),
    }


def test_many_ranges_of_layers_are_shortened(fine):
    labels = list(parts(fine("params", "gemma-2-9b", "--by", "layer", "--format", "csv")))
    assert labels[:2] == ["decoder layers 0, 2, 4, ... (21 local)", "decoder layers 1, 3, 5, ... (21 global)"]


def test_by_layer_needs_no_names(fine, tiny):
    """3 layers of 2,509; embedding, positions, head and final norm are 650."""
    assert parts(fine("params", tiny, "--by", "layer", "--format", "csv")) == {
        "decoder layers 0-2": ("2509", 7_527),
        "outside the layers": ("", 650),
    }


def test_layers_of_unnamed_kinds_are_known_by_their_index(fine, tmp_path):
    (tmp_path / "model.yaml").write_text(
        "vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers: [{feed_forward: {d_ff: 37}}, {feed_forward: {d_ff: 11}}]\n"
    )
    text = fine("params", tmp_path / "model.yaml", "--by", "layer", "--format", "csv")
    # 2·13·37 + 13 and 2·13·11 + 13
    assert "decoder layer 0,parameters,975,975," in text
    assert "decoder layer 1,parameters,299,299," in text


def test_by_layer_in_json_lists_every_layer(fine, windowed):
    layers = json.loads(fine("params", windowed, "--by", "layer", "--json"))["layers"]
    assert [layer["group"].rpartition(".")[2] for layer in layers] == ["local", "local", "global", "local", "local"]
    assert {layer["parameters"] for layer in layers} == {2_028}


def test_by_tensor_shows_every_matrix_with_its_shape(fine, tiny):
    tensors = parts(fine("params", tiny, "--by", "tensor", "--format", "csv"))
    assert tensors["decoder.layers.attention.k"] == ("D 13 x K 2 x H 5, 3 times", 390)
    assert tensors["decoder.layers.feed_forward.gate"] == ("D 13 x F 37, 3 times", 1_443)
    assert tensors["decoder.final_norm"] == ("D 13", 13)
    assert sum(count for _, count in tensors.values()) == 8_177
    tiny.write_text(tiny.read_text().replace("repeat: 3", "repeat: 2"))
    shorter = parts(fine("params", tiny, "--by", "tensor", "--format", "csv"))
    assert shorter["decoder.layers.attention.k"] == ("D 13 x K 2 x H 5, 2 times", 260)


@pytest.mark.parametrize(("by", "column"), [("component", 1), ("layer", 2), ("tensor", 2)])
@pytest.mark.parametrize("model", ["gpt2", "gemma-2-9b", "phi-2", "llama-3.2-1b"])
def test_the_rows_add_up_to_the_total(fine, model, by, column):
    cells = rows(fine("params", model, "--by", by, "--format", "csv"))
    amounts = [int(cell[column]) for key, cell in cells.items() if key[0] == f"by {by}"]
    assert sum(amounts) == int(cells["parameters", "total"][column])


def test_several_models_are_columns(fine, tiny, windowed):
    cells = rows(fine("params", tiny, windowed, "--format", "csv"))
    assert cells["section", "quantity"] == ["unit", "tiny", "windowed", "status"]
    # 5 layers of 2,028, the final norm, embedding and head: 10,647
    assert cells["parameters", "total"] == ["parameters", "8177", "10647", "exact"]
    assert cells["by component", "positions"] == ["parameters", "143", "", "exact"]
    assert cells["by component", "feed_forward"] == ["parameters", "4329", "4810", "exact"]


def test_the_same_model_twice_gives_two_columns(fine, tiny):
    assert rows(fine("params", tiny, "gpt2", tiny, "--format", "csv"))["section", "quantity"] == [
        "unit",
        "tiny #1",
        "gpt2",
        "tiny #2",
        "status",
    ]


def test_what_is_not_trained_gets_a_row_of_its_own(fine, tmp_path):
    """A sinusoidal table of 11·13 held as a parameter counts in the total, one held as a buffer beside it."""
    body = "vocab_size: 19\nd_model: 13\nnorm: rmsnorm\nlayers: [{feed_forward: {d_ff: 37}}]\n"
    path = tmp_path / "model.yaml"
    path.write_text(body + "positions: {kind: sinusoidal, stored: frozen, length: 11}\n")
    data = json.loads(fine("params", path, "--json"))
    # 2·247 + 962 + 2·13 = 1,482
    assert (data["total_parameters"], data["trainable_parameters"], data["buffers"]) == (1_625, 1_482, 0)
    assert [part for part in data["components"] if "role" in part] == [
        {"path": "decoder.positions", "axes": {"T": 11, "D": 13}, "times": 1, "parameters": 143, "role": "frozen"}
    ] or data["components"][1]["role"] == "frozen"
    cells = rows(fine("params", path, "--format", "csv"))
    assert cells["parameters", "trainable"][1] == "1482"
    assert ("parameters", "buffers") not in cells
    assert cells["by component", "positions"][1] == "143"

    path.write_text(body + "positions: {kind: sinusoidal, stored: buffer, length: 11}\n")
    data = json.loads(fine("params", path, "--json"))
    assert (data["total_parameters"], data["trainable_parameters"], data["buffers"]) == (1_482, 1_482, 143)
    cells = rows(fine("params", path, "--format", "csv"))
    assert cells["parameters", "buffers"][1] == "143"
    assert ("parameters", "trainable") not in cells
    assert ("by component", "positions") not in cells


def test_a_published_figure_that_agrees_is_said_to(fine):
    assert "gpt2: the published figure, 124,439,808, agrees" in fine("params", "gpt2")
    assert "gpt3-175b: the published figure, 174.6B, agrees" in fine("params", "gpt3")


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("8177", "8,177, agrees"),
        ("8178", "8,178, DIFFERS from this count by -1"),
        ("7000", "7,000, DIFFERS from this count by +1,177"),
        ('"8.2K"', "8.2K, agrees"),
        ('"8.1K"', "8.1K, DIFFERS"),
    ],
)
@pytest.mark.parametrize("command", ["params", "show"])
def test_a_published_figure_is_compared_at_its_printed_digits(fine, tiny, command, printed, said):
    tiny.write_text(f"{tiny.read_text()}published_parameters: {printed}\n")
    assert f"the published figure, {said}" in fine(command, tiny, "--format", "markdown")


def test_without_a_published_figure_nothing_is_said_of_one(fine, tiny):
    assert "published" not in fine("params", tiny, "--format", "markdown")
    assert json.loads(fine("show", tiny, "--json"))["published_parameters"] is None


@pytest.mark.parametrize(
    ("word", "hint"),
    [("compnent", "--by component"), ("layers", "--by layer"), ("qqq", "component, layer, tensor"), ("", "component")],
)
def test_an_unknown_by_is_refused(refused, word, hint):
    what, told = refused("params", "gpt2", "--by", word)
    assert repr(word) in what
    assert hint in told

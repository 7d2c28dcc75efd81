"""The working of `costcalc show`'s numbers, under the names of the page."""

import json

import pytest

from costcalc import load
from costcalc.calculators.attention import attention_figures
from costcalc.calculators.workings import cache_figures, parameter_figures
from costcalc.cli.pages import RENAMED, page_figures, stored_figures

CONTEXT = 5_003


def values(figures):
    return {name: figure.value for name, figure in figures.items()}


@pytest.mark.parametrize("model", ["gpt2", "gemma-2-9b", "mistral-7b-v0.1"])
def test_every_key_has_the_figure_of_its_name(model):
    for name, figure in page_figures(load(model).inventory, CONTEXT, "bf16").items():
        assert figure.name == name


def test_the_page_of_a_tiny_model(tiny):
    """7 tokens of conftest.py's model: 15,392 FLOPs of weights a token and 360 a pair, 60 elements of cache a token."""
    figures = page_figures(load(str(tiny)).inventory, 7, "q8_0")
    assert {
        name: figures[name].value
        for name in figures
        if name.startswith(("next_token_", "sequence_", "kv_")) and not name.endswith("share")
    } == {
        "next_token_weight_flops": 15_392,
        "next_token_attention_flops": 2_520,
        "next_token_modelled_flops": 0,
        "next_token_forward_flops": 17_912,
        "next_token_flops_per_token": 17_912,
        "next_token_flops": 17_912,
        "sequence_weight_flops": 107_744,
        "sequence_attention_flops": 10_080,
        "sequence_modelled_flops": 0,
        "sequence_forward_flops": 117_824,
        "sequence_flops_per_token": 16_832,
        "sequence_train_flops": 353_472,
        "sequence_6nd_flops": 343_434,  # 6·8,177·7
        "kv_cache_elements": 420,
        "kv_cache_bytes": 447,  # 420·34/32, rounded up
        "kv_bytes_per_token": 63,  # 480·34/32 = 510
    }
    assert figures["total_parameters"].value == 8_177
    assert figures["rule_of_thumb.total_parameters"].value == 7_943  # 7,449 and two vocabulary tables of 247
    assert figures["rule_of_thumb.kv_bytes_per_token"].value == 120  # 16-bit, whatever the dtype
    assert figures["score_matrix_bytes"].value == 938  # 882·34/32, rounded up


def test_what_the_page_calls_otherwise_is_the_same_number():
    figures = page_figures(load("8b").inventory, CONTEXT, "bf16")
    for new, old in RENAMED.items():
        assert (figures[new].value, figures[new].formula) == (figures[old].value, figures[old].formula)


def test_the_numbers_are_those_of_the_other_commands():
    inventory = load("gemma-2-9b").inventory
    figures = values(page_figures(inventory, CONTEXT, "q8_0", batch=3, counting="rectangle"))
    others = {
        **parameter_figures(inventory),
        **attention_figures(inventory, CONTEXT, counting="rectangle", dtype="q8_0"),
        **cache_figures(inventory, CONTEXT, batch=3, dtype="q8_0"),
    }
    assert {name: figures[name] for name in others} == values(others)


def test_the_batch_is_the_caches_alone():
    inventory = load("8b").inventory
    one, three = (values(page_figures(inventory, CONTEXT, "bf16", batch=batch)) for batch in (1, 3))
    changed = {name for name in one if one[name] != three[name]}
    assert changed == {"kv_cache_elements", "kv_cache_bytes", "kv_bytes_per_token"}
    assert {three[name] for name in changed} == {3 * one[name] for name in changed}


@pytest.mark.parametrize("model", ["gpt2", "gemma-2-9b", "qwen3-8b"])
def test_show_prints_what_the_figures_come_to(fine, model):
    data = json.loads(fine("show", model, "--context", CONTEXT, "--dtype", "q4_0", "--json"))
    figures = values(page_figures(load(model).inventory, CONTEXT, "q4_0"))
    told = {**data, **{f"rule_of_thumb.{key}": number for key, number in data["rule_of_thumb"].items()}}
    both = {name: number for name, number in told.items() if name in figures}
    assert len(both) == 17
    assert both == {name: figures[name] for name in both}


def test_weights_in_several_dtypes(tiny):
    figures = stored_figures(load(str(tiny)).inventory, ("bf16", "int4"))
    assert values(figures) == {"weight_bytes.bf16": 16_354, "weight_bytes.int4": 4_089}


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("line", ["show 8b --explain", "params gpt2 --by layer --explain", "flops 8b --explain"])
def test_a_working_fits_a_narrow_terminal(narrow, columns, line):
    assert {"s": "15,009,316,864", "p": "124,439,808", "f": "140,550,657,277,952"}[line[0]] in narrow(
        columns, *line.split()
    )

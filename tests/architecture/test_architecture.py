import numpy as np
import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

import costcalc
from costcalc.architecture import Architecture, Block, Stack
from costcalc.architecture.attention import GroupedQuery
from costcalc.architecture.feed_forward import Gated
from costcalc.architecture.norm import RMSNorm
from costcalc.inventory import Cached, Matmul, Weight, Workload


def test_every_parameter_of_a_small_decoder(made):
    # embedding 19 x 13 = 247; a layer: norms 2 x 13, attention 2·D·N·H + 2·D·K·H = 780 + 260, feed-forward 2 x 13 x 37
    # = 962, so 2,028, three times 6,084; final norm 13; head 247
    held = {weight.path: weight.parameters for weight in made().inventory.weights}
    assert held == {
        "decoder.embedding": 247,
        "decoder.layers.attention_norm": 39,
        "decoder.layers.attention.q": 1_170,
        "decoder.layers.attention.k": 390,
        "decoder.layers.attention.v": 390,
        "decoder.layers.attention.output": 1_170,
        "decoder.layers.feed_forward_norm": 39,
        "decoder.layers.feed_forward.up": 1_443,
        "decoder.layers.feed_forward.down": 1_443,
        "decoder.final_norm": 13,
        "head": 247,
    }
    assert sum(held.values()) == 247 + 6_084 + 13 + 247


def test_records_come_in_the_order_of_the_model(made):
    paths = [weight.path for weight in made(positions={"kind": "learned", "length": 11}).inventory.weights]
    assert paths[:3] == ["decoder.embedding", "decoder.positions", "decoder.layers.attention_norm"]
    assert paths[-2:] == ["decoder.final_norm", "head"]


def test_a_tied_head_multiplies_by_the_embedding(made):
    inventory = made(tie_embeddings=True).inventory
    assert (inventory.matmuls[-1].path, inventory.matmuls[-1].of) == ("head", "decoder.embedding")
    assert "head" not in [weight.path for weight in inventory.weights]


def test_the_layout_names_the_group_of_each_layer(made):
    assert made().inventory.layout == {"decoder": ("decoder.layers",) * 3}
    layers = [{"name": "a", "feed_forward": {"d_ff": 37}}, {"name": "b", "feed_forward": {"d_ff": 41}}]
    assert made(layers=layers).inventory.layout == {"decoder": ("decoder.layers.a", "decoder.layers.b")}


def test_the_groups_are_those_of_the_stack(made):
    (group,) = made().groups
    assert (group.path, group.times, group.block.feed_forward.d_ff) == ("decoder.layers", 3, 37)


def test_letters_for_closed_forms(made):
    assert made().inventory.letters == {"L": 3, "V": 19, "D": 13, "N": 6, "K": 2, "H": 5, "F": 37}


def test_the_inventory_is_made_once(made):
    model = made()
    assert model.inventory is model.inventory


def test_a_model_is_frozen_and_equal_by_value(made):
    assert made() == made()
    assert made() != made(d_model=17)
    with pytest.raises(ValidationError):
        made().d_model = 17


@pytest.mark.parametrize(
    ("positions", "longest"),
    [
        ({"kind": "learned", "length": 11}, 11),
        ({"kind": "sinusoidal", "length": 11}, 11),
        ({"kind": "sinusoidal", "length": 7, "stored": "buffer"}, 7),
        ({"kind": "sinusoidal"}, None),
        ({"kind": "rope"}, None),
        ({"kind": "none"}, None),
    ],
)
def test_a_table_ends_somewhere(made, positions, longest):
    assert made(positions=positions).longest() == longest


def test_what_was_derived_is_told(made):
    layers = [{"attention": {"heads": 13}}]
    assert list(made(layers=layers).derived_facts()) == [
        "head_dim = d_model / heads = 13 / 13 = 1",
        "kv_heads = heads = 13 (multi-head attention)",
        "a final norm",
        "the head has its own table (tie_embeddings is false unless written)",
    ]


def test_what_was_written_is_not_told(made):
    assert list(made(final_norm=True, tie_embeddings=False).derived_facts()) == []
    assert list(made(final_norm=False, tie_embeddings=True).derived_facts()) == []


def test_no_final_norm_is_told_where_layers_end_in_one(made):
    model = made(block={"norms": "post"}, tie_embeddings=True)
    assert list(model.derived_facts()) == ["no final norm (norms: post)"]


def test_what_several_groups_derive_is_told_once_each(made):
    layers = [{"attention": {"heads": 13}}, {"attention": {"heads": 13, "window": 7}}, {"attention": {"heads": 1}}]
    facts = list(made(layers=layers, final_norm=True, tie_embeddings=True).derived_facts())
    assert facts == [
        "head_dim = d_model / heads = 13 / 13 = 1",
        "kv_heads = heads = 13 (multi-head attention)",
        "head_dim = d_model / heads = 13 / 1 = 13",
        "kv_heads = heads = 1 (multi-head attention)",
    ]


@pytest.mark.parametrize("published", [1, 8_030_261_248, 10**18, "174.6B", "124M", "7"])
def test_a_published_figure_is_kept_as_it_is_printed(made, published):
    assert made(published_parameters=published).published_parameters == published


@pytest.mark.parametrize(
    ("published", "shown"),
    [
        (0, "0"),
        (-1, "-1"),
        (10**18 + 1, "1000000000000000001"),
        (True, "true"),
        (1.5, "1.5"),
        (1e9, "1000000000.0"),
        ("174.6 billion", "'174.6 billion'"),
        ("", "''"),
        ([1], "a list"),
    ],
)
def test_what_is_no_published_figure(refusal, published, shown):
    said = f'must be a whole number, or a figure as printed, such as "174.6B", got {shown}'
    assert str(refusal(published_parameters=published)) == said


@pytest.mark.parametrize(
    ("published", "passes"),
    [
        (1, True),
        (8_030_261_248, True),
        ("174.6B", True),
        (0, False),
        (1.5, False),
        ("174.6 billion", False),
        ([], False),
    ],
)
def test_editors_judge_a_published_figure_as_the_model_does(published, passes):
    schema = Architecture.model_json_schema()["properties"]["published_parameters"]
    assert Draft202012Validator(schema).is_valid(published) is passes


@pytest.mark.parametrize("key", ["name", "source"])
def test_a_line_of_text(made, key):
    assert getattr(made(**{key: "Llama 3, 8B \N{EM DASH} base"}), key) == "Llama 3, 8B \N{EM DASH} base"
    assert getattr(made(**{key: "x" * 300}), key) == "x" * 300


@pytest.mark.parametrize("key", ["name", "source"])
@pytest.mark.parametrize("text", ["", " ", "two\nlines", "\x1b[31mred", "x" * 301, 7, True, b"x"])
def test_what_is_no_line_of_text(made, key, text):
    with pytest.raises(ValidationError):
        made(**{key: text})


@pytest.mark.parametrize("text", [" ", "two\nlines"])
def test_a_line_of_text_is_printable_and_not_blank(refusal, text):
    assert str(refusal(name=text)) == "must be one line of printable text"


def test_a_model_is_called_model_unless_it_has_a_name(made):
    assert (made().name, made().source, made().published_parameters, made().context_length) == (
        "model",
        None,
        None,
        None,
    )


@pytest.mark.parametrize("lacking", ["vocab_size", "d_model", "layers"])
def test_what_a_model_cannot_do_without(written, lacking):
    with pytest.raises(ValidationError):
        Architecture.model_validate(written(**{lacking: None}))


@pytest.mark.parametrize("key", ["vocab_size", "d_model", "context_length"])
@pytest.mark.parametrize("size", [0, True, "19", 0.5, 10**12 + 1])
def test_sizes_are_whole_numbers(made, key, size):
    with pytest.raises(ValidationError):
        made(**{key: size})


def test_rules_are_told_with_the_place_in_the_full_form(refusal):
    error = refusal(layers=[{"feed_forward": {"d_ff": 37}}, {"attention": {"heads": 6}}])
    assert error.where == ("decoder", "layers", 1, "attention")


def test_two_layers_of_one_name_are_found_when_the_model_is_made(refusal):
    layers = [{"name": "a", "feed_forward": {"d_ff": 37}}, {"name": "a", "feed_forward": {"d_ff": 41}}]
    assert str(refusal(layers=layers)) == "two different layers are both named 'a'"


def test_more_than_a_hundred_thousand_layers_are_refused(refusal):
    assert refusal(layers=[{"repeat": 10**12, "feed_forward": {"d_ff": 37}}]).where == ("decoder", "layers")


def swept_model(*, vocab_size, d_model, heads, kv_heads, d_ff):
    """A Llama-like model whose sizes may be arrays, so nothing is validated."""
    layer = Block.model_construct(
        repeat=3,
        norm=RMSNorm(),
        attention=GroupedQuery.model_construct(heads=heads, kv_heads=kv_heads),
        feed_forward=Gated.model_construct(d_ff=d_ff),
    )
    decoder = Stack.model_construct(norm=RMSNorm(), layers=(layer,))
    return Architecture.model_construct(vocab_size=vocab_size, d_model=d_model, decoder=decoder)


def test_a_sweep_of_whole_models_gives_the_numbers_of_one_at_a_time():
    sizes = {
        "vocab_size": [19, 23, 29],
        "d_model": [30, 70, 45],
        "heads": [6, 10, 15],
        "kv_heads": [2, 5, 3],
        "d_ff": [37, 41, 43],
    }
    one_pass = Workload(batch=2, new_tokens=11, past_tokens=7)
    swept = swept_model(**{name: np.array(values) for name, values in sizes.items()}).inventory.records
    for index in range(3):
        one = swept_model(**{name: values[index] for name, values in sizes.items()}).inventory.records
        for many, single in zip(swept, one, strict=True):
            count = {
                Weight: lambda r: r.parameters,
                Matmul: lambda r: r.flops(one_pass),
                Cached: lambda r: r.elements(one_pass),
            }[type(single)]
            assert (many.path, count(many)[index]) == (single.path, count(single))


def test_a_changed_copy_states_its_own_records():
    """V·D of one table: 19·13 becomes 23·13."""
    made = costcalc.load(
        {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "tie_embeddings": True, "layers": [LAYER]}
    )
    total = costcalc.parameters(made).total
    assert costcalc.parameters(made.model_copy(update={"vocab_size": 23})).total == total + 4 * 13


def test_a_copy_with_other_layers_has_their_groups():
    written = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm"}
    one, two = (
        costcalc.load({**written, "layers": layers}) for layers in ([LAYER], [LAYER, {"feed_forward": {"d_ff": 5}}])
    )
    copied = one.model_copy(update={"decoder": two.decoder})
    assert [group.path for group in one.groups] == ["decoder.layers"]
    assert copied.groups == two.groups
    assert copied.inventory == two.inventory


LAYER = {"feed_forward": {"d_ff": 37}}

import pytest

from costcalc import load
from costcalc.calculators.components import component_of, sum_by_component
from costcalc.calculators.parameters import parameters
from costcalc.inventory import Inventory

ONE_GROUP = Inventory((), {"decoder": ("decoder.layers",)})
GROUPS = Inventory(
    (),
    {
        "encoder": ("encoder.layers",),
        "decoder": ("decoder.layers.local", "decoder.layers.1", "decoder.layers.11", "decoder.layers.attention"),
    },
)


@pytest.mark.parametrize(
    ("path", "component"),
    [
        ("decoder.embedding", "embedding"),
        ("decoder.embedding_projection", "embedding"),
        ("decoder.embedding_projection_bias", "embedding"),
        ("decoder.positions", "positions"),
        ("decoder.final_norm", "norms"),
        ("decoder.final_norm_bias", "norms"),
        ("decoder.layers.attention.q", "attention"),
        ("decoder.layers.attention.q_norm", "attention"),  # part of the attention, not of the block
        ("decoder.layers.attention_norm", "norms"),
        ("decoder.layers.attention_norm_bias", "norms"),
        ("decoder.layers.attention_output_norm", "norms"),
        ("decoder.layers.norm", "norms"),
        ("decoder.layers.norm_bias", "norms"),
        ("decoder.layers.feed_forward.up_bias", "feed_forward"),
        ("head", "head"),
        ("head_bias", "head"),
        ("head.projection", "head"),
    ],
)
def test_the_component_of_a_path(path, component):
    assert sum_by_component([(path, 7)], ONE_GROUP) == {component: 7}


@pytest.mark.parametrize(
    ("path", "component"),
    [
        ("decoder.layers.local.attention.q", "attention"),
        ("decoder.layers.local.feed_forward_norm", "norms"),
        ("decoder.layers.1.feed_forward.up", "feed_forward"),
        ("decoder.layers.11.attention.scores", "attention"),
        ("decoder.layers.attention.feed_forward.up", "feed_forward"),  # a group may be called attention
        ("decoder.layers.attention.norm", "norms"),
        ("encoder.layers.attention.q", "attention"),
        ("encoder.embedding", "embedding"),
        ("decoder.final_norm", "norms"),
    ],
)
def test_the_name_of_a_group_is_no_component(path, component):
    assert sum_by_component([(path, 7)], GROUPS) == {component: 7}


def test_amounts_are_summed_in_the_order_of_the_model():
    amounts = [
        ("decoder.embedding", 2),
        ("decoder.layers.norm", 3),
        ("head", 5),
        ("decoder.final_norm", 7),
        ("head", 11),
    ]
    assert list(sum_by_component(amounts, ONE_GROUP).items()) == [("embedding", 2), ("norms", 10), ("head", 16)]


def test_the_components_of_gpt2_add_up():
    """12 x (4 D^2 + 4 D) attention, 12 x (8 D^2 + 5 D) feed-forward, 25 norms of 2 D, tables, with D = 768."""
    inventory = load("gpt2").inventory
    count = parameters(inventory)
    sums = sum_by_component([(weight.path, weight.parameters) for weight in count.components], inventory)
    assert sums == {
        "embedding": 50_257 * 768,
        "positions": 1_024 * 768,
        "norms": 25 * 2 * 768,
        "attention": 12 * (4 * 768**2 + 4 * 768),
        "feed_forward": 12 * (8 * 768**2 + 5 * 768),
    }
    assert sum(sums.values()) == count.total


def test_every_group_of_gemma_2_adds_to_the_same_components():
    inventory = load("gemma-2-9b").inventory
    sums = sum_by_component([(weight.path, weight.parameters) for weight in inventory.weights], inventory)
    assert sums == {
        "embedding": 256_000 * 3584,
        "norms": (42 * 4 + 1) * 3584,
        "attention": 42 * 44_040_192,  # 3,584 x 256 x (16 + 8 + 8 + 16)
        "feed_forward": 42 * 3 * 3584 * 14_336,
    }


@pytest.mark.parametrize(
    ("word", "component"),
    [
        ("attention_residual_gain", "residual"),
        ("feed_forward_output_shift", "residual"),
        ("embedding_gain", "embedding"),
        ("attention.key_scale", "attention"),
    ],
)
def test_shifts_and_gains_of_the_stream_are_one_component(word, component):
    inventory = Inventory((), {"decoder": ("decoder.layers",) * 2})
    path = f"decoder.{word}" if word.startswith("embedding") else f"decoder.layers.{word}"
    assert component_of(path, inventory, inventory.layers_of) == component

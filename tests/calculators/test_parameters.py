import numpy as np
import pytest

from costcalc import load
from costcalc.calculators.parameters import group_parameters, layer_parameters, parameters, trained_weights
from costcalc.inventory import Inventory, Logits, Matmul, Tokens, Weight

GROUP = "decoder.layers"
LAYOUT = {"decoder": (GROUP,) * 3}
TABLE = Weight("decoder.embedding", {"V": 19, "D": 13}, table=True)  # 247
POSITIONS = Weight("decoder.positions", {"length": 11, "D": 13}, role="frozen", table=True)  # 143
MATRIX = Weight("decoder.layers.feed_forward.up", {"D": 13, "F": 37}, times=3)  # 481, three times: 1,443
EXPERTS = Weight("decoder.layers.experts.up", {"E": 17, "D": 13, "F": 7}, times=3, used={"E": 2})  # 4,641; used 546
BUFFER = Weight("decoder.layers.router.correction", {"E": 17}, times=3, role="buffer")  # 51
EXTRA = Weight("extra.embedding", {"V": 19, "D": 13}, role="extra", table=True, used={"V": 1})  # 247
HEAD = Weight("head", {"V": 19, "D": 13}, table=True)  # 247
EVERYTHING = (TABLE, POSITIONS, MATRIX, EXPERTS, BUFFER, EXTRA, HEAD)
OWN_HEAD = Matmul("head", {"B·T": Logits(), "V": 19, "D": 13}, of="head")
TIED_HEAD = Matmul("head", {"B·T": Logits(), "V": 19, "D": 13}, of="decoder.embedding")


def test_every_total_of_a_hand_made_model():
    count = parameters(Inventory((*EVERYTHING, OWN_HEAD), LAYOUT))
    assert count.trainable == 6_578  # 247 + 1,443 + 4,641 + 247
    assert count.total == 6_721  # and the frozen table: 143
    assert count.buffers == 51
    assert count.extra == 247
    assert count.embedding == 637  # 247 + 143 + 247: the extra table is beside the total
    assert count.non_embedding == 6_084  # 1,443 + 4,641
    assert count.active == 2_626  # 6,721 - (4,641 - 546): 2 of 17 experts
    assert count.active_without_input_table == 2_236  # less 247 and 143, which are only looked up
    assert count.active_without_tables == 1_989  # less the head's 247 too: 1,443 + 546
    assert count.components == EVERYTHING
    assert count.not_counted == ()


def test_a_table_that_the_head_multiplies_by_is_not_only_looked_up():
    count = parameters(Inventory((TABLE, POSITIONS, MATRIX, TIED_HEAD), LAYOUT))
    assert count.active == count.total == 1_833  # 247 + 143 + 1,443
    assert count.active_without_input_table == 1_690  # less the positions
    assert count.active_without_tables == 1_443


@pytest.mark.parametrize(
    ("role", "total", "trainable", "buffers", "extra"),
    [
        ("trainable", 1_443, 1_443, 0, 0),
        ("frozen", 1_443, 0, 0, 0),
        ("buffer", 0, 0, 1_443, 0),
        ("extra", 0, 0, 0, 1_443),
    ],
)
def test_a_role_decides_what_counts_it(role, total, trainable, buffers, extra):
    count = parameters(Inventory((MATRIX._replace(role=role),), LAYOUT))
    assert (count.total, count.trainable, count.buffers, count.extra) == (total, trainable, buffers, extra)
    assert count.active == count.active_without_tables == count.non_embedding == total


@pytest.mark.parametrize("role", ["buffer", "extra"])
def test_what_stands_beside_the_total_lowers_no_part_of_it(role):
    """A table or expert that does not count may not be taken away either."""
    count = parameters(Inventory((MATRIX, EXPERTS._replace(role=role, table=True)), LAYOUT))
    assert (count.total, count.embedding, count.active, count.active_without_input_table) == (1_443, 0, 1_443, 1_443)


def test_an_answer_is_frozen(small):
    with pytest.raises(AttributeError):
        parameters(small()).total = 0


def test_nothing_has_no_parameters():
    count = parameters(Inventory((), {}))
    assert (count.total, count.embedding, count.active, count.buffers, count.extra) == (0, 0, 0, 0, 0)


def test_the_totals_of_a_small_decoder(small):
    # tables 2 x 247 = 494; three layers of 26 + 1,040 + 962 = 2,028 are 6,084; final norm 13
    count = parameters(small())
    assert (count.total, count.embedding, count.non_embedding) == (6_591, 494, 6_097)
    assert count.active == count.trainable == 6_591
    assert (count.active_without_input_table, count.active_without_tables) == (6_344, 6_097)


def test_a_tied_table_counts_once(small):
    tied = parameters(small(tie_embeddings=True))
    assert (tied.total, tied.embedding, tied.active_without_input_table) == (6_344, 247, 6_344)


def test_the_totals_of_llama_3_8b():
    """The model card's 8,030,261,248, and its two tables of 128,256 x 4,096 = 525,336,576."""
    count = parameters(load("8b").inventory)
    assert (count.total, count.embedding, count.non_embedding) == (8_030_261_248, 1_050_673_152, 6_979_588_096)
    assert count.active_without_input_table == 7_504_924_672
    assert count.active_without_tables == 6_979_588_096


def test_the_totals_of_gpt2():
    """124,439,808 = 50,257 x 768 + 1,024 x 768 + 12 x (12 x 768^2 + 13 x 768) + 2 x 768."""
    count = parameters(load("gpt2").inventory)
    assert count.total == 124_439_808
    assert count.embedding == 51_281 * 768
    assert count.active_without_input_table == 124_439_808 - 1_024 * 768


def test_twice_the_layers_are_twice_the_layers_parameters(small):
    layers = [{"attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": {"d_ff": 37}}]
    counts = [parameters(small(layers=layers * n)).total for n in (1, 2, 3, 6)]
    assert counts == [507 + 2_028 * n for n in (1, 2, 3, 6)]


def test_the_parameters_of_one_layer(small):
    assert layer_parameters(small()) == {"decoder.layers": 2_028}


def test_the_parameters_of_one_layer_of_each_group(small):
    attention, wide = {"heads": 6, "kv_heads": 2, "head_dim": 5}, {"d_ff": 41}
    layers = [
        *({"repeat": 2, "name": "local", "attention": {**attention, "window": 7}, "feed_forward": {"d_ff": 37}},),
        {"attention": attention},
        {"name": "wide", "repeat": 3, "feed_forward": wide},
    ]
    assert layer_parameters(small(layers=layers)) == {
        "decoder.layers.local": 2_028,  # 26 + 1,040 + 962
        "decoder.layers.2": 1_053,  # 13 + 1,040
        "decoder.layers.wide": 1_079,  # 13 + 2 x 13 x 41
    }


def test_group_1_does_not_take_the_parameters_of_group_11(small):
    layers = [{"feed_forward": {"d_ff": d_ff}} for d_ff in range(1, 14)]
    # 13 + 2 x 13 x d_ff, and layer i has d_ff = i + 1
    assert layer_parameters(small(layers=layers)) == {f"decoder.layers.{i}": 13 + 26 * (i + 1) for i in range(13)}


def test_layers_and_the_rest_add_up_to_the_total():
    """A buffer in a layer is no parameter of it, nor is an extra part."""
    inventory = Inventory(EVERYTHING, LAYOUT)
    assert layer_parameters(inventory) == {GROUP: 2_028}  # 481 + 17 x 13 x 7 = 481 + 1,547
    frozen = Inventory((MATRIX._replace(role="frozen"),), LAYOUT)
    assert layer_parameters(frozen) == {GROUP: 481}


def test_a_group_without_parameters_has_none():
    assert layer_parameters(Inventory((TABLE,), LAYOUT)) == {GROUP: 0}


def test_arrays_give_the_numbers_of_one_model_at_a_time():
    def model(d_model, d_ff, experts):
        axes = {"D": d_model, "F": d_ff}
        return Inventory(
            (
                Weight("decoder.embedding", {"V": 19, "D": d_model}, table=True),
                Weight("decoder.layers.up", axes, times=3),
                Weight("decoder.layers.experts", {"E": experts, **axes}, times=3, used={"E": 2}),
                Weight("decoder.layers.router", {"E": experts}, times=3, role="buffer"),
                Matmul("decoder.layers.up", {"B·T": Tokens(), **axes}, times=3, of="decoder.layers.up"),
            ),
            LAYOUT,
        )

    sizes = ([13, 17], [37, 41], [5, 7])
    many = parameters(model(*map(np.array, sizes)))
    for index, one in enumerate(parameters(model(*each)) for each in zip(*sizes, strict=True)):
        for total in ("total", "embedding", "active", "active_without_input_table", "active_without_tables", "buffers"):
            assert getattr(many, total)[index] == getattr(one, total), total


def test_trained_layers_hold_what_is_trainable_in_them():
    """1 of 3 layers: a matrix of 481 and experts of 1,547; no table, no buffer, nothing that is frozen."""
    inventory = Inventory((*EVERYTHING, MATRIX._replace(path="decoder.layers.fixed", role="frozen")), LAYOUT)
    assert trained_weights(inventory, [1]) == (MATRIX._replace(times=1), EXPERTS._replace(times=1))
    assert sum(weight.parameters for weight in trained_weights(inventory, [0, 2])) == 4_056  # 2·(481 + 1,547)
    assert trained_weights(inventory, range(3)) == (MATRIX, EXPERTS)
    assert trained_weights(inventory, []) == ()


def test_trained_layers_are_counted_in_the_order_of_the_stacks():
    """Layers 0, 1 and 3 are near, layer 2 is far; an encoder before them would come first."""
    near = Weight("decoder.layers.near.up", {"D": 13, "F": 37}, times=3)
    far = Weight("decoder.layers.far.up", {"D": 13, "F": 11})
    first = Weight("encoder.layers.up", {"D": 13, "F": 7}, times=2)
    decoder = tuple(f"decoder.layers.{name}" for name in ("near", "near", "far", "near"))
    inventory = Inventory((near, far), {"decoder": decoder})
    assert trained_weights(inventory, [2]) == (far,)
    assert trained_weights(inventory, [2, 3]) == (near._replace(times=1), far)
    both = Inventory((near, far, first), {"encoder": ("encoder.layers",) * 2, "decoder": decoder})
    assert trained_weights(both, [1, 4]) == (far, first._replace(times=1))


SHARED = Weight("encoder.layers.feed_forward.up", {"D": 13, "F": 37})  # 481, for three layers
ENCODER = {"encoder": ("encoder.layers",) * 3}


def test_layers_that_share_their_weights_each_have_all_of_them_and_hold_them_once():
    inventory = Inventory((SHARED,), ENCODER)
    assert layer_parameters(inventory) == {"encoder.layers": 481}
    assert group_parameters(inventory) == {"encoder.layers": 481}
    assert parameters(inventory).total == 481
    apart = Inventory((SHARED._replace(times=3),), ENCODER)
    assert (layer_parameters(apart), group_parameters(apart)) == ({"encoder.layers": 481}, {"encoder.layers": 1_443})


@pytest.mark.parametrize("layers", [[0], [2], [0, 1, 2]])
def test_shared_weights_are_trained_once_as_soon_as_a_layer_is(layers):
    assert [weight.parameters for weight in trained_weights(Inventory((SHARED,), ENCODER), layers)] == [481]
    assert trained_weights(Inventory((SHARED,), ENCODER), []) == ()


def test_albert_has_one_set_of_weights_for_twelve_layers():
    """7,087,872 in each of them, and all of them together: 4·(768^2 + 768) + 2·768·3,072 + 3,072 + 768 + 4·768."""
    inventory = load("albert-base-v2").inventory
    assert layer_parameters(inventory) == group_parameters(inventory) == {"encoder.layers": 7_087_872}

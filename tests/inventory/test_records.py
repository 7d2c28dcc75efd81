import numpy as np
import pytest

from costcalc.inventory import (
    Cached,
    Context,
    Inventory,
    Logits,
    Matmul,
    Pairs,
    Tokens,
    Weight,
    WholeChunks,
    Workload,
    group_of,
)

PASS = Workload(batch=2, new_tokens=11, past_tokens=7)


def test_a_weight_is_the_product_of_its_axes_for_each_layer():
    weight = Weight("decoder.layers.attention.q", {"D": 13, "N": 6, "H": 5}, times=3)
    assert weight.parameters == 1170  # 13 x 6 x 5 x 3
    assert (weight.role, weight.table, weight.used) == ("trainable", False, None)


def test_a_weight_stands_for_one_layer_unless_said_otherwise():
    assert Weight("decoder.embedding", {"V": 19, "D": 13}).parameters == 247  # 19 x 13


def test_a_weight_that_is_used_in_part():
    experts = Weight("decoder.layers.feed_forward.up", {"E": 17, "D": 13, "F": 37}, times=3, used={"E": 2})
    assert experts.parameters == 24_531  # 17 x 13 x 37 x 3
    assert experts.used_parameters == 2_886  # 2 x 13 x 37 x 3
    assert experts._replace(used=None).used_parameters == 24_531


def test_a_matmul_is_two_operations_for_each_point_of_its_axes():
    q = Matmul("decoder.layers.attention.q", {"B·T": Tokens(), "D": 13, "N": 6, "H": 5}, times=3)
    assert q.flops(PASS) == 51_480  # 2 x (2 x 11) x 13 x 6 x 5 x 3
    assert (q.of, q.role, q.form) == (None, "weight", None)


def test_the_scores_of_a_layer_follow_the_pairs():
    scores = Matmul("decoder.layers.attention.scores", {"B·P": Pairs(), "N": 6, "H": 5}, role="scores")
    # P = T x past + T(T+1)/2 = 77 + 66 = 143; 2 x (2 x 143) x 6 x 5
    assert scores.flops(PASS) == 17_160


def test_a_cache_is_the_product_of_its_axes():
    k_cache = Cached("decoder.layers.attention.k_cache", {"B·S": Context(), "K": 2, "H": 5}, times=3)
    assert k_cache.elements(PASS) == 1_080  # (2 x 18) x 2 x 5 x 3
    assert (k_cache.kind, k_cache.dtype) == ("kv", None)


def test_records_are_exact_beyond_64_bits():
    huge = 10**12 - 11
    assert Weight("w", {"D": huge, "F": huge}, times=huge).parameters == huge**3
    assert Matmul("w", {"B·T": Tokens(), "D": huge, "F": huge}).flops(Workload(new_tokens=huge)) == 2 * huge**3
    assert Cached("w", {"B·S": Context(), "D": huge}).elements(Workload(batch=huge, new_tokens=huge)) == huge**3


@pytest.mark.parametrize("record", [Weight("w", {"D": 13}), Matmul("w", {"D": 13}), Cached("w", {"D": 13})])
def test_records_are_frozen(record):
    with pytest.raises(AttributeError):
        record.times = 2


def test_records_take_arrays():
    d_model, heads = np.array([13, 17]), np.array([6, 7])
    axes = {"D": d_model, "N": heads}
    assert Weight("q", axes, times=3).parameters.tolist() == [234, 357]  # 13 x 6 x 3, 17 x 7 x 3
    used = Weight("q", {"E": np.array([5, 7]), "D": d_model}, used={"E": np.array([2, 3])})
    assert used.used_parameters.tolist() == [26, 51]  # 2 x 13, 3 x 17
    assert Matmul("q", {"B·T": Tokens(), **axes}).flops(PASS).tolist() == [3_432, 5_236]  # 2 x 22 x 78, 2 x 22 x 119
    window = Context(window=np.array([5, 23]))
    assert Cached("k", {"B·S": window, **axes}).elements(PASS).tolist() == [780, 4_284]  # 2 x 5 x 78, 2 x 18 x 119


WEIGHTS = (
    Weight("decoder.embedding", {"V": 19, "D": 13}, table=True),
    Weight("decoder.layers.0.attention.q", {"D": 13, "N": 6, "H": 5}, times=2),
    Weight("decoder.layers.2.attention.q", {"D": 13, "N": 6, "H": 7}),
)
MATMULS = (
    Matmul("decoder.layers.0.attention.q", {"B·T": Tokens(), "D": 13, "N": 6, "H": 5}, times=2),
    Matmul("head", {"B·T": Logits(), "V": 19, "D": 13}, of="decoder.embedding"),
)
CACHED = (Cached("decoder.layers.0.attention.k_cache", {"B·S": Context(), "K": 2, "H": 5}, times=2),)
LAYOUT = {"decoder": ("decoder.layers.0", "decoder.layers.0", "decoder.layers.2")}
MIXED = Inventory((WEIGHTS[0], CACHED[0], WEIGHTS[1], MATMULS[0], WEIGHTS[2], MATMULS[1]), LAYOUT)


def test_an_inventory_hands_out_each_kind_of_record_in_order():
    assert MIXED.weights == WEIGHTS
    assert MIXED.matmuls == MATMULS
    assert MIXED.cached == CACHED


def test_an_inventory_is_frozen():
    with pytest.raises(AttributeError):
        MIXED.records = ()


def test_letters_are_those_that_the_whole_model_has_one_value_of():
    # H is 5 in two layers and 7 in the third; K stands in no weight here
    assert MIXED.letters == {"L": 3, "V": 19, "D": 13, "N": 6}


def test_layers_of_all_stacks_count():
    two = Inventory((), {"encoder": ("encoder.layers",) * 2, "decoder": ("decoder.layers",) * 3})
    assert two.letters == {"L": 5}


def test_a_group_stands_for_as_many_layers_as_the_layout_says():
    assert MIXED.layers_of == {"decoder.layers.0": 2, "decoder.layers.2": 1}


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("decoder.layers.0.attention.q", "decoder.layers.0"),
        ("decoder.layers.2.norm", "decoder.layers.2"),
        ("decoder.layers.22.norm", None),  # not the group 2
        ("decoder.embedding", None),
        ("head", None),
    ],
)
def test_a_record_lies_in_the_group_that_its_path_begins_with(path, group):
    assert group_of(path, MIXED.layers_of) == group


def test_a_group_may_be_named_as_a_part_of_a_layer():
    groups = {"decoder.layers.attention": 1, "decoder.layers.local": 1}
    assert group_of("decoder.layers.attention.attention.q", groups) == "decoder.layers.attention"
    assert group_of("decoder.layers.local.attention.q", groups) == "decoder.layers.local"
    assert group_of("decoder.layers.attention.q", {"decoder.layers": 3}) == "decoder.layers"


TOKEN_BY_TOKEN = Matmul("mixer.scan_read", {"B·T": Tokens(), "heads": 6}, role="scan", form="recurrent")
IN_CHUNKS = Matmul("mixer.scan_read", {"B·T": WholeChunks(4), "heads": 6}, role="scan", form="chunked")


@pytest.mark.parametrize(
    ("lengths", "runs"),
    [
        ({"new_tokens": 11}, TOKEN_BY_TOKEN),
        ({"new_tokens": 11, "past_tokens": 7}, TOKEN_BY_TOKEN),
        ({"new_tokens": 11, "counting": "rectangle"}, IN_CHUNKS),
        ({"new_tokens": 11, "past_tokens": 7, "counting": "rectangle"}, IN_CHUNKS),
        ({"new_tokens": 1, "counting": "rectangle"}, IN_CHUNKS),
        ({"new_tokens": 1, "past_tokens": 7, "counting": "rectangle"}, TOKEN_BY_TOKEN),
    ],
)
def test_one_form_of_a_scan_runs(lengths, runs):
    workload = Workload(**lengths)
    assert [matmul for matmul in (TOKEN_BY_TOKEN, IN_CHUNKS) if matmul.runs(workload)] == [runs]


def test_an_inventory_whose_scans_run_in_chunks():
    """11 tokens are 12 in chunks of 4."""
    plain = Matmul("mixer.conv", {"B·T": Tokens(), "taps": 3}, role="scan")
    inventory = Inventory((plain, TOKEN_BY_TOKEN, IN_CHUNKS), {"decoder": ("decoder.layers",)})
    workload = Workload(new_tokens=11)
    counted = [m.flops(workload) for m in inventory.chunked.matmuls if m.runs(workload)]
    assert counted == [2 * 11 * 3, 2 * 12 * 6]


def test_scans_are_no_latent_attention():
    absorbed = Matmul("attention.scores", {}, form="absorbed")
    assert [m.is_of_latent for m in (TOKEN_BY_TOKEN, IN_CHUNKS, absorbed, Matmul("q", {}))] == [
        False,
        False,
        True,
        False,
    ]

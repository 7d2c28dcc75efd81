"""Attentions of whole texts: D=13, N=3, H=5; 3·5 = 15 numbers of all heads."""

import pytest

from costcalc import CostcalcError, load
from costcalc.architecture.attention import (
    BlockSparse,
    Collisions,
    GlobalLocal,
    Landmarks,
    Local,
    MultiResolution,
    Sliding,
)
from costcalc.architecture.norm import RMSNorm
from costcalc.architecture.places import ENCODER, At
from costcalc.inventory import Matmul, Weight, Workload

HEADS = {"heads": 3, "head_dim": 5}
PLAIN = {"q": 195, "k": 195, "v": 195, "output": 195}  # 13·15
BIASES = {"q_bias": 15, "k_bias": 15, "v_bias": 15, "output_bias": 13}


def told(attention, stream=ENCODER, **lengths):
    """Parameters, and multiply-adds of a pass, by name."""
    records = list(attention.records(At("attention"), 13, stream))
    workload = Workload(**lengths)
    parameters = {r.path.removeprefix("attention."): r.parameters for r in records if type(r) is Weight}
    made = [r for r in records if type(r) is Matmul]
    return parameters, {r.path.removeprefix("attention."): r.flops(workload) // 2 for r in made}


def test_a_sliding_window_holds_two_sets_of_projections():
    """11 tokens, 2 to either side: 11·5 - 2·3 = 49 pairs of 15 numbers."""
    parameters, products = told(Sliding(**HEADS, window=4), new_tokens=11)
    second = {f"global_{name}": size for name, size in PLAIN.items() if name != "output"}
    biases = {f"global_{name}": size for name, size in BIASES.items() if name != "output_bias"}
    assert parameters == {**PLAIN, **BIASES, **second, **biases}
    assert products == {**{name: 11 * size for name, size in PLAIN.items()}, **dict.fromkeys(second, 0)} | {
        "scores": 49 * 15,
        "values": 49 * 15,
    }


def test_first_tokens_use_the_second_set():
    """One with all 11, ten others with it, and 10·5 - 6 = 44 pairs of those."""
    _, products = told(Sliding(**HEADS, window=4, first=1, bias=False, out_bias=False), new_tokens=11)
    assert products["scores"] == (11 + 10 + 44) * 15
    assert (products["global_q"], products["global_k"], products["global_v"]) == (195, 11 * 195, 11 * 195)


def test_blocks_of_two_with_one_drawn():
    """15 tokens are 8 blocks, of which the last has 1 token: (2 + 1)·15 + 2·2·(6 + 1 + 2) + 4·2·(8 + 1 + 2) = 169."""
    parameters, products = told(BlockSparse(**HEADS, block=2, random=1), new_tokens=15)
    assert parameters == {**PLAIN, **BIASES}
    assert products["scores"] == products["values"] == 169 * 15
    assert told(BlockSparse(**HEADS, block=2, random=1), new_tokens=14)[1]["scores"] == 14 * 14 * 15


def test_windows_with_sums_of_three():
    """11 tokens: 49 pairs near, 3 sums for each; keys and values of 14 rows."""
    parameters, products = told(Local(**HEADS, window=5, summed=3, norm=RMSNorm()), new_tokens=11)
    assert parameters == {"sums_norm": 13, **PLAIN}
    assert products == {
        "sums": 11 * 13,
        **{"q": 11 * 195, "k": 14 * 195, "v": 14 * 195, "output": 11 * 195},
        **{"scores": (49 + 33) * 15, "values": (49 + 33) * 15},
    }
    assert told(Local(**HEADS, window=5), new_tokens=11)[0] == PLAIN


def test_blocks_with_rows_beside_the_text():
    """11 tokens in blocks of 4, 4 and 3, and 2 rows beside: 16 + 16 + 9 + 2·2·11 + 4 = 89; staggered 4 + 32 + 1."""
    stream = ENCODER.handed(multiple=4, beyond=0, more=2)
    parameters, products = told(GlobalLocal(**HEADS, block=4), stream, new_tokens=11)
    assert parameters == PLAIN
    assert (products["q"], products["scores"]) == (13 * 195, 89 * 15)
    staggered = told(GlobalLocal(**HEADS, block=4, staggered=True, bias=True), stream, new_tokens=11)
    assert staggered[0] == {**PLAIN, **{name: size for name, size in BIASES.items() if name != "output_bias"}}
    assert staggered[1]["scores"] == (4 + 32 + 1 + 44 + 4) * 15


def test_landmarks_and_their_inverse():
    """11 tokens and 2 landmarks: 2·22 + 4 pairs of scores, 44 of values, 6·4 products of 2 x 2 matrices a head."""
    parameters, products = told(Landmarks(**HEADS, landmarks=2, taps=3), new_tokens=11)
    assert parameters == {**PLAIN, **BIASES, "conv": 3 * 3}
    assert (products["scores"], products["values"]) == (48 * 15, 44 * 15)
    assert (products["inverse"], products["by_inverse"]) == (3 * 24 * 8, 11 * 3 * 4)
    assert products["conv"] == 11 * 15 * 3
    assert told(Landmarks(**HEADS), new_tokens=11)[1]["scores"] == 121 * 15


def test_two_resolutions():
    """11 tokens are 3 blocks of 4: 9 pairs of means, and 5 of blocks in full."""
    parameters, products = told(MultiResolution(**HEADS, block=4, blocks=5), new_tokens=11)
    assert parameters == {**PLAIN, **BIASES}
    assert (products["scores"], products["values"]) == (89 * 15, 89 * 15)
    sparse = MultiResolution(**HEADS, block=4, blocks=5, coarse=False)
    assert told(sparse, new_tokens=11)[1]["values"] == 80 * 15
    assert sparse.summary(13) == "3 heads of 5, 5 pairs of blocks of 4, no others"


def test_collisions_are_of_all_pairs():
    parameters, products = told(Collisions(**HEADS, taps=5, bias=False, out_bias=False), new_tokens=11)
    assert parameters == {**PLAIN, "conv": 3 * 5}
    assert (products["scores"], products["values"], products["conv"]) == (121 * 15, 121 * 15, 11 * 15 * 5)


def test_a_layer_of_longformer():
    """longformer-base-4096: seven matrices of 768 x 768 with biases."""
    attention = Sliding(heads=12, window=512)
    records = attention.records(At("attention"), 768, ENCODER)
    assert sum(r.parameters for r in records if type(r) is Weight) == 7 * (768 * 768 + 768) == 4_134_144


def test_one_line_for_a_reader():
    assert Sliding(**HEADS, window=4, first=1).summary(13) == "3 heads of 5, window 4, 1 first token with all"
    assert Sliding(heads=2, window=1_024).summary(26) == "2 heads of 13, window 1,024"
    assert BlockSparse(**HEADS, block=64).summary(13) == "3 heads of 5, blocks of 64 with 5 and 3 drawn blocks"
    assert Local(**HEADS, window=5).summary(13) == "3 heads of 5, window 5"
    assert Local(**HEADS, window=5, summed=3, norm=RMSNorm()).summary(13).endswith("window 5, sums of 3 tokens")
    assert Landmarks(**HEADS, landmarks=2).summary(13) == "3 heads of 5, 2 landmarks, inverse in 6 steps"
    assert Landmarks(**HEADS, taps=3).summary(13) == "3 heads of 5, values convolved over 3"
    assert Collisions(**HEADS, taps=3).summary(13).endswith("hashes of 9 bits, values convolved over 3")
    assert GlobalLocal(**HEADS, block=4, staggered=True).summary(13) == "3 heads of 5, staggered blocks of 4"


def test_what_is_left_out_follows():
    attention = Sliding(heads=3, window=4)
    assert attention.left_out(15) == {"head_dim": (5, "d_model / heads"), "scale": (5**-0.5, "1 / sqrt(head_dim)")}
    assert list(attention.derived(15)) == ["head_dim = d_model / heads = 15 / 3 = 5"]
    assert (attention.rotated(15), list(Sliding(**HEADS, window=4).derived(13))) == (5, [])


def encoder(attention, **stack):
    """The written form of a small encoder."""
    block = {"attention": attention, "feed_forward": {"d_ff": 37}}
    return {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "encoder": {"layers": [block], **stack}}


SLIDING = {"kind": "sliding", **HEADS, "window": 4}
BESIDE = {"kind": "global_local", **HEADS, "block": 4}
SUMS = {"kind": "relative", "of_sums": True}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (encoder({**SLIDING, "window": 1}), "a window of 1 reaches to no other token"),
        (encoder({**SLIDING, "head_dim": None, "heads": 3}), "d_model 13 is not a multiple of heads 3"),
        (encoder({"kind": "local", **HEADS, "window": 5, "summed": 3}), "one needs the other"),
        (encoder({"kind": "local", **HEADS, "window": 5, "norm": "rmsnorm"}), "one needs the other"),
        (encoder({"kind": "landmarks", **HEADS, "taps": 4}), "`taps` 4 are even"),
        (encoder({"kind": "collisions", **HEADS, "taps": 4}), "`taps` 4 are even"),
        (encoder({"kind": "landmarks", **HEADS, "steps": 5}), "`steps` are of an inverse"),
        (encoder(BESIDE), "`global_tokens` and attention of the kind global_local need each other"),
        (encoder(SLIDING, global_tokens=3), "`global_tokens` and attention of the kind global_local need each other"),
        (encoder({"heads": 1}, padding={"multiple": 4}), "`padding` is for layers whose attention is of whole texts"),
        (encoder(SLIDING, positions=SUMS), "`of_sums` is for layers whose attention has sums"),
        (encoder(SLIDING, positions={**SUMS, "per_layer": True}), "`of_sums` is a table of all layers"),
        ({**encoder(SLIDING), "decoder": {"layers": [{"attention": SLIDING}]}}, "reads all of the text at once"),
        (
            {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "layers": [{"attention": SLIDING}]},
            "reads all of the text at once",
        ),
    ],
)
def test_what_cannot_be(written, message):
    if "decoder" in written:
        written["decoder"]["layers"][0]["cross_attention"] = {"heads": 1}
    with pytest.raises(CostcalcError, match=message):
        load(written)


def test_what_is_filled_in_counts_for_kernels_only():
    arch = load(encoder(SLIDING, padding={"multiple": 4}))
    up = next(r for r in arch.inventory.matmuls if r.path.endswith("feed_forward.up"))
    assert up.flops(Workload(new_tokens=11)) == 2 * 11 * 13 * 37
    assert up.flops(Workload(new_tokens=11, counting="rectangle")) == 2 * 12 * 13 * 37


def test_rows_beside_the_text_go_through_all_layers_with_a_norm_of_their_own():
    arch = load(encoder(BESIDE, global_tokens=3, padding={"multiple": 4}))
    held = {r.path: r.parameters for r in arch.inventory.weights}
    assert (held["encoder.global_tokens"], held["encoder.layers.global_attention_norm"]) == (39, 13)
    up = next(r for r in arch.inventory.matmuls if r.path.endswith("feed_forward.up"))
    assert up.flops(Workload(new_tokens=11)) == 2 * 14 * 13 * 37

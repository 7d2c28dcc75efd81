"""Planted differences between what is stated and what was recorded, and how they are told."""

import numpy as np
import pytest

import costcalc
from costcalc.inventory import Inventory, Matmul, Weight, Workload
from costcalc.reference import Arena, Request, Tape, forward
from costcalc.verification.faults import KINDS, Compared, Fault, compare, told_once

# V=19, D=13, N=6, K=2, H=5, F=37; layers 0 and 1 see 5 tokens, layer 2 sees all, layer 3 sees 5 again.
MODEL = costcalc.load(
    {
        "vocab_size": 19,
        "d_model": 13,
        "norm": {"kind": "layernorm"},
        "positions": "rope",
        "tie_embeddings": True,
        "decoder": {
            "block": {"attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": {"d_ff": 37}},
            "layers": [
                {"name": "local", "repeat": 2, "attention": {"window": 5}},
                {"name": "global"},
                {"name": "local", "attention": {"window": 5}},
            ],
        },
    }
)
PREFILL = Workload(batch=3, new_tokens=11)
TOKENS = np.random.default_rng(0).integers(0, 19, (3, 12))


@pytest.fixture(scope="module")
def passes():
    """The tapes of a prefill of 11 tokens and of the step after it, for 3 sequences."""
    arena, request = Arena(2000, deviation=0.3), Request()
    tapes = []
    for part in (TOKENS[:, :11], TOKENS[:, 11:]):
        tape = Tape(arena)
        forward(MODEL.model_dump(), part, tape=tape, request=request)
        tapes.append(tape)
    return tapes


def changed(where, only=object, **fields):
    """The inventory with the records at a path changed, or only those of one type."""
    records = [
        record._replace(**fields) if record.path == where and isinstance(record, only) else record
        for record in MODEL.inventory.records
    ]
    return Inventory(tuple(records), MODEL.inventory.layout)


def faults(inventory, passes, workload=PREFILL):
    return compare(inventory, workload, passes[0], phase="prefill")[1]


def test_nothing_differs_in_the_prefill_nor_in_the_step_after_it(passes):
    assert compare(MODEL.inventory, PREFILL, passes[0], phase="prefill")[1] == []
    step = Workload(batch=3, new_tokens=1, past_tokens=11)
    assert compare(MODEL.inventory, step, passes[1], phase="decode")[1] == []


def test_the_totals_of_both_sides(passes):
    totals, _ = compare(MODEL.inventory, PREFILL, passes[0], phase="prefill")
    assert [total.kind for total in totals] == [*KINDS, "buffers", "extra parameters"]
    # A layer: q and output 13·30 = 390 each, k and v 13·10 = 130 each, up and down 13·37 = 481 each, two norms 2·2·13;
    #   4·(780 + 260 + 962 + 52) + final norm 26 + table 19·13 = 247: 4·2,054 + 273 = 8,489.
    # Paths: a layer has 4 + 2 matrices and 4 norm vectors, and outside there are table, gain and bias: 4·10 + 3.
    assert totals[0] == Compared("parameters", 43, 8_489, 8_489)
    # Matrices 2·33·(4·2,002 + 247) = 544,830; pairs of a sequence 11·12/2 = 66, with window 5 15 + 6·5 = 45: the cores
    #   2·(2·6·5)·3·(66 + 3·45) = 72,360. Paths: 4·(6 + 2) + the head.
    assert totals[1] == Compared("FLOPs", 33, 544_830 + 72_360, 544_830 + 72_360)
    # 2·K·H = 20 numbers a token, 3 sequences: 3·20·(11 + 3·5).
    assert totals[2] == Compared("cached elements", 8, 1_560, 1_560)
    assert totals[3] == Compared("buffers", 0, 0, 0)


def test_the_totals_say_which_side_is_which(passes):
    """k with 6 heads stated in the three local layers, 2 run: 3·13·(6 - 2)·5 parameters more, 8,489 + 780."""
    inventory = changed("decoder.layers.local.attention.k", Weight, axes={"D": 13, "K": 6, "H": 5})
    totals, _ = compare(inventory, PREFILL, passes[0], phase="prefill")
    assert totals[0] == Compared("parameters", 43, 9_269, 8_489)


def test_a_matmul_by_a_table_outside_its_layer(passes):
    inventory = changed("decoder.layers.global.feed_forward.up", Matmul, of="decoder.embedding")
    (fault,) = faults(inventory, passes)
    assert (fault.stated, fault.recorded) == ("decoder.embedding", "decoder.layers.2.feed_forward.up")


def test_buffers_are_added_up_apart_from_parameters(passes):
    """The final norm's 13 numbers as a buffer that the pass does not have: 8,489 - 13 parameters are stated."""
    totals, found = compare(changed("decoder.final_norm", role="buffer"), PREFILL, passes[0], phase="prefill")
    assert totals[0] == Compared("parameters", 43, 8_476, 8_489)
    assert totals[3] == Compared("buffers", 1, 13, 0)
    assert found == [Fault(("prefill",), "role", "decoder.final_norm", (), "buffer", "trainable")]


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [
        # k with 6 heads: 13·6·5 = 390 for 130, in the three local layers at once.
        (
            changed("decoder.layers.local.attention.k", Weight, axes={"D": 13, "K": 6, "H": 5}),
            [("parameters", "decoder.layers.local.attention.k", (0, 1, 3), 390, 130)],
        ),
        (
            changed("decoder.layers.global.attention.k", Weight, role="frozen"),
            [("role", "decoder.layers.global.attention.k", (2,), "frozen", "trainable")],
        ),
        (
            changed("decoder.layers.global.feed_forward.up", Matmul, of="decoder.layers.global.feed_forward.down"),
            [
                (
                    "weight",
                    "decoder.layers.global.feed_forward.up",
                    (2,),
                    "decoder.layers.2.feed_forward.down",
                    "decoder.layers.2.feed_forward.up",
                )
            ],
        ),
        (
            changed("decoder.layers.global.attention.scores", role="values"),
            [("weight", "decoder.layers.global.attention.scores", (2,), "values", "scores")],
        ),
        (
            changed("decoder.layers.local.attention_norm", times=2),
            [("layers", "decoder.layers.local.attention_norm", (), 2, 3)],
        ),
        (changed("decoder.final_norm_bias", times=4), [("layers", "decoder.final_norm_bias", (), 4, 1)]),
        (changed("head", of="head"), [("weight", "head", (), "head", "decoder.embedding")]),
        (
            changed("decoder.layers.global.attention.k_cache", kind="state"),
            [("kind of cache", "decoder.layers.global.attention.k_cache", (2,), "state", "kv")],
        ),
        # A record under another path: missing here, and nothing stated there.
        (
            changed("decoder.final_norm", path="decoder.last_norm"),
            [
                ("parameters", "decoder.last_norm", (), 13, None),
                ("parameters", "decoder.final_norm", (), None, 13),
            ],
        ),
        (
            changed("decoder.layers.local.attention.v_cache", path="decoder.layers.local.attention.k_cache"),
            [
                ("cached elements", "decoder.layers.local.attention.k_cache", (0, 1, 3), 300, 150),
                ("cached elements", "decoder.layers.local.attention.v_cache", (0, 1, 3), None, 150),
            ],
        ),
    ],
)
def test_a_planted_difference_is_found_and_told_once(passes, inventory, expected):
    assert faults(inventory, passes) == [Fault(("prefill",), *fields) for fields in expected]


def test_a_wrong_pattern_is_found_layer_by_layer(passes):
    """Layer 2 stated as local and layer 3 as global: totals agree, the layers do not."""
    local, everything = "decoder.layers.local", "decoder.layers.global"
    swapped = Inventory(MODEL.inventory.records, {"decoder": (local, local, local, everything)})
    totals, found = compare(swapped, PREFILL, passes[0], phase="prefill")
    assert all(total.stated == total.recorded for total in totals)
    assert {(fault.path, fault.layers) for fault in found} == {
        (f"{group}.attention.{name}", (layer,))
        for group, layer in ((local, 2), (everything, 3))
        for name in ("scores", "values", "k_cache", "v_cache")
    }
    # 2·N·H·B = 180 a pair: 45 pairs for 66.
    assert Fault(("prefill",), "FLOPs", f"{local}.attention.scores", (2,), 180 * 45, 180 * 66) in found


def test_a_missing_layer_is_found(passes):
    short = Inventory(MODEL.inventory.records, {"decoder": MODEL.inventory.layout["decoder"][:3]})
    found = faults(short, passes)
    assert ("parameters", "decoder.layers.3.attention.q", None, 390) in {
        (fault.kind, fault.path, fault.stated, fault.recorded) for fault in found
    }
    assert ("layers", "decoder.layers.local.attention.q", 3, 2) in {
        (fault.kind, fault.path, fault.stated, fault.recorded) for fault in found
    }


@pytest.mark.parametrize(
    "workload",
    [
        Workload(batch=3, new_tokens=7),
        Workload(batch=2, new_tokens=11),
        Workload(batch=3, new_tokens=11, past_tokens=1),
        Workload(batch=3, new_tokens=11, logits="last"),
        Workload(batch=3, new_tokens=11, counting="rectangle"),
    ],
)
def test_another_workload_than_the_pass_had_does_not_agree(passes, workload):
    assert faults(MODEL.inventory, passes, workload) != []


def test_what_the_tape_lacks_is_told(passes):
    tape = Tape(passes[0].weights, {**passes[0].parameters}, {**passes[0].products}, {**passes[0].of})
    del tape.products["decoder.layers.3.attention.values"]
    _, found = compare(MODEL.inventory, PREFILL, tape, phase="prefill")
    assert found[0] == Fault(("prefill",), "FLOPs", "decoder.layers.local.attention.values", (3,), 180 * 45, None)
    assert {fault.kind for fault in found[1:]} == {"cached elements"}


def test_the_same_difference_in_two_passes_is_told_once():
    same, flops, other = (
        ("parameters", "a.k", (0, 1), 390, 130),
        ("FLOPs", "a.q", (), 7, 5),
        ("FLOPs", "a.q", (), 7, 6),
    )
    both = [
        Fault(("prefill",), *same),
        Fault(("prefill",), *flops),
        Fault(("decode",), *other),
        Fault(("decode",), *same),
    ]
    assert told_once(both) == [
        Fault(("prefill", "decode"), *same),
        Fault(("prefill",), *flops),
        Fault(("decode",), *other),
    ]

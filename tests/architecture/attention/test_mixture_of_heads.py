from __future__ import annotations

import pytest

from costcalc.architecture.attention import MixtureOfHeads
from costcalc.architecture.component import RuleError
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Cached, Context, Matmul, Pairs, Routed, Tokens, Weight, Workload

AT = At("decoder.layers.attention", times=3)
# 2 of E=7 experts of K=3 heads of H=5: N=6; D=13
SMALL = MixtureOfHeads(heads=6, kv_heads=3, head_dim=5, experts=7)


def path(name):
    return f"decoder.layers.attention.{name}"


def linear(name, axes):
    return [Weight(path(name), axes, 3), Matmul(path(name), {"B·T": Tokens(), **axes}, 3, path(name))]


def routed(name, axes):
    held = Weight(path(name), {"E": 7, **axes}, 3, used={"E": 2})
    return [held, Matmul(path(name), {"B·T·X": Routed(Tokens(), 2), **axes}, 3, path(name))]


def records(attention, at=AT, d_model=13):
    return list(attention.records(at, d_model, DECODER))


def test_everything_that_is_stated():
    shared, queries, held = {"K": 3, "H": 5}, {"N": 6, "H": 5}, {"B·S": Context(), "K": 3, "H": 5}
    assert records(SMALL) == [
        *linear("router", {"D": 13, "E": 7}),
        *routed("experts.q", {"D": 13, **shared}),
        *linear("k", {"D": 13, **shared}),
        *linear("v", {"D": 13, **shared}),
        Matmul(path("scores"), {"B·P": Pairs(), **queries}, 3, None, "scores"),
        Matmul(path("values"), {"B·P": Pairs(), **queries}, 3, None, "values"),
        Cached(path("k_cache"), held, 3),
        Cached(path("v_cache"), held, 3),
        *routed("experts.output", {**shared, "D": 13}),
    ]


def test_a_bias_and_a_window():
    biased = [r for r in records(SMALL.model_copy(update={"out_bias": True})) if r not in records(SMALL)]
    assert biased == [Weight(path("output_bias"), {"D": 13}, 3)]
    local = [r for r in records(SMALL.model_copy(update={"window": 4})) if r not in records(SMALL)]
    assert [r.path for r in local] == [path(name) for name in ("scores", "values", "k_cache", "v_cache")]


def test_flops_worked_out():
    """22 rows, of which each goes to 2 experts: q and output 13·15 each; router 13·7, k and v 13·15."""
    given = Workload(new_tokens=11, batch=2)
    made = {r.path: r.flops(given) for r in records(SMALL) if type(r) is Matmul and r.of is not None}
    assert sum(made.values()) == 2 * 3 * (44 * 2 * 13 * 15 + 22 * (13 * 7 + 2 * 13 * 15))


def test_jetmoe_8b():
    """jetmoe/jetmoe-8b: 8 experts with 16 heads of 128, 2,048 wide: 16 x 2,048² of the experts, 2 x 2,048² beside."""
    whole = MixtureOfHeads(heads=32, kv_heads=16, head_dim=128, experts=8, out_bias=True)
    held = sum(r.parameters for r in records(whole, At("a"), 2048) if type(r) is Weight)
    assert held == 18 * 2048**2 + 2048 * 8 + 2048


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"heads": 7}, "heads 7 is not a multiple of kv_heads 3"),
        ({"heads": 24}, "24 heads, but 7 experts of 3 heads each have no more to choose"),
    ],
)
def test_rules(fields, message):
    with pytest.raises(RuleError, match=message):
        SMALL.model_copy(update=fields).check((), 13)


def test_what_a_reader_is_told():
    assert SMALL.summary(13) == "2 of 7 experts of 3 key/value heads of 5"
    assert SMALL.model_copy(update={"window": 4}).summary(13).endswith(", window 4")
    assert SMALL.left_out(13) == {"scale": (5**-0.5, "1 / sqrt(head_dim)")}
    assert SMALL.rotated(13) == 5

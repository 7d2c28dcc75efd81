"""AltUp: what the states of a residual stream cost, below, in and above the layers."""

import pytest

from costcalc import flops, load, parameters
from costcalc.architecture.altup import AltUp
from costcalc.architecture.component import RuleError
from costcalc.architecture.norm import RMSNorm
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Matmul, Tokens, Weight, Workload

AT = At("decoder.layers.local", times=5)
ROWS = {"B·T": Tokens()}
THREE = AltUp(inputs=3)
# V=19, D=13, N=6, K=2, H=5, F=37; five layers
WRITTEN = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "layers": [{"repeat": 5, "attention": {"heads": 6, "kv_heads": 2, "head_dim": 5}, "feed_forward": {"d_ff": 37}}],
}


def test_the_other_states_are_made_below_and_brought_back_above():
    """Two square matrices of 13 each: 338 parameters, and 2·338 FLOPs a row."""
    axes = {"A_more": 2, "D": 13, "D_out": 13}
    for name in ("below", "above"):
        path = f"decoder.altup.{name}"
        made = list(getattr(THREE, name)(At("decoder"), 13, DECODER))
        assert made == [Weight(path, axes), Matmul(path, {**ROWS, **axes}, 1, path)]
        assert made[0].parameters == 2 * 13 * 13
        assert made[1].flops(Workload(batch=2, new_tokens=11)) == 2 * 22 * 338


def test_what_a_layer_has():
    path = "decoder.layers.local.altup"
    square = {"A_from": 3, "A_to": 3}
    assert list(THREE.layer_records(AT, 13, DECODER, RMSNorm())) == [
        Weight(f"{path}.router_norm", {"D": 13}, 5),
        Weight(f"{path}.router", {"D": 13, "A": 3}, 5),
        Matmul(f"{path}.router", {**ROWS, "runs": 2, "D": 13, "A": 3}, 5, f"{path}.router"),
        Weight(f"{path}.prediction", {"A": 3, **square}, 5),
        Matmul(f"{path}.prediction", {**ROWS, "A": 3, **square}, 5, f"{path}.prediction"),
        Matmul(f"{path}.mixing", {**ROWS, "D": 13, **square}, 5),
        Weight(f"{path}.correction", {"A": 3, "A_to": 3}, 5),
        Matmul(f"{path}.correction", {**ROWS, "A": 3, "A_to": 3}, 5, f"{path}.correction"),
        Weight(f"{path}.output_scale", {"D": 13}, 5),
    ]


def test_parameters_by_hand():
    """A layer: two vectors of 13, a router 13·3, 3·9 and 3·3 numbers: 101; outside 2·2·13²: 676."""
    plain, states = parameters(load(WRITTEN)), parameters(load({**WRITTEN, "altup": {"inputs": 3}}))
    assert states.total - plain.total == 5 * 101 + 676


def test_flops_by_hand():
    """A row of a layer: the router twice 13·3, prediction 27, mixing 13·9, correction 9: 231; outside 676.

    No part of it is an attention core, so that the products of two activations count with the weights.
    """
    rows = Workload(batch=2, new_tokens=11)
    plain, states = flops(load(WRITTEN), rows), flops(load({**WRITTEN, "altup": {"inputs": 3}}), rows)
    assert states.weights - plain.weights == 2 * 22 * (5 * 231 + 676)
    assert (states.attention, states.modelled) == (plain.attention, 0)
    assert states.forward == states.weights + states.attention


def test_layers_that_share_their_weights_share_these():
    shared = {**WRITTEN, "altup": {"inputs": 2}, "block": {"share_weights": True}}
    weights = {weight.path: weight.times for weight in load(shared).inventory.weights}
    assert weights["decoder.layers.altup.router"] == weights["decoder.layers.altup.output_scale"] == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inputs": 1}, "inputs 1: there is no other state beside the active one"),
        ({"inputs": 3, "active": 3}, "active 3: the states are 0 to 3 - 1"),
    ],
)
def test_states_that_cannot_be(fields, message):
    with pytest.raises(RuleError) as caught:
        AltUp(**fields).check(("decoder", "altup"), 13)
    assert (str(caught.value), caught.value.where) == (message, ("decoder", "altup"))


def test_the_last_state_may_be_active():
    AltUp(inputs=3, active=2).check(("decoder", "altup"), 13)


def test_one_line_for_a_reader():
    assert AltUp(inputs=4, active=1).summary() == "4 states (AltUp), of which layers compute number 1"

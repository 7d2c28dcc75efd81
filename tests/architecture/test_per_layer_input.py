"""Per-layer inputs: one table for all layers, and what each layer does with its part."""

from costcalc import flops, load, parameters
from costcalc.architecture.norm import RMSNorm
from costcalc.architecture.per_layer_input import PerLayerInput
from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Matmul, Tokens, Weight, Workload

AT = At("decoder.layers", times=5)
ROWS = {"B·T": Tokens()}
OWN = PerLayerInput(vocab_size=17, width=7)
# V=19, D=13, N=6, K=2, H=5, F=37; 2 + 3 layers
CORE = {"heads": 6, "kv_heads": 2, "head_dim": 5}
WRITTEN = {
    "vocab_size": 19,
    "d_model": 13,
    "norm": "rmsnorm",
    "tie_embeddings": True,
    "layers": [
        {"repeat": 2, "attention": {**CORE, "window": 5}, "feed_forward": {"d_ff": 37}},
        {"repeat": 3, "attention": CORE, "feed_forward": {"d_ff": 37}},
    ],
}


def test_what_stands_below_the_layers():
    path, each = "decoder.per_layer_input", {"layers": 5, "W_own": 7}
    assert list(OWN.below(At("decoder"), 13, DECODER, RMSNorm(), layers=5)) == [
        Weight(f"{path}.embedding", {"V_own": 17, **each}, table=True),
        Weight(f"{path}.projection", {"D": 13, **each}),
        Matmul(f"{path}.projection", {**ROWS, "D": 13, **each}, 1, f"{path}.projection"),
        Weight("decoder.per_layer_input_norm", {"W_own": 7}),
    ]


def test_what_a_layer_has():
    path = "decoder.layers.per_layer_input"
    assert list(OWN.layer_records(AT, 13, DECODER, RMSNorm())) == [
        Weight(f"{path}.gate", {"D": 13, "W_own": 7}, 5),
        Matmul(f"{path}.gate", {**ROWS, "D": 13, "W_own": 7}, 5, f"{path}.gate"),
        Weight(f"{path}.projection", {"W_own": 7, "D": 13}, 5),
        Matmul(f"{path}.projection", {**ROWS, "W_own": 7, "D": 13}, 5, f"{path}.projection"),
        Weight("decoder.layers.per_layer_input_norm", {"D": 13}, 5),
    ]


def test_the_table_has_the_layers_of_all_groups():
    """17 rows of 5·7 numbers: 595. A projection 13·35 and a norm of 7; a layer 2·13·7 and a norm of 13."""
    plain, own = load(WRITTEN), load({**WRITTEN, "per_layer_input": {"vocab_size": 17, "width": 7}})
    held, before = parameters(own), parameters(plain)
    assert held.total - before.total == 595 + 455 + 7 + 5 * (182 + 13)
    assert held.embedding - before.embedding == 595
    assert held.active_without_input_table == held.total - 595  # the head is tied to the vocabulary's table
    rows = Workload(batch=2, new_tokens=11)
    assert flops(own, rows).forward - flops(plain, rows).forward == 2 * 22 * (455 + 5 * 182)
    assert flops(own, rows).attention == flops(plain, rows).attention


def test_one_line_for_a_reader():
    said = PerLayerInput(vocab_size=262144, width=256).summary()
    assert said == "256 numbers in each layer, of a table of 262,144 rows"

"""Recurrent layers: every product, state and parameter run and compared, in both forms of their scans."""

import pytest

import costcalc
from costcalc.inventory import Cached, Inventory, Matmul, Workload
from costcalc.verification import verify
from costcalc.verification.faults import compare
from costcalc.verification.limits import binding
from costcalc.verification.properties import CACHED, CHUNKS, EARLIER, STEPS

TOP = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm"}
A = {"heads": 6, "kv_heads": 2, "head_dim": 4}
M2 = {"kind": "mamba2", "heads": 6, "head_dim": 5, "d_state": 7, "groups": 2, "d_conv": 3, "chunk": 4}
DELTA = {"kind": "gated_delta", "heads": 6, "key_heads": 2, "key_dim": 5, "value_dim": 7, "d_conv": 3, "chunk": 4}
KIMI = {**DELTA, "key_heads": None, "decay": "per_channel", "decay_rank": 3, "gate_rank": 11}
SHARED = {"attention": {"heads": 2, "head_dim": 13}, "feed_forward": {"kind": "gated", "d_ff": 37}}
RANKS = {"attention_adapter_rank": 3, "feed_forward_adapter_rank": 5}
MOE = {
    "kind": "mixture",
    "experts": 5,
    "experts_per_token": 2,
    "expert": {"d_ff": 11},
    "latent_dim": 9,
    "latent_bias": True,
}
LAYERS = {
    "mamba1": {
        "mixer": {"kind": "mamba1", "d_inner": 22, "d_state": 3, "d_conv": 5, "dt_rank": 7, "inner_norms": True}
    },
    "mamba1, heads": {"mixer": {"kind": "mamba1", "d_inner": 22, "d_state": 3, "dt_rank": 7, "heads": 2, "bias": True}},
    "mamba2": {"mixer": M2, "feed_forward": {"d_ff": 37}},
    "mamba2, no norm": {"mixer": {**M2, "gated_norm": False, "bias": True, "out_bias": True}},
    "gated_delta": {"mixer": DELTA, "feed_forward": {"d_ff": 37}},
    "kimi": {"mixer": KIMI},
    "lightning": {"mixer": {"kind": "lightning", "heads": 6, "head_dim": 5, "chunk": 4}},
    "short_conv": {"mixer": {"kind": "short_conv", "d_conv": 5, "bias": True}},
    "rg_lru": {"mixer": {"kind": "rg_lru", "width": 22, "heads": 2}},
    "rwkv": {"mixer": {"kind": "rwkv", "width": 22}, "feed_forward": {"kind": "rwkv_channel", "d_ff": 37}},
    "mlstm": {"mixer": {"kind": "mlstm", "heads": 6, "qk_dim": 5, "v_dim": 7, "bias": True}},
    "beside": {"attention": A, "mixer_beside": M2, "feed_forward": {"d_ff": 37}},
    "latent experts": {"mixer": {"kind": "short_conv"}, "feed_forward": MOE},
    "shared": {"mixer": M2, "shared_block": {**SHARED, **RANKS}},
}
IN_CHUNKS = {"mamba2", "mamba2, no norm", "gated_delta", "kimi", "lightning", "beside", "shared"}


@pytest.fixture
def model():
    return lambda name: costcalc.load({**TOP, "layers": [{"repeat": 2, **LAYERS[name]}]})


@pytest.fixture
def runs(monkeypatch):
    """(inventory, workload, tape) of each pass that was compared."""
    seen = []

    def noted(inventory, workload, tape, phase):
        seen.append((phase, workload, tape))
        return compare(inventory, workload, tape, phase=phase)

    monkeypatch.setattr("costcalc.verification.run.compare", noted)
    return seen


@pytest.mark.parametrize("name", LAYERS)
def test_all_of_it_agrees(model, name):
    result = verify(model(name))
    assert result.faults == ()
    measured = {item.name: item for item in result.properties}
    assert [item for item in result.properties if not item.holds] == []
    assert measured[STEPS].measured == measured[EARLIER].measured == 0 or "experts" in name
    assert measured[CACHED].measured < 1e-5
    assert (CHUNKS in measured) is (name in IN_CHUNKS)
    if name in IN_CHUNKS:
        assert 0 < measured[CHUNKS].measured < 1e-5
        assert [phase.name for phase in result.phases] == ["prefill", "decode", "prefill, chunked"]


def in_form(inventory, phase):
    return inventory.chunked if phase.endswith("chunked") else inventory


@pytest.mark.parametrize("name", LAYERS)
def test_one_changed_factor_of_any_record_is_found(model, runs, name):
    inventory = model(name).inventory
    assert verify(model(name)).agrees
    for index, record in enumerate(inventory.records):
        for letter, size in record.axes.items():
            if not isinstance(size, int):
                continue
            other = record._replace(axes={**record.axes, letter: size + 1})
            changed = Inventory((*inventory.records[:index], other, *inventory.records[index + 1 :]), inventory.layout)
            found = {
                fault.path
                for phase, workload, tape in runs
                for fault in compare(in_form(changed, phase), workload, tape, phase="x")[1]
            }
            assert found == {record.path}, (record, letter)


@pytest.mark.parametrize("name", LAYERS)
def test_a_record_that_is_missing_or_too_many_is_found(model, runs, name):
    inventory = model(name).inventory
    verify(model(name))
    for index, record in enumerate(inventory.records):
        for records in (
            (*inventory.records[:index], *inventory.records[index + 1 :]),
            (*inventory.records[: index + 1], *inventory.records[index:]),
        ):
            changed = Inventory(records, inventory.layout)
            found = {
                fault.path
                for phase, workload, tape in runs
                for fault in compare(in_form(changed, phase), workload, tape, phase="x")[1]
            }
            assert record.path in found, record


def test_what_is_no_state_and_what_is_no_scan_is_found(model, runs):
    inventory = model("mamba2").inventory
    verify(model("mamba2"))
    for kind, change in ((Cached, {"kind": "kv"}), (Matmul, {"role": "weight"})):
        records = tuple(
            r._replace(**change) if type(r) is kind and (kind is Cached or r.path.endswith("scan_update")) else r
            for r in inventory.records
        )
        changed = Inventory(records, inventory.layout)
        faults = [fault for phase, w, tape in runs for fault in compare(in_form(changed, phase), w, tape, phase="x")[1]]
        assert {fault.kind for fault in faults} == {"kind of cache" if kind is Cached else "weight"}


def test_chunks_that_would_not_end_are_made_smaller():
    wide = costcalc.load({**TOP, "layers": [{"mixer": {**M2, "chunk": 256}}, {"attention": A, "mixer_beside": DELTA}]})
    fields, replaced = binding(wide.model_dump(), Workload(new_tokens=11))
    assert replaced == {256: 7}
    assert [layer["mixer"] and layer["mixer"]["chunk"] for layer in fields["decoder"]["layers"]] == [7, None]
    assert fields["decoder"]["layers"][1]["mixer_beside"]["chunk"] == 4
    assert verify(wide).agrees


def test_two_sets_of_shared_weights():
    def layer(weights):
        return {"name": weights, "mixer": {"kind": "short_conv"}, "shared_block": {**SHARED, "weights": weights}}

    both = [layer("first"), {"name": "plain", "mixer": {"kind": "short_conv"}}, layer("second"), layer("first")]
    alternating = costcalc.load({**TOP, "positions": "rope", "layers": both})
    result = verify(alternating)
    assert result.agrees
    held = {item.kind: item.stated for item in result.phases[0].compared}["parameters"]
    assert held == costcalc.parameters(alternating).total

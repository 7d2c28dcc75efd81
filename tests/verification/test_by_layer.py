"""Mixtures, latent attention, chunks, borrowed caches and modules beside the model: run, compared, and faults found."""

import pytest

import costcalc
from costcalc.inventory import Cached, Inventory, Matmul, Weight
from costcalc.reference.mixture import routed
from costcalc.verification import faults, limits, passes, verify
from costcalc.verification.faults import compare
from costcalc.verification.properties import CACHED, EARLIER, FORMS, STEPS

TOP = {"vocab_size": 19, "d_model": 13, "norm": "rmsnorm", "positions": "rope"}
A = {"heads": 6, "kv_heads": 2, "head_dim": 4}
LATENT = {"kind": "latent", "heads": 3, "q_rank": 7, "kv_rank": 11, "nope_dim": 5, "rope_dim": 2, "v_dim": 3}
MOE = {
    "kind": "mixture",
    "experts": 12,
    "experts_per_token": 3,
    "expert": {"kind": "gated", "d_ff": 11, "bias": True},
    "shared": {"d_ff": 17},
    "shared_gate": True,
    "norm": {"kind": "layernorm"},
    "router": {"bias": True, "correction": "buffer", "groups": 3, "groups_per_token": 2},
}
DENSE = {"attention": A, "feed_forward": {"d_ff": 37}}
OWN_VALUES = {"values_from_keys": True, "output_gate": "per_head"}
MODELS = {
    "mixture": {
        "layers": [{"attention": A, "feed_forward": {"d_ff": 37}}, {"repeat": 2, "attention": A, "feed_forward": MOE}]
    },
    "latent": {"layers": [{"repeat": 3, "attention": LATENT, "feed_forward": {"d_ff": 37}}]},
    "latent, no query latent": {"layers": [{"attention": {**LATENT, "q_rank": None}}]},
    "chunks and windows": {
        "layers": [
            {"name": "chunked", "attention": {**A, "chunk": 4, "v_dim": 7}},
            {"name": "local", "attention": {**A, "window": 3, "sinks": True, "output_gate": "per_channel"}},
            {
                "name": "all",
                "positions": "none",
                "attention": {**A, "values_from_keys": True, "output_gate": "per_head"},
            },
            {"name": "reads", "repeat": 2, "attention": {**A, "window": 3, "cache_of": "local"}},
            {"attention": {**A, "chunk": 4, "v_dim": 7, "cache_of": "chunked", "keeps_kv_weights": True}},
        ]
    },
    "modules": {
        "layers": [{"repeat": 2, "attention": LATENT, "feed_forward": MOE}],
        "multi_token": {"repeat": 2, "own_tables": True, "layer": {"attention": LATENT, "feed_forward": MOE}},
    },
}


@pytest.fixture
def model():
    return lambda name: costcalc.load({**TOP, **MODELS[name]})


@pytest.mark.parametrize("name", MODELS)
def test_all_of_it_agrees(model, name):
    result = verify(model(name))
    assert result.faults == ()
    assert [item for item in result.properties if not item.holds] == []
    assert {item.name: item.measured for item in result.properties}[STEPS] == 0


@pytest.fixture
def runs(monkeypatch):
    """(workload, tape) of each pass that was compared."""
    seen = []

    def noted(inventory, workload, tape, phase):
        seen.append((workload, tape))
        return compare(inventory, workload, tape, phase=phase)

    monkeypatch.setattr("costcalc.verification.run.compare", noted)
    return seen


@pytest.mark.parametrize("name", MODELS)
def test_one_changed_factor_of_any_record_is_found(model, runs, name):
    inventory = model(name).inventory
    assert verify(model(name)).agrees
    for index, record in enumerate(inventory.records):
        if isinstance(record, Cached) and record.form == "decompressed":
            continue  # another way to hold the same, which no pass does
        for letter, size in record.axes.items():
            if not isinstance(size, int):
                continue
            other = record._replace(axes={**record.axes, letter: size + 1})
            changed = Inventory((*inventory.records[:index], other, *inventory.records[index + 1 :]), inventory.layout)
            found = {fault.path for workload, tape in runs for fault in compare(changed, workload, tape, phase="x")[1]}
            assert found == {record.path}, (record, letter)


def test_both_forms_of_latent_attention_are_run(model):
    result = verify(model("latent"))
    assert [phase.name for phase in result.phases] == ["prefill", "decode", "prefill, absorbed"]
    assert [phase.workload.latent for phase in result.phases] == [None, None, "absorbed"]
    # The decode step is absorbed, so it is the other form that cached decoding is compared with.
    measured = {item.name: item for item in result.properties}
    assert 0 < measured[FORMS].measured < 1e-5
    assert measured[CACHED].holds
    flops = {phase.name: phase.compared[1].recorded for phase in result.phases}
    assert flops["prefill"] != flops["prefill, absorbed"]


def test_a_form_stated_as_the_other_is_found(model, runs):
    inventory = model("latent").inventory
    verify(model("latent"))
    for form, other in (("expanded", "absorbed"), ("absorbed", "expanded")):
        records = tuple(
            r._replace(form=other) if isinstance(r, Matmul) and r.form == form and r.path.endswith("k_up") else r
            for r in inventory.records
        )
        changed = Inventory(records, inventory.layout)
        assert any(compare(changed, workload, tape, phase="x")[1] for workload, tape in runs)


def test_one_expert_more_a_token_is_found(model, runs):
    inventory = model("mixture").inventory
    verify(model("mixture"))
    more = {"repeat": 2, "attention": A, "feed_forward": {**MOE, "experts_per_token": 4}}
    other = costcalc.load({**TOP, "layers": [DENSE, more]}).inventory
    found = {fault.path for fault in compare(other, *runs[0], phase="x")[1]}
    assert found == {f"decoder.layers.1.feed_forward.experts.{name}" for name in ("gate", "up", "down")}
    assert not compare(inventory, *runs[0], phase="x")[1]


def test_extra_parameters_are_added_up_apart(model):
    extra = {item.kind: item for item in verify(model("modules")).phases[0].compared}["extra parameters"]
    assert extra.stated == extra.recorded == costcalc.parameters(model("modules")).extra
    assert extra.paths == 30
    assert {item.kind: item.stated for item in verify(model("latent")).phases[0].compared}["extra parameters"] == 0


def test_another_number_of_modules_is_found(model, runs):
    inventory = model("modules").inventory
    verify(model("modules"))
    records = tuple(
        r._replace(times=3) if isinstance(r, Weight) and r.path == "multi_token.projection" else r
        for r in inventory.records
    )
    [fault] = compare(Inventory(records, inventory.layout), *runs[0], phase="prefill")[1]
    assert (fault.kind, fault.path, fault.stated, fault.recorded) == (
        "parameters",
        "multi_token.projection",
        1_014,
        676,
    )


def test_a_total_parameter_stated_as_extra_is_found(model, runs):
    inventory = model("latent").inventory
    verify(model("latent"))
    records = tuple(r._replace(role="extra") if r.path == "decoder.final_norm" else r for r in inventory.records)
    [fault] = compare(Inventory(records, inventory.layout), *runs[0], phase="x")[1]
    assert (fault.kind, fault.stated, fault.recorded) == ("role", "extra", "trainable")


def test_wide_chunks_are_made_to_end():
    layers = [{"attention": {"heads": 6, "head_dim": 4, "chunk": chunk}} for chunk in (8192, 11, 10, 7, 3)]
    model = costcalc.load({**TOP, "layers": layers})
    result = verify(model)
    assert result.agrees
    assert result.replaced == {11: 7, 8192: 7}
    short = costcalc.load({**TOP, "positions": {"kind": "learned", "length": 5}, "layers": layers[:1]})
    assert verify(short).replaced == {8192: 4}


def test_the_arena_holds_one_expert_not_all():
    wide = costcalc.load({**TOP, "layers": [{"attention": A, "feed_forward": {**MOE, "experts": 3_000}}]})
    largest = max(13 * 3_000, 13 * 24)  # the router's matrix, with a column for each expert
    assert limits.arena_for(wide).size == largest
    assert verify(wide).agrees


def test_modules_beside_the_model_make_no_arena_larger(model):
    wide = {**MODELS["modules"]["multi_token"], "layer": {"feed_forward": {"d_ff": 977}}}
    beside = costcalc.load({**TOP, "layers": MODELS["latent"]["layers"], "multi_token": wide})
    assert verify(beside).agrees


def test_only_models_that_route_have_a_bound_of_rounding(model):
    bounds = {name: {item.name: item.bound for item in verify(model(name)).properties}[EARLIER] for name in MODELS}
    assert bounds == {name: 1e-4 if name in ("mixture", "modules") else 0 for name in MODELS}


def test_a_pass_whose_router_looks_ahead_is_found(model, monkeypatch):
    """Scores of the last token for all: a later token then changes earlier outputs."""

    def ahead(fields, rows, at):
        weights, chosen = routed(fields, rows, at)
        weights[:], chosen[:] = weights[-1:], chosen[-1:]
        return weights, chosen

    monkeypatch.setattr("costcalc.reference.mixture.routed", ahead)
    measured = {item.name: item for item in verify(model("mixture")).properties}
    assert not measured[EARLIER].holds


def test_nothing_else_is_exported_by_accident():
    assert faults.BESIDE == {"buffer": "buffers", "extra": "extra parameters"}
    assert passes.has_experts(costcalc.load({**TOP, **MODELS["mixture"]}).model_dump())
    assert passes.has_latents(costcalc.load({**TOP, **MODELS["latent"]}).model_dump())
    assert not passes.has_latents(costcalc.load({**TOP, **MODELS["mixture"]}).model_dump())

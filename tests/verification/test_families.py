"""Encoders, encoder-decoders and decoders that ask: what is run, what must hold, and planted faults that are found."""

import numpy as np
import pytest

import costcalc
from costcalc.inventory import Inventory, Matmul, Weight
from costcalc.reference import forward, on_scores, scaled_dot_product
from costcalc.reference.tape import Product, Scope
from costcalc.verification import limits, verify
from costcalc.verification.faults import compare
from costcalc.verification.limits import binding, memory_for, tokens_for, workload_for
from costcalc.verification.passes import memories
from costcalc.verification.properties import BEYOND, EARLIER, UNCHANGED, beyond_reach, changed_outputs
from costcalc.verification.reach import is_seen, reach
from costcalc.verification.rotations import rotary

PLACES = ("relative", "alibi", "rope", "sinusoidal", "none", {"kind": "relative", "per_layer": True})


def measured(result):
    return {item.name: item.measured for item in result.properties}


def broken(result):
    return [item.name for item in result.properties if not item.holds]


@pytest.mark.parametrize("positions", PLACES)
@pytest.mark.parametrize("stacks", [{"encoder": {}}, {"encoder": {}, "decoder": {}}, {"decoder": {}}])
def test_each_family_agrees(family, stacks, positions):
    result = verify(family(positions=positions, **stacks))
    assert result.agrees
    assert result.faults == ()


def test_an_encoder_has_one_pass(family):
    result = verify(family(encoder={}, pooler=True))
    (phase,) = result.phases
    assert (phase.name, phase.workload) == ("pass", costcalc.Workload(new_tokens=11))
    # q, output 390, k, v 130 each, up and down 481 each, two norms of 13: 2,028; pooler 169 + 13; two tables of 247
    assert phase.compared[0].recorded == phase.compared[0].stated == 2 * 2_028 + 13 + 182 + 494
    # 2·11·(2·2,002 + 247) + 2·169 for one token, cores of 11·11 pairs 2·2·2·30·121
    assert phase.compared[1].recorded == 2 * 11 * 4_251 + 2 * 169 + 29_040
    assert phase.compared[2].recorded == 0
    assert [item.name for item in result.properties if item.measured is None][:2] == [
        EARLIER,
        "cached decoding differs from the full pass",
    ]


def test_an_encoder_decoder_has_a_prefill_and_a_step(family):
    model = family(encoder={}, decoder={})
    result = verify(model)
    prefill, decode = result.phases
    assert (prefill.name, prefill.workload) == ("prefill", costcalc.Workload(new_tokens=11, memory_tokens=7))
    assert (decode.name, decode.workload.past_tokens, decode.workload.memory_tokens) == ("decode", 10, 7)
    # Decoder: a layer 1,040 by itself, q and output 13·21 = 273 each, k and v as many, 2·13·41 = 1,066
    # Prefill: 2·7·4,004 + 2·4·30·49; 3·(2·11·(1,040 + 546 + 1,066) + 2·7·546 + 4·(30·66 + 21·77)); 2·11·247
    assert prefill.compared[1].recorded == 67_816 + 3 * (22 * 2_652 + 14 * 546 + 4 * 3_597) + 5_434
    # One token: 11 keys of its own, 7 of the encoder's
    assert decode.compared[1].recorded == 3 * (2 * 2_652 + 4 * (330 + 147)) + 494
    assert prefill.compared[2].recorded == decode.compared[2].recorded == 3 * 2 * (10 * 11 + 21 * 7)
    assert decode.compared[0].recorded == prefill.compared[0].recorded == costcalc.parameters(model).total
    assert measured(result)["prefill FLOPs differ from the sum of decode steps"] == 0
    assert measured(result)[UNCHANGED] == 0


def test_a_decoder_that_asks_is_given_random_memory(family):
    result = verify(family(decoder={}))
    assert [phase.workload.memory_tokens for phase in result.phases] == [7, 7]
    assert measured(result)[UNCHANGED] == 0
    assert BEYOND not in measured(result)


@pytest.mark.parametrize(
    ("stacks", "labels", "layers"),
    [
        ({"encoder": {}}, ["pass", "pass, last token changed"], [2, 2]),
        (
            {"encoder": {}, "decoder": {}},
            ["prefill", "prefill, last token changed", "decode", "prefill, a token of the encoder changed"],
            [5, 5, 3, 5],
        ),
    ],
)
def test_progress_is_told_in_both_stacks(family, stacks, labels, layers):
    told = []
    verify(family(**stacks), on_progress=lambda *words: told.append(words))
    assert told == [(label, n, of) for label, of in zip(labels, layers, strict=True) for n in range(1, of + 1)]


@pytest.mark.parametrize(
    ("encoder", "decoder", "tokens", "memory"),
    [
        (None, None, 11, 7),
        (5, None, 11, 5),
        (None, 3, 3, 7),
        (2, 23, 11, 2),
        (1, 1, 1, 1),
        (None, 1, 1, 7),
        (100, 100, 11, 7),
    ],
)
def test_as_many_tokens_as_either_table_has_rows(family, encoder, decoder, tokens, memory):
    model = family(encoder={}, decoder={})
    stacks = {}
    for name, length in (("encoder", encoder), ("decoder", decoder)):
        kind = {"kind": "none"} if length is None else {"kind": "learned", "length": length + 2, "offset": 2}
        stacks[name] = {**model.model_dump()[name], "positions": kind}
    model = costcalc.load({**model.model_dump(), **stacks})
    assert (tokens_for(model), memory_for(model)) == (tokens, memory)
    assert verify(model).agrees


@pytest.mark.parametrize(
    ("window", "length", "made"),
    [(128, 11, 5), (21, 11, 5), (20, 11, 5), (19, 11, 19), (5, 11, 5), (1, 11, 1), (9, 4, 5), (9, 3, 3), (9, 2, 1)],
)
def test_a_window_of_an_encoder_binds_where_its_half_does_not_reach_every_token(family, window, length, made):
    """20 // 2 = 10 reaches from one end of 11 tokens to the other."""
    positions = {"kind": "learned", "length": length}
    model = family(encoder={"attention": {"heads": 6, "head_dim": 5, "window": window}}, positions=positions)
    fields, replaced = binding(model.model_dump(), workload_for(model))
    assert fields["encoder"]["layers"][0]["attention"]["window"] == made
    assert replaced == ({} if window == made else {window: made})
    result = verify(model)
    assert result.agrees
    assert result.replaced == replaced
    assert (measured(result)[BEYOND] is None) == (2 * (made // 2) >= length - 1)


def test_windows_of_both_stacks_are_made_the_same(family):
    wide = {"attention": {"heads": 6, "head_dim": 5, "window": 128}}
    result = verify(family(encoder=wide, decoder=wide))
    assert (result.agrees, result.replaced) == (True, {128: 5})
    # Within 7 tokens a window of 12 does not bind, within 11 it does not either, one of 11 binds in the encoder alone.
    fields, _ = binding(
        family(encoder=wide, decoder=wide).model_dump(), costcalc.Workload(new_tokens=11, memory_tokens=7)
    )
    assert {fields[name]["layers"][0]["attention"]["window"] for name in ("encoder", "decoder")} == {5}


@pytest.mark.parametrize(
    ("windows", "expected"), [((5, 5), 4), ((4, 3), 3), ((1, 1), 0), ((None, 5), None), ((), 0), ((128,), 64)]
)
def test_how_far_windows_reach(windows, expected):
    layers = [{"repeat": 1, "attention": {"window": window}} for window in windows] + [{"repeat": 2, "attention": None}]
    assert reach({"layers": layers}) == expected
    assert reach({"layers": [{"repeat": 3, "pattern": layers}]}) == (expected and 3 * expected)


@pytest.mark.parametrize(
    ("heads", "repeat", "scale", "seen"),
    [
        (1, 1, None, True),
        (1, 1, 0.5, True),  # 0.5·√5 is below 2
        (1, 1, 3.0, False),  # 3·√5 = 6.7
        (6, 1, 3.0, False),
        (6, 2, 3.0, True),  # 0.3^12 < 1e-6
        (6, 2, 5.0, False),  # 11.2: 0.6^12 = 0.002
        (6, 5, 5.0, True),
        (6, 99, 6.0, False),
    ],
)
def test_whether_a_token_must_show_among_sharp_scores(family, heads, repeat, scale, seen):
    attention = {"heads": heads, "head_dim": 5, **({} if scale is None else {"scale": scale})}
    model = family(encoder={"repeat": repeat, "attention": attention})
    assert is_seen(model.model_dump(), "encoder", "attention") == seen
    assert verify(model).agrees


@pytest.mark.parametrize(("d_model", "seen"), [(42, True), (60, False)])
def test_a_size_of_heads_that_follows_from_the_width(family, d_model, seen):
    """Two layers of 6 heads: of 7 numbers, 3·√7 = 7.9 and 0.3^12; of 10, 3·√10 = 9.5 and 0.6^12."""
    model = family(d_model=d_model, encoder={"attention": {"heads": 6, "scale": 3.0}})
    assert is_seen(model.model_dump(), "encoder", "attention") == seen


def test_tokens_need_not_show_where_rows_are_large_or_slopes_steep(family):
    for some in ({"embedding": {"scale": 8.0}}, {"positions": {"kind": "alibi", "slope_scale": 1.5}}):
        assert not is_seen(family(encoder={}, **some).model_dump(), "encoder", "attention")
    for some in ({"embedding": {"scale": 7.0}}, {"positions": {"kind": "alibi", "slope_scale": 1.0}}):
        assert is_seen(family(encoder={}, **some).model_dump(), "encoder", "attention")


def test_outputs_that_stay_are_counted():
    full = np.zeros((1, 5, 3), np.float32)
    changed = full.copy()
    changed[0, [0, 2, 4], 1] = 1
    assert changed_outputs(full, changed, everywhere=True, tells=True).measured == 2
    assert not changed_outputs(full, changed, everywhere=True, tells=True).holds
    assert changed_outputs(full, changed, everywhere=False, tells=True).measured == 0
    assert changed_outputs(full, full, everywhere=False, tells=True).measured == 1
    untold = changed_outputs(full, full, everywhere=True, tells=False)
    assert (untold.measured, untold.holds) == (None, True)


def test_what_is_seen_beyond_the_reach_is_measured():
    full = np.zeros((1, 7, 3), np.float32)
    changed = full.copy()
    changed[0, 2:, 1] = 0.5
    assert beyond_reach(full, changed, reach=4).measured == 0
    assert beyond_reach(full, changed, reach=3).measured == 0.5
    assert not beyond_reach(full, changed, reach=3).holds
    assert beyond_reach(full, changed, reach=5).measured == 0
    for far in (6, 7, 100, None):
        assert beyond_reach(full, changed, reach=far).measured is None


def test_rotations_of_both_stacks_are_measured(family):
    model = family(encoder={}, decoder={}, positions="rope")
    assert [turned.causal for turned in rotary(model.model_dump())] == [False, True]
    assert verify(model).agrees
    assert [turned.causal for turned in rotary(family(encoder={}, positions="rope").model_dump())] == [False]


def test_the_changed_token_of_the_encoder_is_its_last(family):
    for model in (family(encoder={}, decoder={}), family(decoder={})):
        given, other = memories(model.model_dump(), workload_for(model))
        ((name, one),) = given.items()
        assert one.shape[:2] == (1, 7)
        assert (one[:, :-1] == other[name][:, :-1]).all()
        assert (one[:, -1] != other[name][:, -1]).all()
    assert memories(family(encoder={}).model_dump(), costcalc.Workload(new_tokens=11)) == ({}, {})


def test_a_source_of_another_vocabulary_is_drawn_from_it(family):
    model = family(encoder={}, decoder={}, encoder_vocab_size=2)
    assert memories(model.model_dump(), workload_for(model))[0]["source"].max() <= 1
    assert verify(model).agrees


@pytest.mark.parametrize(("limit", "reached"), [("MOST_FLOPS", 314_378), ("LARGEST_ACTIVATIONS", 451)])
def test_a_pair_at_a_limit_is_run_and_one_beyond_it_is_refused(family, monkeypatch, limit, reached):
    """67,816 + 3·(22·2,652 + 14·546 + 4·3,597) + 5,434, as above; 11 tokens of 41 numbers in the feed-forward."""
    model = family(encoder={}, decoder={})
    monkeypatch.setattr(limits, limit, reached)
    limits.refuse_too_large(model)
    monkeypatch.setattr(limits, limit, reached - 1)
    with pytest.raises(costcalc.CostcalcError, match=r"314,378 FLOPs for 11 tokens, 41 numbers for each"):
        limits.refuse_too_large(model)


def test_the_longer_of_two_texts_is_what_is_too_large(family, monkeypatch):
    """Two tokens above, seven below."""
    model = family(encoder={}, decoder={})
    positions = {"kind": "learned", "length": 2}
    model = costcalc.load({**model.model_dump(), "decoder": {**model.model_dump()["decoder"], "positions": positions}})
    monkeypatch.setattr(limits, "LARGEST_ACTIVATIONS", 7 * 41 - 1)
    with pytest.raises(costcalc.CostcalcError, match="for 7 tokens, 41 numbers for each"):
        limits.refuse_too_large(model)


# Planted: what the pass does otherwise.


def test_an_encoder_that_looks_back_only_is_found(family, monkeypatch):
    true = scaled_dot_product.seen_from
    monkeypatch.setattr(
        "costcalc.reference.grouped_query.seen_from",
        lambda place, keys, *, causal, window=None, **more: true(place, keys, causal=True, window=window, **more),
    )
    result = verify(family(encoder={}))
    assert broken(result) == [UNCHANGED]
    assert measured(result)[UNCHANGED] == 10
    assert {fault.path.rpartition(".")[2] for fault in result.faults} == {"scores", "values"}


@pytest.mark.parametrize("wider", [1, 2])
def test_a_window_that_reaches_further_is_found(family, monkeypatch, wider):
    true = scaled_dot_product.seen_from

    def seen(place, keys, *, causal, window=None, **more):
        return true(place, keys, causal=causal, window=window and window + 2 * wider, **more)

    monkeypatch.setattr("costcalc.reference.grouped_query.seen_from", seen)
    below = {"attention": {"heads": 6, "head_dim": 5, "window": 3}}
    for stacks in ({"encoder": below}, {"encoder": below, "decoder": {}}):
        result = verify(family(**stacks))
        assert broken(result)[0] == BEYOND
        assert {fault.path.rpartition(".")[2] for fault in result.faults} == {"scores", "values"}


def test_the_encoder_of_a_pair_is_seen_no_further_than_its_windows_reach(family):
    """Two layers of one token to either side: of 7 tokens the first four do not see the last."""
    result = verify(family(encoder={"attention": {"heads": 6, "head_dim": 5, "window": 3}}, decoder={}))
    assert result.agrees
    assert measured(result)[BEYOND] == 0


def test_a_step_that_runs_the_encoder_again_is_found(family, monkeypatch):
    """One of its products."""

    def pass_(fields, tokens, *, tape, request, source=None, **more):
        logits = forward(fields, tokens, tape=tape, request=request, source=source, **more)
        if source is None:
            tape.multiplied("encoder.layers.0.attention.q", Product(1, 7, 13, 30), of="encoder.layers.0.attention.q")
        return logits

    monkeypatch.setattr("costcalc.verification.passes.forward", pass_)
    (fault,) = verify(family(encoder={}, decoder={})).faults
    assert (fault.phases, fault.path, fault.stated, fault.recorded) == (
        ("decode",),
        "encoder.layers.attention.q",
        None,
        2 * 7 * 13 * 30,
    )


def test_a_decoder_that_ignores_its_source_is_found(family, monkeypatch):
    first = {}

    def pass_(fields, tokens, *, source=None, **more):
        source = source if source is None else first.setdefault("source", source)
        return forward(fields, tokens, source=source, **more)

    monkeypatch.setattr("costcalc.verification.passes.forward", pass_)
    result = verify(family(encoder={}, decoder={}))
    assert broken(result) == [UNCHANGED]
    assert measured(result)[UNCHANGED] == 11


def test_a_cross_cache_that_lost_a_token_is_found(family, monkeypatch):
    def pass_(fields, tokens, *, request, **more):
        for path in request.cross:
            request.arrays[path] = request.arrays[path][:, :, 1:]
        return forward(fields, tokens, request=request, **more)

    monkeypatch.setattr("costcalc.verification.passes.forward", pass_)
    result = verify(family(encoder={}, decoder={}))
    assert broken(result) == ["cached decoding differs from the full pass"]
    assert {fault.phases for fault in result.faults} == {("decode",)}
    assert {fault.path.rpartition(".")[2] for fault in result.faults} == {"scores", "values", "k_cache", "v_cache"}


def test_positions_that_count_from_the_end_of_what_is_cached_are_found(family, monkeypatch):
    """Distances off by one where one token follows others."""
    true = on_scores.ON_SCORES["alibi"]

    def off(fields, heads, at, sight):
        added = true(fields, heads, at, sight)
        return (lambda distances: added(2 * distances)) if sight.start else added

    monkeypatch.setitem(on_scores.ON_SCORES, "alibi", off)
    result = verify(family(decoder={}, positions="alibi"))
    assert broken(result) == ["cached decoding differs from the full pass"]


def test_layers_that_do_not_share_though_they_are_stated_to_are_found(family, monkeypatch):
    monkeypatch.setattr("costcalc.reference.stack.places", own_places)
    result = verify(family(encoder={"share_weights": True}))
    found = {(fault.kind, fault.path, fault.layers, fault.stated, fault.recorded) for fault in result.faults}
    assert ("parameters", "encoder.layers.attention.q", (1,), None, 390) in found
    at = "encoder.layers.attention.q"
    assert ("weight", at, (1,), "encoder.layers.0.attention.q", "encoder.layers.1.attention.q") in found
    assert {fault.layers for fault in result.faults} == {(1,)}


def own_places(layers, at):
    yield from (Scope(at.tape, f"{at.path}.layers.{index}") for index in range(len(layers)))


# Planted: what is stated otherwise, one record at a time.


@pytest.fixture
def runs(monkeypatch):
    """(workload, tape) of each pass that was compared."""
    seen = []

    def noted(inventory, workload, tape, phase):
        seen.append((workload, tape))
        return compare(inventory, workload, tape, phase=phase)

    monkeypatch.setattr("costcalc.verification.run.compare", noted)
    return seen


@pytest.mark.parametrize("stacks", [{"encoder": {}}, {"encoder": {}, "decoder": {}}, {"decoder": {}}])
@pytest.mark.parametrize("share", [False, True])
def test_one_changed_factor_of_any_record_is_found(family, runs, stacks, share):
    stacks = {name: {"share_weights": share} for name in stacks}
    model = family(**stacks, positions="relative", head={"bias": True})
    assert verify(model).agrees
    records = model.inventory.records
    for index, record in enumerate(records):
        for letter, size in record.axes.items():
            if not isinstance(size, int):
                continue
            other = record._replace(axes={**record.axes, letter: size + 1})
            changed = Inventory((*records[:index], other, *records[index + 1 :]), model.inventory.layout)
            found = {fault.path for workload, tape in runs for fault in compare(changed, workload, tape, phase="x")[1]}
            assert found == {record.path}


def test_weights_stated_for_some_layers_of_a_group_are_found(family, runs):
    model = family(encoder={"repeat": 3})
    verify(model)
    at = "encoder.layers.feed_forward.up"
    for sort, times, kinds in ((Weight, 2, {"layers"}), (Weight, 1, {"parameters", "weight"}), (Matmul, 1, {"layers"})):
        records = tuple(
            record._replace(times=times) if record.path == at and isinstance(record, sort) else record
            for record in model.inventory.records
        )
        found = compare(Inventory(records, model.inventory.layout), *runs[0], phase="pass")[1]
        assert {fault.kind for fault in found} == kinds
        assert {fault.path for fault in found} == {at}


@pytest.mark.parametrize(("kind", "other"), [("kv", "cross"), ("cross", "kv")])
def test_another_kind_of_cache_is_found(family, runs, kind, other):
    model = family(encoder={}, decoder={})
    verify(model)
    records = tuple(
        record._replace(kind=other) if getattr(record, "kind", None) == kind else record
        for record in model.inventory.records
    )
    part = "attention" if kind == "kv" else "cross_attention"
    for run in runs:
        found = compare(Inventory(records, model.inventory.layout), *run, phase="x")[1]
        assert [(fault.kind, fault.path, fault.stated, fault.recorded) for fault in found] == [
            ("kind of cache", f"decoder.layers.{part}.{name}_cache", other, kind) for name in "kv"
        ]


@pytest.mark.parametrize(
    "attention",
    [
        {"kind": "sliding", "window": 4},
        {"kind": "sliding", "window": 4, "first": 2},
        {"kind": "block_sparse", "block": 1, "random": 2},
        {"kind": "local", "window": 3},
        {"kind": "local", "window": 3, "summed": 3, "norm": "rmsnorm"},
        {"kind": "global_local", "block": 4},
        {"kind": "landmarks", "landmarks": 3},
        {"kind": "landmarks", "taps": 3},
        {"kind": "collisions", "taps": 3},
        {"kind": "multi_resolution", "block": 4, "blocks": 3},
    ],
)
@pytest.mark.parametrize("repeat", [1, 3])
def test_encoders_of_whole_texts_verify(attention, repeat):
    layer = {"repeat": repeat, "attention": {"heads": 6, "head_dim": 5, **attention}, "feed_forward": {"d_ff": 37}}
    stack = {"layers": [layer], **({"global_tokens": 2} if attention["kind"] == "global_local" else {})}
    result = verify(costcalc.load({"vocab_size": 19, "d_model": 13, "norm": "layernorm", "encoder": stack}))
    assert result.faults == ()
    assert broken(result) == []

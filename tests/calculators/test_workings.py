"""Every working comes to the number that its calculator gives, in every preset and workload."""

import pytest

from costcalc import load
from costcalc.calculators.figure import Figure
from costcalc.calculators.flops import flops
from costcalc.calculators.kv_cache import kv_cache
from costcalc.calculators.parameters import layer_parameters, parameters
from costcalc.calculators.workings import (
    COUNTED_ONCE,
    CURVE,
    SHARED_HEADS,
    STATES,
    cache_figures,
    flop_figures,
    layer_figures,
    parameter_figures,
    stored,
)
from costcalc.dtypes import DTYPES, bytes_for
from costcalc.errors import CostcalcError
from costcalc.inventory import Cached, Context, Inventory, Logits, Matmul, Memory, Pairs, Tokens, Weight, Workload
from costcalc.sources.presets import preset_names

PARAMETERS = {
    "total_parameters": "total",
    "embedding_parameters": "embedding",
    "non_embedding_parameters": "non_embedding",
    "active_parameters": "active",
    "active_parameters_without_input_table": "active_without_input_table",
    "active_parameters_without_tables": "active_without_tables",
    "trainable_parameters": "trainable",
    "buffers": "buffers",
    "extra_parameters": "extra",
}
FLOPS = {
    "weight_flops": "weights",
    "attention_flops": "attention",
    "modelled_flops": "modelled",
    "forward_flops": "forward",
    "flops_per_token": "per_token",
    "train_flops": "train",
}
CACHE = {
    "kv_cache_elements": "elements",
    "cross_cache_elements": "cross_elements",
    "state_elements": "state_elements",
    "kv_cache_bytes": "bytes",
    "kv_bytes_per_token": "bytes_per_token",
    "state_bytes": "state_bytes",
}
WORKLOADS = [
    Workload(new_tokens=11),
    Workload(past_tokens=7),
    Workload(batch=3, new_tokens=8_191, past_tokens=13),
    Workload(batch=3, new_tokens=11, past_tokens=8_191),
    Workload(batch=2, new_tokens=8_191, counting="rectangle"),
    Workload(batch=5, new_tokens=8_191, logits="last"),
]

TABLE = Weight("embedding", {"V": 19, "D": 13}, table=True)
POSITIONS = Weight("positions", {"length": 11, "D": 13}, role="frozen", table=True)
UP = Weight("layers.experts.up", {"E": 17, "D": 13, "F": 7}, times=3, used={"E": 2})
BUFFER = Weight("layers.router_bias", {"E": 17}, times=3, role="buffer")
EXTRA = Weight("extra.up", {"D": 13, "F": 7}, role="extra")
EXTRA_TABLE = Weight("extra.table", {"V": 19, "D": 13}, role="extra", table=True)
HEAD = Matmul("head", {"B·T": Logits(), "D": 13, "V": 19}, of="embedding")
SCORES = Matmul("layers.attention.scores", {"B·P": Pairs(), "N": 6, "H": 5}, times=3, role="scores")
VALUES = Matmul("layers.attention.values", {"B·P": Pairs(), "N": 6, "H": 7}, times=3, role="values")
SCAN = Matmul("layers.mixer.scan", {"B·T": Tokens(), "D": 13, "state": 23}, times=3, role="scan")
EXPANDED = Matmul("layers.attention.expand", {"B·T": Tokens(), "R": 29}, form="expanded")
ABSORBED = Matmul("layers.attention.absorb", {"B·T": Tokens(), "R": 31}, form="absorbed")
KEYS = Cached("layers.attention.k_cache", {"B·S": Context(), "K": 2, "H": 5}, times=3)
NEAR = Cached("layers.local.k_cache", {"B·S": Context(window=7), "K": 2, "H": 5}, times=5)
CROSS = Cached("layers.cross.k_cache", {"B·M": Memory(), "K": 2, "H": 7}, times=3, kind="cross")
STATE = Cached("layers.mixer.state", {"B": Context(window=1), "D": 13}, times=3, kind="state", dtype="fp32")
CONVOLUTION = Cached("layers.mixer.tail", {"B": Context(window=1), "tail": 37}, times=3, kind="state")
EVERYTHING = Inventory(
    (
        *(TABLE, POSITIONS, UP, BUFFER, EXTRA, EXTRA_TABLE),
        *(HEAD, SCORES, VALUES, SCAN, EXPANDED, ABSORBED),
        *(KEYS, NEAR, CROSS, STATE, CONVOLUTION),
    ),
    {},
)
NOTHING = Inventory((), {})


def everything_below(figures):
    """Every figure that goes into these, by whatever way, and they themselves."""
    waiting = list(figures.values())
    while waiting:
        figure = waiting.pop()
        yield figure
        waiting += figure.inputs


def checked(figures):
    """A name stands for one number; a figure is listed once, after all that goes into it; symbols stand for inputs."""
    values = {}
    for figure in everything_below(figures):
        assert values.setdefault((figure.name, figure.unit), figure.exact_value) == figure.exact_value, figure.name
        if figure.expression is not None:
            assert set(figure.expression.symbols()) <= set(figure.values), figure.name
            assert all(not isinstance(v, Figure) or v.name == name for name, v in figure.values.items())
    for name, figure in figures.items():
        assert figure.name == name
        listed = [(below.name, below.unit) for below in figure.lineage()]
        assert len(listed) == len(set(listed))
        assert set(listed) == {(below.name, below.unit) for below in everything_below({name: figure})}
        for index, below in enumerate(figure.lineage()):
            assert {(given.name, given.unit) for given in below.inputs} <= set(listed[:index])
    return {name: figure.value for name, figure in figures.items()}


def fields(answer, keys):
    """What a calculator says, by the keys of the working; what it does not say has no working."""
    return {key: getattr(answer, name) for key, name in keys.items() if getattr(answer, name) is not None}


@pytest.mark.parametrize(
    "inventory", [*preset_names(), EVERYTHING, NOTHING], ids=lambda x: x if isinstance(x, str) else ""
)
def test_workings_come_to_what_the_calculators_say(readable, inventory):
    inventory = load(inventory).inventory if isinstance(inventory, str) else inventory
    counted = parameters(inventory)
    said = checked(parameter_figures(inventory))
    assert said.pop("looked_up_parameters") == counted.active - counted.active_without_input_table
    assert said == fields(counted, PARAMETERS)
    for workload in [readable(inventory, each) for each in WORKLOADS]:
        assert checked(flop_figures(inventory, workload)) == fields(flops(inventory, workload), FLOPS)
    if not inventory.has_cache:
        return
    for dtype in DTYPES:
        for context, batch in ((1, 1), (11, 3), (8_191, 1)):
            memory = readable(inventory, Workload()).memory_tokens
            cache = kv_cache(inventory, context, batch=batch, memory_tokens=memory, dtype=dtype)
            figures = cache_figures(inventory, context, batch=batch, memory_tokens=memory, dtype=dtype)
            assert checked(figures) == fields(cache, CACHE)


def test_parameters_worked_out():
    figures = parameter_figures(EVERYTHING)
    # table 19 x 13 = 247, positions 11 x 13 = 143, experts 3 x 17 x 13 x 7 = 4,641 of which a token uses 546
    assert {name: figure.value for name, figure in figures.items()} == {
        "total_parameters": 5_031,
        "embedding_parameters": 390,
        "non_embedding_parameters": 4_641,
        "active_parameters": 936,
        "active_parameters_without_input_table": 793,  # the table of positions is only looked up
        "active_parameters_without_tables": 546,
        "looked_up_parameters": 143,
        "trainable_parameters": 4_888,
        "buffers": 51,
        "extra_parameters": 338,
    }
    assert list(figures) == [
        *("total_parameters", "embedding_parameters", "active_parameters", "looked_up_parameters"),
        *("trainable_parameters", "buffers", "extra_parameters", "non_embedding_parameters"),
        *("active_parameters_without_input_table", "active_parameters_without_tables"),
    ]
    assert figures["total_parameters"].formula.text() == "embedding + positions + layers.experts.up"
    assert figures["active_parameters"].numbers.text() == "247 + 143 + 546"
    assert figures["non_embedding_parameters"].numbers.text() == "5,031 - 390"
    without = figures["active_parameters_without_input_table"]
    assert without.formula.text() == "active_parameters - looked_up_parameters"
    assert all(figure.unit == "parameters" and figure.nature == "exact" for figure in figures.values())


def test_trained_layers_worked_out():
    """Of 3 layers one is trained: experts of 17 x 13 x 7 = 1,547 and no table."""
    inventory = Inventory((TABLE, UP._replace(path="decoder.layers.up"), BUFFER), {"decoder": ("decoder.layers",) * 3})
    figures = parameter_figures(inventory, trained_layers=[1])
    trained = figures["trainable_parameters"]
    assert (trained.value, trained.formula.text()) == (1_547, "decoder.layers.up (trained)")
    assert trained.terms[0].formula.text() == "E·D·F"
    checked(figures)
    assert {name for name, each in parameter_figures(inventory).items() if each.value != figures[name].value} == {
        "trainable_parameters"
    }
    assert parameter_figures(inventory, trained_layers=[])["trainable_parameters"].value == 0


@pytest.mark.parametrize("model", preset_names())
def test_what_one_layer_holds(model, values_by_name):
    inventory = load(model).inventory
    figures = layer_figures(inventory)
    values_by_name([*figures.values(), *parameter_figures(inventory).values()])
    assert {name: figure.value for name, figure in figures.items()} == layer_parameters(inventory)
    assert all(figure.name == name and figure.unit == "parameters" for name, figure in figures.items())
    assert {figure.source for figure in figures.values()} == {COUNTED_ONCE}


def test_one_layer_worked_out():
    layers = {"decoder": ("layers.near", "layers.far", "layers.near", "layers.near")}
    near = Weight("layers.near.up", {"D": 13, "F": 7}, times=3)
    far = Weight("layers.far.experts.up", {"E": 17, "D": 13, "F": 7}, used={"E": 2})
    buffer = Weight("layers.near.bias", {"E": 17}, times=3, role="buffer")
    figures = layer_figures(Inventory((TABLE, near, far, buffer, BUFFER), layers))
    assert {name: figure.value for name, figure in figures.items()} == {"layers.near": 91, "layers.far": 1_547}
    (term,) = figures["layers.near"].terms  # 13 x 7, of three; a buffer is no parameter
    assert (term.name, term.numbers.text()) == ("layers.near.up (one layer)", "13·7")


def test_a_forward_pass_names_the_parts_that_it_has():
    def formula(*records, prefix=""):
        figures = flop_figures(Inventory(records, {}), Workload(new_tokens=11), prefix=prefix)
        return figures[f"{prefix}forward_flops"].formula.text()

    assert formula(HEAD, SCORES, SCAN) == "weight_flops + attention_flops + modelled_flops"
    assert formula(HEAD, SCORES, prefix="short_") == "short_weight_flops + short_attention_flops"
    assert formula(SCAN) == "modelled_flops"
    assert formula() == "weight_flops"  # of nothing: 0


def test_flops_worked_out():
    # T = 11, P = 66: head 2·11·13·19 = 5,434, expand 2·11·29 = 638; 2·3·66·6·(5 + 7) = 28,512; 2·3·11·13·23 = 19,734
    figures = flop_figures(EVERYTHING, Workload(new_tokens=11))
    assert {name: figure.value for name, figure in figures.items()} == {
        "weight_flops": 6_072,
        "attention_flops": 28_512,
        "modelled_flops": 19_734,
        "forward_flops": 54_318,
        "flops_per_token": 4_938,
        "train_flops": 162_954,
    }
    assert list(figures) == list(FLOPS)
    assert figures["forward_flops"].numbers.text() == "6,072 + 28,512 + 19,734"
    assert figures["flops_per_token"].formula.text() == "forward_flops / (B·T)"
    assert figures["train_flops"].numbers.text() == "3·54,318"
    # one form of a latent attention runs
    decode = flop_figures(EVERYTHING, Workload(past_tokens=7))
    assert [term.name for term in decode["weight_flops"].terms] == ["head", "layers.attention.absorb"]
    assert "train_flops" not in decode


def test_a_mean_is_rounded_to_the_nearest_as_the_calculator_does():
    scan = SCAN._replace(axes={"B": 1}, times=1)  # 2 FLOPs a pass, whatever its tokens
    for tokens in range(1, 9):
        workload = Workload(new_tokens=tokens)
        inventory = Inventory((scan,), {})
        assert flop_figures(inventory, workload)["flops_per_token"].value == flops(inventory, workload).per_token


def test_what_is_modelled_says_so_all_the_way_up():
    def natures(inventory, workload):
        return {name: figure.nature for name, figure in flop_figures(inventory, workload).items()}

    with_scan, training = Inventory((HEAD, SCORES, SCAN), {}), Workload(new_tokens=11)
    modelled = {"modelled_flops", "forward_flops", "flops_per_token", "train_flops"}
    assert {name for name, nature in natures(with_scan, training).items() if nature == "modelled"} == modelled
    assert set(natures(Inventory((HEAD, SCORES), {}), training).values()) == {"exact"}
    assert set(natures(NOTHING, training).values()) == {"exact"}


def test_a_prefix_tells_two_passes_apart():
    last = flop_figures(EVERYTHING, Workload(past_tokens=10), prefix="next_token_")
    whole = flop_figures(EVERYTHING, Workload(new_tokens=11))
    assert last["next_token_forward_flops"].value == flops(EVERYTHING, Workload(past_tokens=10)).forward
    assert list(last) == [f"next_token_{name}" for name in FLOPS if name != "train_flops"]
    checked({**last, **whole})
    assert last["next_token_attention_flops"].terms[0].name == "layers.attention.scores (next token)"
    assert whole["attention_flops"].terms[0].name == "layers.attention.scores"
    training = flop_figures(EVERYTHING, Workload(new_tokens=3), prefix="short_")
    assert training["short_train_flops"].value == 3 * training["short_forward_flops"].value
    checked({**last, **whole, **training})


def test_a_cache_worked_out():
    """bf16, 11 tokens: 3 x 10 x 11 + 5 x 10 x 7 = 680 keys, 2 x 23 x ... see the sums."""
    figures = cache_figures(EVERYTHING, 11, batch=2, memory_tokens=23)
    assert {name: figure.value for name, figure in figures.items()} == {
        "kv_cache_elements": 1_360,  # 2 x (3 x 10 x 11 + 5 x 10 x 7)
        "cross_cache_elements": 1_932,  # 2 x 3 x 14 x 23
        "state_elements": 300,  # 2 x 3 x (13 + 37)
        "kv_cache_bytes": 7_340,  # 2 x (1,360 + 1,932 + 222), and 4 x 78 of fp32
        "kv_bytes_per_token": 120,  # 2 sequences x 3 layers x 10 x 2 bytes; the window is full
        "state_bytes": 756,  # 2 x 222 + 4 x 78
    }


def test_the_formulas_of_a_cache():
    figures = cache_figures(Inventory((KEYS, NEAR), {}), 11, dtype="q8_0")
    assert figures["kv_cache_bytes"].formula.text() == "ceil(kv_cache_elements·34 / 32)"
    assert figures["kv_cache_bytes"].numbers.text() == "ceil(680·34 / 32)"
    assert figures["kv_cache_bytes"].source == "q8_0: 34 bytes for 32 values, 8.5 bits each"
    assert list(figures) == list(CACHE)
    assert figures["kv_bytes_per_token"].formula.text() == "kv_cache_bytes_next - kv_cache_bytes"
    assert figures["kv_bytes_per_token"].numbers.text() == "755 - 723"  # 24,140 / 32 = 754.4 less 722.5
    assert figures["kv_bytes_per_token"].source == CURVE
    later = next(figure for figure in figures["kv_bytes_per_token"].lineage())
    assert later.name == "layers.attention.k_cache (next token)"
    plain = cache_figures(Inventory((KEYS, NEAR), {}), 11)
    assert plain["kv_cache_bytes"].formula.text() == "kv_cache_elements·2"
    terms = plain["kv_cache_elements"].terms
    assert [term.formula.text() for term in terms] == ["L·B·S·K·H", "L·B·min(S, 7)·K·H"]


@pytest.mark.parametrize(
    "records",
    [
        (KEYS,),
        (STATE,),
        (CONVOLUTION,),
        (CROSS,),
        (KEYS, STATE),
        (KEYS, CONVOLUTION),
        (STATE, CONVOLUTION),
        (KEYS, KEYS._replace(path="layers.attention.v_cache", dtype="fp8")),
        (KEYS._replace(dtype="fp32"), STATE),
        (KEYS, CROSS, STATE, CONVOLUTION),
    ],
)
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "q8_0"])
@pytest.mark.parametrize("prefix", ["", "engine_"])
def test_every_mixture_of_kinds_and_dtypes(readable, records, dtype, prefix):
    inventory = Inventory(records, {})
    memory = readable(inventory, Workload()).memory_tokens
    said = checked(cache_figures(inventory, 11, batch=3, memory_tokens=memory, dtype=dtype, prefix=prefix))
    cache = kv_cache(inventory, 11, batch=3, memory_tokens=memory, dtype=dtype)
    assert said == {f"{prefix}{name}": value for name, value in fields(cache, CACHE).items()}


def test_two_caches_side_by_side_have_names_of_their_own():
    near, far = Inventory((NEAR, STATE), {}), Inventory((KEYS, STATE), {})
    checked({**cache_figures(near, 11), **cache_figures(far, 13, prefix="engine_")})


def test_the_names_of_the_parts_of_a_mixed_cache():
    total = cache_figures(Inventory((KEYS, STATE, CONVOLUTION), {}), 11)["kv_cache_bytes"]
    assert total.formula.text() == "kv_cache_bytes_bf16 + kv_cache_bytes_fp32"
    assert [part.formula.text() for part in total.terms] == [
        "cached_elements_bf16·2",
        "cached_elements_fp32·4",
    ]
    assert [[term.name for term in part.inputs[0].terms] for part in total.terms] == [
        ["layers.attention.k_cache", "layers.mixer.tail"],
        ["layers.mixer.state"],
    ]
    one_dtype = cache_figures(Inventory((KEYS, CONVOLUTION), {}), 11)["kv_cache_bytes"]
    assert one_dtype.formula.text() == "cached_elements·2"
    assert one_dtype.inputs[0].source == f"{SHARED_HEADS}; {STATES}"


def test_no_encoder_unless_one_is_given():
    assert cache_figures(EVERYTHING, 11)["cross_cache_elements"].value == 0
    assert checked(cache_figures(EVERYTHING, 11)) == fields(kv_cache(EVERYTHING, 11), CACHE)


def test_a_dtype_by_another_name_and_an_unknown_one():
    inventory = Inventory((KEYS,), {})
    assert cache_figures(inventory, 11, dtype="float32")["kv_cache_bytes"].value == 1_320
    with pytest.raises(CostcalcError, match="unknown dtype 'int3'"):
        cache_figures(inventory, 11, dtype="int3")


@pytest.mark.parametrize("dtype", DTYPES)
def test_stored_elements_are_bytes_rounded_up_once(dtype):
    for count in (0, 1, 31, 32, 33, 1_000_003):
        elements = Figure("elements", "elements", words="given", found=count)
        figure = stored("b", elements, dtype)
        assert (figure.value, figure.unit, figure.inputs) == (bytes_for(count, dtype), "bytes", [elements])


def test_sources_and_units():
    for figures, unit in (
        (parameter_figures(EVERYTHING), {"parameters"}),
        (flop_figures(EVERYTHING, Workload(new_tokens=11)), {"FLOPs"}),
        (cache_figures(EVERYTHING, 11), {"bytes", "elements"}),
    ):
        assert {figure.unit for figure in figures.values()} == unit
    cited = {**parameter_figures(EVERYTHING), **flop_figures(EVERYTHING, Workload(new_tokens=11))}
    assert all(figure.source for figure in cited.values())


def test_published_numbers_with_their_workings():
    llama = load("llama-3-8b").inventory
    assert parameter_figures(llama)["total_parameters"].value == 8_030_261_248  # its model card's safetensors
    cache = cache_figures(llama, 8_192)
    assert cache["kv_cache_bytes"].value == 2**30
    assert cache["kv_cache_bytes"].numbers.text() == "536,870,912·2"

from costcalc.architecture import Architecture
from costcalc.architecture.norm import LayerNorm
from costcalc.inventory import Workload

ENTITIES = {"rows": 31, "width": 7, "length": 11, "token_types": 2, "norm": LayerNorm()}


def made(**entities):
    attention = {"heads": 3, "head_dim": 5, "entity_queries": bool(entities), "bias": True}
    layers = [{"repeat": 2, "attention": attention, "feed_forward": {"d_ff": 37}}]
    some = {**ENTITIES, **entities} if entities else None
    return Architecture(vocab_size=19, d_model=13, norm="layernorm", encoder={"layers": layers}, entities=some)


def total(arch):
    return sum(weight.parameters for weight in arch.inventory.weights)


def test_what_is_held_for_entities():
    """31·7 + 7·13 + 11·13 + 2·13 + 2·13 = 503; in each of two layers 3·(13·15 + 15) = 630 of queries.

    A head that tells them: 13·7 + 7 + 2·7 + 31 = 143, and 31·7 of a table of its own.
    """
    plain = total(made())
    assert total(made(predicts=False)) - plain == 503 + 2 * 630
    assert total(made(predicts="tied")) - plain == 503 + 2 * 630 + 143
    assert total(made(predicts="own")) - plain == 503 + 2 * 630 + 143 + 31 * 7


def test_rows_as_wide_as_the_model_are_not_projected():
    """31·13 + 11·13 + 2·13 + 2·13 = 598."""
    assert total(made(width=13)) - total(made()) == 598 + 2 * 630


def test_a_text_without_entities_multiplies_by_none():
    one, other = made(), made(predicts="own")
    workload = Workload(new_tokens=11)
    flops = [sum(matmul.flops(workload) for matmul in arch.inventory.matmuls) for arch in (one, other)]
    assert flops[0] == flops[1]
    assert "queries of entities held" in other.groups[0].block.attention.summary(13)


def test_luke_base():
    """LUKE-base, as its class makes it by default: the total of the shared recording of all classes."""
    from costcalc import load, parameters

    assert parameters(load({"model_type": "luke"})).total == 314_445_435

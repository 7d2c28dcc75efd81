"""Names taken apart: in which layer a tensor stands, and what is beside the text model."""

from costcalc.inventory.packing import Meaning
from costcalc.verification.headers.names import OUTSIDE, placed


def places(names, layout, *, not_counted=False):
    tensors, towers = placed([Meaning(name, (5,), ()) for name in names], layout, not_counted)
    return {tensor.names[0]: (tensor.place, tensor.inside) for tensor in tensors}, towers


def test_the_layers_of_a_pair_are_told_apart():
    names = ["shared.weight", "encoder.block.1.layer.0.q.weight", "encoder.block.0.layer.0.q.weight"]
    found, _ = places([*names, "decoder.block.0.layer.1.k.weight"], {"encoder": [0, 1], "decoder": [0]})
    assert found == {
        "shared.weight": (OUTSIDE, "shared.weight"),
        "encoder.block.1.layer.0.q.weight": (("encoder", 1), "layer.0.q.weight"),
        "encoder.block.0.layer.0.q.weight": (("encoder", 0), "layer.0.q.weight"),
        "decoder.block.0.layer.1.k.weight": (("decoder", 0), "layer.1.k.weight"),
    }


def test_sets_of_shared_layers_and_groups_are_counted_through():
    names = [f"groups.{group}.inner.{layer}.q" for group in range(2) for layer in range(2)]
    found, _ = places(names, {"encoder": [0, 3, 6, 9]})
    assert [place for place, _ in found.values()] == [("encoder", layer) for layer in (0, 3, 6, 9)]


def test_parts_of_layers_in_lists_of_their_own():
    found, _ = places(
        ["t.attentions.0.q", "t.attentions.1.q", "t.norms.0.weight", "t.norms.1.weight"], {"decoder": [0, 1]}
    )
    assert found["t.attentions.1.q"] == (("decoder", 1), "attentions.q")
    assert found["t.norms.0.weight"] == (("decoder", 0), "norms.weight")


def test_modules_of_two_layers_each():
    names = [f"m.layers.{module}.attn.{half}.q" for module in range(2) for half in range(2)]
    found, _ = places([*names, "m.layers.1.mlp.experts.0.up"], {"decoder": [0, 1, 2, 3]})
    assert [found[name] for name in names] == [(("decoder", layer), "attn.q") for layer in range(4)]
    assert found["m.layers.1.mlp.experts.0.up"] == (("decoder", 2), "mlp.experts.*.up")


def test_towers_stand_beside_a_text_model():
    text = ["model.language_model.layers.0.q", "model.language_model.layers.1.q", "lm_head.weight"]
    beside = ["model.vision_tower.encoder.layers.0.q", "model.timing.layers.0.q", "model.timing.weight"]
    found, towers = places([*text, *beside], {"decoder": [0, 1]}, not_counted=True)
    assert list(found) == text
    assert sorted(towers) == sorted(beside)
    found, towers = places([*text, *beside], {"decoder": [0, 1]})
    assert (len(found), towers) == (6, [])


def test_experts_are_one_tensor():
    names = [f"m.layers.0.mlp.experts.{expert}.up" for expert in (1, 0, 2)]
    tensors, _ = placed([Meaning(name, (5, 7), ()) for name in names], {"decoder": [0]}, False)
    ((joined,),) = [tensors]
    assert (joined.shape, joined.inside, joined.names) == ((3, 5, 7), "mlp.experts.*.up", tuple(sorted(names)))

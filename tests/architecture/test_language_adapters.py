import pytest

from costcalc import load, parameters
from costcalc.architecture import Architecture
from costcalc.inventory import Workload


def made(**adapters):
    layer = {"attention": {"heads": 6}, "feed_forward": {"d_ff": 37}, "norms": "post", "repeat": 2}
    more = {"adapters": adapters} if adapters else {}
    return Architecture(vocab_size=19, d_model=42, norm="layernorm", encoder={"layers": [{**layer, **more}]})


def total(arch):
    return sum(weight.parameters for weight in arch.inventory.weights)


def test_each_language_has_a_network_of_which_a_text_uses_one():
    """2 layers x 3 languages x (2·42·7 + 7 + 42); a token uses a third, and multiplies 2·42·7."""
    arch, asked = made(languages=3, width=7), Workload(new_tokens=11)
    assert total(arch) - total(made()) == 2 * 3 * (2 * 42 * 7 + 7 + 42)
    assert total(made(languages=3, width=7, reads="own")) - total(arch) == 2 * 2 * 42
    used = sum(weight.used_parameters for weight in arch.inventory.weights)
    assert used == total(made()) + 2 * (2 * 42 * 7 + 7 + 42)
    flops = [sum(matmul.flops(asked) for matmul in each.inventory.matmuls) for each in (made(), arch)]
    assert flops[1] - flops[0] == 2 * 2 * 11 * 2 * 42 * 7


def test_a_residual_in_front_of_no_norm():
    with pytest.raises(ValueError, match="`residual: plain` needs what it `reads` normed"):
        made(languages=3, width=7, reads=None, residual="plain")


def test_xmod_base():
    """As the class makes it by default: the total of the shared recording of all classes."""
    arch = load({"model_type": "xmod"})
    assert parameters(arch).total == 116_606_010
    assert arch.groups[0].block.adapters.summary() == "1 languages, 384 wide"

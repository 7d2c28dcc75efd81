"""costcalc: what does this transformer cost?

    >>> import costcalc
    >>> model = costcalc.load("8b")
    >>> costcalc.parameters(model).total
    8030261248

The names below load what they need on first use: importing costcalc itself imports neither pydantic nor NumPy.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Architecture", "CostcalcError", "Workload", "experts", "flops", "kv_cache", "load", "parameters", "verify"]

if TYPE_CHECKING:
    from costcalc.architecture import Architecture
    from costcalc.calculators.experts import Experts
    from costcalc.calculators.flops import Flops
    from costcalc.calculators.kv_cache import KVCache
    from costcalc.calculators.parameters import Parameters
    from costcalc.errors import CostcalcError
    from costcalc.inventory import Inventory, Workload
    from costcalc.sources import load
    from costcalc.verification import Verification

_HOMES = {
    "Architecture": "costcalc.architecture",
    "CostcalcError": "costcalc.errors",
    "Workload": "costcalc.inventory",
    "load": "costcalc.sources",
}


if not TYPE_CHECKING:  # a type checker reads the imports above, and so finds a wrong name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'costcalc' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted([*globals(), *_HOMES])


@cache
def _calculator(name: str) -> Any:
    return getattr(import_module(f"costcalc.calculators.{name}"), name)


def _inventory(arch: Architecture) -> Inventory:
    """TypeError for what is no architecture, such as a preset's name."""
    if not hasattr(arch, "inventory"):
        raise TypeError(f"an Architecture is needed, not {type(arch).__name__}: costcalc.load(...) gives one")
    return arch.inventory


def parameters(arch: Architecture) -> Parameters:
    """Exact parameter counts: `.total .embedding .non_embedding .active .trainable .buffers .extra .components`."""
    counted: Parameters = _calculator("parameters")(_inventory(arch))
    return counted


def flops(arch: Architecture, workload: Workload) -> Flops:
    """Exact FLOPs of one pass over `workload`: `.forward .weights .attention .modelled .train .per_token`."""
    counted: Flops = _calculator("flops")(_inventory(arch), workload)
    return counted


def experts(arch: Architecture, tokens: int = 1) -> Experts:
    """What a step of so many tokens is expected to read of a model: `.mixtures .distinct .read_parameters`."""
    counted: Experts = _calculator("experts")(_inventory(arch), tokens)
    return counted


def verify(arch: Architecture) -> Verification:
    """A forward pass in NumPy against what `arch` states, layer by layer: `.agrees .faults .phases .properties`."""
    _inventory(arch)
    verified: Verification = import_module("costcalc.verification").verify(arch)
    return verified


def kv_cache(
    arch: Architecture, context: int, *, batch: int = 1, memory_tokens: int = 0, dtype: str = "bf16"
) -> KVCache:
    """What `batch` requests of `context` tokens hold: `.elements .bytes .bytes_per_token` and the parts."""
    counted: KVCache = _calculator("kv_cache")(
        _inventory(arch), context, batch=batch, memory_tokens=memory_tokens, dtype=dtype
    )
    return counted

"""costcalc: what does this transformer cost?

    >>> import costcalc
    >>> model = costcalc.load("8b")
    >>> costcalc.parameters(model).total
    8030261248

The names below load what they need on first use: importing costcalc itself imports neither pydantic nor NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Architecture", "CostcalcError", "Workload", "flops", "kv_cache", "load", "parameters"]

if TYPE_CHECKING:
    from costcalc.architecture import Architecture
    from costcalc.calculators.flops import Flops
    from costcalc.calculators.kv_cache import KVCache
    from costcalc.calculators.parameters import Parameters
    from costcalc.errors import CostcalcError
    from costcalc.inventory import Workload
    from costcalc.sources import load

_HOMES = {
    "Architecture": "costcalc.architecture",
    "CostcalcError": "costcalc.errors",
    "Workload": "costcalc.inventory",
    "load": "costcalc.sources",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'costcalc' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def parameters(arch: Architecture) -> Parameters:
    """Exact parameter counts: `.total .embedding .non_embedding .active .trainable .buffers .extra .components`."""
    from costcalc.calculators.parameters import parameters as count  # noqa: PLC0415

    return count(arch.inventory)


def flops(arch: Architecture, workload: Workload) -> Flops:
    """Exact FLOPs of one pass over `workload`: `.forward .weights .attention .modelled .train .per_token`."""
    from costcalc.calculators.flops import flops as count  # noqa: PLC0415

    return count(arch.inventory, workload)


def kv_cache(
    arch: Architecture, context: int, *, batch: int = 1, memory_tokens: int = 0, dtype: str = "bf16"
) -> KVCache:
    """What `batch` requests of `context` tokens hold: `.elements .bytes .bytes_per_token` and the parts."""
    from costcalc.calculators.kv_cache import kv_cache as count  # noqa: PLC0415

    return count(arch.inventory, context, batch=batch, memory_tokens=memory_tokens, dtype=dtype)

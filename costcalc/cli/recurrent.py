"""What commands say of recurrent layers: which numbers hold an estimate, and what of a cache does not grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costcalc.report import Quantity

if TYPE_CHECKING:
    from costcalc.calculators.flops import Flops
    from costcalc.calculators.kv_cache import KVCache
    from costcalc.inventory import Inventory, Workload

SCANS = "  of which scans"
"""The row of what is modelled, below the whole of it."""
GROWS, STATE = "  of which keys and values", "  of which constant state"
"""The rows of what grows and of what stays as it is, below the bytes of a cache."""


def scan_row(counted: Flops) -> dict[str, Quantity]:
    """Where there is recurrent work, a row of it."""
    return {SCANS: Quantity(counted.modelled, "FLOPs")} if counted.modelled else {}


def state_row(state_bytes: int | None) -> dict[str, Quantity]:
    """Where something of constant size is held, a row of it."""
    return {STATE: Quantity(state_bytes, "bytes")} if state_bytes else {}


def cache_rows(cache: KVCache) -> dict[str, Quantity]:
    """Where something of constant size is held, rows of all else and of it."""
    if not cache.bytes or not cache.state_bytes:
        return {}
    return {GROWS: Quantity(cache.bytes - cache.state_bytes, "bytes"), **state_row(cache.state_bytes)}


def modelled(labels: tuple[str, ...], *counted: Flops | None) -> dict[str, str]:
    """The status of rows that hold scans of any of these passes."""
    has_scans = any(each is not None and each.modelled for each in counted)
    return dict.fromkeys((*labels, SCANS), "modelled") if has_scans else {}


def scans_note(name: str, inventory: Inventory, workload: Workload) -> str | None:
    """By which formula the scans of a pass are counted."""
    scans = [matmul for matmul in inventory.matmuls if matmul.role == "scan" and matmul.runs(workload)]
    if not scans:
        return None
    way = "chunk by chunk, as kernels are handed them" if _in_chunks(scans) else "token by token"
    formula = "a multiply-add for each number of a state and each tap of a convolution that a product touches"
    return f"{name}: scans are modelled {way}, {formula}; kernels differ"


def states_note(name: str, inventory: Inventory, dtype: str) -> str | None:
    """In which dtypes the states are held, where some do not follow the cache's."""
    owns = dict.fromkeys(record.dtype for record in inventory.cached if record.kind == "state")
    if not owns:
        return None
    follow = [f"those of convolutions and shifts in {dtype}"] if None in owns else []
    own = " or ".join(other for other in owns if other is not None)
    recurrent = [f"recurrent ones in {own}"] if own else []
    return f"{name}: states do not grow, {' and '.join(recurrent + follow)}"


def _in_chunks(scans: list[Any]) -> bool:
    return any(matmul.form == "chunked" for matmul in scans)


def scan_data(token: Flops | None, sequence: Flops, cache: KVCache) -> dict[str, int]:
    """The keys that a page's JSON has beside the others where a model has recurrent layers."""
    found: dict[str, int] = {}
    if token is not None and token.modelled:
        found["next_token_modelled_flops"] = token.modelled
    if sequence.modelled:
        found["sequence_modelled_flops"] = sequence.modelled
    if cache.state_bytes:
        found["state_bytes"] = cache.state_bytes
    return found

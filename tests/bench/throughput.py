"""How many questions a second one process answers: config dict -> parameters + FLOPs + KV cache, on one core.

    python tests/bench/throughput.py

Aims: 5,000 a second for a Llama-like config, 2,000 with alternating layers, under 1 ms to lower a 100-layer model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import costcalc

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
GEMMA = {
    "model_type": "gemma2",
    "hidden_size": 3584,
    "intermediate_size": 14336,
    "num_hidden_layers": 42,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "vocab_size": 256000,
}
WORKLOAD = costcalc.Workload(new_tokens=2048)


def answer(config: dict[str, Any]) -> tuple[int, int, int]:
    """The three answers for one config."""
    model = costcalc.load(config)
    return (
        costcalc.parameters(model).total,
        costcalc.flops(model, WORKLOAD).forward,
        costcalc.kv_cache(model, 8192).bytes,
    )


def best(function: Callable[[], object], *, times: int, rounds: int = 7) -> float:
    """Seconds of one call, in the best of some rounds."""
    results = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(times):
            function()
        results.append((time.perf_counter() - start) / times)
    return min(results)


def lower(model: costcalc.Architecture) -> object:
    """The inventory, made afresh."""
    model.__dict__.pop("inventory", None)
    model.__dict__.pop("_groups", None)
    return model.inventory


def main() -> None:
    """Print the three figures."""
    for name, config, aim in (("Llama-like", LLAMA, 5000), ("alternating layers", GEMMA, 2000)):
        rate = 1 / best(lambda config=config: answer(config), times=300)  # type: ignore[misc]
        print(f"{name:28} {rate:8,.0f} a second   aim {aim:,}")
    layer = {"attention": {"heads": 32, "kv_heads": 8}, "feed_forward": {"kind": "gated", "d_ff": 14336}}
    common = {"vocab_size": 32000, "d_model": 4096, "norm": "rmsnorm"}
    equal = costcalc.load({**common, "layers": [{"repeat": 100, **layer}]})
    written_out = costcalc.load({**common, "layers": [layer] * 100})
    distinct = [{**layer, "feed_forward": {"kind": "gated", "d_ff": 64 * (i + 1)}} for i in range(100)]
    for name, model in (
        ("100 layers, repeat", equal),
        ("100 layers, written out", written_out),
        ("100 layers, all different", costcalc.load({**common, "layers": distinct})),
    ):
        print(f"{name:28} {best(lambda model=model: lower(model), times=30) * 1000:8.3f} ms to lower   aim 1")  # type: ignore[misc]


if __name__ == "__main__":
    main()

"""How fast `costcalc verify` runs a model, against a bare NumPy matmul of the same shapes, and in how much memory.

    python tests/bench/verify.py [MODEL] [RUNS]

The model's recorded prefill of 11 tokens, or an encoder's pass, is played again as nothing but `numpy.matmul` on arrays
of the same shapes, in the same order, weights as views into one array as the pass has them; runs alternate. Aims: at
least 80% of the bare speed, the whole of `costcalc verify 8b` under 60 s and 4 GiB. A measurement, not a test.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time

import numpy as np

import costcalc
from costcalc.reference import Tape, forward
from costcalc.reference.tape import Product
from costcalc.verification.limits import arena_for, binding, workload_for
from costcalc.verification.passes import memories


def bare(products: list[tuple[Product, bool]], numbers: np.ndarray) -> float:
    """Seconds of the matmuls alone: (rows, inner) x (inner, columns), each as many times as it was made."""
    left = np.ones(max(p.batch * p.rows * p.inner for p, _ in products), np.float32)
    start = time.perf_counter()
    for product, is_table in products:
        x = left[: product.batch * product.rows * product.inner].reshape(product.batch, product.rows, product.inner)
        columns = min(product.columns, len(numbers) // (product.batch * product.inner))
        y = numbers[: product.batch * product.inner * columns]
        y = (
            y.reshape(product.batch, columns, product.inner).swapaxes(1, 2)
            if is_table
            else y.reshape(product.batch, product.inner, columns)
        )
        done = 0
        while done < product.columns:
            np.matmul(x, y[:, :, : product.columns - done])
            done += columns
    return time.perf_counter() - start


def main() -> None:
    """Print seconds, FLOP/s, the share of the bare speed, and the largest memory."""
    name = sys.argv[1] if len(sys.argv) > 1 else "8b"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    model = costcalc.load(name)
    start = time.perf_counter()
    result = costcalc.verify(model)
    whole = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    workload = workload_for(model)
    fields, _ = binding(model.model_dump(), workload)
    given, _ = memories(fields, workload)
    arena = arena_for(model)
    tokens = np.random.default_rng(0).integers(0, model.vocab_size, (1, workload.new_tokens))
    passes, matmuls = [], []
    for _ in range(runs):
        tape = Tape(arena)
        start = time.perf_counter()
        forward(fields, tokens, tape=tape, **given)
        passes.append(time.perf_counter() - start)
        products = [(p, path == "head") for path, made in tape.products.items() for p in made]
        matmuls.append(bare(products, arena.numbers))
    flops = sum(tape.flops().values())
    print(
        f"costcalc verify {name}: {'agrees' if result.agrees else 'DIFFERS'}, {whole:.1f} s, {memory / 2**30:.2f} GiB"
    )
    for what, seconds in (("one prefill", statistics.median(passes)), ("bare matmuls", statistics.median(matmuls))):
        print(f"{what:14} {seconds:7.2f} s  {flops / seconds / 1e9:6.1f} GFLOP/s   median of {runs}")
    print(f"{'speed':14} {statistics.median(b / p for b, p in zip(matmuls, passes, strict=True)):7.1%} of bare")


if __name__ == "__main__":
    main()

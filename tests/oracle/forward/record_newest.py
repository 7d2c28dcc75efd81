"""Record logits of tiny random models of the newest sparse decoders, in the manner of `record.py`.

Which keys these classes meet is not told by their kinds of layer alone, so what `record.py` asks of attentions is not
asked here: that a step-by-step pass and a pass in float32 give the same logits is.

    throwaway/bin/python tests/oracle/forward/record_newest.py    # rewrites the .npz files; prints what it measured
    throwaway/bin/python tests/oracle/forward/record_newest.py minimax_m3    # this one only
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from classes import Config, Weights, answer, build, drawn, exact, held, read
from models_indexed import MODELS as INDEXED
from models_newest import MODELS as NEWEST
from record import apart, parsed, stepwise

HERE = Path(__file__).resolve().parent
MODELS = {**NEWEST, **INDEXED}


def looked_up(config: Config, rng: np.random.Generator) -> Weights:
    """Tables of experts by token, drawn: a model that is built from nothing has zeros there."""
    with torch.device("meta"):
        tables = {key: value for key, value in build(config).state_dict().items() if not value.is_floating_point()}
    experts, rows = config.get("n_routed_experts", 1), {}
    for key, table in tables.items():
        draws = [rng.permutation(experts)[: table.shape[1]] for _ in range(table.shape[0])]
        rows[key] = torch.from_numpy(np.stack(draws))
    return rows


def with_tables(config: Config, weights: Weights, tables: Weights) -> Any:
    """The model, with its numbers and with its tables."""
    model = build(config, weights)
    for name, buffer in model.named_buffers():
        if name in tables:
            buffer.copy_(tables[name])
    return model


def record(name: str) -> None:
    """Check one model, print what was measured, write its file."""
    config: Config = parsed(MODELS[name])
    rng = np.random.default_rng(list(name.encode()))
    inputs = read(config, rng)
    with exact():
        weights = drawn(config, rng)
        tables = looked_up(config, rng)
        model = with_tables(config, weights, tables)
        assert all(value.dtype == torch.float64 for value in (*model.parameters(), *held(model).values()))
        logits = answer(model, inputs)
        cached = apart(stepwise(model, inputs), logits)
    single = apart(answer(with_tables(config, weights, tables), inputs), logits)
    print(f"{name}: float32 {single:.1e}, stepwise {cached:.1e}")
    assert single < 1e-5 and cached < 1e-10
    given = {"tokens": inputs["tokens"], "logits": logits, **weights, **tables}
    arrays = {key: value.numpy() for key, value in given.items()}
    np.savez_compressed(HERE / f"{name}.npz", config=np.array(json.dumps(config)), **arrays)


def main() -> None:
    """Write every file, or those that are named."""
    logging.disable(logging.CRITICAL)
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        record(name)


if __name__ == "__main__":
    main()

"""A choice of blocks of keys, in pieces: which keys a query meets, by a loop over its blocks."""

import numpy as np
import pytest

from costcalc.reference.block_choice import Chosen, chosen_keys

RNG = np.random.default_rng(0)


def best_blocks(scores, block, blocks, local):
    """The keys of one query and head: of its latest blocks, and of the best others while some are left."""
    parts = [list(range(start, min(start + block, len(scores)))) for start in range(0, len(scores), block)]
    latest = parts[max(len(parts) - local, 0) :]
    others = sorted(parts[: len(parts) - len(latest)], key=lambda part: -max(scores[key] for key in part))
    taken = latest + others[: max(blocks - len(latest), 0)]
    return sorted(key for part in taken for key in part)


@pytest.mark.parametrize(("block", "blocks", "local"), [(1, 1, 1), (1, 4, 2), (3, 1, 1), (3, 2, 1), (5, 3, 2)])
@pytest.mark.parametrize("keys", [1, 2, 3, 7, 11, 12])
def test_the_best_blocks_and_the_latest(block, blocks, local, keys):
    scores = RNG.normal(size=(2, 3, keys)).astype(np.float32)
    how = {"block": block, "blocks": blocks, "local": local}
    got = chosen_keys(Chosen(how, [scores]), 0)
    for text in range(2):
        for head in range(3):
            assert got[text, head].tolist() == best_blocks(scores[text, head], block, blocks, local)

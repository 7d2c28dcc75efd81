"""What all tests of recorded logits do: feed the reference a text in parts, compare shares, change one field."""

from typing import Any

import numpy as np

from costcalc.reference import Given, Request, Tape, forward


def fed(fields: Any, tokens: Any, parts: Any, weights: Any, *, first: Any = None, **form: Any) -> tuple[Any, Tape]:
    """The logits of all tokens, fed in parts to one request, and the last part's tape.

    first: what only the pass that starts the request is given. form: of latent attention or scans.
    """
    request, logits = Request(), []
    for part in np.split(tokens, np.cumsum(parts)[:-1], axis=1):
        tape = Tape(Given(weights))
        more = {} if request.past else first or {}
        logits.append(forward(fields, part, tape=tape, request=request, **form, **more))
    return np.concatenate(logits, axis=1), tape


def share_apart(truth: Any, logits: Any) -> float:
    """The largest distance from what was recorded, as a share of the largest logit."""
    assert logits.shape == truth.shape
    return float(np.abs(logits - truth).max() / np.abs(truth).max())


def with_every(value: Any, key: str, old: Any, new: Any) -> Any:
    """A copy of nested fields in which every `key: old`, at least one, is `key: new`."""
    found = []

    def changed(inner: Any) -> Any:
        if isinstance(inner, dict):
            found.extend(1 for name, held in inner.items() if (name, held) == (key, old))
            return {name: new if (name, held) == (key, old) else changed(held) for name, held in inner.items()}
        return [changed(held) for held in inner] if isinstance(inner, list | tuple) else inner

    result = changed(value)
    assert found, f"no {key} is {old}"
    return result

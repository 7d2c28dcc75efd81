"""The passes that a verification compares: of the whole text, with one token changed, and a decode step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from costcalc.inventory import Workload
from costcalc.reference import Arena, Request, Tape, forward
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.asked import memory_width
from costcalc.reference.stack import expanded
from costcalc.verification.properties import distance

Progress = Callable[[str, int, int], None]
"""Told what is running, how many of its layers are done, and of how many."""
Given = dict[str, Array]
"""A source or a memory, by the name that `forward` has for it."""
InOtherForm = tuple[Tape, list[float]]
"""A pass in another form, and how far each layer's output is from that of the first."""
AfterLayer = Callable[[int, Array], Array]
"""Told the number of a layer of the stack below the head, from 1 on; 0 for the last one of an encoder below that."""


@dataclass(frozen=True, slots=True)
class Passes:
    """What became of them.

    tapes: of all, in order: the whole text, the same with another last token, for a decoder a decode step, and where it
    looks at encoder tokens the first once more with another one of those. full, other, step, asked: their outputs, (B,
    T, V), or (B, 1, V) of the decode step. errors: how far each layer's output of the decode step, and at last its
    logits, are from the prefill's. earlier: where experts are routed, how far each layer's earlier rows are in the
    second pass from those in the first: an expert that also gets the changed token, or no longer, multiplies another
    number of rows, which rounds differently. absorbed: the tape of a prefill in the absorbed form of latent attention,
    and how far each layer's output is from the first's; chunked: the same of one whose scans run chunk by chunk.
    encoded: what the encoder's layers gave, (B, M, D), first with the text as it is and then with its last token
    changed. overflowed: whether any operation told that its result was too large for float32.
    """

    tapes: list[Tape]
    full: Array
    other: Array
    step: Array | None
    errors: list[float]
    overflowed: bool
    asked: Array | None = None
    encoded: tuple[Array, ...] = ()
    earlier: tuple[float, ...] = ()
    absorbed: InOtherForm | None = None
    chunked: InOtherForm | None = None

    @property
    def finite(self) -> bool:
        """Whether all logits are numbers."""
        given = (self.full, self.other, self.step, self.asked)
        return all(bool(np.isfinite(logits).all()) for logits in given if logits is not None)


@dataclass(slots=True)
class Runner:
    """Runs passes of one model and collects their tapes, and what overflowed."""

    fields: Fields
    arena: Arena
    on_progress: Progress | None
    tapes: list[Tape] = field(default_factory=list)
    overflows: list[str] = field(default_factory=list)

    def __call__(
        self,
        label: str,
        tokens: Array,
        then: AfterLayer,
        request: Request | None = None,
        given: Given | None = None,
        **form: Any,
    ) -> Array:
        """One pass, from an empty request unless one is given. Result: (B, T, V)."""
        depth = len(list(expanded((self.fields["decoder"] or self.fields["encoder"])["layers"])))

        def on_layer(done: int, layers: int, x: Array) -> Array:
            if self.on_progress is not None:
                self.on_progress(label, done, layers)
            return then(done - (layers - depth), x)

        self.tapes.append(Tape(self.arena))
        request = Request() if request is None else request
        more: dict[str, Any] = {**(given or {}), **form}
        with np.errstate(all="ignore", over="call", call=lambda *told: self.overflows.append(told[0])):
            return forward(self.fields, tokens, tape=self.tapes[-1], request=request, on_layer=on_layer, **more)


def run_passes(fields: Fields, arena: Arena, workload: Workload, on_progress: Progress | None) -> Passes:
    """All passes of a model, each of whose first has this workload."""
    run = Runner(fields, arena, on_progress)
    return (_encoder_passes if fields["decoder"] is None else _decoder_passes)(run, workload)


def _encoder_passes(run: Runner, workload: Workload) -> Passes:
    """The text, and the same with another last token."""
    text, changed = texts(workload.new_tokens, run.fields["vocab_size"])
    encoded: dict[int, Array] = {}

    def last(_: int, x: Array) -> Array:
        encoded[len(run.tapes)] = x  # of each pass what its last layer gives
        return x

    full = run("pass", text, last)
    other = run("pass, last token changed", changed, last)
    return Passes(run.tapes, full, other, None, [], bool(run.overflows), encoded=tuple(encoded.values()))


def _decoder_passes(run: Runner, workload: Workload) -> Passes:
    """Prefill, prefill with another last token, and the real last token decoded after the others.

    The second keeps in its cache what both texts share, so the third decodes from that. There each layer is given what
    the prefill gave it, since a deep model can blow the rounding of its first layers up to any size. Where there are
    encoder tokens, they are given to the passes that start a request; a fourth one is the first with another of them.
    """
    tokens = workload.new_tokens
    text, changed = texts(tokens, run.fields["vocab_size"])
    given, others = memories(run.fields, workload)
    request = Request(kept=tokens - 1)
    rows: dict[int, Array] = {}
    errors: list[float] = []
    earlier: list[float] = []
    encoded: list[Array] = []
    routes = has_experts(run.fields)

    def keep(layer: int, x: Array) -> Array:
        rows[layer] = x.copy()  # (B, T, D)
        return encode(layer, x)

    def same_before(layer: int, x: Array) -> Array:
        if not routes or layer <= 0 or tokens == 1:
            return x
        before = rows[layer][:, :-1]  # (B, T - 1, D)
        earlier.append(distance(x[:, :-1], before, scale=rows[layer]))
        return np.concatenate([before, x[:, -1:]], axis=1)  # every layer starts from the same

    def encode(layer: int, x: Array) -> Array:
        encoded.extend([x] if layer == 0 else [])
        return x

    def compare(layer: int, x: Array) -> Array:
        if layer <= 0:
            return x
        last = rows[layer][:, -1:]  # (B, 1, D)
        errors.append(distance(x, last, scale=last))
        return last  # every layer starts from the same

    full = run("prefill", text, keep, given=given)
    other = run("prefill, last token changed", changed, same_before, request, given)
    step = run("decode", text[:, -1:], compare, request, {} if request.past else given)
    errors.append(distance(step, full[:, -1:], scale=full))
    asked = run("prefill, a token of the encoder changed", text, encode, given=others) if others else None

    in_other_forms = _in_other_forms(run, text, rows, given)
    return Passes(
        run.tapes,
        full,
        other,
        step,
        errors,
        bool(run.overflows),
        asked,
        tuple(encoded),
        tuple(earlier),
        **in_other_forms,
    )


def _in_other_forms(run: Runner, text: Array, rows: dict[int, Array], given: Given) -> dict[str, InOtherForm]:
    """The prefill once more for each form that some layer has beside its first; rows: what each layer gave then."""
    forms: dict[str, dict[str, Any]] = {}
    if has_latents(run.fields):
        forms["absorbed"] = {"latent": "absorbed"}
    if has_chunks(run.fields):
        forms["chunked"] = {"chunked": True}
    found = {}
    for name, form in forms.items():
        differ: list[float] = []
        run(f"prefill, {name}", text, partial(_as_before, rows, differ), given=given, **form)
        found[name] = run.tapes.pop(), differ
    return found


def _as_before(rows: dict[int, Array], errors: list[float], layer: int, x: Array) -> Array:
    """Every layer starts from what it had in the prefill; how far it got from that is noted."""
    if layer <= 0:
        return x
    errors.append(distance(x, rows[layer], scale=rows[layer]))
    return rows[layer]


FEED_FORWARD = ("feed_forward", "feed_forward_beside", "shortcut")
"""Where a layer may have a network."""


def has_experts(fields: Fields) -> bool:
    """Whether some layer routes tokens."""
    parts = [layer[name] for layer in _layers(fields) for name in FEED_FORWARD]
    return any(part and "router" in part for part in parts)


def has_latents(fields: Fields) -> bool:
    """Whether some layer has an attention of two forms."""
    return any(layer["attention"] and layer["attention"]["kind"] == "latent" for layer in _layers(fields))


def has_chunks(fields: Fields) -> bool:
    """Whether some layer has a scan of two forms."""
    mixers = [layer[name] for layer in _layers(fields) for name in ("mixer", "mixer_beside")]
    return any(mixer and mixer.get("chunk") for mixer in mixers)


def _layers(fields: Fields) -> Iterator[Fields]:
    return expanded(fields["decoder"]["layers"])


def texts(tokens: int, vocab_size: int, *, seed: int = 1) -> tuple[Array, Array]:
    """A random text, (1, T), and the same with a neighbour of its last word: rows beside each other are two rows."""
    text = np.random.default_rng(seed).integers(0, vocab_size, (1, tokens))
    changed, last = text.copy(), text[:, -1]
    changed[:, -1] = np.where(last + 1 < vocab_size, last + 1, np.maximum(last - 1, 0))
    return text, changed


def memories(fields: Fields, workload: Workload) -> tuple[Given, Given]:
    """What a decoder looks at, and the same with its last token changed: a source, (1, M), or a memory, (1, M, D)."""
    if workload.memory_tokens == 0:
        return {}, {}
    if fields["encoder"] is not None:
        source, other = texts(workload.memory_tokens, source_words(fields), seed=2)
        return {"source": source}, {"source": other}
    size = (1, workload.memory_tokens + 1, memory_width(fields) or fields["d_model"])
    numbers = np.random.default_rng(2).normal(size=size).astype(FLOAT)  # (1, M + 1, D)
    return {"memory": numbers[:, :-1]}, {"memory": np.concatenate([numbers[:, :-2], numbers[:, -1:]], axis=1)}


def source_words(fields: Fields) -> int:
    """Rows of the table that the encoder of a pair looks up."""
    own: int = fields["encoder_vocab_size"] or fields["vocab_size"]
    return own

"""The whole pass: tokens to logits, layer by layer, from an architecture's plain fields.

It leans on nothing of the architecture but its fields: layers are expanded and sizes derived here once more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.asked import Given, checked
from costcalc.reference.embedding import embedded, embedding_table
from costcalc.reference.entities import hold_entities
from costcalc.reference.head import HEADS, pooled, read_by_head
from costcalc.reference.kinds import of_kind
from costcalc.reference.multi_token import multi_token
from costcalc.reference.ngram import embedded_streams, of_streams_ahead, streams_ahead
from costcalc.reference.request import Request
from costcalc.reference.sight import Forms, Sight
from costcalc.reference.stack import AfterLayer, expanded, shared_positions, shared_sums, stack
from costcalc.reference.tape import Scope, Table, Tape

OnLayer = Callable[[int, int, Array], Array]
"""Told, after each layer, how many are done, how many there are, and its output; what it gives goes on: (B, T, D), or
of A states of AltUp (A·B, T, D).
"""


def forward(
    fields: Fields,
    tokens: Array,
    *,
    tape: Tape,
    request: Request | None = None,
    logits: str = "all",
    on_layer: OnLayer | None = None,
    source: Array | None = None,
    memory: Array | None = None,
    token_types: Array | None = None,
    latent: str | None = None,
    chunked: bool = False,
) -> Array:
    """Logits of new tokens, after what `request` holds; the request then holds them too.

    fields: `Architecture.model_dump()`. tokens: (B, T) of row numbers. logits: "all", or "last" for the last token's
    only. source: (B, M) of row numbers for the encoder of an encoder-decoder, in the pass that starts a request; later
    passes find what its tokens gave. memory: (B, M, D), the same for a decoder that looks at tokens of another model.
    token_types: (B, T) of row numbers, where a model has types; 0 unless given. latent: the form in which latent
    attention runs, "expanded" or "absorbed"; None for expanded where a request starts, and absorbed later. chunked: the
    form in which recurrent mixers run that have two, but for a decode step: chunk by chunk, or token by token. Result:
    (B, T, V) or (B, 1, V), float32; labels, or without a head D numbers each. What a pooler gives, or a module that
    predicts further tokens, is on the tape.

    Frequencies of RoPE are plain ones, of theta: those that are rescaled (YaRN, Llama-3.1) give other logits of the
    same shape. Raises TypeError for what are no fields, no row numbers or no memory, ValueError for another `logits`,
    for what this model cannot be given or cannot be without, or for a request that cannot be or holds another batch,
    IndexError for a row that no table has, and `NoReferenceError` for a kind without a pass. If anything is raised,
    `request` is as it was.
    """
    if logits not in ("all", "last"):
        raise ValueError(f'logits are "all" or "last", not {logits!r}')
    if latent not in (None, "expanded", "absorbed"):
        raise ValueError(f'latent attention is "expanded" or "absorbed", not {latent!r}')
    request = Request() if request is None else request
    if chunked and request.kept is not None:
        raise ValueError("chunk by chunk there are no states between two tokens: all tokens of such a pass are kept")
    given = checked(fields, tokens, request, source=source, memory=memory, token_types=token_types)
    before = dict(request.arrays), request.cross, request.states
    try:
        return _forward(fields, given, tape, request, logits=logits, on_layer=on_layer, forms=Forms(latent, chunked))
    except BaseException:  # an interrupt too: half of the layers would hold more tokens than the others
        request.arrays, request.cross, request.states = before
        raise


def _forward(
    fields: Fields,
    given: Given,
    tape: Tape,
    request: Request,
    *,
    logits: str,
    on_layer: OnLayer | None,
    forms: Forms,
) -> Array:
    root, main = Scope(tape), "encoder" if fields["decoder"] is None else "decoder"
    table = embedding_table(fields, root.under(main), fields["vocab_size"])
    run = encoded if main == "encoder" else decoded
    x = run(fields, given, table, root, request=request, on_layer=on_layer, forms=forms)  # (B, T, D)
    if fields["multi_token"]:
        multi_token(fields, given.tokens, x, table, tape, sight=Sight(request.past, latent=forms.latent))
    if fields["entities"]:
        hold_entities(fields["entities"], root, d_model=fields["d_model"])
    if fields["pooler"] and main == "encoder":
        tape.pooled = pooled(x, root)  # (B, D)
    elif fields["pooler"] and fields["encoder"] is None:
        tape.pooled = pooled(x if request.past == 0 else x[:, :0], root)  # later passes have no first token
    if fields["spare_table"]:
        root.table("spare_embedding", fields["vocab_size"], fields["d_model"])  # nothing looks it up
    x = read_by_head(fields, x, tape.pooled, logits=logits)  # (B, T or 1, D)
    result = of_kind(HEADS, fields["head"]["kind"], "head")(fields, x, table, root)  # (B, T, V)
    result = result[: len(given.tokens)]  # of several streams the one that guesses the next token
    if main == "decoder":
        _keep(request, given.tokens.shape[1], tape)
    return result


def _keep(request: Request, tokens: int, tape: Tape) -> None:
    for path, held in request.arrays.items():
        tape.cached[path], tape.cached_kinds[path] = held.size, request.kind(path)
    request.past += tokens if request.kept is None else request.kept
    request.kept = None


def encoded(
    fields: Fields,
    given: Given,
    table: Table,
    root: Scope,
    *,
    request: Request,
    on_layer: OnLayer | None,
    forms: Forms,
) -> Array:
    """An encoder's tokens, which all see each other; nothing is kept. (B, T) -> (B, T, D)."""
    del request
    depth = len(list(expanded(fields["encoder"]["layers"])))
    after = _told(on_layer, 0, depth)
    return encoder(fields, given.tokens, table, root, token_types=given.token_types, after=after, forms=forms)


def decoded(
    fields: Fields,
    given: Given,
    table: Table,
    root: Scope,
    *,
    request: Request,
    on_layer: OnLayer | None,
    forms: Forms,
) -> Array:
    """A decoder's new tokens, over earlier ones and over an encoder's or another model's. (B, T) -> (B, T, D).

    The encoder runs in the pass that starts the request. Later its weights are held, and no rows meet them.
    """
    memory, before = given.memory, 0
    layers = len(list(expanded(fields["decoder"]["layers"])))
    if fields["encoder"]:
        before = len(list(expanded(fields["encoder"]["layers"]))) if given.source.shape[1] else 0
        own = table
        if not fields["share_embeddings"]:
            own = embedding_table(fields, root.under("encoder"), fields["encoder_vocab_size"] or fields["vocab_size"])
        after = _told(on_layer if before else None, 0, before + layers)
        types = np.zeros_like(given.source)
        memory = encoder(fields, given.source, own, root, token_types=types, after=after, forms=forms)  # (B, M, D)
        if fields["pooler"]:
            root.tape.pooled = pooled(memory, root)  # (B, D)
        if fields["encoder"]["output_projection"]:
            memory = root.under("encoder").linear("output_projection", memory, fields["d_model"], bias=True)
    at, some = root.under("decoder"), fields["decoder"]
    here = request.past + np.arange(given.tokens.shape[1])  # (T)
    ahead, where = streams_ahead(list(expanded(some["layers"]))), {"positions": some["positions"], "here": here}
    if ahead:
        x = embedded_streams(fields, given.tokens, table, at, streams=ahead, **where)  # ((1 + n)·B, T, D)
    else:
        x = embedded(fields, given.tokens, table, at, token_types=given.token_types, **where)
    held = [request.arrays[path].shape[-2] for path in request.cross] if request.past else [memory.shape[1]]
    shared = shared_positions(some, at, d_model=x.shape[-1])
    sight = Sight(request.past, True, request, memory, any(held), shared, **forms._asdict())
    after = _told(on_layer, before, before + layers)
    x = stack(some, given.tokens, x, at, sight=sight, after=after)  # (B, T, D)
    return of_streams_ahead(x, ahead) if ahead else x


def encoder(
    fields: Fields,
    tokens: Array,
    table: Table,
    root: Scope,
    *,
    token_types: Array,
    after: AfterLayer,
    forms: Forms,
) -> Array:
    """All tokens of a text at once, each of which sees all others that its windows reach. (B, M) -> (B, M, D)."""
    at, some = root.under("encoder"), fields["encoder"]
    here = np.arange(tokens.shape[1])  # (M)
    x = embedded(fields, tokens, table, at, positions=some["positions"], here=here, token_types=token_types)
    tables = shared_positions(some, at, d_model=x.shape[-1]), shared_sums(some, at)
    sight = Sight(causal=False, table=tables[0], sum_table=tables[1], **forms._asdict())
    return stack(some, tokens, x, at, sight=sight, after=after)  # (B, M, D)


def _told(on_layer: OnLayer | None, done: int, layers: int) -> AfterLayer:
    """After layer n of a stack, `done` + n of all `layers` of the pass are done."""
    return lambda layer, x: x if on_layer is None else on_layer(done + layer, layers, x)

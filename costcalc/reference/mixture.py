"""Mixtures of experts (arXiv 1701.06538): a router sends each token to a few of many feed-forward networks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from costcalc.reference.activations import sigmoid, softplus
from costcalc.reference.arrays import FLOAT, Array, Fields
from costcalc.reference.kinds import of_kind
from costcalc.reference.networks import NETWORKS
from costcalc.reference.norms import norm
from costcalc.reference.router_network import through_network
from costcalc.reference.scaled_dot_product import softmax
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope


def mixture(fields: Fields, x: Array, at: Scope, *, residual: Array | None = None, sight: Sight | None = None) -> Array:
    """The chosen experts' outputs, weighed and added up, and those of a network that every token goes to.

    An expert multiplies the rows that are sent to it and no others. Shared experts: DeepSeekMoE (arXiv 2401.06066,
    section 3.2), with a gate in Qwen2-MoE (2407.10671). Experts may work on R numbers in place of D (Nemotron-3). x,
    residual: (B, T, D); result: (B, T, D). residual: what the router reads in place of x (Gemma-4). sight: where
    routers find what those of other layers made; None for one alone.
    """
    rows = x.reshape(-1, x.shape[-1])  # (B·T, D)
    read = rows if residual is None else residual.reshape(rows.shape)  # (B·T, D)
    if fields["router"]["network"]:
        read = through_network(fields["router"]["network"], read, at, sight or Sight())  # (B·T, R)
    looked_up_by = [sight.tokens] if fields["router"]["table"] and sight is not None else []
    weights, chosen = routed(fields, read, at, *looked_up_by)  # (B·T, X + parts), (B·T, X)
    weights, of_parts = np.split(weights, [chosen.shape[-1]], axis=-1)  # (B·T, X), (B·T, parts)
    inside, bias = rows, fields["latent_bias"]  # (B·T, D)
    if fields["latent_dim"]:
        inside = at.linear("latent_down", rows, fields["latent_dim"], bias=bias)  # (B·T, D) x (D, R)
    if fields["unused"]:
        for name in ("gate", "up") if fields["expert"]["kind"] == "gated" else ("up",):
            at.under("unused").parameter(name, fields["unused"], x.shape[-1], fields["expert"]["d_ff"])
    y = sent(fields, inside, weights, chosen, at.under("experts"))  # (B·T, D), or (B·T, R)
    if fields["latent_dim"]:
        y = at.linear("latent_up", y, x.shape[-1], bias=bias)  # (B·T, R) x (R, D)
    if fields["shared"]:
        run = of_kind(NETWORKS, fields["shared"]["kind"], "shared expert")
        more = {"parts": of_parts} if of_parts.shape[-1] else {}
        same = run(fields["shared"], rows, at.under("shared"), **more)  # (B·T, D)
        if fields["shared_gate"]:
            same = same * sigmoid(at.linear("shared_gate", rows, 1, bias=False))  # (B·T, D) * (B·T, 1)
        y = y + same
    if fields["out_bias"]:
        y = y + at.parameter("output_bias", x.shape[-1])  # (B·T, D) + (D)
    if fields["norm"]:
        y = norm(fields["norm"], y, at, "norm")  # of all together (A.X-K1)
    return y.reshape(x.shape)


def sent(fields: Fields, rows: Array, weights: Array, chosen: Array, at: Scope) -> Array:
    """Each expert on the rows that chose it; their weight multiplies its output, or, in Llama-4, its input.

    A choice beyond the experts gives the row itself, weighed.

    rows: (B·T, D); weights, chosen: (B·T, X); result: (B·T, D).
    """
    run = of_kind(NETWORKS, fields["expert"]["kind"], "expert")
    is_input = of_kind({"inputs": True, "outputs": False}, fields["router"]["weigh"], "weight of an expert")
    is_itself = chosen >= fields["experts"]  # (B·T, X)
    y = rows * np.where(is_itself, weights, FLOAT(0)).sum(axis=-1, keepdims=True)  # (B·T, D) * (B·T, 1)
    chosen = np.where(is_itself, -1, chosen)  # (B·T, X)
    hit = np.unique(chosen[~is_itself])
    for expert in hit if len(hit) else [0]:  # where there is none, of no rows one: all of their weights are held
        row, slot = np.nonzero(chosen == expert)  # (r) each
        weight = weights[row, slot, None]  # (r, 1)
        part = rows[row] * weight if is_input else rows[row]  # (r, D)
        result = run(fields["expert"], part, at.one_of(int(expert), fields["experts"]))  # (r, D)
        np.add.at(y, row, result if is_input else result * weight)  # a token that skips may be here a second time
    return y


def softmax_of_all(logits: Array) -> Array:
    """(B·T, E), the sum of a row 1 (Switch, arXiv 2101.03961, equation 1)."""
    return softmax(logits)


def logits_themselves(logits: Array) -> Array:
    """(B·T, E): softmax comes after the choice (Mixtral, arXiv 2401.04088, section 2.1)."""
    return logits


SCORES: dict[str, Callable[[Array], Array]] = {
    "softmax": softmax_of_all,
    "sigmoid": sigmoid,  # DeepSeek-V3, arXiv 2412.19437, equation 15
    "sqrt_softplus": lambda logits: np.sqrt(softplus(logits)),  # DeepSeek-V4
    "softmax_of_chosen": logits_themselves,
}


def routed(fields: Fields, rows: Array, at: Scope, tokens: Array | None = None) -> tuple[Array, Array]:
    """The weight of each of the X experts of a row, and these. rows: (B·T, D) -> (B·T, X) twice. tokens: (B, T).

    Behind the weights stand those of the parts of a shared network that have scores too, if any: (B·T, X + parts).

    A correction is added to the scores for the choice alone: it balances loads and weighs nothing (DeepSeek-V3, arXiv
    2412.19437, equation 16). Choices beyond the experts are none: a token is then sent to the first one with a weight
    of 0 (`ZayaRouter`), or is itself its output (LongCat-Flash, arXiv 2509.01322, section 2.1: `sent`).
    """
    how, experts = fields["router"], fields["experts"]
    choices, parts = experts + how["skips"], how["shared_parts"]
    read = read_by_router(how, rows, at)  # (B·T, D)
    logits = at.linear("router", read, choices + parts, bias=how["bias"])  # (B·T, D) x (D, E)
    scores = of_kind(SCORES, how["scores"], "scores of a router")(logits)  # (B·T, E)
    scores, of_parts = scores[:, :choices], scores[:, choices:]  # (B·T, E), (B·T, parts)
    liked = scores
    if how["correction"]:
        liked = liked + at.parameter("router_correction", choices, role=how["correction"])  # (B·T, E) + (E)
    if how["groups"] > 1:
        liked = of_best_groups(how, liked)  # (B·T, E)
    chosen = largest(liked, fields["experts_per_token"] or experts)  # (B·T, X), of an unknown number all
    if how["table"]:
        chosen = looked_up(fields, at, tokens)  # (B·T, X)
    weights = np.take_along_axis(scores, chosen, axis=-1)  # (B·T, X)
    if how["scores"] == "softmax_of_chosen":
        weights = softmax(weights)  # (B·T, X)
    if how["normalize"]:
        total = weights.sum(axis=-1, keepdims=True) + of_parts.sum(axis=-1, keepdims=True)  # (B·T, 1)
        weights, of_parts = weights / total, of_parts / total  # (B·T, X), (B·T, parts)
    is_none = chosen >= experts  # (B·T, X)
    if of_kind({"nothing": False, "input": True}, how["skip_gives"], "choice of no expert"):
        return weights * FLOAT(how["scale"]), chosen
    weights, chosen = np.where(is_none, FLOAT(0), weights), np.where(is_none, 0, chosen)
    if how["expert_scale"]:
        weights = weights * at.gain("router_expert_scale", experts)[chosen]  # (B·T, X)
    scale = FLOAT(how["scale"]) * (at.gain("router_gain", 1) if how["gain"] else FLOAT(1))
    return np.concatenate([weights, of_parts], axis=-1) * scale, chosen


def looked_up(fields: Fields, at: Scope, tokens: Array | None) -> Array:
    """The experts that stand in each token's row of a table (arXiv 2106.04426). (B, T) -> (B·T, X).

    Of a table of no whole numbers, such as an arena's, the ten-thousandths are taken.
    """
    if tokens is None:
        raise ValueError(f"{at.path} looks tokens up, and none are given")
    table = at.table("router_table", fields["router"]["table"], fields["experts_per_token"], role="buffer")
    rows = table.rows(tokens.reshape(-1))  # (B·T, X)
    whole = rows if np.array_equal(rows, np.floor(rows)) else np.floor(np.abs(rows) * 10_000)
    chosen: Array = whole.astype(int) % fields["experts"]
    return chosen


def read_by_router(how: Fields, rows: Array, at: Scope) -> Array:
    """What is routed, normed, and times D numbers and 1 / √D (`Gemma4TextRouter`). (B·T, D) -> (B·T, D)."""
    width = rows.shape[-1]
    if how["norm"]:
        rows = norm(how["norm"], rows, at, "router_norm")  # (B·T, D)
    if how["input_scale"]:
        rows = rows * at.gain("router_input_scale", width) * FLOAT(width**-0.5)  # (B·T, D) * (D)
    return rows


def largest(scores: Array, count: int) -> Array:
    """Where the `count` largest of each row are: (r, any) -> (r, count)."""
    return np.argsort(-scores, axis=-1, kind="stable")[:, :count]


def of_best_groups(how: Fields, liked: Array) -> Array:
    """Scores, of which those outside of a row's best groups are minus infinity. (B·T, E) -> (B·T, E).

    A group is as good as its best expert (DeepSeek-V2, arXiv 2405.04434, section 2.2.2), or with sigmoid scores as its
    two best together (V3, 2412.19437, section 2.1.2).
    """
    grouped = liked.reshape(
        len(liked), how["groups"], liked.shape[-1] // how["groups"]
    )  # (B·T, groups, experts of a group)
    best = 2 if how["scores"] == "sigmoid" else 1
    good = np.sort(grouped, axis=-1)[..., -best:].sum(axis=-1)  # (B·T, groups)
    taken = largest(good, how["groups_per_token"])  # (B·T, groups of a token)
    is_taken = np.zeros(good.shape, bool)  # (B·T, groups)
    np.put_along_axis(is_taken, taken, True, axis=-1)
    result: Array = np.where(is_taken[..., None], grouped, -np.inf).astype(FLOAT)
    return result.reshape(liked.shape)

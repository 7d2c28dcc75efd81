"""How many floating-point operations one forward pass takes, and one training step: a fold over the matmuls."""

from __future__ import annotations

from dataclasses import dataclass

from costcalc.inventory import Inventory, Matmul, Workload, check_asked


@dataclass(frozen=True, slots=True)
class Flops:
    """FLOPs of one pass over the workload; a multiply-add is two, and only matmuls count.

    forward = weights (products with a parameter matrix, the head included, tied or not, and what little else is no
    attention core: AltUp mixes its states) + attention (scores and weighted values) + modelled (recurrent scans: an
    estimate, never exact). train = 3 x forward (forward, gradients of inputs, gradients of weights), None unless the
    pass is a training pass: all logits, nothing cached.
    per_token: forward divided by the new tokens of the batch, to the nearest whole number. Of an encoder-decoder the
    new tokens are the decoder's, and the encoder's own pass is part of the one that starts the request.
    """

    forward: int
    weights: int
    attention: int
    modelled: int
    train: int | None
    per_token: int


def flops(inventory: Inventory, workload: Workload) -> Flops:
    """Count the operations of `workload`'s pass; refused where the model cannot be asked so."""
    check_asked(inventory, workload)
    by_role = {"weight": 0, "scores": 0, "values": 0, "scan": 0}
    for matmul in inventory.matmuls:
        if matmul.runs(workload):
            by_role[matmul.role] += matmul.flops(workload)
    weights, attention = by_role["weight"], by_role["scores"] + by_role["values"]
    forward = weights + attention + by_role["scan"]
    return Flops(
        forward=forward,
        weights=weights,
        attention=attention,
        modelled=by_role["scan"],
        train=3 * forward if is_training(workload) else None,
        per_token=(2 * forward + workload.tokens) // (2 * workload.tokens),
    )


def is_training(workload: Workload) -> bool:
    """A training pass computes every logit and starts from an empty cache."""
    return workload.logits == "all" and workload.past_tokens == 0


def flops_by_matmul(inventory: Inventory, workload: Workload) -> list[tuple[Matmul, int]]:
    """Each matmul that the pass runs, with its FLOPs, in the order of the model."""
    check_asked(inventory, workload)
    counted = [(matmul, matmul.flops(workload)) for matmul in inventory.matmuls if matmul.runs(workload)]
    return [(matmul, amount) for matmul, amount in counted if amount]

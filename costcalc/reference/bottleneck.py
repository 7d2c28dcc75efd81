"""A layer inside a bottleneck (MobileBERT, arXiv 2004.02984, figure 1c), as `MobileBertLayer` runs it."""

from __future__ import annotations

from collections.abc import Callable

from costcalc.reference.arrays import Array, Fields
from costcalc.reference.grouped_query import join_heads, mixed_values, split_heads
from costcalc.reference.norms import norm
from costcalc.reference.sight import Sight
from costcalc.reference.tape import Scope

Feed = Callable[[Array, Scope], Array]
"""The layer's feed-forward network, with the weights of a place."""


def bottlenecked(layer: Fields, x: Array, at: Scope, *, sight: Sight, feed: Feed) -> Array:
    """Attention and several networks in fewer numbers than the stream has. x: (B, T, D) -> (B, T, D)."""
    how, of, around = layer["bottleneck"], layer["norm"], at.under("bottleneck")
    width = how["width"] or x.shape[-1]

    def led_in(name: str, y: Array) -> Array:
        return norm(of, around.linear(name, y, width, bias=True), around, f"{name}_norm")  # (B, T, D) x (D, W)

    inside = led_in("input", x) if how["width"] else x  # (B, T, W)
    said = inside if how["attends"] == "input" else x  # (B, T, W), or (B, T, D)
    asks = led_in("attention", x) if how["attends"] == "shared" else said
    if how["spare"]:
        led_in("attention", x[:, :0])  # held, and no rows meet it
    y = attended(layer["attention"], asks, said, at, width=width, sight=sight)
    y = norm(of, y + inside, at, "attention_norm")  # (B, T, W)
    for index in range(how["networks"] - 1):
        y = norm(of, y + feed(y, at.under(f"networks.{index}")), at, f"networks.{index}_norm")  # (B, T, W)
    y = norm(of, y + feed(y, at.under("feed_forward")), at, "feed_forward_norm")  # (B, T, W)
    if not how["width"]:
        return y
    out = around.linear("output", y, x.shape[-1], bias=True)  # (B, T, W) x (W, D)
    return norm(of, out + x, around, "output_norm")  # (B, T, D)


def attended(fields: Fields, asks: Array, said: Array, at: Scope, *, width: int, sight: Sight) -> Array:
    """Queries and keys of `asks`, values of `said`: (B, T, W or D) each -> (B, T, W)."""
    here, heads = at.under("attention"), fields["heads"]
    q = split_heads(here.linear("q", asks, width, bias=fields["bias"]), heads)  # (B, N, T, H)
    k = split_heads(here.linear("k", asks, width, bias=fields["bias"]), heads)  # (B, N, T, H)
    v = split_heads(here.linear("v", said, width, bias=fields["bias"]), heads)  # (B, N, T, H)
    mixed = mixed_values(q, k, v, here, causal=sight.causal)  # (B, N, T, H)
    return here.linear("output", join_heads(mixed), width, bias=fields["out_bias"])  # (B, T, W) x (W, W)

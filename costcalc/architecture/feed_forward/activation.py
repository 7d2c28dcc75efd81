"""Activations by name. The forward pass needs to know which one it is; but for xIELU they change no count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from costcalc.architecture.places import At
from costcalc.inventory import Record

Activation = Literal[
    "gelu", "gelu_new", "gelu_tanh", "quick_gelu", "silu", "relu", "relu_squared", "sigmoid", "softplus", "tanh"
]

NetworkActivation = Literal[Activation, "xielu"]
"""Of a feed-forward network, which may hold numbers of its own."""


def activation_records(at: At, activation: NetworkActivation) -> Iterator[Record]:
    """Of xIELU (arXiv 2411.13010, equation 14), which learns two numbers a network, and holds two constants."""
    if activation == "xielu":
        for name in ("activation_alpha_p", "activation_alpha_n"):
            yield at.weight(name, {"one": 1})
        for name in ("activation_beta", "activation_eps"):
            yield at.weight(name, {"one": 1}, role="buffer")

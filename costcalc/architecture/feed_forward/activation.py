"""Activations by name. They change no count; the forward pass needs to know which one it is."""

from __future__ import annotations

from typing import Literal

Activation = Literal[
    "gelu", "gelu_new", "gelu_tanh", "quick_gelu", "silu", "relu", "relu_squared", "sigmoid", "softplus", "tanh"
]

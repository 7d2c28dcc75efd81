"""A transformer's forward pass in plain NumPy, written from the papers: to learn from, and to check every count.

    >>> import numpy as np
    >>> from costcalc.reference import attention
    >>> rng = np.random.default_rng(0)
    >>> q, k, v = rng.normal(size=(3, 5, 8))
    >>> output, weights = attention(q, k, v, causal=True)
    >>> output.shape, float(weights[0, 0])
    ((5, 8), 1.0)

In a shape, B is batch, T new tokens, S all tokens that are seen, M an encoder's tokens, D the model's width, N query
heads, K key/value heads, G = N / K query heads a key head, H the head size, F the feed-forward width, V the vocabulary,
E experts, X of them for each token, R the numbers of a latent.

The functions take and give arrays of any float dtype. `forward` runs a whole model from its fields, in float32, and a
`Tape` records what it allocated and multiplied. This room imports NumPy and the standard library only.
"""

from costcalc.reference.activations import ACTIVATIONS, gelu, gelu_tanh, quick_gelu, relu, relu_squared, sigmoid, silu
from costcalc.reference.alibi import alibi_slopes
from costcalc.reference.grouped_query import join_heads, split_heads
from costcalc.reference.kinds import NoReferenceError
from costcalc.reference.model import forward
from costcalc.reference.norms import layer_norm, rms_norm
from costcalc.reference.positions import rope, sinusoidal
from costcalc.reference.relative import relative_bucket
from costcalc.reference.request import Request
from costcalc.reference.scaled_dot_product import attention, attention_weights, soft_cap, softmax, visible
from costcalc.reference.tape import Scope, Tape
from costcalc.reference.weights import Arena, Given

__all__ = [
    "ACTIVATIONS",
    "Arena",
    "Given",
    "NoReferenceError",
    "Request",
    "Scope",
    "Tape",
    "alibi_slopes",
    "attention",
    "attention_weights",
    "forward",
    "gelu",
    "gelu_tanh",
    "join_heads",
    "layer_norm",
    "quick_gelu",
    "relative_bucket",
    "relu",
    "relu_squared",
    "rms_norm",
    "rope",
    "sigmoid",
    "silu",
    "sinusoidal",
    "soft_cap",
    "softmax",
    "split_heads",
    "visible",
]

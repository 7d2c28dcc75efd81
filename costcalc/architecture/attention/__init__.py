"""The kinds of attention. A new kind is a file here, a file in `reference/`, a member of this union, and test cases."""

from typing import Annotated

from pydantic import Field

from costcalc.architecture.attention.block_sparse import BlockSparse
from costcalc.architecture.attention.collisions import Collisions
from costcalc.architecture.attention.compressed import Compressed
from costcalc.architecture.attention.convolved import Convolved
from costcalc.architecture.attention.differential import Differential
from costcalc.architecture.attention.disentangled import Disentangled
from costcalc.architecture.attention.dynamic_mask import DynamicMask
from costcalc.architecture.attention.global_local import GlobalLocal
from costcalc.architecture.attention.grouped_query import GroupedQuery
from costcalc.architecture.attention.indexer import Indexer
from costcalc.architecture.attention.landmarks import Landmarks
from costcalc.architecture.attention.latent import Latent
from costcalc.architecture.attention.local import Local
from costcalc.architecture.attention.mixed_convolution import MixedConvolution
from costcalc.architecture.attention.mixture_of_heads import MixtureOfHeads
from costcalc.architecture.attention.multi_resolution import MultiResolution
from costcalc.architecture.attention.ngram import NGram
from costcalc.architecture.attention.profiled import Profiled
from costcalc.architecture.attention.sliding import Sliding
from costcalc.architecture.attention.transformer_xl import TransformerXL

OfText = Sliding | BlockSparse | Local | GlobalLocal | Landmarks | Collisions | MultiResolution
"""Those that need the whole text at once."""
Attention = Annotated[
    GroupedQuery
    | Latent
    | Convolved
    | Differential
    | DynamicMask
    | MixtureOfHeads
    | Compressed
    | OfText
    | Disentangled
    | MixedConvolution
    | TransformerXL
    | Profiled
    | NGram,
    Field(discriminator="kind"),
]

__all__ = [
    "Attention",
    "BlockSparse",
    "Collisions",
    "Compressed",
    "Convolved",
    "Differential",
    "Disentangled",
    "DynamicMask",
    "GlobalLocal",
    "GroupedQuery",
    "Indexer",
    "Landmarks",
    "Latent",
    "Local",
    "MixedConvolution",
    "MixtureOfHeads",
    "MultiResolution",
    "NGram",
    "OfText",
    "Profiled",
    "Sliding",
    "TransformerXL",
]

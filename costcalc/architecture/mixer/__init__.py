"""The kinds of mixer. A new kind is a file here, one in `reference/`, a member of this union, and cases."""

from typing import Annotated

from pydantic import Field

from costcalc.architecture.mixer.fourier import Fourier
from costcalc.architecture.mixer.gated_delta import GatedDelta
from costcalc.architecture.mixer.lightning import Lightning
from costcalc.architecture.mixer.mamba1 import Mamba1
from costcalc.architecture.mixer.mamba2 import Mamba2
from costcalc.architecture.mixer.mlstm import MLSTM
from costcalc.architecture.mixer.rg_lru import RGLRU
from costcalc.architecture.mixer.rwkv import RWKV
from costcalc.architecture.mixer.short_conv import ShortConv

Mixer = Annotated[
    Mamba1 | Mamba2 | GatedDelta | Lightning | ShortConv | RGLRU | RWKV | MLSTM | Fourier, Field(discriminator="kind")
]

__all__ = ["MLSTM", "RGLRU", "RWKV", "Fourier", "GatedDelta", "Lightning", "Mamba1", "Mamba2", "Mixer", "ShortConv"]

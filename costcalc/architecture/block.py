"""One layer: attention and feed-forward, with their norms before, after or around them, in sequence or side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from costcalc.architecture.affine import affine_records
from costcalc.architecture.attention import (
    Attention,
    Compressed,
    Convolved,
    GroupedQuery,
    NGram,
    Profiled,
)
from costcalc.architecture.augmented_residual import AugmentedResidual
from costcalc.architecture.block_residuals import BlockResiduals
from costcalc.architecture.block_rules import SUBLAYERS, rules_of_layer
from costcalc.architecture.bottleneck import Bottleneck
from costcalc.architecture.component import Component, Flag, Name, PositiveFloat, Rule, Size, Where, no_number
from costcalc.architecture.condition import condition_records
from costcalc.architecture.convolution_beside import ConvolutionBeside
from costcalc.architecture.feed_forward import FeedForward, Network, RWKVChannel
from costcalc.architecture.language_adapters import LanguageAdapters
from costcalc.architecture.mixer import Fourier, Mixer
from costcalc.architecture.norm import Norm
from costcalc.architecture.norm_gate import NormGate
from costcalc.architecture.output_conv import OutputConv
from costcalc.architecture.places import CROSS, At, Stream
from costcalc.architecture.positions import NoPositions, Positions, RelativePositions
from costcalc.architecture.shared_block import SharedBlock
from costcalc.inventory import Record


def is_recurrent(block: Block) -> bool:
    """Whether something of this layer goes on from token to token, or waits for later ones, beside keys and values."""
    mixers = [each for each in (block.mixer, block.mixer_beside) if each is not None]
    mixes = any(not isinstance(each, Fourier) for each in mixers)
    convolves = isinstance(block.attention, Convolved | Compressed | Profiled) or block.output_conv is not None
    return mixes or convolves or isinstance(block.feed_forward, RWKVChannel)


class Block(Component):
    """`repeat` equal layers.

    norms: "pre" (before each sublayer, arXiv 2002.04745), "post" (after the residual sum, 1706.03762), "output" (on
        each sublayer's output, OLMo-2), "sandwich" (before and on the output, Gemma-2), "sphere" (the same, but the
        stream itself is normed, and then goes a part of the way to the output, by D learned rates: nGPT, 2410.01131).
    parallel: attention and feed-forward read the same input (GPT-J, PaLM): "one_norm" shared, or "two_norms" (NeoX).
    cross_attention: of a decoder's tokens over the encoder's, between the two others (arXiv 1706.03762, section 3.2.3).
    attention_norm: false where the norm before the attention is left out (ModernBERT's first layer, below which the
        embeddings have just been normalised). share_weights: all layers of this entry, in every turn of its pattern,
        have one set of weights (ALBERT); another entry has its own. residual_scale: what each sublayer's output is
        multiplied by before it is added (Granite); it changes no count. residual_affine: what is added and what it is
        added to are each shifted and scaled first, channel by channel, behind every sublayer (ZAYA1).
        residual_gain: what a sublayer's output is added to is multiplied by D numbers first (Doge).
        augmented_residual: beside the attention (Gemma-3n). feed_forward_beside: a second network that reads the same
        residual stream, with norms of its own before and on its output; the first one's output has one more, and then
        the output norm takes their sum (Gemma-4). layer_scale: one number that the layer's result is multiplied by,
        which a checkpoint holds (Gemma-4). sublayer_gates: each sublayer's output is multiplied by the tanh of a
        number of its own before it is added; needs_memory: without tokens of an encoder to look at, nothing of the
        layer runs (both of the layers that look at an image in Llama-3.2-Vision, arXiv 2407.21783, section 7).
        conditioned: what the network reads is multiplied by 1 + gelu(t A) B, with A of D x this many and B back, once a
        pass: t, D numbers, says how far a transcript may lag behind (Voxtral Realtime).
        norm_gate: behind the norm in front of a sublayer (A.X-K2). residual_mean: of the n terms of the stream so far,
        its start and each sublayer's output, every one weighs 1 / sqrt(n) (Beam); it changes no count. shortcut: a
        second network that reads what `feed_forward` reads, behind the same norm, and whose result is added behind the
        next layer (LongCat-Flash, arXiv 2509.01322, section 2.2).
    convolution: beside the whole layer (DeBERTa-v2's first). adapters: of languages, behind the network (X-MOD).
    bottleneck: the layer is inside of it, with several equal networks (MobileBERT).
    output_conv: what a sublayer gives, and a convolution of it over its latest tokens (Inkling). block_residuals:
    sublayers read weighted means of the stream and of what earlier blocks of layers left (Inkling-2).
    mixer: in place of an attention; all but FNet's are recurrent. mixer_beside: one beside the attention, of what
    that reads (Falcon-H1). shared_block: attention and a network whose weights other layers share, and whose result the
    mixer reads beside the residual stream (Zamba).
    """

    name: Name | None = None
    repeat: Size = 1
    norm: Norm
    norms: Literal["pre", "post", "output", "sandwich", "sphere"] = "pre"
    parallel: Annotated[Literal[False, "one_norm", "two_norms"], BeforeValidator(no_number)] = False
    positions: Positions = NoPositions()
    attention: Attention | None = None
    mixer: Mixer | None = None
    mixer_beside: Mixer | None = None
    shared_block: SharedBlock | None = None
    cross_attention: GroupedQuery | None = None
    feed_forward: FeedForward | None = None
    attention_norm: Flag = True
    share_weights: Flag = False
    residual_scale: PositiveFloat = 1.0
    residual_affine: Flag = False
    residual_gain: Flag = False
    augmented_residual: AugmentedResidual | None = None
    feed_forward_beside: FeedForward | None = None
    norm_gate: NormGate | None = None
    residual_mean: Flag = False
    shortcut: Network | None = None
    layer_scale: Annotated[Literal[False, "buffer"], BeforeValidator(no_number)] = False
    sublayer_gates: Flag = False
    needs_memory: Flag = False
    convolution: ConvolutionBeside | None = None
    conditioned: Size | None = None
    output_conv: OutputConv | None = None
    block_residuals: BlockResiduals | None = None
    adapters: LanguageAdapters | None = None
    bottleneck: Bottleneck | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """What must hold between its parts."""
        yield from rules_of_layer(self, d_model)

    def check(self, where: Where, d_model: int) -> None:
        """The rules of its parts, then its own."""
        self.positions.check((*where, "positions"), d_model)
        for name in ("attention", "cross_attention"):
            part: Attention | None = getattr(self, name)
            if part is not None:
                part.check((*where, name), d_model)
        for name in ("mixer", "mixer_beside", "shared_block", "feed_forward", "feed_forward_beside", "shortcut"):
            other: Mixer | SharedBlock | FeedForward | None = getattr(self, name)
            if other is not None:
                other.check((*where, name), d_model)
        for name in ("convolution", "adapters", "bottleneck"):
            around: ConvolutionBeside | LanguageAdapters | Bottleneck | None = getattr(self, name)
            if around is not None:
                around.check((*where, name), d_model)
        super().check(where, d_model)

    def derived(self, d_model: int) -> Iterator[str]:
        """What the attention derives."""
        shared = self.shared_block.attention if self.shared_block is not None else None
        for part in (self.attention, shared, self.cross_attention):
            if part is not None:
                yield from part.derived(d_model)

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Those of one stream of a text, or of as many as its attention has."""
        records = self._of_one_stream(at, d_model, stream)
        return map(self.attention.of_all, records) if isinstance(self.attention, NGram) else records

    def _of_one_stream(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """Norms, attention or mixer, feed-forward, in the order in which a reader meets them."""
        if self.bottleneck is not None:
            yield from self._inside(at, d_model, stream)
            return
        width = {"D": d_model}
        stream = stream if not self.needs_memory else replace(stream, rows=CROSS.rows)
        if self.parallel == "one_norm":
            yield from self.norm.records(at, "norm", width)
        if isinstance(self.positions, RelativePositions) and self.positions.per_layer and self.attention is not None:
            yield from self.positions.bias_records(at, self.attention.heads)
        if self.shared_block is not None:
            yield from self.shared_block.records(at, d_model, stream, self.norm)
        for name in SUBLAYERS:
            part: Attention | Mixer | FeedForward | None = getattr(self, name)
            if part is None:
                continue
            if self.parallel != "one_norm" and (name != "attention" or self.attention_norm):
                yield from self._norms_before(at, name, width, stream)
            yield from part.records(at.under(name), d_model, CROSS if name == "cross_attention" else stream)
            if name == "attention" and self.mixer_beside is not None:
                yield from self.mixer_beside.records(at.under("mixer_beside"), d_model, stream)
            if self.norms in ("sandwich", "sphere"):
                yield from self.norm.records(at, f"{name}_output_norm", width)
            yield from self._of_the_sum(at, name, d_model)
            if name == "attention" and self.augmented_residual is not None:
                yield from self.augmented_residual.records(at, d_model, stream, self.norm)
        yield from self._beside(at, d_model, stream)
        if self.layer_scale:
            yield at.weight("layer_scale", {"one": 1}, role=self.layer_scale)

    def _inside(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """A layer inside a bottleneck."""
        if self.bottleneck is None or self.feed_forward is None or not isinstance(self.attention, GroupedQuery):
            return
        parts: Any = {"norm": self.norm, "attention": self.attention, "network": self.feed_forward}
        yield from self.bottleneck.records(at, d_model, stream, **parts)

    def _beside(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """A second network, one whose result is added later, and what is beside the whole layer."""
        width = {"D": d_model}
        if self.feed_forward_beside is not None:
            yield from self.norm.records(at, "feed_forward_alone_output_norm", width)
            yield from self.norm.records(at, "feed_forward_beside_norm", width)
            yield from self.feed_forward_beside.records(at.under("feed_forward_beside"), d_model, stream)
            yield from self.norm.records(at, "feed_forward_beside_output_norm", width)
        if self.shortcut is not None:
            yield from self.shortcut.records(at.under("shortcut"), d_model, stream)
        if self.adapters is not None:
            yield from self.adapters.records(at, d_model, stream, self.norm)
        if self.convolution is not None:
            yield from self.convolution.records(at, d_model, stream, self.norm)
        if self.block_residuals is not None:
            yield from self.block_residuals.records(at, d_model, stream, self.norm)

    def _of_the_sum(self, at: At, name: str, d_model: int) -> Iterator[Record]:
        """What stands where a sublayer's output is added."""
        if self.output_conv is not None:
            yield from self.output_conv.records(at.under(f"{name}_conv"), d_model)
        if self.sublayer_gates:
            yield at.weight(f"{name}_gate", {"one": 1})
        if self.norms == "sphere":
            yield at.weight(f"{name}_rate", {"D": d_model})
        if self.residual_gain:
            yield at.weight(f"{name}_residual_gain", {"D": d_model})
        if self.residual_affine:
            yield from affine_records(at, f"{name}_residual", d_model)
            yield from affine_records(at, f"{name}_output", d_model)

    def _norms_before(self, at: At, name: str, width: dict[str, int], stream: Stream) -> Iterator[Record]:
        """The norm of a sublayer, and its gate; before an attention, rows beside the text have a norm (Pegasus-X), and
        before a network there may be a condition.
        """
        yield from self.norm.records(at, f"{name}_norm", width)
        if self.norm_gate is not None:
            yield from self.norm_gate.records(at, f"{name}_norm", width["D"], stream)
        if name == "attention" and stream.text.more:
            yield from self.norm.records(at, "global_attention_norm", width)
        if name == "feed_forward" and self.conditioned is not None:
            yield from condition_records(at.under("condition"), width["D"], self.conditioned)

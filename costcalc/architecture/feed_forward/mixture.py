"""A mixture of experts (arXiv 1701.06538): a router sends each token to a few of many feed-forward networks.

Shared experts, which every token goes to: DeepSeekMoE, arXiv 2401.06066.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from costcalc.architecture.component import Component, Flag, PositiveFloat, Rule, Size, Where, Whole, no_number
from costcalc.architecture.feed_forward.dense import Dense
from costcalc.architecture.feed_forward.gated import Gated
from costcalc.architecture.feed_forward.router_network import RouterNetwork
from costcalc.architecture.norm import Norm
from costcalc.architecture.places import At, Stream
from costcalc.inventory import Record

Expert = Annotated[Dense | Gated, Field(discriminator="kind")]


class Router(Component):
    """One score for each expert, D -> E, of which the largest choose.

    bias: on the scores' product (gpt-oss). correction: numbers that are added to the scores for choosing alone
    (DeepSeek-V3, arXiv 2412.19437, section 2.1.2), held as a buffer or as a parameter. scores: "softmax" or "sigmoid"
    over all experts, or the root of softplus (DeepSeek-V4), or softmax over the chosen alone. normalize: the chosen
    scores are divided by their sum. scale: what they are then multiplied by. groups: experts in so many groups, of
    which each token uses groups_per_token.
    weigh: the experts' outputs, or their inputs (Llama-4), are multiplied by the scores.

    reads: what the experts read, or the residual stream that comes into the layer's part, before its norm (Gemma-4).
    norm: of what is read. input_scale: that is multiplied by D numbers, and by 1 / sqrt(D). expert_scale: weights are
    multiplied by one number for each expert, when all else is done.

    network: scores are made of what a small network gives, not of the input itself. skips: so many choices more that
    are no experts: a token that makes one gets "nothing" for it (ZAYA1), or as skip_gives says its "input", weighed
    like an expert's output (LongCat-Flash). Which tokens do is not known. Of the first kind costs count every choice as
    an expert's; the library too multiplies such a token with the first expert, and the result with 0. With the second
    the work differs from text to text, and FLOPs are refused.

    table: the token's own row of a table of so many, as large as the vocabulary, says which experts it goes to, and the
    scores only how much they weigh (hash routing, arXiv 2106.04426; DeepSeek-V4's first layers). It is a buffer.

    shared_parts: the shared network is so many equal ones beside each other, which have scores too: those of the chosen
    experts and of these weigh together (Inkling). gain: all weights are multiplied by one learned number.
    """

    bias: Flag = False
    correction: Annotated[Literal[False, "buffer", "frozen", "trainable"], BeforeValidator(no_number)] = False
    scores: Literal["softmax", "sigmoid", "softmax_of_chosen", "sqrt_softplus"] = "softmax"
    normalize: Flag = True
    scale: PositiveFloat = 1.0
    groups: Size = 1
    groups_per_token: Size = 1
    weigh: Literal["outputs", "inputs"] = "outputs"
    reads: Literal["input", "residual"] = "input"
    norm: Norm | None = None
    input_scale: Flag = False
    expert_scale: Flag = False
    network: RouterNetwork | None = None
    skips: Whole = 0
    table: Size | None = None
    skip_gives: Literal["nothing", "input"] = "nothing"
    shared_parts: Whole = 0
    gain: Flag = False

    def rules(self, d_model: int) -> Iterator[Rule]:
        """No more groups are used than there are; one norm; choices that are no experts are told apart at the end."""
        yield self.groups_per_token <= self.groups, "{groups_per_token} of {groups} groups: no more are there"
        yield (
            self.network is None or (self.norm is None and not self.input_scale),
            "a router with a `network` has the norm of that, and no `input_scale`",
            "write `norm` inside of the `network`",
        )
        plain = self.groups == 1 and self.weigh == "outputs"
        said = "`skips` go with one group of experts, and `weigh: outputs`"
        yield self.skips == 0 or plain, said, "take `skips` out, or what does not go with them"
        plain = plain and self.skips == 0 and self.table is None and self.scores == "sigmoid" and self.normalize
        said = "`shared_parts` go with one group of experts, sigmoids that are normalised, and `weigh: outputs`"
        yield self.shared_parts == 0 or plain, said, "take `shared_parts` out, or what does not go with them"
        free = self.groups == 1 and self.skips == 0 and not self.correction
        said = "a `table` leaves nothing to choose: no `groups`, `skips` or `correction`"
        yield self.table is None or free, said, "take those out, or the `table`"
        gives = self.skip_gives == "nothing" or self.skips != 0
        yield gives, "`skip_gives` says what `skips` give, and there are none", "write `skips`, or take it out"

    def records(self, at: At, d_model: int, stream: Stream, *, experts: int, chosen: int) -> Iterator[Record]:
        """D -> E, and what stands before and behind it."""
        width, of_experts = {"D": d_model}, {"E": experts}
        more = self.skips + self.shared_parts
        scores = of_experts if more == 0 else {"choices": experts + more}
        if self.norm is not None:
            yield from self.norm.records(at, "router_norm", width)
        if self.input_scale:
            yield at.weight("router_input_scale", width)
        if self.network is not None:
            yield from self.network.records(at, d_model, stream)
            width = {"W_router": self.network.width}
        yield from at.linear("router", stream.rows, width, scores, bias=self.bias)
        if self.correction:
            of_choices = of_experts if self.shared_parts else scores
            yield at.weight("router_correction", of_choices, role=self.correction)
        if self.gain:
            yield at.weight("router_gain", {"one": 1})
        if self.expert_scale:
            yield at.weight("router_expert_scale", of_experts)
        if self.table is not None:
            yield at.weight("router_table", {"V": self.table, "X": chosen}, role="buffer", table=True)


class Mixture(Component):
    """`experts` networks of one form, of which each token goes to `experts_per_token`.

    shared: a network that every token goes to (several of one width are one of that many times the width).
    shared_gate: its output is multiplied by a sigmoid of one product of the input (Qwen2-MoE). norm: of the sum of all
    (A.X-K1). dispatch: "all" where the class multiplies every token with every expert, and those not chosen with zeros
    (`Llama4TextExperts`): that counts under counting="rectangle", what kernels are handed. latent_dim: routed experts
    work on so many numbers, between two products of their own (Nemotron-3); latent_bias: on those two.
    out_bias: D numbers that are added to the sum of all (JetMoE). capacity: tokens of a text that an expert takes at
    most (Switch Transformers); those that come too late get nothing for it, and since nobody knows which they are,
    costs count every choice.

    experts_per_token: null where it is not known: parameters are told, all experts among the active ones, and FLOPs are
    refused. unused: so many more first matrices of experts are held that no token meets (`LongcatFlashExperts`).
    """

    kind: Literal["mixture"] = "mixture"
    experts: Size
    experts_per_token: Size | None
    expert: Expert
    shared: Expert | None = None
    shared_gate: Flag = False
    router: Router = Router()
    norm: Norm | None = None
    dispatch: Literal["chosen", "all"] = "chosen"
    latent_dim: Size | None = None
    latent_bias: Flag = False
    out_bias: Flag = False
    unused: Whole = 0
    capacity: Size | None = None

    def rules(self, d_model: int) -> Iterator[Rule]:
        """A token uses no more experts than there are, and its groups hold them."""
        router = self.router
        fewer = f"`experts_per_token` is at most {self.experts}"
        yield (
            self.experts_per_token is None or self.experts_per_token <= self.experts,
            "{experts_per_token} of {experts} experts: no more are there",
            fewer,
        )
        has_shared = self.shared is not None or not self.shared_gate
        yield has_shared, "`shared_gate` belongs to a `shared` expert", "add `shared: {d_ff: ...}`, or take it out"
        yield (
            self.experts % router.groups == 0,
            f"experts {{experts}} are no multiple of {router.groups} groups",
            "change `experts`, or `groups` of the `router`",
        )
        yield (
            self.latent_dim is not None or not self.latent_bias,
            "`latent_bias` belongs to a `latent_dim`",
            "write one, or take it out",
        )
        width = self.shared.d_ff if isinstance(self.shared, Gated) else 0
        yield (
            router.shared_parts == 0 or (width > 0 and width % max(router.shared_parts, 1) == 0),
            f"`shared_parts` {router.shared_parts} of a `shared` network {width} wide",
            "write a `shared` network, gated, of a multiple of that width",
        )
        reached = router.groups_per_token * (self.experts // router.groups)
        yield (
            self.experts_per_token is None or self.experts_per_token <= reached,
            f"{{experts_per_token}} experts of a token: its {router.groups_per_token} groups have {reached}",
            "raise `groups_per_token` of the `router`, or write fewer `experts_per_token`",
        )

    def check(self, where: Where, d_model: int) -> None:
        """Its router's rules, then its own."""
        self.router.check((*where, "router"), d_model)
        super().check(where, d_model)

    def summary(self) -> str:
        """One line for a reader."""
        shared = "" if self.shared is None else f", one shared ({self.shared.summary()})"
        handed = ", all of them handed to kernels" if self.dispatch == "all" else ""
        inside = "" if self.latent_dim is None else f" on {self.latent_dim:,} numbers"
        router = self.router
        of_none = "none" if router.skip_gives == "nothing" else "the input itself"
        none = (
            f" or {of_none if router.skips == 1 else f'{router.skips:,} choices of {of_none}'}" if router.skips else ""
        )
        routed = "" if router.network is None else f", routed by a network {router.network.width:,} wide"
        some = "an unknown number" if self.experts_per_token is None else self.experts_per_token
        chosen = f"{some} of {self.experts:,} experts{none}"
        most = "" if self.capacity is None else f", at most {self.capacity:,} tokens of a text each"
        return f"{chosen} ({self.expert.summary()}){inside}{routed}{shared}{handed}{most}"

    def records(self, at: At, d_model: int, stream: Stream) -> Iterator[Record]:
        """D -> E, the experts for the rows that reach them, and the shared one for all."""
        known = self.experts_per_token is not None
        chosen = self.experts_per_token if self.experts_per_token is not None else self.experts
        handed = self.experts if self.dispatch == "all" else None
        yield from self.router.records(at, d_model, stream, experts=self.experts, chosen=chosen)
        if not known:
            yield at.unstated("flops", "how many experts a token uses is not known")
        elif self.router.skip_gives == "input":
            yield at.unstated(
                "flops", "how many of a token's choices are experts, and not its input, depends on the text"
            )
        there, width = at.of_experts("experts", self.experts, chosen=chosen), {"D": d_model}
        latent = {"R": self.latent_dim or d_model}
        if self.latent_dim is not None:
            yield from at.linear("latent_down", stream.rows, width, latent, bias=self.latent_bias)
        yield from self.expert.records(there, latent["R"], stream.routed(chosen, handed))
        if self.latent_dim is not None:
            yield from at.linear("latent_up", stream.rows, latent, width, bias=self.latent_bias)
        if self.unused:
            yield from self._unused(at, d_model)
        if self.shared is not None:
            yield from self.shared.records(at.under("shared"), d_model, stream)
        if self.shared_gate:
            yield from at.linear("shared_gate", stream.rows, {"D": d_model}, {"one": 1}, bias=False)
        if self.out_bias:
            yield at.weight("output_bias", {"D": d_model})
        if self.norm is not None:
            yield from self.norm.records(at, "norm", {"D": d_model})

    def _unused(self, at: At, d_model: int) -> Iterator[Record]:
        """The matrices in front of an expert's activation, once more for each of those that nobody is."""
        axes = {"E_unused": self.unused, "D": d_model, "F": self.expert.d_ff}
        for name in ("gate", "up") if isinstance(self.expert, Gated) else ("up",):
            yield at.under("unused").weight(name, axes)._replace(used={"E_unused": 0})

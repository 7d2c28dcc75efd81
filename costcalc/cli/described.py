"""What a model is, in a few words a row: the first table of `costcalc show`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from costcalc.report import Cell
from costcalc.units import several

if TYPE_CHECKING:
    from costcalc.architecture import Architecture, Stack
    from costcalc.architecture.embedding import Embedding
    from costcalc.architecture.stack import Group


def described(model: Architecture) -> dict[str, Cell]:
    """Family, layers, attention, feed-forward, norms and positions of each stack, tables, head, context, source."""
    rows: dict[str, Cell] = {"family": model.family}
    for name, stack in model.stacks.items():
        before = f"{name} " if len(model.stacks) > 1 else ""
        groups = [group for group in model.groups if group.path.partition(".")[0] == name]
        rows[f"{before}layers"] = (
            f"{stack.depth:,} of width {model.width_of(name):,}{_projected(model, stack)}{_sharing(groups)}"
        )
        if stack.altup is not None:
            rows[f"{before}residual stream"] = stack.altup.summary()
        if stack.hyper_connections is not None:
            rows[f"{before}residual stream"] = stack.hyper_connections.summary()
        if stack.padding is not None:
            rows[f"{before}text"] = stack.padding.summary()
        if stack.global_tokens is not None:
            rows[f"{before}beside the text"] = f"{stack.global_tokens:,} learned rows"
        if stack.per_layer_input is not None:
            rows[f"{before}per-layer inputs"] = stack.per_layer_input.summary()
        for group in groups:
            rows.update(_sublayers(before, group, model.width_of(name), is_one_of_several=len(groups) > 1))
        rows[f"{before}norms"] = _norms(stack, groups)
        rows[f"{before}positions"] = _positions(stack, groups)
        if stack.embedding is not None:
            rows[f"{before}embedding"] = _bottom(stack.embedding) or "a table alone"
    rows["embedding"] = _embedding(model)
    rows["vocabulary"] = f"{model.vocab_size:,}, {_head(model)}"
    rows["context"] = None if model.context_length is None else f"{model.context_length:,} tokens"
    rows["source"] = model.source
    return {label: cell for label, cell in rows.items() if cell is not None}


def _sublayers(before: str, group: Group, d_model: int, *, is_one_of_several: bool) -> dict[str, Cell]:
    where = f" ({_name(group)}, {several(group.times, 'layer')})" if is_one_of_several else ""
    block = group.block
    rows: dict[str, Cell] = {}
    if block.attention is not None:
        rows[f"{before}attention{where}"] = block.attention.summary(d_model)
    if block.mixer is not None:
        rows[f"{before}mixer{where}"] = block.mixer.summary()
    if block.mixer_beside is not None:
        rows[f"{before}beside attention{where}"] = block.mixer_beside.summary()
    if block.shared_block is not None:
        rows[f"{before}shared block{where}"] = block.shared_block.summary(d_model)
    if block.cross_attention is not None:
        rows[f"{before}cross-attention{where}"] = block.cross_attention.summary(d_model)
    if block.feed_forward is not None:
        rows[f"{before}feed-forward{where}"] = block.feed_forward.summary()
    if block.feed_forward_beside is not None:
        rows[f"{before}beside it{where}"] = block.feed_forward_beside.summary()
    if block.shortcut is not None:
        rows[f"{before}shortcut{where}"] = f"{block.shortcut.summary()}, added behind the next layer"
    for label, part in (("adapters", block.adapters), ("bottleneck", block.bottleneck)):
        if part is not None:
            rows[f"{before}{label}{where}"] = part.summary()
    if block.convolution is not None:
        rows[f"{before}beside the layer{where}"] = block.convolution.summary()
    if block.augmented_residual is not None:
        rows[f"{before}beside attention{where}"] = block.augmented_residual.summary()
    return rows


def _name(group: Group) -> str:
    return group.path.rpartition(".")[2]


def _norms(stack: Stack, groups: list[Group]) -> str:
    """Kind and placement, which layers may have differently."""

    def placement(group: Group) -> str:
        block = group.block
        placed = f"parallel, {block.parallel.replace('_', ' ')}" if block.parallel else block.norms
        more = ", residual shifted and scaled" if block.residual_affine else ""
        more += ", sublayers gated" if block.sublayer_gates else ""
        more += f", networks conditioned by {block.conditioned:,} numbers" if block.conditioned else ""
        more += ", skipped without a memory" if block.needs_memory else ""
        return f"{block.norm.kind}, {placed}{'' if block.attention_norm else ', none before attention'}{more}"

    final = f", final{f' {stack.norm.kind}' if len({g.block.norm.kind for g in groups}) > 1 else ''}"
    return _by_layers((placement(group), group) for group in groups) + (final if stack.has_final_norm else "")


def _positions(stack: Stack, groups: list[Group]) -> str:
    """Those that are added once, and those that layers have inside."""
    inside = _by_layers((g.block.positions.summary(), g) for g in groups if g.block.positions != stack.positions)
    everywhere = all(group.block.positions != stack.positions for group in groups)
    if not inside:
        return stack.positions.summary()
    if everywhere and not stack.positions.added:
        return inside
    rest = [(group.block.positions.summary(), group) for group in groups]
    return _by_layers(rest) if not stack.positions.added else f"{stack.positions.summary()}; {inside}"


def _by_layers(said: Iterable[tuple[str, Group]]) -> str:
    """What is said of each group; with the names of the groups where they differ."""
    names: dict[str, list[str]] = {}
    for words, group in said:
        names.setdefault(words, []).append(_name(group))
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{words} ({', '.join(where)})" for words, where in names.items())


def _sharing(groups: list[Group]) -> str:
    sets = sum(group.block.share_weights for group in groups)
    layers = sum(group.times for group in groups if group.block.share_weights)
    if not sets:
        return ""
    of = "all" if layers == sum(group.times for group in groups) else f"{layers:,} of them"
    return f", {several(sets, 'set')} of weights for {of}"


def _projected(model: Architecture, stack: Stack) -> str:
    return f", projected to {model.d_model:,}" if stack.output_projection else ""


def _embedding(model: Architecture) -> str | None:
    """What a plain table does not have, and whose tables there are; None for a plain one."""
    parts = [_bottom(model.embedding)] if _bottom(model.embedding) else []
    if len(model.stacks) > 1:
        own = f"{model.encoder_vocab_size or model.vocab_size:,} rows of the encoder's own"
        parts.append("one table for both stacks" if model.share_embeddings else own)
    if model.spare_table:
        parts.append("one more table that nothing looks up")
    return ", ".join(parts) or None


def _bottom(made: Embedding) -> str:
    """What a plain table does not have."""
    parts = []
    if made.width is not None:
        parts.append(f"{made.width:,} wide, projected {made.project} the rest")
    if made.token_types is not None:
        parts.append(several(made.token_types, "token type"))
    if made.neighbours:
        parts.append("joined with its neighbours")
    if made.tables:
        parts.append(f"tables of {', '.join(table.name for table in made.tables)}")
    if made.norm is not None:
        parts.append(f"normed ({made.norm.kind})")
    if made.affine:
        parts.append("shifted and scaled")
    return ", ".join(parts)


def _head(model: Architecture) -> str:
    if model.head.kind == "none":
        return "no head" + (", pooler" if model.pooler else "")
    if model.head.kind == "classifier":
        labels = f"{several(model.head.labels, 'label')} of each {model.head.of}"
        return ", ".join([labels, *["dense layer before it"] * model.head.transform, *["pooler"] * model.pooler])
    table = "tied head" if model.tie_embeddings else "head with its own table"
    return ", ".join([table, *["dense layer before it"] * model.head.transform, *["pooler"] * model.pooler])

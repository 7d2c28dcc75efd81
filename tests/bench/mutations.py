"""Mistakes that a person who knows transformers could make in a module, one at a time, on its syntax tree.

An axis or an entry of a mapping is missing or has another letter; a size, a flag, an extent or a kind is another one of
its family; a number is off by one; a factor, an operand, an argument or half a slice is missing; a condition always or
never holds, or is another comparison; a statement is missing, a record is yielded twice; a path, role or kind is
another word. Left alone: docstrings, annotations, decorators, imports, `__all__`, the text of errors, and strings that
are prose (anything that is not one plain word).
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise, takewhile

SIZES = (
    "heads kv_heads head_dim d_model d_ff vocab_size width length rotary_dim experts count",
    "queries keys width",
    "window chunk",
    "batch new_tokens past_tokens memory_tokens tokens",
    "past new",
    "batch rows inner columns",
    "inputs outputs",
)
"""Names of sizes; those of one line could be taken for each other."""
FLAGS = ("bias", "out_bias", "weight", "table", "causal", "held", "tie_embeddings", "tied", "once", "shared")
FAMILIES = (
    ("costcalc.inventory", "Tokens Logits Context Pairs Memory MemoryPairs Asking CrossPairs Sequences"),
    ("costcalc.architecture.norm", "LayerNorm RMSNorm"),
    ("costcalc.architecture.positions", "NoPositions RotaryPositions SinusoidalPositions"),
    ("costcalc.architecture.attention.grouped_query", "PerHeadNorm ProjectionNorm"),
)
"""Where classes live that could be taken for each other."""
TAKES = {
    **{"Tokens": "", "Logits": "", "Asking": "", "CrossPairs": "", "Sequences": ""},
    **{"Context": "window", "MemoryPairs": "window", "Memory": "once"},
}
"""The arguments that such a class takes, where it does not take all that the others do."""
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "sin": "cos", "cos": "sin", "mean": "sum"}
WORDS = {
    **{"scores": "values", "values": "scores", "k_cache": "v_cache", "v_cache": "k_cache", "weight": "scores"},
    **{"trainable": "buffer", "buffer": "frozen", "frozen": "trainable", "kv": "cross", "cross": "state"},
    **{"q": "k", "k": "v", "v": "k"},
}
"""Paths, roles and kinds that could be taken for each other; any other word gets an x."""
OPERATORS = (
    "Mult:Add Add:Sub Sub:Add FloorDiv:Mult Div:Mult Mod:FloorDiv Pow:Mult BitAnd:BitOr And:Or Or:And "
    "Eq:NotEq NotEq:Eq Is:IsNot IsNot:Is In:NotIn NotIn:In Lt:LtE Lt:GtE LtE:Lt LtE:Gt Gt:GtE Gt:LtE GtE:Gt GtE:Lt"
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where it is, the statement before and after, and the whole module with it."""

    file: str
    line: int
    change: str
    source: str


@dataclass(frozen=True, slots=True)
class Place:
    """A node with what it stands in; scope: the classes and functions around it."""

    node: ast.stmt | ast.expr
    parent: ast.AST
    statement: ast.stmt
    scope: tuple[ast.ClassDef | ast.FunctionDef, ...]


def mutants(file: str, source: str) -> Iterator[Mutant]:
    """Every change of a module, in the order of its lines; `change` says the same wherever the line has moved to."""
    tree = ast.parse(source)
    seen = {ast.unparse(tree)}
    for place in _inside(tree, tree, None, ()):
        for new in _changes(place):
            changed = copy.deepcopy(tree, {id(place.node): new})  # the memo puts the new node where the old one was
            _import_family(changed, new, source)
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text not in seen:
                seen.add(text)
                name = ".".join(scope.name for scope in place.scope) or "module"
                yield Mutant(file, place.node.lineno, f"{name}: {_told(place, new)}", text)


def _inside(node: ast.AST, parent: ast.AST, statement: ast.stmt | None, scope: tuple) -> Iterator[Place]:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Delete)) or _is_text(node):
        return
    statement = node if isinstance(node, ast.stmt) else statement
    if isinstance(node, (ast.stmt, ast.expr)):
        yield Place(node, parent, statement, scope)
    inner = (*scope, node) if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else scope
    for field, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        if isinstance(parent, ast.Raise):
            children = children[1:]  # the text of an error
        if field not in ("annotation", "returns", "decorator_list"):
            for child in children:
                if isinstance(child, ast.AST):
                    yield from _inside(child, node, statement, inner)


def _is_text(node: ast.AST) -> bool:
    """A docstring, or the names of `__all__`."""
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")


def _changes(place: Place) -> Iterator[ast.AST]:
    """Everything that could stand in place of this node."""
    if isinstance(place.node, ast.stmt):
        yield from _other_statements(place.node, place)
    else:
        yield from _other_expressions(place.node, place)
        yield from _other_values(place.node, place)


def _other_statements(node: ast.stmt, place: Place) -> Iterator[ast.AST]:
    value = getattr(node, "value", None)
    if isinstance(value, (ast.Yield, ast.YieldFrom)) and ast.unparse(value.value) != "()":
        yield ast.parse("yield from ()").body[0]  # without the record it still is a generator
        if not isinstance(value.value, ast.Tuple):  # a rule may well be asked twice
            yield ast.If(ast.Constant(True), [node, node], [])
    elif _can_go(node, place):
        yield ast.Pass()
    if isinstance(node, ast.AugAssign):
        yield ast.Assign([node.target], node.value)
        yield from (ast.AugAssign(node.target, other, node.value) for other in _others(node.op))


def _can_go(node: ast.stmt, place: Place) -> bool:
    """Whether the rest can still be meant without this statement."""
    if isinstance(node, ast.Return):
        return node is not place.scope[-1].body[-1]
    is_setting = isinstance(node, ast.Assign) and not isinstance(node.targets[0], (ast.Name, ast.Tuple))
    is_plain = isinstance(node, ast.Expr) and not isinstance(node.value, (ast.Yield, ast.YieldFrom))
    return is_plain or is_setting or isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue))


def _other_expressions(node: ast.expr, place: Place) -> Iterator[ast.AST]:
    match node:
        case ast.Constant():
            yield from (ast.Constant(value) for value in _other_constants(node.value, place.parent))
        case ast.Dict():
            for index in range(len(node.keys)):
                yield ast.Dict(_without(node.keys, index), _without(node.values, index))
        case ast.Tuple() | ast.List() | ast.Set() if len(node.elts) > 1:
            if all(isinstance(element, (ast.Constant, ast.Tuple)) for element in node.elts):
                yield from (_with(node, elts=_without(node.elts, index)) for index in range(len(node.elts)))
        case ast.Call():
            yield from _other_calls(node)
        case ast.Compare():
            for index, op in enumerate(node.ops):
                yield from (_with(node, ops=[*node.ops[:index], o, *node.ops[index + 1 :]]) for o in _others(op))
        case ast.BoolOp():
            yield from (_with(node, op=other) for other in _others(node.op))
            for rest in combinations(node.values, len(node.values) - 1):
                yield _with(node, values=list(rest)) if len(rest) > 1 else rest[0]
        case ast.UnaryOp():
            yield node.operand
        case ast.BinOp() if not isinstance(node.op, ast.BitOr):
            yield from (_with(node, op=other) for other in _others(node.op))
            yield from [node.left, node.right] if isinstance(node.op, (ast.Mult, ast.Add)) else [node.left]
        case ast.Slice():
            yield from (_with(node, **{end: None}) for end in ("lower", "upper") if getattr(node, end))
        case ast.Name(ctx=ast.Load()) if node.id in FUNCTIONS:
            yield _with(node, id=FUNCTIONS[node.id])
        case ast.Attribute(ctx=ast.Load()) if node.attr in FUNCTIONS:
            yield _with(node, attr=FUNCTIONS[node.attr])


def _other_constants(value: object, parent: ast.AST) -> Iterator[object]:
    is_field = isinstance(parent, ast.AnnAssign)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, float):
        yield value * 2
    elif value is None and (is_field or isinstance(parent, ast.arguments)):
        yield 1
    elif isinstance(value, str) and re.fullmatch(r"[\w.·]+", value):
        yield WORDS.get(value, f"{value}x")
        if is_field and "Literal" in (annotation := ast.unparse(parent.annotation)):
            yield from (other for other in re.findall(r"'(\w+)'", annotation) if other != value)


def _other_calls(node: ast.Call) -> Iterator[ast.AST]:
    name = ast.unparse(node.func)
    for index in range(len(node.keywords)):
        yield _with(node, keywords=_without(node.keywords, index))
    if name[:1].isupper() and len(node.args) > 1:
        yield _with(node, args=node.args[:-1])
    for index, (a, b) in enumerate(pairwise(node.args) if not hasattr(builtins, name) else ()):
        if type(a) is type(b) and not isinstance(a, ast.JoinedStr):
            yield _with(node, args=[*node.args[:index], b, a, *node.args[index + 2 :]])
    for _, family in FAMILIES:
        for other in family.split() if name in family.split() else ():
            taken = [word for word in node.keywords if other not in TAKES or word.arg in TAKES[other].split()]
            yield ast.Call(ast.Name(other), node.args, taken)


def _import_family(tree: ast.Module, new: ast.AST, source: str) -> None:
    """A class that the module does not know yet is imported, as whoever writes it would do."""
    name = ast.unparse(new.func) if isinstance(new, ast.Call) else ""
    for home, family in FAMILIES:
        if name in family.split() and name not in source:
            tree.body.insert(2, ast.ImportFrom(home, [ast.alias(name)], 0))  # after docstring and __future__


def _other_values(node: ast.expr, place: Place) -> Iterator[ast.AST]:
    """A condition that always or never holds, another flag, another size."""
    parent, word = place.parent, _word(node)
    is_called = getattr(parent, "func", None) is node
    is_test = getattr(parent, "test", None) is node or node in getattr(parent, "ifs", ())
    is_flag = word in FLAGS and (not isinstance(node, ast.Name) or word in ("bias", "tied")) and not is_called
    if is_test or (is_flag and not isinstance(parent, (ast.BoolOp, ast.UnaryOp))):
        yield from (ast.Constant(True), ast.Constant(False))
    is_asked = isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.Is, ast.IsNot))
    if isinstance(place.statement, ast.FunctionDef) or is_called or is_asked or isinstance(parent, ast.FormattedValue):
        return
    kin = {size for line in SIZES if word in line.split() for size in line.split()}
    yield from (ast.parse(other, mode="eval").body for other in _sizes(place, kin) if other != ast.unparse(node))


def _word(node: ast.AST) -> str | None:
    """The last name of `heads`, `self.heads` or `fields["heads"]`, where it is read."""
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        return None
    key = getattr(getattr(node, "slice", None), "value", None)
    return getattr(node, "id", None) or getattr(node, "attr", None) or (key if isinstance(key, str) else None)


def _sizes(place: Place, kin: set[str]) -> dict[str, None]:
    """Those of `kin` that can be written here: the sizes of the function so far, and the fields of its class."""
    found: dict[str, None] = {}
    functions = [scope for scope in place.scope if isinstance(scope, ast.FunctionDef)]
    for node in ast.walk(functions[0]) if functions and kin else ():
        if isinstance(node, ast.arg) and node.arg in kin:
            found[node.arg] = None
        elif isinstance(node, ast.Name) and node.id in kin and isinstance(node.ctx, ast.Store):
            found.update({node.id: None} if node.lineno < place.node.lineno else {})
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and _word(node) in kin:
            found[ast.unparse(node)] = None
    for node in place.scope[-2].body if len(place.scope) > 1 and isinstance(place.scope[-2], ast.ClassDef) else ():
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in kin:
            found[f"self.{ast.unparse(node.target)}"] = None
    return found


def _others(op: ast.AST) -> list[ast.AST]:
    pairs = [pair.split(":") for pair in OPERATORS.split()]
    return [getattr(ast, other)() for name, other in pairs if name == type(op).__name__]


def _with(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _without(items: list, index: int) -> list:
    return items[:index] + items[index + 1 :]


def _told(place: Place, new: ast.AST, *, kept: int = 25) -> str:
    """The statement before and after, where `kept` characters around the change are told."""
    if isinstance(new, ast.If):
        return f"{_head(place.statement)} -> the same twice"
    before, after = _head(place.statement), _head(copy.deepcopy(place.statement, {id(place.node): new}))
    start = _alike(before, after)
    end = len(after) - _alike(before[start:][::-1], after[start:][::-1])
    left = after[:start] if start <= kept else f"…{after[start - kept : start]}"
    right = after[end:] if len(after) - end <= kept else f"{after[end : end + kept]}…"
    return f"{before} -> {left}{after[start:end]}{right}"


def _head(statement: ast.AST) -> str:
    """A statement in one line; of a compound one only its head."""
    text = ast.unparse(_with(statement, body=[], orelse=[], decorator_list=[]))
    return " ".join(line.strip() for line in text.splitlines()).strip()


def _alike(a: str, b: str) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))

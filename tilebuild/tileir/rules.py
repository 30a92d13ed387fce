"""The rewriting rules of the normal form. Each preserves the meaning of a pure operation exactly. Knows no
effects.

A rule is one small function from a node to an equal term; its docstring shows what it does. What the
structure of terms gives for free needs no rule: names, order, placement, repetition and dead code of pure
operations vanish. Floats are treated bit for bit, except that a NaN's payload may depend on the order of
operands."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from tilebuild.tileir import folding
from tilebuild.tileir.operations import ELEMENTWISE
from tilebuild.tileir.terms import Node, Rule, Term, Terms
from tilebuild.tileir.tree import (
    GatherScatterViewType,
    PartitionViewType,
    Scalar,
    StridedViewType,
    TensorViewType,
    TileType,
)

_COMMUTATIVE = frozenset(
    {"addf", "addi", "andi", "fma", "maxi", "mini", "mulf", "mulhii", "muli", "ori", "xori"}
)
_SWAPPED: Mapping[Hashable, str] = {
    "greater_than": "less_than",
    "greater_than_or_equal": "less_than_or_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}
_NEGATED: Mapping[Hashable, str] = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less_than": "greater_than_or_equal",
    "greater_than_or_equal": "less_than",
    "greater_than": "less_than_or_equal",
    "less_than_or_equal": "greater_than",
}
_COMPLEMENTED = ("not_equal", "greater_than_or_equal", "less_than_or_equal")
_TRUE = 1
#: Right operands that leave the left one as it is.
_NEUTRAL: Mapping[str, int] = {
    "addi": 0,
    "subi": 0,
    "muli": 1,
    "divi": 1,
    "shli": 0,
    "shri": 0,
    "ori": 0,
    "xori": 0,
}


def same_type(terms: Terms, node: Node) -> Term | None:
    """`reshape x : T -> T`, `broadcast x : T -> T`, `bitcast x : T -> T` → `x`"""
    if node.name in ("reshape", "broadcast", "bitcast") and terms[node.operands[0]].type == node.type:
        return node.operands[0]
    return None


def identity_permutation(terms: Terms, node: Node) -> Term | None:
    """`permute x [0, 1]` → `x`"""
    if node.name == "permute":
        order = node.get("permutation")
        if isinstance(order, tuple) and order == tuple(range(len(order))):
            return node.operands[0]
    return None


def splat_of_scalar(terms: Terms, node: Node) -> Term | None:
    """`broadcast (reshape s : T -> 1x1xT) -> 4x8xT`, with `s` of rank 0 → `splat s : 4x8xT`"""
    if node.name not in ("reshape", "broadcast") or not isinstance(node.type, TileType):
        return None
    scalar = terms.scalar_of(node.operands[0])
    return None if scalar is None else terms.splat(scalar, node.type)


def splat_of_one_element(terms: Terms, node: Node) -> Term | None:
    """`broadcast x : 1x1xT -> 4x8xT` → `splat (reshape x : 1x1xT -> T) : 4x8xT`"""
    if (
        node.name not in ("reshape", "broadcast")
        or not isinstance(node.type, TileType)
        or not node.type.shape
    ):
        return None
    source = terms[node.operands[0]]
    if not isinstance(source.type, TileType) or math.prod(source.type.shape) != 1:
        return None
    scalar = terms.make("reshape", node.operands, TileType((), source.type.element))
    return terms.splat(scalar, node.type)


def reshape_of_reshape(terms: Terms, node: Node) -> Term | None:
    """`reshape (reshape x)` → `reshape x`"""
    return _collapsed(terms, node, "reshape")


def broadcast_of_broadcast(terms: Terms, node: Node) -> Term | None:
    """`broadcast (broadcast x)` → `broadcast x`"""
    return _collapsed(terms, node, "broadcast")


def elementwise_on_splats(terms: Terms, node: Node) -> Term | None:
    """`addf (splat a) (splat b) : 4x8xf32` → `splat (addf a b : f32)`"""
    if node.name not in ELEMENTWISE or not isinstance(node.type, TileType) or not node.type.shape:
        return None
    scalars = [terms.scalar_of(operand) for operand in node.operands]
    if any(scalar is None for scalar in scalars):
        return None
    one = terms.again(node, [s for s in scalars if s is not None], TileType((), node.type.element))
    return terms.splat(one, node.type)


def folded_integers(terms: Terms, node: Node) -> Term | None:
    """`addi 2 3 : i32` → `5`; `cmpi less_than 2 3` → `true`"""
    if len(node.operands) != 2 or not isinstance(node.type, TileType):
        return None
    left, right = (terms.constant_bits(operand) for operand in node.operands)
    element = _element(terms, node.operands[0])
    if left is None or right is None or not element:
        return None
    result = folding.binary(node.name, left, right, element, node.get)
    return None if result is None else terms.constant(result, node.type)


def folded_cast(terms: Terms, node: Node) -> Term | None:
    """`itof 3 : i32 -> f32` → `3.0`; exact, to nearest even"""
    if node.name not in ("exti", "trunci", "itof", "ftof", "bitcast") or not isinstance(node.type, TileType):
        return None
    value, source = terms.constant_bits(node.operands[0]), _element(terms, node.operands[0])
    target = node.type.element
    if value is None or not source or not isinstance(target, Scalar):
        return None
    result = folding.cast(node.name, value, source, target.name, node.get)
    return None if result is None else terms.constant(result, node.type)


def neutral_operand(terms: Terms, node: Node) -> Term | None:
    """`addi x 0`, `muli x 1`, `divi x 1`, `shli x 0`, `xori x 0` → `x`; `andi x true` → `x` for i1"""
    if len(node.operands) != 2 or not isinstance(node.type, TileType):
        return None
    neutral = _TRUE if node.name == "andi" and _is_boolean(node.type) else _NEUTRAL.get(node.name)
    if neutral is None:
        return None
    left, right = node.operands
    if _splat_bits(terms, right) == neutral:
        return left
    commutes = node.name in _COMMUTATIVE
    return right if commutes and _splat_bits(terms, left) == neutral else None


def same_choice(terms: Terms, node: Node) -> Term | None:
    """`select c x x` and an `if` that yields `x` in both branches → `x`"""
    if node.name in ("select", "if") and node.operands[1] == node.operands[2]:
        return node.operands[1]
    return None


def known_choice(terms: Terms, node: Node) -> Term | None:
    """`select true x y` → `x`; `if false` that yields `x` or `y` → `y`"""
    if node.name in ("select", "if"):
        condition = _splat_bits(terms, node.operands[0])
        if condition is not None:
            return node.operands[1 if condition else 2]
    return None


def choice_by_negation(terms: Terms, node: Node) -> Term | None:
    """an `if` on `xori c true` that yields `x` or `y` → an `if` on `c` that yields `y` or `x`"""
    if node.name == "if":
        condition = negated(terms, node.operands[0])
        if condition is not None:
            return terms.again(node, (condition, node.operands[2], node.operands[1]))
    return None


def negated_comparison(terms: Terms, node: Node) -> Term | None:
    """`xori (cmpi less_than a b) true` → `cmpi greater_than_or_equal a b`; `xori (xori c true) true` → `c`

    A float comparison also swaps `ordered` and `unordered`, because NaN makes exactly one of the two hold."""
    if node.name != "xori" or not isinstance(node.type, TileType) or not _is_boolean(node.type):
        return None
    left, right = node.operands
    if _splat_bits(terms, right) != _TRUE:
        left, right = right, left
    if _splat_bits(terms, right) != _TRUE:
        return None
    inner = terms[left]
    if inner.name == "xori" and _splat_bits(terms, inner.operands[-1]) == _TRUE:
        return inner.operands[0]
    if inner.name not in ("cmpi", "cmpf"):
        return None
    return _complement(terms, inner)


def comparison_direction(terms: Terms, node: Node) -> Term | None:
    """`cmpi greater_than a b` → `cmpi less_than b a`; the operands of `equal` are sorted"""
    if node.name not in ("cmpi", "cmpf"):
        return None
    predicate = node.get("predicate")
    left, right = node.operands
    symmetric = predicate in ("equal", "not_equal")
    if predicate not in _SWAPPED or (symmetric and left <= right):
        return None
    return terms.make(
        node.name, (right, left), node.type, **(dict(node.attributes) | {"predicate": _SWAPPED[predicate]})
    )


def sign_does_not_matter(terms: Terms, node: Node) -> Term | None:
    """`cmpi equal a b, unsigned` → `cmpi equal a b, signed`"""
    symmetric = node.get("predicate") in ("equal", "not_equal")
    if node.name == "cmpi" and symmetric and node.get("signedness") == "unsigned":
        return terms.make(
            "cmpi", node.operands, node.type, **(dict(node.attributes) | {"signedness": "signed"})
        )
    return None


def sorted_operands(terms: Terms, node: Node) -> Term | None:
    """`addi b a` → `addi a b`; of `fma b a c` the two factors"""
    if node.name not in _COMMUTATIVE:
        return None
    left, right, *rest = node.operands
    return terms.again(node, (right, left, *rest)) if right < left else None


def extent_of_tensor(terms: Terms, node: Node) -> Term | None:
    """`get_tensor_shape (make_tensor_view p, shape = [n, 8])` → `n` and `8`"""
    if node.name != "get_tensor_shape" or not isinstance(node.type, TileType):
        return None
    view = terms[node.operands[0]]
    index = node.get("index")
    if (
        view.name != "make_tensor_view"
        or not isinstance(view.type, TensorViewType)
        or not isinstance(index, int)
    ):
        return None
    extent = view.type.shape[index]
    if extent is not None:
        return terms.constant(extent, node.type)
    dynamic = sum(e is None for e in view.type.shape[:index])
    term = view.operands[1 + dynamic]
    return term if terms[term].type == node.type else None


def index_space_ignores_padding(terms: Terms, node: Node) -> Term | None:
    """`get_index_space_shape (view with padding)` → the same of the view without padding"""
    return _without_padding(terms, node) if node.name == "get_index_space_shape" else None


def negated(terms: Terms, condition: Term) -> Term | None:
    """A simpler condition that holds exactly when this one does not; None where there is none.

    `xori c true` → `c`; `cmpi not_equal a b` → `cmpi equal a b`; `cmpi greater_than_or_equal a b` → `cmpi
    less_than a b`"""
    node = terms[condition]
    if node.name == "xori":
        left, right = node.operands
        if _splat_bits(terms, right) == _TRUE:
            return left
        return right if _splat_bits(terms, left) == _TRUE else None
    if node.name in ("cmpi", "cmpf") and node.get("predicate") in _COMPLEMENTED:
        return _complement(terms, node)
    return None


def without_padding(terms: Terms, view: Term) -> Term:
    """The view as a store sees it: what is read outside the tensor does not matter."""
    node = terms[view]
    kind = node.type
    if isinstance(kind, PartitionViewType) and kind.padding:
        return terms.again(node, node.operands, PartitionViewType(kind.tile, "", kind.tensor, kind.dim_map))
    if isinstance(kind, StridedViewType) and kind.padding:
        return terms.again(
            node, node.operands, StridedViewType(kind.tile, kind.steps, "", kind.tensor, kind.dim_map)
        )
    if isinstance(kind, GatherScatterViewType) and kind.padding:
        return terms.again(
            node, node.operands, GatherScatterViewType(kind.tile, kind.sparse_dim, "", kind.tensor)
        )
    return view


#: In the order in which they are tried.
RULES: tuple[Rule, ...] = (
    same_type,
    identity_permutation,
    splat_of_scalar,
    splat_of_one_element,
    reshape_of_reshape,
    broadcast_of_broadcast,
    elementwise_on_splats,
    folded_integers,
    folded_cast,
    neutral_operand,
    same_choice,
    known_choice,
    choice_by_negation,
    negated_comparison,
    comparison_direction,
    sign_does_not_matter,
    sorted_operands,
    extent_of_tensor,
    index_space_ignores_padding,
)


def _complement(terms: Terms, comparison: Node) -> Term:
    attributes = dict(comparison.attributes)
    attributes["predicate"] = _NEGATED[attributes["predicate"]]
    if comparison.name == "cmpf":
        attributes["ordering"] = "unordered" if attributes["ordering"] == "ordered" else "ordered"
    return terms.make(comparison.name, comparison.operands, comparison.type, **attributes)


def _without_padding(terms: Terms, node: Node) -> Term | None:
    view = without_padding(terms, node.operands[0])
    return None if view == node.operands[0] else terms.again(node, (view, *node.operands[1:]))


def _collapsed(terms: Terms, node: Node, name: str) -> Term | None:
    if node.name == name and terms[node.operands[0]].name == name:
        return terms.again(node, terms[node.operands[0]].operands)
    return None


def _element(terms: Terms, term: Term) -> str:
    kind = terms[term].type
    return kind.element.name if isinstance(kind, TileType) and isinstance(kind.element, Scalar) else ""


def _is_boolean(kind: TileType) -> bool:
    return kind.element == Scalar("i1")


def _splat_bits(terms: Terms, term: Term) -> int | None:
    scalar = terms.scalar_of(term)
    return None if scalar is None else terms.constant_bits(scalar)

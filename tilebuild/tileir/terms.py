"""Values as terms: what a value is, independent of where and how often it is computed. Knows no operation's
meaning.

Equal terms get equal numbers (hash-consing), also across two programs that share one `Terms`. So a value
computed twice, earlier, later or in another order is the same term, and comparing programs is comparing
numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tilebuild.tileir.tree import AttributeValue, TileType, Type

Term: TypeAlias = int


@dataclass(frozen=True)
class Node:
    """`attributes` are name-value pairs, sorted by name; `type` is None for terms that are no values."""

    name: str
    operands: tuple[Term, ...] = ()
    attributes: tuple[tuple[str, Hashable], ...] = ()
    type: Type | None = None

    def get(self, attribute: str) -> Hashable:
        return dict(self.attributes).get(attribute)

    @property
    def tile(self) -> TileType:
        assert isinstance(self.type, TileType)
        return self.type


#: Replaces a node by an equal term, or says None where it does not apply.
Rule: TypeAlias = "Callable[[Terms, Node], Term | None]"


class Terms:
    """All terms of a comparison. `rules` are applied to each node before it gets a number."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = tuple(rules)
        self._numbers: dict[Node, Term] = {}
        self._nodes: list[Node] = []

    def __getitem__(self, term: Term) -> Node:
        return self._nodes[term]

    def add(self, node: Node) -> Term:
        """The term of a node: what the first rule that applies says, or the node as it is."""
        if node in self._numbers:
            return self._numbers[node]
        for rule in self._rules:
            term = rule(self, node)
            if term is not None:
                self._numbers[node] = term
                return term
        self._nodes.append(node)
        self._numbers[node] = len(self._nodes) - 1
        return self._numbers[node]

    def make(
        self, name: str, operands: Iterable[Term] = (), type: Type | None = None, **attributes: Hashable
    ) -> Term:
        return self.add(Node(name, tuple(operands), tuple(sorted(attributes.items())), type))

    def again(self, node: Node, operands: Iterable[Term], type: Type | None = None) -> Term:
        """The same operation on other operands, with another type if given."""
        return self.add(replace(node, operands=tuple(operands), type=type or node.type))

    # Constants and splats

    def constant(self, bits: int, type: TileType) -> Term:
        """A constant of rank 0; integers are signed, floats by their bits."""
        return self.make("constant", (), TileType((), type.element), bits=bits)

    def constant_bits(self, term: Term) -> int | None:
        """The value of a constant of rank 0; None for any other term."""
        node = self[term]
        bits = node.get("bits") if node.name == "constant" else None
        return bits if isinstance(bits, int) else None

    def splat(self, scalar: Term, type: TileType) -> Term:
        """A tile that holds one value everywhere."""
        return self.make("splat", (scalar,), type) if type.shape else scalar

    def scalar_of(self, term: Term) -> Term | None:
        """The one value of a splat or of a tile of rank 0; None for any other term."""
        node = self[term]
        if node.name == "splat":
            return node.operands[0]
        return term if isinstance(node.type, TileType) and not node.type.shape else None


def hashable(attributes: Mapping[str, AttributeValue]) -> tuple[tuple[str, Hashable], ...]:
    """Attributes as part of a node."""
    return tuple(sorted((name, _frozen(value)) for name, value in attributes.items()))


def _frozen(value: AttributeValue) -> Hashable:
    if isinstance(value, Mapping):
        return tuple(sorted((key, _frozen(item)) for key, item in value.items()))
    return value

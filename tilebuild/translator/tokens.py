"""Which arrays keep Python's order of accesses without tokens being written down. Knows no Rust.

In tensor style a load waits for nothing and a store for the stores before it in the same view. That is
Python's order for an array whose accesses all take the entry's own token and whose results nobody waits
for; the accesses of every other array get explicit tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilebuild.tileir.tree import Operation, PartitionViewType, TokenType, Value
from tilebuild.translator.lift import Array, Lifted
from tilebuild.translator.program import uses

_ACCESSES = ("load_view_tko", "store_view_tko")


def implicit_arrays(lifted: Lifted) -> set[Array]:
    """The arrays whose accesses need no explicit token."""
    entry = lifted.program.entry
    roots = root_tokens(lifted)
    read = {v for v in uses(entry) if isinstance(entry.types[v], TokenType)}
    explicit: set[Array] = set()
    for operation in entry.walk():
        array = next((lifted.behind[v] for v in operation.group("view") if v in lifted.behind), None)
        if array is None:
            continue
        waits = any(t not in roots for t in operation.group("token"))
        awaited = any(r in read for r in operation.results)
        if operation.name not in _ACCESSES or waits or awaited or _is_special_store(lifted, operation):
            explicit.add(array)
    chained = {a for a in explicit if _is_store_chain(lifted, a, roots)}
    return {a for a in lifted.arrays if not a.by_pointer} - (explicit - chained)


def _is_special_store(lifted: Lifted, operation: Operation) -> bool:
    """A store that a mutable view does not offer: permuted or strided, with an order, hints, promised
    bounds."""
    attributes = operation.attributes
    if operation.name != "store_view_tko":
        return False
    view = lifted.program.entry.types[operation.group("view")[0]]
    if not isinstance(view, PartitionViewType) or view.dim_map != tuple(range(len(view.tile))):
        return True
    hints = attributes.get("optimization_hints")
    return (
        attributes["memory_ordering"] != "weak"
        or "inbounds" in attributes
        or (isinstance(hints, Mapping) and any(hints.values()))
    )


def root_tokens(lifted: Lifted) -> set[Value]:
    """Tokens that stand for nothing but the start of the kernel: made anew, or carried and joined from
    such."""
    entry = lifted.program.entry
    roots = {v for v, kind in enumerate(entry.types) if isinstance(kind, TokenType)}
    changed = True
    while changed:
        changed = False
        for operation in entry.walk():
            for value in _other_tokens(operation, roots):
                if value in roots:
                    roots.discard(value)
                    changed = True
    return roots


def _other_tokens(operation: Operation, roots: set[Value]) -> list[Value]:
    """Results and carried values of an operation that are no such token, given the assumption so far."""
    if operation.name == "make_token":
        return []
    if operation.name == "join_tokens":
        return [] if set(operation.operands) <= roots else list(operation.results)
    if operation.name in ("for", "loop"):
        return _carried(operation, roots)
    if operation.name == "if":
        found = []
        for region in operation.regions:
            end = region.operations[-1]
            if end.name == "yield":
                found += [r for v, r in zip(end.operands, operation.results, strict=True) if v not in roots]
        return found
    return list(operation.results)


def _carried(operation: Operation, roots: set[Value]) -> list[Value]:
    body = operation.regions[0]
    arguments = body.arguments[1:] if operation.name == "for" else body.arguments
    found = [a for v, a in zip(operation.group("init"), arguments, strict=True) if v not in roots]
    for end in _jumps(body.operations):
        targets = operation.results if end.name == "break" else arguments
        found += [t for v, t in zip(end.operands, targets, strict=True) if v not in roots]
    if operation.name == "for":
        found += [r for a, r in zip(arguments, operation.results, strict=True) if a not in roots]
    return found


def _jumps(operations: tuple[Operation, ...]) -> list[Operation]:
    found = []
    for operation in operations:
        if operation.name in ("continue", "break"):
            found.append(operation)
        elif operation.name == "if":
            found += [j for region in operation.regions for j in _jumps(region.operations)]
    return found


def _is_store_chain(lifted: Lifted, array: Array, roots: set[Value]) -> bool:
    """Straight-line stores into one view shape, each waiting for the one before: what one mutable view does
    anyway."""
    entry = lifted.program.entry
    stores = [o for o in entry.walk() if any(lifted.behind.get(v) is array for v in o.group("view"))]
    straight = {id(o) for o in entry.body.operations}
    plain = all(o.name == "store_view_tko" and not _is_special_store(lifted, o) for o in stores)
    if array.loaded or not plain or any(id(o) not in straight for o in stores):
        return False
    if len({entry.types[o.group("view")[0]] for o in stores}) != 1:
        return False
    waiting = uses(entry)
    previous: Value | None = None
    for store in stores:
        (token,) = store.group("token")
        if token != previous and not (previous is None and token in roots):
            return False
        previous = store.results[0]
        if any(all(user is not s for s in stores) for user in waiting.get(previous, [])):
            return False
    return True

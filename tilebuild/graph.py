"""Questions about directed graphs: reachability, order, paths, cycles. Knows nothing of what the nodes are.

A graph is given by `successors`, a function from a node to its neighbours in a stable order; every answer is
stable too. None of the functions recurse, so that the depth of a graph does not matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)
Successors = Callable[[N], Iterable[N]]


class CycleError(Exception):
    """A graph that must be acyclic is not; `path` begins and ends with the same node."""

    def __init__(self, path: tuple[object, ...]) -> None:
        super().__init__(" -> ".join(str(node) for node in path))
        self.path = path


def reachable(roots: Iterable[N], successors: Successors[N], depth: int | None = None) -> dict[N, int]:
    """All nodes within `depth` steps of the roots, roots included, nearest first, with their distance."""
    distance = dict.fromkeys(roots, 0)
    queue = deque(distance)
    while queue:
        node = queue.popleft()
        steps = distance[node]
        if depth is not None and steps >= depth:
            continue
        for below in successors(node):
            if below not in distance:
                distance[below] = steps + 1
                queue.append(below)
    return distance


def topological(roots: Iterable[N], successors: Successors[N]) -> list[N]:
    """Everything reachable, each node after all its successors. Raises CycleError."""
    order: list[N] = []
    done: set[N] = set()
    for root in roots:
        if root in done:
            continue
        stack = [(root, iter(successors(root)))]
        path: dict[N, None] = {root: None}
        while stack:
            node, rest = stack[-1]
            for below in rest:
                if below in path:
                    trail = list(path)
                    raise CycleError((*trail[trail.index(below) :], below))
                if below not in done:
                    path[below] = None
                    stack.append((below, iter(successors(below))))
                    break
            else:
                stack.pop()
                del path[node]
                done.add(node)
                order.append(node)
    return order


def shortest_path(starts: Iterable[N], ends: Collection[N], successors: Successors[N]) -> list[N]:
    """The nodes of one shortest path from a start to an end, both included; empty when there is none."""
    came_from: dict[N, N | None] = dict.fromkeys(starts)
    queue = deque(came_from)
    while queue:
        node = queue.popleft()
        if node in ends:
            path = [node]
            while (before := came_from[path[-1]]) is not None:
                path.append(before)
            return path[::-1]
        for below in successors(node):
            if below not in came_from:
                came_from[below] = node
                queue.append(below)
    return []


def reverse(nodes: Iterable[N], successors: Successors[N]) -> Mapping[N, list[N]]:
    """Who points at each node, among `nodes`, in the order of `nodes`."""
    above: dict[N, list[N]] = {node: [] for node in nodes}
    for node in list(above):
        for below in successors(node):
            if below in above:
                above[below].append(node)
    return above

"""Who may depend on whom. Knows the target graph only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilebuild.diagnostics import Diagnostic
from tilebuild.label import Label
from tilebuild.target import PACKAGE_GROUP, PRIVATE, PUBLIC, SOURCE_FILE, Target, TargetGraph


def violations(graph: TargetGraph, user: Target) -> Iterator[Diagnostic]:
    """One diagnostic for each target that `user` depends on but may not see.

    A derived target sees what its parent sees.
    """
    if user.derived is None:
        for label in user.deps:
            target = graph.targets.get(label)
            if target is not None and not is_visible(graph, target, user.label.package):
                yield _diagnostic(user, target)


def is_visible(graph: TargetGraph, target: Target, package: str) -> bool:
    """Whether targets of `package` may use `target`."""
    return target.label.package == package or any(
        _grants(graph, entry, target.label.package, package, frozenset()) for entry in target.visibility
    )


def _grants(graph: TargetGraph, entry: str, home: str, package: str, seen: frozenset[Label]) -> bool:
    if entry in (PUBLIC, PRIVATE):
        return entry == PUBLIC
    label = Label.parse(entry, home)
    if label.name == "__pkg__":
        return label.package == package
    if label.name == "__subpackages__":
        return _is_below(package, label.package)
    group = graph.targets.get(label)
    if group is None or group.kind != PACKAGE_GROUP or label in seen:
        return False
    included = any(_grants(graph, str(other), label.package, package, seen | {label}) for other in group.deps)
    return included or _is_in_group(group.attributes["packages"], package)


def _is_in_group(patterns: Iterable[str], package: str) -> bool:
    """Packages as a package_group lists them; `-` takes away, whatever the order."""
    matched = {
        pattern.startswith("-") for pattern in patterns if _matches(pattern.removeprefix("-"), package)
    }
    return matched == {False}


def _matches(pattern: str, package: str) -> bool:
    if pattern in ("public", "private"):
        return pattern == "public"
    name = pattern.removeprefix("//")
    if name == "..." or name.endswith("/..."):
        return _is_below(package, name[:-3].rstrip("/"))
    return name == package


def _is_below(package: str, folder: str) -> bool:
    return not folder or package == folder or package.startswith(folder + "/")


def _diagnostic(user: Target, target: Target) -> Diagnostic:
    package = target.label.package
    if target.kind == SOURCE_FILE:
        help = f'//{package} must say so: exports_files(["{target.label.name}"])'
    else:
        help = f'the visibility of {target.label} must name this package, as "//{user.label.package}:__pkg__"'
    fact = f"{user.label} may not use {target.label}, which is not visible from '//{user.label.package}'"
    return user.call_site.diagnostic(fact, (), help, target.label.spellings(user.label.package))

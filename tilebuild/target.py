"""What BUILD files said: targets, packages, and the graph of both. Knows no file system and runs no rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from tilebuild.action import Artifact
from tilebuild.call_site import CallSite
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span, did_you_mean
from tilebuild.label import Label, Pattern
from tilebuild.rule import Derived, Rule

SOURCE_FILE = "source file"
GENERATED_FILE = "generated file"
PACKAGE_GROUP = "package group"
TEST_SUITE = "test_suite"

PUBLIC = "//visibility:public"
PRIVATE = "//visibility:private"


@dataclass(frozen=True)
class Target:
    """A rule's target, a file, or a package group; `kind` is what `query --output=label_kind` shows.

    `attributes` are as written, with labels as text; `attr` is the checked model of them. `parent` is the
    target that writes a generated file or declares a derived target.
    """

    label: Label
    kind: str
    call_site: CallSite
    visibility: tuple[str, ...]
    deps: tuple[Label, ...] = ()
    rule: Rule | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    attr: BaseModel | None = None
    tags: frozenset[str] = frozenset()
    test: bool = False
    parent: Label | None = None
    derived: Derived | None = None
    artifact: Artifact | None = None  # of a source file
    content: bytes | None = None  # of a source file that a rule reads
    external: tuple[Artifact, ...] = ()  # files of an installed distribution

    def __str__(self) -> str:
        return f"{self.kind} {self.label}"

    @property
    def span(self) -> Span:
        """Where it is declared in the BUILD file."""
        return self.call_site.span

    @property
    def is_rule(self) -> bool:
        return self.rule is not None


@dataclass(frozen=True)
class Package:
    """One BUILD file.

    `targets` are in the order of declaration, files included; `loads` are labels of loaded files.
    """

    name: str
    build_file: Label
    targets: tuple[Label, ...]
    loads: tuple[Label, ...] = ()


@dataclass(frozen=True)
class TargetGraph:
    """All targets of all loaded packages.

    An edge may lead to a target that is not loaded when nothing asked for it.
    """

    targets: Mapping[Label, Target]
    packages: Mapping[str, Package]

    def __getitem__(self, label: Label) -> Target:
        return self.targets[label]

    def successors(self, label: Label) -> tuple[Label, ...]:
        """What a target depends on."""
        target = self.targets.get(label)
        return target.deps if target else ()

    def expand(self, pattern: Pattern) -> list[Label]:
        """The targets that a pattern names, sorted if it is a wildcard.

        Raises DiagnosticError if it names none.
        """
        if pattern.kind == "path":
            return [self._at_path(pattern)]
        if pattern.kind == "package":
            exact = Label(pattern.package, pattern.name)
            if exact in self.targets:
                return [exact]
        if pattern.kind == "target":
            return [self._declared(Label(pattern.package, pattern.name))]
        covered = [p for name, p in self.packages.items() if pattern.covers(name)]
        if not covered:
            raise _nothing(pattern, self.packages)
        return sorted(
            label
            for package in covered
            for label in package.targets
            if pattern.everything or self.targets[label].is_rule
        )

    def tests(self, labels: Iterable[Label]) -> list[Label]:
        """The tests among targets, those of suites, and those that the targets declare, each once."""
        found: dict[Label, None] = {}
        self._collect_tests(labels, found, set())
        return list(found)

    def _collect_tests(self, labels: Iterable[Label], found: dict[Label, None], suites: set[Label]) -> None:
        for label in labels:
            target = self.targets[label]
            found.update(dict.fromkeys(self._derived_tests(target)))
            if target.test:
                found[label] = None
            elif target.rule is not None and target.rule.name == TEST_SUITE and label not in suites:
                suites.add(label)
                inside: dict[Label, None] = {}
                self._collect_tests(self._of_suite(target), inside, suites)
                wanted = target.tags - {"manual"}
                found.update(dict.fromkeys(t for t in inside if matches_tags(self.targets[t].tags, wanted)))

    def _derived_tests(self, target: Target) -> list[Label]:
        if target.rule is None or target.rule.derived is None or target.derived is not None:
            return []
        derived = [self.targets[label] for label in self.packages[target.label.package].targets]
        return [t.label for t in derived if t.parent == target.label and t.test and "manual" not in t.tags]

    def _of_suite(self, suite: Target) -> list[Label]:
        if suite.deps:
            return list(suite.deps)
        package = self.packages[suite.label.package]
        return [t for t in package.targets if self.targets[t].test and "manual" not in self.targets[t].tags]

    def _declared(self, label: Label) -> Label:
        if label in self.targets:
            return label
        raise DiagnosticError(self.missing(label))

    def _at_path(self, pattern: Pattern) -> Label:
        segments = pattern.package.split("/")
        for cut in range(len(segments), -1, -1):
            package = "/".join(segments[:cut])
            if package in self.packages:
                name = "/".join(segments[cut:]) or segments[-1]
                return self._declared(Label(package, name))
        raise _nothing(pattern, self.packages)

    def missing(self, label: Label, span: Span | None = None) -> Diagnostic:
        """What to say of a label that names nothing."""
        package = self.packages.get(label.package)
        if package is None:
            help = did_you_mean(label.package, self.packages)
            return Diagnostic(f"no package '{label.package}'", Blame.BUILD_FILE, span, help=help)
        return Diagnostic(
            f"no target '{label}': {package.build_file.path} declares no '{label.name}', nor is it a file",
            Blame.BUILD_FILE,
            span,
            help=did_you_mean(label.name, [t.name for t in package.targets])
            or _declared_names(package, self.targets),
        )


def matches_tags(tags: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether tags hold a positive entry of `wanted`, if it has any, and no `-negative` one."""
    have = set(tags)
    positive = {tag.removeprefix("+") for tag in wanted if not tag.startswith("-")}
    negative = {tag[1:] for tag in wanted if tag.startswith("-")}
    return not have & negative and (not positive or bool(have & positive))


def _declared_names(package: Package, targets: Mapping[Label, Target]) -> str:
    names = [t.name for t in package.targets if targets[t].is_rule]
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"targets there: {shown}" if names else "the package declares no target"


def _nothing(pattern: Pattern, packages: Mapping[str, Package]) -> DiagnosticError:
    if pattern.kind == "recursive":
        fact = (
            f"no packages below '{pattern.package}'" if pattern.package else "the workspace has no BUILD file"
        )
    elif pattern.kind == "path":
        fact = f"'{pattern.text}' is neither a package nor a file of one"
    else:
        fact = f"no package '{pattern.package}'"
    near = did_you_mean(pattern.package, packages)
    return DiagnosticError(
        Diagnostic(
            fact,
            Blame.BUILD_FILE,
            help=near or "a folder becomes a package by a file named BUILD in it",
        )
    )

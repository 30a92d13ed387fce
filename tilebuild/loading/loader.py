"""From target patterns to the graph of everything they reach. Knows BUILD files, and runs no rule.

Problems are collected: a package with errors does not keep others from being loaded, and all is reported
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilebuild.cache.digest import Digest
from tilebuild.call_site import CallSite, ValuePath
from tilebuild.diagnostics import Diagnostic, DiagnosticError, did_you_mean
from tilebuild.graph import CycleError, reachable, reverse, topological
from tilebuild.label import Label, LabelError, Pattern, parse_pattern
from tilebuild.loading.build_file import BuildFile, Declaration, Select
from tilebuild.loading.conditions import CONFIG_SETTING, choose
from tilebuild.loading.globs import BUILD_FILES, Folders
from tilebuild.loading.modules import Modules
from tilebuild.loading.package import LoadedPackage, PackageBuilder, build_file_site
from tilebuild.loading.sources import Sources
from tilebuild.rule import DataFile
from tilebuild.settings import SETTINGS_FILE, Settings, settings_file
from tilebuild.target import Package, Target, TargetGraph
from tilebuild.workspace import Workspace


@dataclass(frozen=True)
class LoadResult:
    """What was loaded, and all that it depends on.

    As long as every file of `files_read` has its digest, and no folder of `directories` got or lost an entry,
    loading gives the same. Paths are relative to the root; files outside the workspace are absolute.
    """

    graph: TargetGraph
    roots: tuple[Label, ...]
    files_read: dict[str, Digest]
    directories: frozenset[str]
    packages: tuple[str, ...]
    printed: tuple[str, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


def load(
    workspace: Workspace,
    settings: Settings,
    patterns: Sequence[str],
    cwd: str = "",
    *,
    manual: bool = False,
    keep_going: bool = False,
) -> LoadResult:
    """Loads everything that the patterns reach; `cwd` is relative to the root.

    `roots` are the targets that the patterns name, in order; those tagged `manual` are left out of wildcards
    unless `manual` is set. Raises DiagnosticError with everything that is wrong.
    """
    loader = _Loader(workspace, settings)
    result = loader.load([parse_pattern(text, cwd) for text in patterns], manual)
    if result.problems and not keep_going:
        raise DiagnosticError(*result.problems)
    return result


@dataclass
class _Loader:
    workspace: Workspace
    settings: Settings
    modules: Modules = field(init=False)
    packages: dict[str, LoadedPackage | None] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)
    failed: set[Label] = field(default_factory=set)  # targets that name something wrong
    evaluated: dict[str, tuple[BuildFile, tuple[Label, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        output = self.workspace.output
        root = self.workspace.root
        ignored = frozenset({output.relative_to(root).as_posix()} if output.is_relative_to(root) else ())
        self.modules = Modules(Sources(root), Folders(root, ignored))

    @property
    def folders(self) -> Folders:
        return self.modules.folders

    def load(self, patterns: Sequence[Pattern], manual: bool) -> LoadResult:
        for pattern in patterns:
            if not pattern.negative:
                self._load_pattern(pattern)
        graph = self._graph()
        roots = self._roots(graph, patterns, manual)
        self._close(roots)
        graph = self._graph()
        roots = self._sound(graph, roots)
        sources = self.modules.sources
        if (self.workspace.root / settings_file(self.workspace.root)).is_file():
            sources.content(settings_file(self.workspace.root))
        return LoadResult(
            graph,
            tuple(roots),
            dict(sources.read),
            self.folders.seen,
            tuple(graph.packages),
            tuple(self.modules.natives.printed),
            tuple(sorted(dict.fromkeys(self.problems), key=_place)),
        )

    # Patterns

    def _load_pattern(self, pattern: Pattern) -> None:
        if pattern.kind == "recursive":
            for name in self._packages_below(pattern.package):
                self._package(name)
        elif pattern.kind == "path":
            segments = pattern.package.split("/")
            for cut in range(len(segments), -1, -1):
                folder = "/".join(segments[:cut])
                if self._package(folder) is not None:
                    self._target(Label(folder, "/".join(segments[cut:]) or segments[-1]))
                    break
        else:
            package = self._package(pattern.package)
            if package is not None and pattern.kind == "target":
                self._target(Label(pattern.package, pattern.name))

    def _packages_below(self, folder: str) -> Iterator[str]:
        """Packages in a folder and below; hidden folders, environments and other workspaces are none."""
        listing = self.folders.listing(folder) if self.folders.is_folder(folder) else None
        if listing is None or "pyvenv.cfg" in listing.files or (folder and SETTINGS_FILE in listing.files):
            return
        if listing.build_file:
            yield folder
        for name in listing.folders:
            if not name.startswith("."):
                yield from self._packages_below(f"{folder}/{name}" if folder else name)

    def _roots(self, graph: TargetGraph, patterns: Sequence[Pattern], manual: bool) -> list[Label]:
        roots: dict[Label, None] = {}
        for pattern in patterns:
            if pattern.negative:
                for label in [r for r in roots if self._is_covered(graph, pattern, r)]:
                    del roots[label]
                continue
            try:
                labels = graph.expand(pattern)
            except DiagnosticError as error:
                package = self.packages.get(pattern.package)
                if package is None or not (package.unreadable or pattern.name in package.broken):
                    self.problems += self._explained(pattern, error)
                continue
            wildcard = pattern.kind in ("package", "recursive")
            roots.update(
                dict.fromkeys(t for t in labels if manual or not (wildcard and "manual" in graph[t].tags))
            )
        return list(roots)

    def _is_covered(self, graph: TargetGraph, pattern: Pattern, label: Label) -> bool:
        if pattern.kind in ("package", "recursive"):
            return pattern.covers(label.package)
        try:
            return label in graph.expand(pattern)
        except DiagnosticError:
            return False

    def _explained(self, pattern: Pattern, error: DiagnosticError) -> Iterable[Diagnostic]:
        """The error of a pattern, with packages that are not loaded among the suggestions."""
        if pattern.package in self.packages and self.packages[pattern.package] is not None:
            return error.diagnostics
        below = list(self._packages_below(""))
        help = did_you_mean(pattern.package, below)
        if help:
            return [replace(d, help=help) for d in error.diagnostics]
        if self.folders.is_folder(pattern.package):
            names = " or ".join(BUILD_FILES)
            return [
                replace(d, help=f"the folder exists; a file {names} in it makes it a package")
                for d in error.diagnostics
            ]
        return error.diagnostics

    # Packages

    def _package(self, name: str) -> LoadedPackage | None:
        """A package, or None if there is none; one with errors is as good as empty."""
        if name not in self.packages:
            self.packages[name] = None
            if path := self.folders.build_file(name):
                self.packages[name] = self._load_package(name, path)
        return self.packages[name]

    def _load_package(self, name: str, path: str) -> LoadedPackage:
        label = Label(name, path.rpartition("/")[2])
        try:
            build, loads = self._evaluate(name, path)
        except DiagnosticError as error:
            self.problems += error.diagnostics
            return LoadedPackage(name, label, (), build_file_site(path, ""), unreadable=True)
        package = LoadedPackage(name, label, loads, build_file_site(path, self.modules.text(path)))
        builder = PackageBuilder(build, package, self.folders, self.modules.rule, self._choose)
        builder.run()
        for record in builder.records:
            self.modules.sources.content(record)
        self.problems += package.problems
        return package

    def _evaluate(self, name: str, path: str) -> tuple[BuildFile, tuple[Label, ...]]:
        """What a BUILD file declares; conditions are looked up before their package is made."""
        if name not in self.evaluated:
            self.evaluated[name] = self.modules.build_file(name, path)
        return self.evaluated[name]

    def _choose(self, select: Select, site: CallSite, path: ValuePath) -> object:
        def condition(text: str, site: CallSite, path: ValuePath) -> Declaration:
            try:
                declaration = self._declaration(Label.parse(text, _package_of(site)))
            except LabelError as error:
                raise DiagnosticError(site.diagnostic(error.fact, path, error.help, [text])) from error
            if declaration is None:
                fact = f"condition '{text}' of the select is no {CONFIG_SETTING}"
                raise DiagnosticError(site.diagnostic(fact, path, words=[text]))
            return declaration

        return choose(select, site, path, self.settings, condition)

    def _declaration(self, label: Label) -> Declaration | None:
        """The declaration of a condition, which may lie in the package that is being made right now."""
        path = self.folders.build_file(label.package)
        if not path:
            return None
        declaration = self._evaluate(label.package, path)[0].declarations.get(label.name)
        return declaration if declaration and declaration.rule.endswith(f"%{CONFIG_SETTING}") else None

    # Targets

    def _target(self, label: Label) -> Target | None:
        package = self._package(label.package) if not label.repo else None
        if package is None:
            return None
        return package.targets.get(label.name) or package.source_file(label.name, self.folders)

    def _close(self, roots: Iterable[Label]) -> None:
        """Loads whatever the roots reach, and reports each label that names nothing."""
        queue = list(roots)
        seen = set(queue)
        while queue:
            target = self._target(queue.pop())
            if target is None:
                continue
            package = self.packages[target.label.package]
            assert package is not None
            for path, label in package.references.get(target.label, ()):
                if isinstance(label, DataFile):
                    self._read(target, path, label)
            for label in target.deps:
                if self._target(label) is None:
                    self.failed.add(target.label)
                    if target.derived is None:  # what a derived target lacks, its parent lacks too
                        self._report_missing(target, label)
                elif label not in seen:
                    seen.add(label)
                    queue.append(label)

    def _read(self, user: Target, path: ValuePath, label: Label) -> None:
        target = self._target(label)
        if target is None:
            return
        words = label.spellings(user.label.package)
        if target.artifact is None:
            self.failed.add(user.label)
            fact = f"{user.label} reads {label}, which is no source file but a {target.kind}"
            self.problems.append(user.call_site.diagnostic(fact, path, words=words))
        elif target.content is None:
            package = self.packages[label.package]
            assert package is not None
            location = target.artifact.location or target.artifact.path
            content = self.modules.sources.content(location)
            package.targets[label.name] = replace(target, content=content)

    def _report_missing(self, user: Target, label: Label) -> None:
        package = self.packages.get(label.package)
        if package is not None and (package.unreadable or label.name in package.broken):
            return  # reported already
        fact, help = self._missing(label, user)
        self.problems.append(self._at_label(user, label, fact, help))

    def _at_label(self, user: Target, label: Label, fact: str, help: str = "") -> Diagnostic:
        """A problem at the place where a target names a label."""
        package = self.packages[user.label.package]
        references = package.references.get(user.label, ()) if package else ()
        path = next((path for path, named in references if named == label), ())
        return user.call_site.diagnostic(fact, path, help, label.spellings(user.label.package))

    def _missing(self, label: Label, user: Target) -> tuple[str, str]:
        package = self.packages.get(label.package)
        if label.repo:
            return f"{user.label}: {label} is no target; @tilebuild holds rules only", ""
        if package is None:
            help = did_you_mean(label.package, self._packages_below(""))
            if not help and self.folders.is_folder(label.package):
                help = f"the folder exists; a file {' or '.join(BUILD_FILES)} in it makes it a package"
            return f"{user.label} depends on '{label}', but there is no package '{label.package}'", help
        if below := package.subpackage(label.name, self.folders):
            inner = label.path.removeprefix(below + "/")
            return (
                f"{user.label}: '{label}' lies in the package '{below}'",
                f"did you mean '//{below}:{inner}'?",
            )
        folder, _, _name = label.path.rpartition("/")
        if self.folders.is_folder(label.path):
            return (
                f"{user.label}: '{label}' is a folder",
                f'name its files, for instance glob(["{label.name}/**"])',
            )
        listing = self.folders.listing(folder) if self.folders.is_folder(folder) else None
        near = [*package.targets, *package.external]
        prefix = folder.removeprefix(package.name).strip("/")
        near += [f"{prefix}/{file}" if prefix else file for file in (listing.files if listing else ())]
        suffix = f" of package '{label.package}'" if label.package != user.label.package else ""
        return (
            f"{user.label} depends on '{label.name}'{suffix}, which is neither a target nor a file",
            did_you_mean(label.name, near),
        )

    # The result

    def _graph(self) -> TargetGraph:
        loaded = {name: package for name, package in sorted(self.packages.items()) if package is not None}
        targets = {target.label: target for package in loaded.values() for target in package.targets.values()}
        packages = {
            name: Package(
                name, package.build_file, tuple(t.label for t in package.targets.values()), package.loads
            )
            for name, package in loaded.items()
        }
        return TargetGraph(targets, packages)

    def _sound(self, graph: TargetGraph, roots: Sequence[Label]) -> list[Label]:
        """The roots that reach nothing wrong; every cycle is reported."""
        while True:
            users = reverse(reachable(roots, graph.successors), graph.successors)
            wrong = reachable((f for f in self.failed if f in users), users.__getitem__)
            sound = [root for root in roots if root not in wrong]
            try:
                topological(sound, graph.successors)
            except CycleError as error:
                path = [label for label in error.path if isinstance(label, Label)]
                fact = f"cycle in the dependencies: {' -> '.join(map(str, path))}"
                self.problems.append(self._at_label(graph[path[0]], path[1], fact))
                self.failed.add(path[0])
            else:
                return sound


def _place(diagnostic: Diagnostic) -> tuple[str, int, int]:
    span = diagnostic.span
    return (span.path, span.line, span.column) if span else ("", 0, 0)


def _package_of(site: CallSite) -> str:
    return site.frames[0].path.rpartition("/")[0]

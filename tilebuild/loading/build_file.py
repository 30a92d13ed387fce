"""What one BUILD file declares, as written: calls of rules, exported files, globs.

Knows neither what rules mean nor other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilebuild.call_site import CallSite
from tilebuild.diagnostics import Diagnostic, DiagnosticError, Note, did_you_mean
from tilebuild.label import Label, LabelError, check_name
from tilebuild.loading import globs
from tilebuild.loading.starlark import Interpreter, Opaque, opaque
from tilebuild.target import PRIVATE, PUBLIC


@dataclass(frozen=True)
class Select:
    """`select({...})`: the value of an attribute, or a part of a list, that depends on settings."""

    branches: Mapping[str, Any]
    no_match_error: str


@dataclass(frozen=True)
class Declaration:
    """One call of a rule; `rule` is the key of the rule.

    Values are plain data, with `Select` where select() was used.
    """

    rule: str
    name: str
    attributes: Mapping[str, Any]
    call_site: CallSite


@dataclass
class BuildFile:
    """A package under evaluation: collects what its BUILD file and the macros called there declare."""

    package: str
    path: str
    declarations: dict[str, Declaration] = field(default_factory=dict)
    exports: dict[str, tuple[CallSite, tuple[str, ...]]] = field(default_factory=dict)
    groups: dict[str, tuple[CallSite, tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    default_visibility: tuple[str, ...] = (PRIVATE,)
    problems: list[Diagnostic] = field(default_factory=list)
    unfinished: bool = False  # evaluation stopped at an error

    def declare(self, key: str, call_site: CallSite, positional: int, attributes: dict[str, Any]) -> None:
        if positional:
            self._problem(call_site, f'{call_site.rule} takes named arguments only, write `name = "…"`')
            return
        name = attributes.pop("name", None)
        if not isinstance(name, str):
            said = "needs the attribute 'name'" if name is None else f"has a name that is no text: {name!r}"
            self._problem(call_site, f"{call_site.rule} {said}", *(() if name is None else ("name",)))
            return
        try:
            check_name(name, name)
        except LabelError as error:
            self._problem(call_site, error.fact, "name", help=error.help)
            return
        if self._is_new(name, call_site):
            self.declarations[name] = Declaration(key, name, attributes, call_site)

    def export(self, files: Sequence[str], visibility: Sequence[str], call_site: CallSite) -> None:
        for name in files:
            try:
                self.exports[Label.parse(name, self.package).name] = (call_site, tuple(visibility))
            except LabelError as error:
                self._problem(call_site, error.fact, help=error.help)

    def declare_group(
        self, name: str, packages: Sequence[str], includes: Sequence[str], call_site: CallSite
    ) -> None:
        for text in includes:
            try:
                Label.parse(text, self.package)
            except LabelError as error:
                self.problems.append(call_site.diagnostic(error.fact, ("includes",), error.help, [text]))
                return
        if self._is_new(name, call_site):
            self.groups[name] = (call_site, tuple(packages), tuple(includes))

    def _is_new(self, name: str, call_site: CallSite) -> bool:
        first = self.declarations[name].call_site if name in self.declarations else None
        first = self.groups[name][0] if name in self.groups else first
        if first is None:
            return True
        note = first.note(f"'{name}' is first declared here, by {first.rule}")
        problem = call_site.diagnostic(f"{call_site.rule} '{name}' has the name of another target", ("name",))
        self.problems.append(_with_note(problem, note))
        return False

    def _problem(self, call_site: CallSite, fact: str, *path: str | int, help: str = "") -> None:
        self.problems.append(call_site.diagnostic(fact, path, help))


def _with_note(problem: Diagnostic, note: Note) -> Diagnostic:
    return Diagnostic(
        problem.fact, problem.blame, problem.span, problem.source, problem.help, (note, *problem.notes)
    )


@dataclass
class Natives:
    """What the prelude calls back.

    `current` is the BUILD file under evaluation; a .bzl file by itself declares nothing.
    """

    interpreter: Interpreter
    folders: globs.Folders
    current: BuildFile | None = None
    printed: list[str] = field(default_factory=list)

    def callables(self) -> Mapping[str, Callable[..., object]]:
        return {
            "_declare": self.declare,
            "_glob": self.glob,
            "_package": self.package,
            "_exports_files": self.exports_files,
            "_package_group": self.package_group,
            "_package_name": self.package_name,
            "_select": self.select,
            "_print": self.print,
        }

    def declare(self, stack: str, key: str, positional: int, attributes: dict[str, Any]) -> None:
        name = key.rpartition("%")[2]
        site, build_file = self._site(stack, name)
        build_file.declare(
            key, site, positional, {k: plain(v) for k, v in attributes.items() if v is not None}
        )

    def glob(
        self, stack: str, include: list[str], exclude: list[str], exclude_directories: int, allow_empty: bool
    ) -> list[str]:
        site, build_file = self._site(stack, "glob")
        self._texts(site, "include", include)
        self._texts(site, "exclude", exclude)
        try:
            found = globs.glob(self.folders, build_file.package, include, exclude, not exclude_directories)
        except globs.GlobError as error:
            raise DiagnosticError(site.diagnostic(f"glob: {error}", words=[*include, *exclude])) from error
        if not found and not allow_empty:
            help = "if that is meant, write allow_empty = True"
            raise DiagnosticError(site.diagnostic(f"glob({include}) matches no file", (), help))
        return found

    def package(self, stack: str, default_visibility: list[str]) -> None:
        site, build_file = self._site(stack, "package")
        self._texts(site, "default_visibility", default_visibility)
        build_file.problems += wrong_visibility(default_visibility, site, "default_visibility")
        build_file.default_visibility = tuple(default_visibility) or (PRIVATE,)

    def exports_files(self, stack: str, files: list[str], visibility: list[str]) -> None:
        site, build_file = self._site(stack, "exports_files")
        self._texts(site, "srcs", files)
        self._texts(site, "visibility", visibility)
        build_file.problems += wrong_visibility(visibility, site, "visibility")
        build_file.export(files, visibility or [PUBLIC], site)

    def package_group(self, stack: str, name: str, packages: list[str], includes: list[str]) -> None:
        site, build_file = self._site(stack, "package_group")
        self._texts(site, "packages", packages)
        self._texts(site, "includes", includes)
        build_file.declare_group(name, packages, includes, site)

    def package_name(self, stack: str) -> str:
        return self._site(stack, "package_name")[1].package

    def select(self, stack: str, branches: object, no_match_error: str) -> object:
        if (
            not isinstance(branches, dict)
            or not branches
            or not all(isinstance(key, str) for key in branches)
        ):
            site = self.interpreter.call_site(stack, "select")
            raise DiagnosticError(site.diagnostic("select takes a dict from condition labels to values"))
        return opaque(Select({k: plain(v) for k, v in branches.items()}, no_match_error))

    def print(self, stack: str, text: str) -> None:
        span = self.interpreter.call_site(stack, "print").span
        self.printed.append(f"{span.path}:{span.line}: {text}")

    def _site(self, stack: str, name: str) -> tuple[CallSite, BuildFile]:
        site = self.interpreter.call_site(stack, name)
        if self.current is None:
            help = "call it in a function of the .bzl file, which BUILD files call"
            raise DiagnosticError(site.diagnostic(f"{name} can be called only for a BUILD file", (), help))
        return site, self.current

    def _texts(self, site: CallSite, parameter: str, value: object) -> None:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise DiagnosticError(
                site.diagnostic(f"{site.rule}: '{parameter}' is a list of texts, not {value!r}", (parameter,))
            )


def wrong_visibility(entries: list[Any], site: CallSite, attribute: str) -> Iterator[Diagnostic]:
    """What is wrong with the entries of a visibility list."""
    for entry in entries:
        if not isinstance(entry, str):
            continue
        if entry in (PUBLIC, PRIVATE):
            if len(entries) > 1:
                yield site.diagnostic(
                    f"'{entry}' must be the only entry of {attribute}", (attribute,), words=[entry]
                )
        elif entry.startswith("//visibility:"):
            help = did_you_mean(entry, [PUBLIC, PRIVATE]) or f"there are '{PUBLIC}' and '{PRIVATE}'"
            yield site.diagnostic(f"'{entry}' is no visibility", (attribute,), help, [entry])
        else:
            try:
                Label.parse(entry)
            except LabelError as error:
                yield site.diagnostic(error.fact, (attribute,), error.help, [entry])


def plain(value: Any) -> Any:
    """A value from Starlark with each select unwrapped; one that is the whole value leaves its list."""
    if isinstance(value, list):
        if len(value) == 1 and (inner := _unwrap(value[0])) is not None:
            return inner
        return [inner if (inner := _unwrap(item)) is not None else plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def _unwrap(value: Any) -> Select | None:
    return value.value if isinstance(value, Opaque) and isinstance(value.value, Select) else None


def contains_select(value: Any) -> bool:
    return isinstance(value, Select) or (
        isinstance(value, list) and any(isinstance(item, Select) for item in value)
    )

"""Names of targets, `//package:name`, and patterns over them. Knows neither files nor what a target is.

The rules are Bazel's. `@tilebuild`, the standard rules, is the only other repository. A malformed name raises
`LabelError`, which has no place in a file; whoever knows where the text was written makes it a diagnostic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span, did_you_mean

if TYPE_CHECKING:
    from pydantic_core import core_schema

#: The repository of the standard rules.
STANDARD_REPOSITORY = "tilebuild"

_PACKAGE_CHARACTERS = re.compile(r"[^A-Za-z0-9 !\"#$%&'()*+,\-./;<=>?@\[\]^_`{|}~]")
_NAME_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\\:]")
_WILDCARDS = {"all": False, "*": True, "all-targets": True}


class LabelError(ValueError):
    """What is wrong with the text of a label or pattern, and what to write instead."""

    def __init__(self, fact: str, help: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.help = help


@dataclass(frozen=True, eq=False)
class Label:
    """The name of a target or file.

    Subclasses (see `tilebuild.rule`) say what a label is used for; they compare equal.
    """

    package: str
    name: str
    repo: str = ""

    def __str__(self) -> str:
        return f"@{self.repo}//{self.package}:{self.name}" if self.repo else f"//{self.package}:{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Label) and (self.name, self.package, self.repo) == (
            other.name,
            other.package,
            other.repo,
        )

    def __hash__(self) -> int:
        return hash((self.package, self.name))

    def __lt__(self, other: Label) -> bool:
        return (self.repo, self.package, self.name) < (other.repo, other.package, other.name)

    @property
    def path(self) -> str:
        """Where a file of this name lies, relative to its repository."""
        return f"{self.package}/{self.name}" if self.package else self.name

    def spellings(self, package: str) -> tuple[str, ...]:
        """How this label may be written in a BUILD file of `package`."""
        near = (f":{self.name}", self.name) if package == self.package and not self.repo else ()
        root = str(self).partition(":")[0]
        short = (root,) if self.package.rpartition("/")[2] == self.name else ()
        return (str(self), *near, *short)

    @classmethod
    def parse(cls, text: str, package: str = "") -> Self:
        """Reads an absolute label, or one relative to `package`. Raises LabelError."""
        repo, package, name = _split(text, package)
        return cls(package, name, repo)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        # Imported here: labels are also used where pydantic's import time matters.
        from pydantic_core import core_schema

        def validate(text: str, info: core_schema.ValidationInfo) -> Label:
            return cls.parse(text, (info.context or {}).get("package", ""))

        return core_schema.with_info_after_validator_function(validate, core_schema.str_schema(strict=True))


def parse_label(text: str, package: str = "", span: Span | None = None) -> Label:
    """As `Label.parse`, with the error as a diagnostic."""
    try:
        return Label.parse(text, package)
    except LabelError as error:
        raise DiagnosticError(Diagnostic(error.fact, Blame.BUILD_FILE, span, help=error.help)) from error


def _split(text: str, package: str) -> tuple[str, str, str]:
    """Repository, package and name of a label."""
    rest, repo = text, ""
    if rest.startswith("@"):
        repo, slashes, tail = rest.lstrip("@").partition("//")
        if not slashes:
            repo, tail = rest.lstrip("@"), f":{repo}"
        if repo not in ("", STANDARD_REPOSITORY):
            suggestion = did_you_mean(repo, [STANDARD_REPOSITORY])
            raise LabelError(
                f"invalid label '{text}': no repository '@{repo}'",
                suggestion or f"'@{STANDARD_REPOSITORY}' is the only external repository",
            )
        rest = "//" + tail
    if rest.startswith("//"):
        package, colon, name = rest[2:].partition(":")
        if not colon:
            name = package.rpartition("/")[2]
        if rest.startswith("///"):
            raise LabelError(f"invalid label '{text}': a label starts with exactly two slashes")
    elif rest.startswith("/"):
        raise LabelError(
            f"invalid label '{text}': a label starts with exactly two slashes", f"did you mean '/{rest}'?"
        )
    else:
        name = rest.removeprefix(":")
    check_package(package, text)
    if name.endswith("/."):
        name = name[:-2]
    check_name(name, text)
    return repo, package, name


def check_package(package: str, text: str) -> None:
    """Raises LabelError for a package name that Bazel refuses; `text` is what the user wrote."""
    if not package:
        return
    if "//" in package:
        raise LabelError(f"invalid package name '{package}' in '{text}': package names may not contain '//'")
    if package.startswith("/"):
        raise LabelError(
            f"invalid package name '{package}' in '{text}': package names may not start with '/'"
        )
    if package.endswith("/"):
        raise LabelError(
            f"invalid package name '{package}' in '{text}': package names may not end with '/'",
            f"did you mean '{text.replace(package, package.rstrip('/'), 1)}'?",
        )
    if bad := _PACKAGE_CHARACTERS.search(package):
        raise LabelError(
            f"invalid package name '{package}' in '{text}': character {bad.group()!r} is not allowed"
        )
    if any(set(segment) == {"."} for segment in package.split("/")):
        raise LabelError(f"invalid package name '{package}' in '{text}': a segment consists of dots only")


def check_name(name: str, text: str) -> None:
    """Raises LabelError for a target name that Bazel refuses; `text` is what the user wrote."""
    if not name:
        raise LabelError(f"invalid target name in '{text}': the name is empty")
    if bad := _NAME_CHARACTERS.search(name):
        raise LabelError(
            f"invalid target name '{name}' in '{text}': character {bad.group()!r} is not allowed"
        )
    if name.startswith("/"):
        raise LabelError(f"invalid target name '{name}' in '{text}': target names may not start with '/'")
    if name.endswith("/"):
        raise LabelError(
            f"invalid target name '{name}' in '{text}': target names may not end with '/'",
            f"did you mean '{name.rstrip('/')}'?",
        )
    for segment in name.split("/"):
        if segment == "..":
            raise LabelError(
                f"invalid target name '{name}' in '{text}': up-level references '..' are not allowed",
                "name the file by its own package, //package:file",
            )
        if segment in ("", "."):
            what = "an empty path segment" if not segment else "'.' as a path segment"
            raise LabelError(f"invalid target name '{name}' in '{text}': {what} is not allowed")


@dataclass(frozen=True)
class Pattern:
    """A set of targets, as written on a command line or in a query.

    `kind` says how to read the rest: `target` is one target; `package` is all of one package; `recursive` is
    all of `package` and below; `path` is a relative path without a colon, whose longest prefix that is a
    package counts.
    """

    text: str
    kind: str
    package: str
    name: str = ""
    everything: bool = False  # files and outputs too, not only rules
    negative: bool = False

    def __str__(self) -> str:
        return self.text

    def covers(self, package: str) -> bool:
        """Whether targets of this package can match."""
        if self.kind == "recursive":
            return not self.package or package == self.package or package.startswith(self.package + "/")
        return package == self.package


def parse_pattern(text: str, cwd: str = "", span: Span | None = None) -> Pattern:
    """Reads a target pattern; `cwd` is the current folder relative to the workspace.

    Raises DiagnosticError.
    """
    try:
        return _parse_pattern(text, cwd)
    except LabelError as error:
        fact = error.fact.replace("invalid label", "invalid target pattern")
        raise DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, span, help=error.help)) from error


def _parse_pattern(text: str, cwd: str) -> Pattern:
    negative = text.startswith("-")
    body = text[1:] if negative else text
    if not body:
        raise LabelError(f"invalid target pattern '{text}': it is empty")
    for prefix in (f"@{STANDARD_REPOSITORY}//", "@@", "@"):
        if body.startswith(prefix):
            if prefix[1:].startswith(STANDARD_REPOSITORY) or not body[len(prefix) :].startswith("//"):
                raise LabelError(
                    f"invalid target pattern '{text}': patterns name targets of this workspace",
                    "a pattern begins with // or is relative to the current folder",
                )
            body = body[len(prefix) :]
            break
    absolute = body.startswith("//")
    if body.startswith("/") and (not absolute or body.startswith("///")):
        raise LabelError(
            f"invalid target pattern '{text}': absolute target patterns start with exactly two slashes",
            f"did you mean '//{body.lstrip('/')}'?",
        )
    package, colon, name = (body[2:] if absolute else body).partition(":")
    if not absolute and cwd:
        package = f"{cwd}/{package}" if package else cwd
    if package == "..." or package.endswith("/..."):
        if colon and name not in _WILDCARDS:
            raise LabelError(
                f"invalid target pattern '{text}': only ':all' and ':*' may follow '...'",
                f"did you mean '//{package}:all'?",
            )
        package = package[:-3].rstrip("/")
        check_package(package, text)
        return Pattern(text, "recursive", package, "", bool(colon) and _WILDCARDS[name], negative)
    if not absolute and not colon:
        check_name(package, text)
        return Pattern(text, "path", package, "", False, negative)
    check_package(package, text)
    if name in _WILDCARDS:
        return Pattern(text, "package", package, name, _WILDCARDS[name], negative)
    if not colon:
        name = package.rpartition("/")[2]
    check_name(name, text)
    return Pattern(text, "target", package, name, False, negative)

"""What a rule is, and all that its author may use. Knows neither BUILD files nor how actions run.

A rule is a value: a pydantic model of its attributes and one pure function from a `RuleContext` to
`Providers`. The function declares outputs and actions on the context; its test compares lists of actions.

    class Attributes(BaseModel):
        srcs: list[Label] = []

    @rule(attributes=Attributes)
    def concatenate(ctx: RuleContext[Attributes]) -> Providers:
        ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar, overload

from pydantic import BaseModel

from tilebuild.action import Action, Artifact, Tool
from tilebuild.call_site import CallSite
from tilebuild.diagnostics import DiagnosticError, did_you_mean
from tilebuild.label import Label
from tilebuild.settings import Settings

__all__ = [
    "Action",
    "Artifact",
    "DataFile",
    "Derived",
    "Distribution",
    "Label",
    "Output",
    "Providers",
    "Rule",
    "RuleContext",
    "SourceFile",
    "Tool",
    "rule",
]

Attributes = TypeVar("Attributes", bound=BaseModel)
Value = TypeVar("Value")
#: A file of an action, with the name it has inside the action; by default its path.
LocalFile: TypeAlias = "Artifact | tuple[str, Artifact]"


class SourceFile(Label):
    """A label that stands for exactly one file: a source file, an output, or a target with one file."""


class DataFile(SourceFile):
    """A source file whose content the rule itself reads, with `ctx.content`."""


class Output(Label):
    """The name of a file that the target writes; other targets may use it as a label."""


@dataclass(frozen=True)
class Distribution:
    """Files of an installed Python distribution that match `include` and not `exclude`."""

    name: str
    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    version: str = ""  # the only one that is right; empty: any


class Providers:
    """What a target hands to those that depend on it: its files, and values by name."""

    def __init__(self, files: Iterable[Artifact] = (), **named: Any) -> None:
        self.files = tuple(files)
        self.named: Mapping[str, Any] = named

    def __repr__(self) -> str:
        named = "".join(f", {key}={value!r}" for key, value in self.named.items())
        return f"Providers(files={[str(f) for f in self.files]}{named})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Providers) and (self.files, self.named) == (other.files, other.named)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: str) -> Any:
        return self.named[key]

    def get(self, key: str) -> Any:
        return self.named.get(key)


@dataclass(frozen=True)
class Derived:
    """A further target, `<target>.<name>`, with the target's attributes and a function of its own."""

    name: str
    kind: str
    function: Callable[[RuleContext[Any]], Providers]
    test: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A kind of target.

    `name` is how BUILD files call it; `digest` stands for the text of its file and all it loads.
    """

    name: str
    attributes: type[BaseModel]
    function: Callable[[RuleContext[Any]], Providers]
    doc: str = ""
    test: bool = False
    derived: Callable[[Label, Any], Sequence[Derived]] | None = None
    distribution: Callable[[Any], Distribution] | None = None
    digest: str = ""


def rule(
    *,
    attributes: type[Attributes],
    test: bool = False,
    derived: Callable[[Label, Attributes], Sequence[Derived]] | None = None,
    distribution: Callable[[Attributes], Distribution] | None = None,
) -> Callable[[Callable[[RuleContext[Attributes]], Providers]], Rule]:
    """Makes a rule of a function; the function's name is the rule's, its docstring the rule's documentation.

    `derived` lists further targets; `distribution` names an installed distribution whose files become
    `ctx.external`.
    """

    def decorate(function: Callable[[RuleContext[Attributes]], Providers]) -> Rule:
        name = function.__name__
        return Rule(name, attributes, function, (function.__doc__ or "").strip(), test, derived, distribution)

    return decorate


@dataclass(frozen=True)
class Dependency:
    """What a rule sees of a target that it names; `content` is that of a data file."""

    kind: str
    providers: Providers
    content: bytes | None = None


@dataclass
class RuleContext(Generic[Attributes]):
    """One target, seen by the function of its rule.

    All that a rule may ask for or declare goes through here.
    """

    label: Label
    attr: Attributes
    settings: Settings
    call_site: CallSite
    dependencies: Mapping[Label, Dependency]
    tools: Callable[[str], Tool]
    external: tuple[Artifact, ...] = ()
    parent: Providers | None = None
    actions: list[Action] = field(default_factory=list)
    outputs: dict[str, Artifact] = field(default_factory=dict)

    @property
    def architectures(self) -> tuple[str, ...]:
        """The GPU architectures to build for, from the settings."""
        return self.settings.architectures

    # What other targets provide

    @overload
    def provider(self, label: Label, key: str) -> Any: ...
    @overload
    def provider(self, label: Label, key: type[Value]) -> Value: ...
    def provider(self, label: Label, key: str | type[Any]) -> Any:
        """The value that a target provides under a name or that of a class; an error if there is none."""
        value = self.find(label, key)
        if value is None:
            name = key if isinstance(key, str) else key.__name__
            dependency = self._dependency(label)
            has = ", ".join(dependency.providers.named) or "files only"
            self.fail(
                f"{label} ({dependency.kind}) does not provide {name}",
                label=label,
                help=f"it provides {has}",
            )
        return value

    def find(self, label: Label, key: str | type[Any]) -> Any:
        """As `provider`, but None if the target does not provide it."""
        return self._dependency(label).providers.get(key if isinstance(key, str) else key.__name__)

    def providers(self, label: Label) -> Providers:
        """All that a target provides."""
        return self._dependency(label).providers

    def files(self, labels: Label | Iterable[Label]) -> tuple[Artifact, ...]:
        """The files of targets, each once, in order."""
        wanted = [labels] if isinstance(labels, Label) else labels
        return tuple(dict.fromkeys(f for label in wanted for f in self._dependency(label).providers.files))

    def file(self, label: Label) -> Artifact:
        """The only file of a target."""
        files = self.files(label)
        if len(files) != 1:
            found = ", ".join(map(str, files)) or "none"
            self.fail(f"{label} must be a single file, but has {len(files)}: {found}", label=label)
        return files[0]

    def content(self, label: Label) -> bytes:
        """The bytes of a data file."""
        content = self._dependency(label).content
        if content is None:
            raise TypeError(f"{label} is not a DataFile attribute of {self.label}; only those are read")
        return content

    def _dependency(self, label: Label) -> Dependency:
        try:
            return self.dependencies[label]
        except KeyError:
            raise TypeError(f"{label} is no label attribute of {self.label}") from None

    # What this target makes

    def declare_output(self, name: str) -> Artifact:
        """A file that an action of this target writes, below the target's own output folder."""
        folder = f"{self.label.package}/{self.label.name}" if self.label.package else self.label.name
        artifact = Artifact(f"{folder}/{name}", source=False)
        if name in self.outputs:
            self.fail(f"output '{name}' is declared twice")
        self.outputs[name] = artifact
        return artifact

    def tool(self, name: str) -> Tool:
        """A tool that an action runs or reads."""
        try:
            return self.tools(name)
        except KeyError:
            self.fail(f"there is no tool '{name}'", help="tools are named in tilebuild/toolchain.py")

    def action(
        self,
        mnemonic: str,
        *,
        argv: Sequence[Tool | Artifact | str | int | float],
        inputs: Iterable[LocalFile] = (),
        outputs: Iterable[LocalFile] = (),
        inline: Mapping[str, bytes] | None = None,
        optional: Iterable[str] = (),
        guard: Artifact | None = None,
        tools: Iterable[Tool] = (),
        environment: Mapping[str, str] | None = None,
        platform: Mapping[str, str] | None = None,
        serial: str = "",
        timeout_s: float = 600.0,
        detail: str = "",
    ) -> Action:
        """Declares one command; see `tilebuild.action.Action`. `argv` begins with its tool.

        A file is given as an artifact, whose name inside the action is then its path, or as (local name,
        artifact). An artifact in `argv` stands for its local name and must be among inputs or outputs.
        """
        if not argv or not isinstance(argv[0], Tool):
            self.fail(f"action {mnemonic}: argv must begin with a tool, ctx.tool(...)")
        local_inputs, local_outputs = _local_files(inputs), _local_files(outputs)
        names = {artifact: local for local, artifact in (*local_inputs, *local_outputs)}
        self._check_local_names(mnemonic, [*local_inputs, *local_outputs], inline or {})
        words = [argv[0].name]
        for item in argv[1:]:
            if isinstance(item, Artifact):
                if item not in names:
                    self.fail(f"action {mnemonic}: {item} is in argv, but neither input nor output")
                words.append(names[item])
            else:
                words.append(str(item))
        action = Action(
            mnemonic=mnemonic,
            argv=tuple(words),
            inputs=tuple(local_inputs),
            outputs=tuple(local_outputs),
            tools=tuple(dict.fromkeys([argv[0], *tools])),
            inline=tuple(sorted((inline or {}).items())),
            optional=frozenset(optional),
            guard=guard,
            environment=tuple(sorted((environment or {}).items())),
            platform=tuple(sorted((platform or {}).items())),
            serial=serial,
            timeout_s=timeout_s,
            label=str(self.label),
            detail=detail or f"{self.label.name}",
        )
        self.actions.append(action)
        return action

    def _check_local_names(
        self, mnemonic: str, files: Sequence[tuple[str, Artifact]], inline: Mapping[str, bytes]
    ) -> None:
        seen: dict[str, Artifact | None] = dict.fromkeys(inline)
        for local, artifact in files:
            if local in seen:
                self.fail(
                    f"action {mnemonic}: two files have the local name '{local}': {seen[local]}, {artifact}"
                )
            seen[local] = artifact

    # What went wrong

    def fail(self, fact: str, *path: str | int, help: str = "", label: Label | None = None) -> NoReturn:
        """Ends the analysis of this target with an error at an attribute.

        `path` is the attribute's name, then indices, keys and names of nested arguments; `label` is the label
        at fault.
        """
        words = label.spellings(self.label.package) if label else ()
        raise DiagnosticError(self.call_site.diagnostic(f"{self.label}: {fact}", path, help, words))

    def suggest(self, word: str, candidates: Iterable[str]) -> str:
        """`did you mean 'x'?` for the nearest candidate, or the empty string."""
        return did_you_mean(word, candidates)


def _local_files(files: Iterable[LocalFile]) -> list[tuple[str, Artifact]]:
    pairs = [(f.path, f) if isinstance(f, Artifact) else f for f in files]
    return list(dict.fromkeys(pairs))


def labels_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Label]]:
    """Every label inside the value of an attribute, with the way to it."""
    if isinstance(value, Label):
        yield path, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from labels_in(getattr(value, name), (*path, name))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, Label):
                yield path, key
            yield from labels_in(item, (*path, str(key)))
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield from labels_in(item, (*path, index))

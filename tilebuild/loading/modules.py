"""What load() brings: .bzl files and rule files, by label, each evaluated once, cycles named.

Knows no package's targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span, did_you_mean
from tilebuild.label import STANDARD_REPOSITORY, Label, parse_label
from tilebuild.loading import prelude, rule_files, standard
from tilebuild.loading.build_file import BuildFile, Natives
from tilebuild.loading.globs import Folders
from tilebuild.loading.rule_files import RuleFile
from tilebuild.loading.sources import Sources
from tilebuild.loading.starlark import Frozen, Interpreter, Parsed
from tilebuild.rule import Rule

File = TypeVar("File")


@dataclass
class Modules:
    """Everything that is loaded while BUILD files are evaluated."""

    sources: Sources
    folders: Folders
    interpreter: Interpreter = field(default_factory=Interpreter)
    natives: Natives = field(init=False)
    _prelude: tuple[str, Frozen] = field(init=False)
    _starlark: dict[Label, Frozen] = field(default_factory=dict)
    _rule_files: dict[Label, RuleFile] = field(default_factory=dict)
    _rule_modules: dict[Label, Frozen] = field(default_factory=dict)
    _loads: dict[Label, tuple[Label, ...]] = field(default_factory=dict)
    _path: list[Label] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.natives = Natives(self.interpreter, self.folders)
        keys = [(name, _key(_standard_label(name), name)) for name in standard.STANDARD_RULES]
        module = self.interpreter.module(prelude.prelude_text(keys), self.natives.callables())
        self._prelude = (prelude.load_statement(standard.STANDARD_RULES), module)

    def build_file(self, package: str, path: str) -> tuple[BuildFile, tuple[Label, ...]]:
        """Evaluates a BUILD file: what it declares, and the labels of all files it loads.

        Raises DiagnosticError.
        """
        parsed = self.interpreter.parse(path, self.sources.text(path), build_file=True)
        labels, loaded = self._resolve(parsed, package)
        self.natives.current = result = BuildFile(package, path)
        try:
            self.interpreter.evaluate(parsed, loaded, self._prelude)
        except DiagnosticError as error:
            result.problems += error.diagnostics
            result.unfinished = True
        finally:
            self.natives.current = None
        return result, tuple(self._transitive(labels))

    def rule(self, key: str) -> Rule:
        """The rule behind a key that the prelude or a loaded module passed. Raises DiagnosticError."""
        text, _, name = key.rpartition("%")
        rule = self._rule_file(Label.parse(text), None).symbol(name, None)
        assert isinstance(rule, Rule)
        return rule

    def text(self, path: str) -> str:
        """The text of a file that was loaded, for the excerpt of an error."""
        return self.sources.text(path) if path in self.sources.read else ""

    def _resolve(self, parsed: Parsed, package: str) -> tuple[list[Label], dict[str, Frozen]]:
        """The modules of a file's loads, by the text of each. Raises DiagnosticError with all that fail."""
        problems: list[Diagnostic] = []
        labels: list[Label] = []
        modules: dict[str, Frozen] = {}
        for load in parsed.loads:
            try:
                label = self._label(load.text, package, load.span)
                labels.append(label)
                if label.name.endswith(".py"):
                    modules[load.text] = self._rule_module(label, load.symbols, load.span)
                else:
                    modules[load.text] = self._bzl(label, load.span)
            except DiagnosticError as error:
                problems += [
                    d.with_source(parsed.text.splitlines()) if d.span == load.span else d
                    for d in error.diagnostics
                ]
        if problems:
            raise DiagnosticError(*problems)
        return labels, modules

    def _label(self, text: str, package: str, span: Span) -> Label:
        label = parse_label(text, package, span)
        if not label.name.endswith((".bzl", ".py")):
            raise _problem(f"cannot load '{text}': only .bzl files and rule files (.py) can be loaded", span)
        path = self._path_of(label)
        if label.repo == STANDARD_REPOSITORY:
            stem = label.name.removesuffix(".py")
            if label.package != "rules" or stem not in standard.STANDARD_RULES:
                names = [f"@tilebuild//rules:{name}.py" for name in standard.STANDARD_RULES]
                raise _problem(
                    f"cannot load '{text}': no such standard rule", span, did_you_mean(text, names)
                )
        elif not self.folders.build_file(label.package):
            file = f"{label.package}/BUILD" if label.package else "BUILD at the root of the workspace"
            help = f"add an empty file {file}: a loaded file must lie in a package"
            help = help if self.folders.is_folder(label.package) else ""
            missing = f"there is no package '{label.package}'" if label.package else "the root is no package"
            raise _problem(f"cannot load '{text}': {missing}", span, help)
        elif not self.folders.is_file(path):
            listing = self.folders.listing(path.rpartition("/")[0])
            near = did_you_mean(path.rpartition("/")[2], listing.files if listing else ())
            raise _problem(f"cannot load '{text}': no such file", span, near)
        return label

    def _path_of(self, label: Label) -> str:
        if label.repo == STANDARD_REPOSITORY:
            return str(standard.folder() / label.name)
        return label.path

    def _bzl(self, label: Label, span: Span) -> Frozen:
        def evaluate() -> Frozen:
            path = self._path_of(label)
            parsed = self.interpreter.parse(path, self.sources.text(path), build_file=False)
            labels, loaded = self._resolve(parsed, label.package)
            self._loads[label] = tuple(labels)
            return self.interpreter.evaluate(parsed, loaded, self._prelude)

        return self._once(label, self._starlark, evaluate, span)

    def _rule_file(self, label: Label, span: Span | None) -> RuleFile:
        def evaluate() -> RuleFile:
            path = self._path_of(label)
            parsed = rule_files.parse(path, self.sources.text(path), standard=bool(label.repo))
            loaded = {}
            for load in parsed.loads:
                other = self._label(load.text, label.package, load.span)
                self._loads[label] = (*self._loads.get(label, ()), other)
                loaded[load.text] = self._rule_file(other, load.span)
            return rule_files.evaluate(parsed, loaded)

        return self._once(label, self._rule_files, evaluate, span)

    def _rule_module(self, label: Label, symbols: Iterable[str], span: Span) -> Frozen:
        """A Starlark module with a function for each rule of a rule file."""
        file = self._rule_file(label, span)
        for name in symbols:
            if not isinstance(file.symbol(name, span), Rule):
                raise _problem(
                    f"'{name}' of {label} is not a rule; BUILD files can load only rules from it", span
                )
        if label not in self._rule_modules:
            keys = [
                (name, _key(label, name)) for name, value in file.symbols.items() if isinstance(value, Rule)
            ]
            callables = {"_declare": self.natives.declare}
            self._rule_modules[label] = self.interpreter.module(prelude.rule_functions(keys), callables)
        return self._rule_modules[label]

    def _once(
        self, label: Label, done: dict[Label, File], evaluate: Callable[[], File], span: Span | None
    ) -> File:
        if label in done:
            return done[label]
        if label in self._path:
            path = [*self._path[self._path.index(label) :], label]
            raise _problem(f"load cycle: {' -> '.join(map(str, path))}", span)
        current, self.natives.current = self.natives.current, None
        self._path.append(label)
        try:
            done[label] = evaluate()
        finally:
            self._path.pop()
            self.natives.current = current
        return done[label]

    def _transitive(self, labels: Iterable[Label]) -> Mapping[Label, None]:
        found: dict[Label, None] = {}
        queue = list(labels)
        while queue:
            label = queue.pop(0)
            if label not in found:
                found[label] = None
                queue += self._loads.get(label, ())
        return found


def _standard_label(name: str) -> Label:
    return Label("rules", f"{name}.py", STANDARD_REPOSITORY)


def _key(label: Label, name: str) -> str:
    return f"{label}%{name}"


def _problem(fact: str, span: Span | None, help: str = "") -> DiagnosticError:
    return DiagnosticError(Diagnostic(fact, Blame.BUILD_FILE, span, help=help))

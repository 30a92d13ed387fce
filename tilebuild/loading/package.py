"""From what one BUILD file declares to its targets.

Knows its own package only; labels into others are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tilebuild.action import Artifact
from tilebuild.call_site import CallSite, Frame
from tilebuild.diagnostics import Diagnostic, DiagnosticError
from tilebuild.label import Label
from tilebuild.loading import distributions
from tilebuild.loading.attributes import Checked, Choose, check, kind_of
from tilebuild.loading.build_file import BuildFile, Declaration
from tilebuild.loading.globs import Folders, GlobError
from tilebuild.rule import Output, Rule
from tilebuild.target import GENERATED_FILE, PACKAGE_GROUP, PRIVATE, SOURCE_FILE, Target

#: Labels that a target names, each with the way to it inside the attributes.
References = tuple[tuple[tuple[str | int, ...], Label], ...]


@dataclass
class LoadedPackage:
    """The targets of a package in the order of declaration; files are added when something names them."""

    name: str
    build_file: Label
    loads: tuple[Label, ...]
    call_site: CallSite
    targets: dict[str, Target] = field(default_factory=dict)
    references: dict[Label, References] = field(default_factory=dict)
    external: dict[str, tuple[Artifact, Target]] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)  # names of targets that have problems
    unreadable: bool = False  # the BUILD file could not be evaluated to its end

    def label(self, name: str) -> Label:
        return Label(self.name, name)

    def source_file(self, name: str, folders: Folders, site: CallSite | None = None) -> Target | None:
        """The source file of this name, if there is one on disk or in an installed distribution.

        `site` is the call that names it.
        """
        if name in self.external:
            artifact, owner = self.external[name]
            return self._file(name, artifact, owner.visibility, owner.call_site)
        path = self.label(name).path
        if folders.is_file(path) and self.subpackage(name, folders) is None:
            return self._file(name, Artifact(path), (PRIVATE,), site or self.call_site)
        return None

    def subpackage(self, name: str, folders: Folders) -> str | None:
        """The package to which a file below this one really belongs, if it is another."""
        segments = name.split("/")[:-1]
        for end in range(len(segments), 0, -1):
            below = "/".join(filter(None, (self.name, *segments[:end])))
            if folders.build_file(below):
                return below
        return None

    def _file(self, name: str, artifact: Artifact, visibility: tuple[str, ...], site: CallSite) -> Target:
        target = Target(self.label(name), SOURCE_FILE, site, visibility, artifact=artifact)
        self.targets[name] = target
        return target


@dataclass
class PackageBuilder:
    """Makes the targets of one BUILD file; problems are collected in the package."""

    build: BuildFile
    package: LoadedPackage
    folders: Folders
    rule_of: Callable[[str], Rule]
    choose: Choose
    records: set[str] = field(default_factory=set)  # files that list the installed distributions used

    def run(self) -> None:
        package = self.package
        package.problems += self.build.problems
        package.unreadable = self.build.unfinished
        for name, (site, packages, includes) in self.build.groups.items():
            labels = tuple(Label.parse(text, package.name) for text in includes)
            attributes = {"packages": list(packages), "includes": list(includes)}
            package.targets[name] = Target(
                package.label(name),
                PACKAGE_GROUP,
                site,
                ("//visibility:public",),
                labels,
                attributes=attributes,
            )
        for declaration in self.build.declarations.values():
            try:
                self._declare(declaration)
            except DiagnosticError as error:
                package.problems += error.diagnostics
                package.broken.add(declaration.name)
        self._add_files()

    def _declare(self, declaration: Declaration) -> None:
        rule = self.rule_of(declaration.rule)
        checked = check(declaration, rule, self.package.name, self.choose)
        label = self.package.label(declaration.name)
        target = Target(
            label=label,
            kind=kind_of(rule),
            call_site=declaration.call_site,
            visibility=self._visibility(checked),
            deps=_unique([lab for _, lab in checked.labels if not isinstance(lab, Output)], checked.arms),
            rule=rule,
            attributes=checked.written,
            attr=checked.model,
            tags=checked.tags,
            test=rule.test,
            external=self._external(rule, checked, declaration),
        )
        self.package.targets[declaration.name] = target
        self.package.references[label] = checked.labels
        for path, output in checked.labels:
            if isinstance(output, Output):
                self._add_output(target, path, output)
        self._add_derived(target)
        for artifact in target.external:
            name = artifact.path.removeprefix("external/").partition("/")[2]
            self.package.external[name] = (artifact, target)

    def _visibility(self, checked: Checked) -> tuple[str, ...]:
        return self.build.default_visibility if checked.visibility is None else checked.visibility

    def _external(self, rule: Rule, checked: Checked, declaration: Declaration) -> tuple[Artifact, ...]:
        if rule.distribution is None:
            return ()
        try:
            files, record = distributions.find(rule.distribution(checked.model))
        except distributions.DistributionError as error:
            raise DiagnosticError(
                declaration.call_site.diagnostic(error.fact, ("distribution",), error.help)
            ) from error
        except GlobError as error:
            raise DiagnosticError(declaration.call_site.diagnostic(str(error))) from error
        self.records.add(record)
        return tuple(files.values())

    def _add_output(self, target: Target, path: tuple[str | int, ...], output: Output) -> None:
        site = target.call_site
        if output.package != self.package.name or output.repo:
            fact = f"{target.label}: output '{output}' lies in another package"
            self.package.problems.append(
                site.diagnostic(fact, path, words=output.spellings(self.package.name))
            )
        elif self._is_taken(output.name):
            fact = f"output '{output.name}' of {target.label} has the name of another target"
            self.package.problems.append(
                site.diagnostic(fact, path, words=output.spellings(self.package.name))
            )
        else:
            self.package.targets[output.name] = Target(
                self.package.label(output.name),
                GENERATED_FILE,
                site,
                target.visibility,
                (target.label,),
                parent=target.label,
            )

    def _add_derived(self, target: Target) -> None:
        assert target.rule is not None
        if target.rule.derived is None:
            return
        for derived in target.rule.derived(target.label, target.attr):
            name = f"{target.label.name}.{derived.name}"
            if self._is_taken(name):
                fact = f"{target.label} declares '{name}', which is the name of another target"
                self.package.problems.append(target.call_site.diagnostic(fact))
                continue
            self.package.targets[name] = Target(
                label=self.package.label(name),
                kind=f"{derived.kind} rule",
                call_site=target.call_site,
                visibility=target.visibility,
                deps=(target.label, *(dep for dep in target.deps if dep != target.label)),
                rule=target.rule,
                attributes=target.attributes,
                attr=target.attr,
                tags=target.tags | set(derived.tags),
                test=derived.test,
                parent=target.label,
                derived=derived,
            )

    def _is_taken(self, name: str) -> bool:
        return name in self.package.targets or name in self.build.declarations

    def _add_files(self) -> None:
        """Source files that the BUILD file exports or names, and itself."""
        package = self.package
        for name, (site, visibility) in self.build.exports.items():
            if name in package.targets:
                continue
            target = package.source_file(name, self.folders)
            if target is None:
                package.problems.append(
                    site.diagnostic(
                        f"no such file '{name}'", words=package.label(name).spellings(package.name)
                    )
                )
            else:
                package.targets[name] = Target(
                    target.label, SOURCE_FILE, site, visibility, artifact=target.artifact
                )
        for owner, references in list(package.references.items()):
            site = package.targets[owner.name].call_site
            for _, label in references:
                if label.package == package.name and not label.repo and label.name not in package.targets:
                    package.source_file(label.name, self.folders, site)
        if package.build_file.name not in package.targets:
            package.source_file(package.build_file.name, self.folders)


def build_file_site(path: str, text: str) -> CallSite:
    """Where files that a BUILD file names without exporting them are taken to be declared."""
    return CallSite("", (Frame(path, 1, "<module>", text),))


def _unique(labels: Iterable[Label], arms: Iterable[Label]) -> tuple[Label, ...]:
    plain: Mapping[Label, None] = {
        Label(label.package, label.name, label.repo): None for label in (*labels, *arms)
    }
    return tuple(plain)

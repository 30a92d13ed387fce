"""Attributes of one call of a rule, checked against the rule's model.

Knows neither the file system nor other targets.

Values are checked as strict JSON: a list may become a tuple, but `"1"` is not a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from tilebuild.call_site import CallSite, ValuePath
from tilebuild.diagnostics import Diagnostic, DiagnosticError, did_you_mean
from tilebuild.label import Label, LabelError
from tilebuild.loading.build_file import Declaration, Select, wrong_visibility
from tilebuild.rule import Rule, labels_in

#: Attributes that every rule has besides those of its model, and what each must be.
COMMON: Mapping[str, str] = {
    "visibility": "a list of texts",
    "tags": "a list of texts",
    "testonly": "True or False",
    "deprecation": "a text",
}
DEFAULT_CONDITION = "//conditions:default"

#: Chooses the branch of a select; raises DiagnosticError when none or several match.
Choose = Callable[[Select, CallSite, ValuePath], Any]


@dataclass(frozen=True)
class Checked:
    """What a call says once it is known to be right.

    `labels` come with the way to each; `arms` are the conditions of selects, and labels of all branches.
    """

    model: BaseModel
    written: Mapping[str, Any]
    labels: tuple[tuple[tuple[str | int, ...], Label], ...]
    arms: tuple[Label, ...]
    visibility: tuple[str, ...] | None
    tags: frozenset[str]


def check(declaration: Declaration, rule: Rule, package: str, choose: Choose) -> Checked:
    """Raises DiagnosticError with everything that is wrong."""
    site = declaration.call_site
    problems = [*_unknown(declaration, rule, package), *_wrong_common(declaration, rule)]
    written: dict[str, Any] = {}
    for name, value in declaration.attributes.items():
        if name in rule.attributes.model_fields:
            try:
                written[name] = _resolve(value, site, (name,), choose)
            except DiagnosticError as error:
                problems += error.diagnostics
    if problems:
        raise DiagnosticError(*problems)
    model = _validate(declaration, rule, package, written)
    common = declaration.attributes
    return Checked(
        model,
        written,
        tuple(labels_in(model)),
        tuple(_labels_of_arms(declaration, rule, package, written)),
        tuple(common["visibility"]) if "visibility" in common else None,
        frozenset(common.get("tags", ())),
    )


def kind_of(rule: Rule) -> str:
    return f"{rule.name} rule"


def _unknown(declaration: Declaration, rule: Rule, package: str) -> Iterator[Diagnostic]:
    known = ["name", *rule.attributes.model_fields, *COMMON]
    for name in declaration.attributes:
        if name not in known:
            help = did_you_mean(name, known) or f"attributes of {rule.name}: {', '.join(known)}"
            fact = f"{rule.name} '{Label(package, declaration.name)}' has no attribute '{name}'"
            yield declaration.call_site.diagnostic(fact, (name,), help)


def _wrong_common(declaration: Declaration, rule: Rule) -> Iterator[Diagnostic]:
    for name, wanted in COMMON.items():
        if name not in declaration.attributes:
            continue
        value = declaration.attributes[name]
        right = {
            "a list of texts": isinstance(value, list) and all(isinstance(v, str) for v in value),
            "True or False": isinstance(value, bool),
            "a text": isinstance(value, str),
        }[wanted]
        if not right:
            said = "depends on a select" if isinstance(value, Select) else f"is {_shown(value)}"
            yield declaration.call_site.diagnostic(
                f"attribute '{name}' must be {wanted}, but {said}", (name,)
            )
    visibility = declaration.attributes.get("visibility")
    if isinstance(visibility, list):
        yield from wrong_visibility(visibility, declaration.call_site, "visibility")


def _resolve(value: Any, site: CallSite, path: ValuePath, choose: Choose) -> Any:
    """The value with each select replaced by the branch that holds."""
    if isinstance(value, Select):
        return choose(value, site, path)
    if isinstance(value, list) and any(isinstance(item, Select) for item in value):
        joined: list[Any] = []
        for item in value:
            chosen = choose(item, site, path) if isinstance(item, Select) else [item]
            joined += chosen if isinstance(chosen, list) else [chosen]
        return joined
    return value


def _selects(value: Any) -> list[Select]:
    if isinstance(value, Select):
        return [value]
    return [item for item in value if isinstance(item, Select)] if isinstance(value, list) else []


def _validate(declaration: Declaration, rule: Rule, package: str, written: Mapping[str, Any]) -> BaseModel:
    site = declaration.call_site
    try:
        text = json.dumps(written)
    except TypeError:
        nested = next((name for name, value in written.items() if not _is_plain(value)), "")
        raise DiagnosticError(
            site.diagnostic(
                "a select must be the whole value of an attribute, or a part of a list", (nested,)
            )
        ) from None
    try:
        return rule.attributes.model_validate_json(text, strict=True, context={"package": package})
    except ValidationError as error:
        raise DiagnosticError(*_problems(error, declaration, rule, package, written)) from None


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def _problems(
    error: ValidationError, declaration: Declaration, rule: Rule, package: str, written: Mapping[str, Any]
) -> Iterator[Diagnostic]:
    """One diagnostic for each value at fault; the alternatives of a union are told together."""
    site, label = declaration.call_site, Label(package, declaration.name)
    at: dict[tuple[str | int, ...], list[Any]] = {}
    for item in error.errors(include_url=False):
        at.setdefault(_path_in(written, item["loc"]), []).append(item)
    for path, items in at.items():
        missing = [str(item["loc"][-1]) for item in items if item["type"] == "missing"]
        if missing and not path:
            for name in missing:
                yield site.diagnostic(f"{rule.name} '{label}' needs the attribute '{name}'")
            items = [item for item in items if item["type"] != "missing"]
        if not items:
            continue
        value = _value_at(written, path)
        cause = next(
            (c for item in items if isinstance(c := item.get("ctx", {}).get("error"), LabelError)), None
        )
        if cause is not None:
            yield site.diagnostic(cause.fact, path, cause.help, [value] if isinstance(value, str) else ())
            continue
        facts = dict.fromkeys(_fact(item) for item in items)
        where = _dotted(path) or rule.name
        got = "" if items[0]["type"] == "extra_forbidden" else f"; got {_shown(value)}"
        yield site.diagnostic(
            f"{rule.name} '{label}': {where}: {', or '.join(facts)}{got}",
            path,
            help=_suggestion(items[0], rule.attributes, path, value),
            words=[value] if isinstance(value, str) else (),
        )


def _suggestion(item: Any, model: type[BaseModel], path: tuple[str | int, ...], value: Any) -> str:
    """What was meant: a field for an unknown one, a text for one that is none of those allowed."""
    if item["type"] == "extra_forbidden":
        fields = _fields_at(model, path[:-1])
        return did_you_mean(str(path[-1]), fields) or (f"fields are {', '.join(fields)}" if fields else "")
    if item["type"] == "literal_error":
        return did_you_mean(str(value), re.findall(r"'([^']*)'", item["ctx"]["expected"]))
    return ""


def _fields_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The fields of the model that describes the value at `path`."""
    for step in path:
        if isinstance(step, str) and step in model.model_fields:
            inner = next(_models_in(model.model_fields[step].annotation), None)
            if inner is None:
                return []
            model = inner
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


#: pydantic's kinds of error, in the words of a BUILD file.
_EXPECTED: Mapping[str, str] = {
    "bool_type": "must be True or False",
    "dict_type": "must be a dict",
    "extra_forbidden": "there is no such field",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
}


def _fact(item: Any) -> str:
    if item["type"] == "missing":
        return f"field '{item['loc'][-1]}' is missing"
    if item["type"] in _EXPECTED:
        return _EXPECTED[item["type"]]
    message = str(item["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    message = message.replace(" after validation", "")
    return message[:1].lower() + message[1:]


def _path_in(value: Any, location: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The part of pydantic's location that leads through the value; names of union members are left out."""
    path: list[str | int] = []
    for step in location:
        if (isinstance(value, dict) and step in value) or (isinstance(value, list) and isinstance(step, int)):
            value = value[step]  # type: ignore[index]
            path.append(step)
    return tuple(path)


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _dotted(path: tuple[str | int, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _labels_of_arms(
    declaration: Declaration, rule: Rule, package: str, written: Mapping[str, Any]
) -> Iterator[Label]:
    """Labels of every branch and condition of every select, for queries."""
    for name, value in declaration.attributes.items():
        for select in _selects(value):
            for condition, branch in select.branches.items():
                if condition != DEFAULT_CONDITION:
                    yield Label.parse(condition, package)
                model = _validate(
                    declaration, rule, package, {**written, name: _with_branch(value, select, branch)}
                )
                yield from (label for _, label in labels_in(getattr(model, name)))


def _with_branch(value: Any, select: Select, branch: Any) -> Any:
    """The value with one select replaced by a branch and the others left out."""
    if value is select:
        return branch
    return [
        v
        for item in value
        for v in (_listed(branch) if item is select else [] if isinstance(item, Select) else [item])
    ]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]

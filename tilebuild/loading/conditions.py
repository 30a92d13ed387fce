"""select(): which branch holds under the settings. Knows no file and no rule but `config_setting`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilebuild.call_site import CallSite, ValuePath
from tilebuild.diagnostics import DiagnosticError, did_you_mean
from tilebuild.loading.attributes import DEFAULT_CONDITION
from tilebuild.loading.build_file import Declaration, Select
from tilebuild.settings import Settings, names

CONFIG_SETTING = "config_setting"

#: The declaration of a condition; raises DiagnosticError if the label names none.
Condition = Callable[[str, CallSite, ValuePath], Declaration]


def choose(select: Select, site: CallSite, path: ValuePath, settings: Settings, condition: Condition) -> Any:
    """The value of the branch whose condition holds; the most special one if several do.

    Raises DiagnosticError.
    """
    holding: dict[str, Mapping[str, Any]] = {}
    for label in select.branches:
        if label != DEFAULT_CONDITION:
            values = _values(condition(label, site, path))
            if all(_holds(settings, name, value) for name, value in values.items()):
                holding[label] = values
    best = [
        label
        for label, values in holding.items()
        if all(_covers(values, other) for other in holding.values())
    ]
    if best:
        return select.branches[best[0]]
    if holding and len({repr(select.branches[label]) for label in holding}) == 1:
        return select.branches[next(iter(holding))]
    if holding:
        fact = f"several branches of the select hold: {', '.join(holding)}"
        raise DiagnosticError(
            site.diagnostic(fact, path, "one condition must be more special than the others")
        )
    if DEFAULT_CONDITION in select.branches:
        return select.branches[DEFAULT_CONDITION]
    fact = select.no_match_error or f"no branch of the select holds: {', '.join(select.branches)}"
    raise DiagnosticError(site.diagnostic(fact, path, f"add a branch '{DEFAULT_CONDITION}'"))


def _values(declaration: Declaration) -> Mapping[str, Any]:
    values = declaration.attributes.get("values")
    if not isinstance(values, dict) or not values:
        raise DiagnosticError(
            declaration.call_site.diagnostic(
                "config_setting needs `values`, a dict from settings to values", ("values",)
            )
        )
    for name in values:
        if name not in names():
            help = did_you_mean(name, names()) or f"settings are {', '.join(names())}"
            raise DiagnosticError(
                declaration.call_site.diagnostic(f"'{name}' is no setting", ("values", name), help, [name])
            )
    return values


def _holds(settings: Settings, name: str, wanted: Any) -> bool:
    value = settings.value(name)
    return str(wanted) in value if isinstance(value, tuple) else str(value) == str(wanted)


def _covers(values: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether every value of `other` is demanded by `values` too."""
    return all(name in values and values[name] == value for name, value in other.items())

"""What a workspace sets, checked: command line over environment over file. Knows nothing of targets.

A new setting is a field here; its environment variable is `TILEBUILD_` and its dotted name in upper case.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tilebuild.device_class import DeviceClass
from tilebuild.diagnostics import Blame, Diagnostic, DiagnosticError, Span, did_you_mean

SETTINGS_FILE = "tilebuild.toml"
PROJECT_FILE = "pyproject.toml"
ENVIRONMENT_PREFIX = "TILEBUILD_"
#: Variables that say where tools lie and where cargo compiles; they are no settings.
TOOL_PREFIXES = ("TILEBUILD_TOOL_", "TILEBUILD_CARGO_TARGET")

#: What may be demanded of a port's evidence, best first.
Evidence = Literal[
    "same-machine-code", "same-ir", "same-normal-form", "stronger-order", "different-hints", "tested-only"
]
EVIDENCE: tuple[str, ...] = get_args(Evidence)

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?B?)", re.IGNORECASE)


#: What tileiras 13.4.92 assembles for; a test holds this against its `--help`.
ARCHITECTURES = (
    *("sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90"),
    *("sm_100", "sm_103", "sm_107", "sm_110", "sm_120", "sm_121"),
)


def _architecture(value: str) -> str:
    if value not in ARCHITECTURES:
        hint = did_you_mean(value, ARCHITECTURES) or f"tileiras knows {', '.join(ARCHITECTURES)}"
        raise ValueError(f"{value!r} is not an architecture; {hint}")
    return value


def _size(value: str) -> str:
    parse_size(value)
    return value


def _device(value: str) -> str:
    DeviceClass.parse(value)
    return value


def parse_size(text: str) -> int:
    """Bytes of `20GB`, `512 MB`, `1000`. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    unit = match.group(2).upper() if match else ""
    if match is None or (unit and unit.removesuffix("B") + "B" not in _UNITS):
        raise ValueError(f"{text!r} is not a size; write it as '20GB'")
    return int(float(match.group(1)) * _UNITS["" if unit in ("", "B") else unit.removesuffix("B") + "B"])


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CacheSettings(_Table):
    """The cache on this machine."""

    directory: str = Field("", description="folder of the cache; empty: tilebuild in the user's cache folder")
    limit: Annotated[str, AfterValidator(_size)] = Field(
        "20GB", description="size above which old entries go"
    )

    @property
    def limit_bytes(self) -> int:
        return parse_size(self.limit)


class GateSettings(_Table):
    """What a port must reach; a target may lower it with a reason."""

    evidence: Evidence = Field("same-machine-code", description="weakest evidence that passes")
    speed: float = Field(0.95, gt=0, description="least speed relative to Python, geometric mean")
    row_floor: float = Field(
        0.90, gt=0, description="least speed relative to Python of any one configuration"
    )


class GpuSettings(_Table):
    """What must have run on a GPU, and how this machine runs it."""

    devices: tuple[Annotated[str, AfterValidator(_device)], ...] = Field(
        (), description="device classes that verdicts are required for, as 'NVIDIA H200/9.0/132'"
    )
    runner: str = Field(
        "", description="Python with CuPy that runs GPU work; empty: this one, where there is a GPU"
    )
    budget_s: float = Field(600.0, gt=0, description="seconds after which no further GPU case is begun")

    @property
    def classes(self) -> tuple[DeviceClass, ...]:
        return tuple(map(DeviceClass.parse, self.devices))


class Settings(_Table):
    """All settings of a workspace."""

    architectures: tuple[Annotated[str, AfterValidator(_architecture)], ...] = Field(
        ("sm_90", "sm_100", "sm_120"),
        min_length=1,
        description="GPU architectures that every port is built for",
    )
    jobs: int = Field(0, ge=0, description="actions that run at once; 0: one per core")
    output: str = Field("tilebuild-out", min_length=1, description="folder of outputs, relative to the root")
    cache: CacheSettings = CacheSettings()
    gates: GateSettings = GateSettings()
    gpu: GpuSettings = GpuSettings()

    def value(self, dotted: str) -> Any:
        """The value of `gates.speed`; raises KeyError for a name that is no setting."""
        value: Any = self
        for part in dotted.split("."):
            if not isinstance(value, BaseModel) or part not in type(value).model_fields:
                raise KeyError(dotted)
            value = getattr(value, part)
        return value


def names(model: type[BaseModel] = Settings, prefix: str = "") -> tuple[str, ...]:
    """The dotted name of every setting."""
    found: list[str] = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found += names(kind, f"{prefix}{name}.")
        else:
            found.append(prefix + name)
    return tuple(found)


def load_settings(root: Path, overrides: Mapping[str, object], environ: Mapping[str, str]) -> Settings:
    """Reads the settings of the workspace at `root`.

    `overrides` are from the command line, by dotted name; an override of None leaves the setting alone.
    Raises DiagnosticError with everything that is wrong.
    """
    path, table, text = _read(root)
    problems: list[Diagnostic] = []
    merged = _merge(table, _from_environment(environ, problems))
    merged = _merge(merged, _nested({k: v for k, v in overrides.items() if v is not None}))
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        problems += [_diagnostic(item, path, text) for item in error.errors()]
    if problems:
        raise DiagnosticError(*problems)
    return settings


def settings_file(root: Path) -> str:
    """The name of the file that holds the settings of the workspace at `root`."""
    return SETTINGS_FILE if (root / SETTINGS_FILE).is_file() else PROJECT_FILE


def _read(root: Path) -> tuple[str, dict[str, Any], str]:
    name = settings_file(root)
    text = (root / name).read_text(encoding="utf-8")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        span = (
            Span(name, int(place.group(1)), int(place.group(2)))
            if place
            else Span(name, text.count("\n") + 1)
        )
        fact = str(error).partition(" (at ")[0]
        raise DiagnosticError(
            Diagnostic(fact, Blame.BUILD_FILE, span).with_source(text.splitlines())
        ) from error
    return name, document if name == SETTINGS_FILE else document["tool"]["tilebuild"], text


def _from_environment(environ: Mapping[str, str], problems: list[Diagnostic]) -> dict[str, Any]:
    variables = {ENVIRONMENT_PREFIX + name.upper().replace(".", "_"): name for name in names()}
    found: dict[str, object] = {}
    for variable, value in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable.startswith(TOOL_PREFIXES):
            continue
        name = variables.get(variable)
        if name is None:
            problems.append(
                Diagnostic(
                    f"environment variable {variable} is no setting",
                    Blame.BUILD_FILE,
                    help=did_you_mean(variable, variables),
                )
            )
        else:
            listed = isinstance(Settings().value(name), tuple)
            found[name] = [part.strip() for part in value.split(",") if part.strip()] if listed else value
    return _nested(found)


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in flat.items():
        *tables, last = name.split(".")
        table = result
        for part in tables:
            table = table.setdefault(part, {})
        table[last] = value
    return result


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        result[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _diagnostic(error: Any, path: str, text: str) -> Diagnostic:
    dotted = ".".join(str(part) for part in error["loc"] if isinstance(part, str))
    lines = text.splitlines()
    if error["type"] == "extra_forbidden":
        fact = f"unknown setting '{dotted}'"
        help = did_you_mean(dotted, names()) or "settings are " + ", ".join(names())
    else:
        fact = f"setting '{dotted}': {error['msg'].removeprefix('Value error, ')}"
        help = ""
    key = str(
        error["loc"][0]
        if len(error["loc"]) == 1
        else error["loc"][-1]
        if isinstance(error["loc"][-1], str)
        else error["loc"][0]
    )
    for number, line in enumerate(lines, 1):
        if match := re.match(rf"\s*\[?({re.escape(key)})\b", line):
            span = Span(path, number, match.start(1) + 1, match.end(1) + 1)
            return Diagnostic(fact, Blame.BUILD_FILE, span, help=help).with_source(lines)
    return Diagnostic(fact, Blame.BUILD_FILE, Span(path), help=help)

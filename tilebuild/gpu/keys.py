"""What a GPU verdict depends on, as one digest. Knows no cache and no ledger.

The key of a case holds the machine code of both sides of each step with the layout of its arguments, the
case, its grids, the reference by its syntax tree, the tolerance, the protocol's version and the required
device class: all known on a machine without a GPU. Driver, library versions and clocks are recorded in the
row and are no part of the key.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from tilebuild.gpu.plan import BENCHMARK, SIDES
from tilebuild.measurement import PROTOCOLS


def case_key(
    stage: str,
    entry: Mapping[str, Any],
    sources: Mapping[str, str],
    device_class: Mapping[str, Any],
    code: Mapping[str, str] | None = None,
) -> str:
    """The key of a case for one stage. `entry` is the case's entry of a plan, without keys.

    `code` holds, by the name of a cubin, a digest of what of it the device executes; a cubin that it lacks
    counts whole, by its name. So an entry's symbol and notes of an assembler leave keys alone. `sources`
    holds `source_digest` of the reference and of the input maker, where there are any.
    """
    known = code or {}
    case = {name: value for name, value in entry["case"].items() if name != "benchmark"}
    content: dict[str, Any] = {
        "stage": stage,
        "protocol": PROTOCOLS[stage],
        "device": dict(device_class),
        "case": case | {"steps": [_without(step, "benchmark") for step in case["steps"]]},
        "steps": [
            {"grid": step["grid"]}
            | {side: [_code_of(step[side]["cubin"], known), _layout(step, side, entry)] for side in SIDES}
            for step in entry["steps"]
        ],
        "inputs": sources.get("inputs"),
    }
    if stage != BENCHMARK:
        content |= {
            "identical": entry["identical"],
            "reference": sources.get("reference"),
            "bounds": entry["bounds"],
        }
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def source_digest(source: str) -> str:
    """A digest of Python source that comments, docstrings and layout leave alone, in every version of
    Python.
    """
    return sha256(repr(_plain(ast.parse(source))).encode()).hexdigest()


def _layout(step: Mapping[str, Any], side: str, entry: Mapping[str, Any]) -> Any:
    """The slots of a side. Where both run the same code, slots behind those of Python are read by no
    instruction, and count for nothing.
    """
    return step["python" if entry["identical"] else side]["slots"]


def _code_of(cubin: str, known: Mapping[str, str]) -> str:
    return known.get(cubin, cubin)


def _plain(node: object) -> object:
    """A syntax tree as nested tuples; fields that are empty count for nothing, since versions add such
    fields.
    """
    if isinstance(node, list):
        return tuple(_plain(item) for item in node)
    if not isinstance(node, ast.AST):
        return (type(node).__name__, repr(node))
    fields = dict(ast.iter_fields(node))
    fields.pop("kind", None)
    body = fields.get("body")
    if isinstance(body, list) and isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
        fields["body"] = body[1:] if ast.get_docstring(node, clean=False) is not None else body
    kept = tuple((name, _plain(value)) for name, value in fields.items() if value not in (None, []))
    return (type(node).__name__, *kept)


def _without(mapping: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key != name}

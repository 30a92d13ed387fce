"""The part of JSON Schema that the published schemas use, as a check. Unknown keywords are errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    *("$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "oneOf", "properties"),
    *("required", "additionalProperties", "items", "minimum", "minItems", "maxItems", "pattern"),
}


def problems(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str = "$") -> list[str]:
    """Where a value departs from a schema."""
    unknown = set(schema) - _KNOWN
    if unknown:
        return [f"{path}: the schema uses {sorted(unknown)}"]
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    found = []
    if "oneOf" in schema and sum(not problems(value, s, root, path) for s in schema["oneOf"]) != 1:
        found.append(f"{path}: not exactly one of the alternatives")
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    if "type" in schema and not _is(value, schema["type"]):
        return [*found, f"{path}: {value!r} is no {schema['type']}"]
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{path}: {value} is below {schema['minimum']}")
    if isinstance(value, dict):
        found += _members(value, schema, root, path)
    if isinstance(value, list) and "items" in schema:
        found += [
            p for i, item in enumerate(value) for p in problems(item, schema["items"], root, f"{path}[{i}]")
        ]
    return found


def _members(
    value: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> list[str]:
    found = [f"{path}: {key} is missing" for key in schema.get("required", ()) if key not in value]
    others = schema.get("additionalProperties", True)
    for key, member in value.items():
        if key in schema.get("properties", {}):
            found += problems(member, schema["properties"][key], root, f"{path}.{key}")
        elif others is False:
            found.append(f"{path}: {key} is not in the schema")
        elif isinstance(others, dict):
            found += problems(member, others, root, f"{path}.{key}")
    return found


def _is(value: Any, kinds: str | list[str]) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    wanted = tuple(kind for name in names for kind in _TYPES[name])
    return isinstance(value, wanted) and (not isinstance(value, bool) or bool in wanted)

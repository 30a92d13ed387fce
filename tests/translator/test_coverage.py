"""Every operation of Tile IR has a row in the translator or a reason for having none; and each of its printed
forms, alone, is translated to the same program or refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import cuda.tile
import pytest

from tests.tileir import every_operation
from tests.tileir.conftest import tool
from tilebuild import toolchain
from tilebuild.tileir.compare import compare
from tilebuild.tileir.disassemble import disassemble
from tilebuild.tileir.operations import REGION_OPERATIONS, SYNTAX
from tilebuild.tileir.parse import parse
from tilebuild.tileir.tree import Block, Entry, Operation, Pointer, Scalar, TileType, TokenType, Type, Value
from tilebuild.translator.ops import OPS
from tilebuild.translator.program import Parameter, Program, Source
from tilebuild.translator.rungs import rung
from tilebuild.translator.translation import Translation, translate

ARCHITECTURE = "sm_100"

#: Operations without a row: the front end of cuda-tile 1.7.0 never encodes them at version 13.4.
NEVER_MADE = {
    "alloca": "encode_AllocaOp",
    "memory_fence_alias_tko": "encode_MemoryFenceAliasTkoOp",
    "ptr_to_ptr": "encode_PtrToPtrOp",
    "get_global": "encode_GetGlobalOp",  # for printing before 13.2 only, in _mutex.py
}
#: Operations with a row and without a case, for the same reason.
MADE_BY_OTHERS = {
    "get_tensor_shape": "encode_GetTensorShapeOp",
    "mulhii": "encode_MulhiIOp",
    "ptr_to_int": "encode_PtrToIntOp",
}
#: Operations that only end a block; the row of the block prints them.
ENDS = {"yield"}

#: Forms that are refused, by module and operation, with how many of them and why.
REFUSED = {
    ("constants", "constant"): (
        12,
        "tf32 infinities, NaN and -0.0; e5m3; tables of bool or with NaN: nothing in cutile writes them",
    ),
    ("conversions", "ftoi"): (2, "saturating: Python has no spelling"),
    ("conversions", "ptr_to_int"): (1, "Python has no spelling"),
    ("conversions", "int_to_ptr"): (1, "of a number that was a pointer before"),
    ("conversions", "ptr_to_ptr"): (2, "Python has no spelling"),
    ("globals_", "get_global"): (1, "Python has no spelling"),
    ("assumptions", "assume"): (1, "of every n-th element: Python has no spelling"),
    ("tensor_views", "make_tensor_view"): (1, "of a pointer with another attribute"),
    ("tensor_views", "ptr_to_ptr"): (1, "Python has no spelling"),
    ("tile_views", "get_index_space_shape"): (1, "of a gather view"),
    ("pointer_memory", "load_ptr_tko"): (24, "with allow_tma: Python has no spelling"),
    ("pointer_memory", "store_ptr_tko"): (24, "with allow_tma: Python has no spelling"),
    ("order_and_output", "print_tko"): (3, "`=` in the text of several values; no values, no order"),
    ("order_and_output", "memory_fence_alias_tko"): (1, "Python has no spelling"),
    ("order_and_output", "alloca"): (2, "Python has no spelling"),
    ("control_flow", "for"): (1, "over unsigned numbers: Python has no spelling"),
}
#: Forms that cutile 0.5.0 writes otherwise, of operations that Python has no spelling for.
OTHERWISE = {("tensor_views", "get_tensor_shape"), ("assumptions", "assume")}


def test_every_operation_has_a_row_or_a_reason() -> None:
    assert set(SYNTAX) | REGION_OPERATIONS == set(OPS) | set(NEVER_MADE) | ENDS
    assert not set(OPS) & (set(NEVER_MADE) | ENDS)


@pytest.mark.parametrize(("name", "encoder"), (NEVER_MADE | MADE_BY_OTHERS).items())
def test_the_front_end_does_not_make_what_has_no_case(name: str, encoder: str) -> None:
    package = Path(cuda.tile.__file__).parent
    own = ("encodings.py", "_mutex.py")
    users = [p for p in package.rglob("*.py") if p.name not in own and encoder in p.read_text()]
    assert not users, f"{name} can be made after all: it needs a row and a case"


# --- each form alone ------------------------------------------------------------------------------


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from tilebuild.tools import build_driver

    for name in ("driver", "cargo"):
        monkeypatch.setenv(f"TILEBUILD_TOOL_{name.upper()}", str(toolchain.tool(name).path))
    assert build_driver.main(["--out", str(tmp_path / "driver.json")]) == 0
    return Path(toolchain.tool("driver").path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed")
@pytest.mark.parametrize("module", every_operation.CASES)
def test_every_form_is_the_same_program_or_refused(module: str, driver: Path, tmp_path: Path) -> None:
    byte_code = every_operation.module(every_operation.CASES[module])
    entry = parse(disassemble(byte_code, tool("tileirdisasm")), module)
    forms: dict[str, list[Operation]] = defaultdict(list)
    for operation in entry.body.operations[:-1]:
        forms[operation.name].append(operation)
    refused: Counter[tuple[str, str]] = Counter()
    for name, operations in forms.items():
        printable = [o for o in operations if not _translated(*_alone(entry, [o])).refused]
        refused[module, name] = len(operations) - len(printable)
        if printable and (module, name) not in OTHERWISE:
            fact = _difference(*_alone(entry, printable), driver, tmp_path)
            assert not fact, f"{name}: {fact}"
    expected = {key: count for key, (count, _) in REFUSED.items() if key[0] == module}
    assert +refused == Counter(expected)


def _difference(entry: Entry, parameters: tuple[Parameter, ...], driver: Path, folder: Path) -> str:
    """How the Rust program differs from this one; empty if it does not."""
    made = _translated(entry, parameters)
    files = {name: folder / name for name in ("port.rs", "instance.json", "byte_code", "result.json")}
    files["port.rs"].write_text(made.text)
    files["instance.json"].write_text(json.dumps(made.instances["form"]))
    command = [str(driver), "--arch", ARCHITECTURE]
    for option, file in zip(("--port", "--instance", "--bytecode", "--result"), files.values(), strict=True):
        command += [option, str(file)]
    subprocess.run(command, check=True)
    result = json.loads(files["result.json"].read_text())
    if not result["ok"]:
        return str(result["message"])
    rust = parse(disassemble(files["byte_code"].read_bytes(), tool("tileirdisasm")))
    relation = compare(entry, rust, ARCHITECTURE)
    return "" if relation.same_normal_form else str(relation.difference)


def _translated(entry: Entry, parameters: tuple[Parameter, ...]) -> Translation:
    program = Program("form", entry, parameters, (), (), (), {}, ARCHITECTURE)
    return translate([program], Source("form.py", "", "form"), rung("raw"))


def _alone(entry: Entry, chosen: list[Operation]) -> tuple[Entry, tuple[Parameter, ...]]:
    """An entry of these operations and what they need; what they give is printed, so that it matters."""
    makers = {result: o for o in entry.body.operations for result in o.results}
    kept = {id(o) for o in chosen}
    pending = list(chosen)
    while pending:
        for value in _reads(pending.pop()):
            maker = makers.get(value)
            if maker is not None and id(maker) not in kept:
                kept.add(id(maker))
                pending.append(maker)
    types = list(entry.types)
    body: list[Operation] = []
    for operation in entry.body.operations:
        if id(operation) in kept:
            body.append(operation)
        if any(operation is o for o in chosen):
            for result in operation.results:
                body += _shown(result, types)
    used = {value for operation in body for value in _reads(operation)}
    slots = [(v, e) for v, e in zip(entry.parameters, every_operation.ELEMENTS, strict=True) if v in used]
    values = tuple(v for v, _ in slots)
    block = Block(values, (*body, entry.body.operations[-1]))
    parameters = tuple(_parameter(element) for _, element in slots)
    return replace(entry, parameters=values, body=block, types=tuple(types)), parameters


def _reads(operation: Operation, inside: frozenset[Value] = frozenset()) -> Iterable[Value]:
    """What an operation reads that is made outside of it."""
    yield from (v for v in operation.operands if v not in inside)
    for region in operation.regions:
        own = inside | set(region.arguments)
        for inner in region.operations:
            yield from _reads(inner, own)
            own |= set(inner.results)


def _shown(value: Value, types: list[Type]) -> list[Operation]:
    """Operations that print a value, or what lies behind it if it is a pointer."""
    kind = types[value]
    if not isinstance(kind, TileType):
        return []
    if isinstance(kind.element, Scalar):
        types.append(TokenType())
        return [Operation("print_tko", (value,), (len(types) - 1,), {"str": "%f"}, {"args": 1})]
    assert isinstance(kind.element, Pointer)
    assert isinstance(kind.element.pointee, Scalar)
    types += [TileType(kind.shape, kind.element.pointee), TokenType()]
    loaded = (len(types) - 2, len(types) - 1)
    load = Operation("load_ptr_tko", (value,), loaded, {"memory_ordering": "weak"}, {"source": 1})
    return [load, *_shown(loaded[0], types)]


_DTYPES = {
    "I1": "bool_",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "F32": "float32",
    "F8E4M3FN": "float8_e4m3fn",
    "F8E8M0FNU": "float8_e8m0fnu",
}


def _parameter(element: str) -> Parameter:
    """A scalar, or an array without axes: just its pointer."""
    dtype = _DTYPES[element.lstrip("*")]
    name = element.lstrip("*").lower()
    return Parameter(f"to_{name}", "array", dtype) if element[0] == "*" else Parameter(name, "scalar", dtype)

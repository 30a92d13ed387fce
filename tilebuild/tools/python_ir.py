"""Compiles one kernel of a cuTile Python file for one signature and architecture to Tile IR, with the real
front end.

    python_ir --source src.py --kernel NAME --signature signature.json --arch sm_90

A front end that refuses the kernel is a result (`status.json`), not a failure of this tool. What it writes:

- `kernel.tilebc`, `kernel.tileir`: byte code without debug information and its text; empty when refused
- `status.json`: `{"ok": true}` or `{"ok": false, "diagnostics": [...]}`
- `hints.json`: the entry's hints that hold on the architecture
- `interface.json`: one entry per Python parameter
- `names.json`: names, element types and places, in the numbering of `tilebuild.tileir.tree`
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import cuda.tile as ct
from cuda.tile._exception import Loc, TileError, TileTypeError

from tilebuild import faults
from tilebuild.diagnostics import Blame, Diagnostic, Note, Span, did_you_mean
from tilebuild.signature import Signature
from tilebuild.tileir.disassemble import InvalidByteCode, disassemble
from tilebuild.tools import protocol
from tilebuild.tools.frontend import compiler, problems, signatures
from tilebuild.tools.frontend.sources import Sources
from tilebuild.tools.frontend.stand_ins import StandIn, refusing_reads, stand_in_name

#: For the worker that forks one process per action: see `compiler.warm_up`.
warm_up = compiler.warm_up


def main(argv: Sequence[str]) -> int:
    arguments = _parse(argv)
    signature = Signature.from_json(json.loads(Path(arguments.signature).read_text()))
    sources = Sources(Path.cwd(), arguments.source)
    out = Path(arguments.out_dir)
    _write_empty(out)
    try:
        kernel = _find_kernel(sources, arguments.source, arguments.kernel, signature)
        names = list(kernel._annotated_function.pysig.parameters)
        signature = signatures.annotated(signature, kernel._annotated_function.parameter_annotations)
        _write_json(out / "hints.json", compiler.entry_hints(kernel, arguments.arch))
        _write_json(out / "interface.json", {"parameters": signatures.interface(names, signature)})
        compiled = _compile(sources, kernel, signature, arguments.arch)
        text = _text(sources, kernel, signature, arguments.arch, compiled)
        _write_compiled(out, sources, compiled, text, signatures.flat_names(names, signature))
    except _Refused as refused:
        _write_json(out / "status.json", {"ok": False, "diagnostics": [refused.diagnostic.to_json()]})
    finally:
        sources.close()
    return 0


class _Refused(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.fact)
        self.diagnostic = diagnostic


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python_ir")
    parser.add_argument("--source", required=True)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--signature", required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--out-dir", default=".")
    return parser.parse_args(argv)


def _find_kernel(sources: Sources, path: str, name: str, signature: Signature) -> Any:
    """The kernel object, with the signature's hints in place of its decorator's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a file warns of when it is imported concerns who runs it
            module = sources.load_file(path)
    except (FileNotFoundError, PermissionError) as error:
        help = "declare it: `data` of a tile_library in `deps`"
        diagnostic = replace(problems.of_import(error, sources, path), help=help)
        raise protocol.Unreadable(diagnostic, str(error.filename)) from error
    except Exception as error:
        if faults.exit_code(error):
            raise
        raise _Refused(problems.of_import(error, sources, path)) from error
    kernel = vars(module).get(name)
    if not isinstance(kernel, ct.kernel):
        raise _Refused(_not_a_kernel(sources, module, path, name))
    _check_arity(sources, kernel, signature)
    if not signature.hints:
        return kernel
    try:
        return kernel.replace_hints(**{key: _hint(value) for key, value in signature.hints})
    except (TypeError, ValueError) as error:
        raise _Refused(Diagnostic(f"the hints of kernel `{name}`: {error}", Blame.BUILD_FILE)) from error


def _not_a_kernel(sources: Sources, module: ModuleType, path: str, name: str) -> Diagnostic:
    if name not in vars(module):
        kernels = [key for key, value in vars(module).items() if isinstance(value, ct.kernel)]
        hint = did_you_mean(name, kernels) or (f"its kernels are {', '.join(kernels)}" if kernels else "")
        return Diagnostic(f"{path} has no kernel `{name}`", Blame.BUILD_FILE, Span(path), help=hint)
    found = vars(module)[name]
    span, text = problems.place_of_definition(name, path, sources)
    if type(found) is StandIn:
        maker = stand_in_name(found).replace("()", "")
        fact = f"`{name}` is what `{maker}` makes of it, and no declared source provides that"
        return Diagnostic(fact, Blame.KERNEL, span, text, help=f"declare the source of `{maker}` in `deps`")
    fact = f"`{name}` is no kernel but of type {type(found).__name__}"
    return Diagnostic(fact, Blame.KERNEL, span, text, help="decorate it with `@ct.kernel`")


def _check_arity(sources: Sources, kernel: Any, signature: Signature) -> None:
    names = list(kernel._annotated_function.pysig.parameters)
    given = len(signature.parameters)
    if len(names) != given:
        function = kernel._pyfunc
        fact = f"kernel `{function.__name__}` takes {len(names)} arguments, the launch gives {given}"
        span, text = problems.place_of_function(function, sources)
        raise _Refused(
            Diagnostic(
                fact, Blame.BUILD_FILE, notes=(Note(f"its parameters are {', '.join(names)}", span, text),)
            )
        )


def _hint(value: Any) -> Any:
    """A hint from JSON: a number, or `{"ByTarget": {"sm_90": …, "default": …}}`."""
    if isinstance(value, dict):
        return ct.ByTarget(**value.get("ByTarget", value))
    return value


def _compile(
    sources: Sources, kernel: Any, signature: Signature, arch: str, *, debug_information: bool = False
) -> compiler.Compiled:
    name = kernel._pyfunc.__name__
    span, text = problems.place_of_function(kernel._pyfunc, sources)
    try:
        given = signatures.kernel_signature(signature, name)
    except (TypeError, ValueError) as error:  # facts that contradict one another
        raise _Refused(Diagnostic(str(error), Blame.BUILD_FILE, span, text)) from error
    try:
        with refusing_reads(_refuse_read):
            return compiler.compile_kernel(kernel, given, arch, debug_information=debug_information)
    except TileError as error:
        raise _Refused(problems.of_front_end(error, sources)) from error
    except Exception as error:
        if faults.exit_code(error):
            raise
        raise _Refused(problems.of_crash(error, span, text)) from error


def _refuse_read(name: str) -> NoReturn:
    plain = name.replace("()", "")
    raise TileTypeError(
        f"the kernel reads `{plain}`, which no declared source provides\n"
        f"declare its source in `deps`, or pass the value as a `ct.Constant` parameter",
        compiler.current_place(),
    )


def _text(sources: Sources, kernel: Any, signature: Signature, arch: str, compiled: compiler.Compiled) -> str:
    """The byte code as text. What the vendor's own tool cannot read, no tool can: that is a refusal."""
    try:
        return disassemble(compiled.bytecode, protocol.tool_path("tileirdisasm"))
    except InvalidByteCode as error:
        span, text = problems.place_of_function(kernel._pyfunc, sources)
        located = _compile(sources, kernel, signature, arch, debug_information=True)
        words = _words_about(located.bytecode) or error.words
        diagnostic = problems.of_invalid_code(words, located.record.places, span, text, sources)
        raise _Refused(diagnostic) from error


def _words_about(bytecode: bytes) -> str:
    """What the disassembler has against the byte code."""
    try:
        disassemble(bytecode, protocol.tool_path("tileirdisasm"))
    except InvalidByteCode as error:
        return error.words
    return ""


def _write_compiled(
    out: Path, sources: Sources, compiled: compiler.Compiled, text: str, flat_names: Sequence[str]
) -> None:
    (out / "kernel.tilebc").write_bytes(compiled.bytecode)
    (out / "kernel.tileir").write_text(text)
    _write_json(out / "status.json", {"ok": True})
    _write_json(out / "names.json", _names(sources, compiled.record, flat_names))


def _write_empty(out: Path) -> None:
    """Every output, as it is for a kernel that is refused at once."""
    for name in ("kernel.tilebc", "kernel.tileir"):
        (out / name).write_bytes(b"")
    _write_json(out / "hints.json", {})
    _write_json(out / "interface.json", {"parameters": []})
    _write_json(out / "names.json", {"names": [], "dtypes": [], "locations": [], "location_table": []})


def _names(sources: Sources, record: compiler.Record, flat: Sequence[str]) -> dict[str, Any]:
    """cuda.tile calls the parts of an array `x_0`, `x_1`, …; ours say which part it is, wherever the value
    goes."""
    renamed = dict(zip(record.names, flat, strict=False))
    table: dict[Any, int] = {}
    locations = []
    for place in record.places:
        row = _location(place, sources)
        locations.append(-1 if row is None else table.setdefault(row, len(table)))
    return {
        "names": [renamed.get(name, name) for name in record.names],
        "dtypes": record.dtypes,
        "locations": locations,
        "location_table": list(table),
    }


def _location(place: Loc, sources: Sources) -> tuple[Any, ...] | None:
    """`(path, line, column, caller…)`, callers innermost first, each `(path, line, column)`."""
    if place.is_unknown() or place.filename is None:
        return None
    callers = []
    caller = place.call_site
    while caller is not None and caller.filename is not None:
        callers.append((sources.relative(caller.filename), caller.line, caller.col + 1))
        caller = caller.call_site
    return (sources.relative(place.filename), place.line, place.col + 1, *callers)


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    import sys

    sys.exit(protocol.run(main, sys.argv[1:]))

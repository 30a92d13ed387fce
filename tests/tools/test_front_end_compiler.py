"""The private names of cuda.tile that the front end listens to.

If one of these fails after an update of cuda-tile, look for the new place in its sources and change
`tilebuild/tools/frontend/compiler.py`, the only file that uses them:

- `_compile._get_bytecode(ir_keeper, options, *, anonymize_debug_info)` makes the byte code; `export_kernel`
  and `compile_tile` call it with False, and the flag must be True for byte code without paths and lines
- `_compile.eliminate_assign_ops(root)` removes the operations that carry Python's variable names
- `CodeBuilder.new_op`, `new_op_with_nested_blocks`, `_make_value_tuple` are called once per operation and
  value, in program order
- `BytecodeContext.set_value(variable, value)` ties an IR variable to a value, `loc(place)` holds the current
  place
"""

from __future__ import annotations

import inspect

import cuda.tile
from cuda.tile import _compile, _ir2bytecode
from cuda.tile._bytecode.code_builder import CodeBuilder

from tilebuild import toolchain
from tilebuild.tileir.disassemble import disassemble
from tilebuild.tools.frontend import compiler, sample


def test_the_pinned_version_is_installed() -> None:
    assert cuda.tile.__version__ == "1.7.0"


def test_private_names_have_their_parameters() -> None:
    def parameters(function: object) -> list[str]:
        return list(inspect.signature(function).parameters)  # type: ignore[arg-type]

    assert parameters(_compile._get_bytecode) == ["ir_keeper", "compiler_options", "anonymize_debug_info"]
    assert parameters(_compile.eliminate_assign_ops) == ["root_block"]
    assert parameters(CodeBuilder.new_op) == ["self", "num_results"]
    assert parameters(CodeBuilder.new_op_with_nested_blocks) == ["self", "num_results", "num_blocks"]
    assert parameters(CodeBuilder._make_value_tuple) == ["self", "length"]
    assert parameters(_ir2bytecode.BytecodeContext.set_value) == ["self", "var", "value"]
    assert parameters(_ir2bytecode.BytecodeContext.loc) == ["self", "loc"]


def test_byte_code_holds_no_debug_information() -> None:
    compiled = compiler.compile_kernel(sample.kernel, sample.signature(), "sm_90")
    assert b"sample.py" not in compiled.bytecode
    assert "di_loc" not in disassemble(compiled.bytecode, toolchain.tool("tileirdisasm").path, locations=True)


def test_listening_ends_with_the_compilation() -> None:
    before = (_compile._get_bytecode, CodeBuilder.new_op)
    compiler.compile_kernel(sample.kernel, sample.signature(), "sm_90")
    assert (_compile._get_bytecode, CodeBuilder.new_op) == before

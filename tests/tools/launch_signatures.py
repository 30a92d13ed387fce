"""What cuda.tile itself says of arrays: run as a program, since the stand-in driver must be there before
cuda.tile is.

Reads a JSON list of `[typestr, shape, byte strides, address]` and prints what
`KernelSignature.from_kernel_args` makes of a kernel launched with each of them, as
`tilebuild.signature.Signature` writes it.

cuda.tile takes its driver from the attribute `cuGetProcAddress_v2_ptrptr` of its module `_load_libcuda`: the
address of a pointer to a function. Ours answers the three functions that deriving a signature calls, and all
of them succeed.
"""

from __future__ import annotations

import ctypes
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

_VERSION = 13040
_Function = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_int,
    ctypes.c_uint64,
    ctypes.c_void_p,
)
_Success = ctypes.CFUNCTYPE(ctypes.c_int)
_Version = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))


def _version(place: Any) -> int:
    place[0] = _VERSION
    return 0


_succeed = _Success(lambda: 0)
_tell_version = _Version(_version)


def _find(name: bytes, place: Any, version: int, flags: int, status: Any) -> int:
    found = _tell_version if name == b"cuDriverGetVersion" else _succeed
    place[0] = ctypes.cast(found, ctypes.c_void_p).value
    return 0


_find_function = _Function(_find)
_pointer = ctypes.c_void_p(ctypes.cast(_find_function, ctypes.c_void_p).value)


def main() -> int:
    driver = ModuleType("cuda.tile._load_libcuda")
    vars(driver)["cuGetProcAddress_v2_ptrptr"] = ctypes.addressof(_pointer)
    sys.modules[driver.__name__] = driver

    import cuda.tile as ct
    from cuda.tile.compilation import CallingConvention, KernelSignature

    @ct.kernel
    def kernel(x):  # type: ignore[no-untyped-def]
        pass

    answers = []
    for typestr, shape, strides, address in json.load(sys.stdin):
        array = SimpleNamespace(
            __cuda_array_interface__={
                "typestr": typestr,
                "shape": tuple(shape),
                "strides": tuple(strides),
                "data": (address, False),
                "version": 3,
            }
        )
        found = KernelSignature.from_kernel_args(kernel, (array,), CallingConvention.cutile_python_v2())
        answers.append(_described(found.parameters[0]))
    json.dump(answers, sys.stdout)
    return 0


def _described(constraint: Any) -> dict[str, Any]:
    fields = dict(vars(constraint))
    for name in ("dtype", "index_dtype"):
        fields[name] = str(fields[name])
    return fields


if __name__ == "__main__":
    sys.exit(main())

"""Holds the house to its laws: which room may import which, read from the source with `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tilebuild"

VERBS = {"loading", "analysis", "execution", "query", "reporting", "watching"}
LIBRARIES = {"translator", "tileir", "interpreter", "gpu"}
SHELLS = {"session", "device_work", "cli", "_boot", "__main__"}
#: Libraries may know these nouns and no other module of the tool.
LIBRARY_NOUNS = {"diagnostics", "faults"}
#: Nouns that travel with the GPU runner to a machine without the tool: arithmetic, nothing of a build.
RUNNER_NOUNS = {"bound", "fills", "measurement", "paired"}
#: The one data type that libraries share.
SHARED = {"tilebuild.tileir.tree"}
#: Modules that a pure room may not import: effects belong to the seams.
EFFECTS = {"os", "subprocess", "socket", "time", "shutil", "tempfile"}
PURE = (
    "analysis",
    "query",
    "translator",
    "interpreter",
    "tileir",
    "execution/schedule.py",
    "execution/fingerprint.py",
)
SEAMS = {"tileir/assemble.py", "tileir/disassemble.py"}


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every imported module with its line; imports for type checkers only do not count."""
    tree = ast.parse(path.read_text())
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.update(ast.walk(node))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if is_module(inner) else node.module, node.lineno


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def room(module: str) -> str:
    """`tilebuild.loading.globs` -> `loading`; a noun is its own room."""
    return module.split(".")[1] if module.count(".") else ""


def broken(name: str, module: str) -> str:
    """Why the file `name` may not import `module`, or the empty string."""
    if module == "tilebuild":
        return "nothing imports the package's root"
    if not module.startswith("tilebuild."):
        return ""
    here, there = name.split("/")[0].removesuffix(".py"), room(module)
    if here == there or here in SHELLS:
        return ""
    if there in SHELLS:
        return "nothing below the shells imports them"
    if here in LIBRARIES:
        allowed = there in LIBRARY_NOUNS or module in SHARED or (here == "gpu" and there in RUNNER_NOUNS)
        return "" if allowed else "a library knows diagnostics, faults and the Tile IR tree only"
    if here in VERBS:
        return "" if there not in VERBS | LIBRARIES | {"tools"} else "verbs know nouns and the cache only"
    if here == "tools":
        return "tools know libraries and nouns only" if there in VERBS | {"cache"} else ""
    if here == "cache":
        return "the cache knows bytes and digests only"
    return "nouns know nouns only" if there in VERBS | LIBRARIES | {"tools"} else ""


@pytest.mark.parametrize(
    ("name", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_imports_keep_the_layers(name: str, path: Path) -> None:
    found = [
        f"line {line}: {module}: {why}" for module, line in imports(path) if (why := broken(name, module))
    ]
    assert not found, f"{name}: " + "; ".join(found)


def test_pure_rooms_have_no_effects() -> None:
    found = [
        f"{name}:{line} imports {module}"
        for name, path in modules()
        if name.startswith(PURE) and name not in SEAMS
        for module, line in imports(path)
        if module.split(".")[0] in EFFECTS
    ]
    assert not found


def test_every_file_opens_with_its_law() -> None:
    silent = [
        name
        for name, path in modules()
        if path.stat().st_size and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent


def test_no_utility_drawers() -> None:
    drawers = [
        name for name, _ in modules() if Path(name).stem in {"utils", "util", "common", "core", "misc"}
    ]
    assert not drawers

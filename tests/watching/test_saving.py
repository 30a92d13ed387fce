"""How editors save: each way is one build. The events are the kernel's, the clock is ours.

An editor is a generator: it does a step, and yields the seconds until its next one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilebuild.watching.hints import EventHints, Hints, PollingHints
from tilebuild.watching.sentinel import Sentinel
from tilebuild.watching.snapshot import Change, Scope

Editor = Callable[[Path], Iterator[float]]

_TICK_S = 0.01
_NEW = "new text\n"


class Bench:
    """A sentinel over a few files, without its thread; `builds` are what each report of it held."""

    def __init__(self, root: Path, hints: Hints) -> None:
        self.root = root
        self.now = 1000.0
        self.reports = 0
        self.told: list[str] = []
        self.sentinel = Sentinel(
            hints, lambda path: Path(path).read_bytes(), self.told.append, lambda: self.now
        )
        self.sentinel.building(self._count)
        for name in ("kernels/a.py", "kernels/b.py", "kernels/BUILD", "tilebuild.toml"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(f"text of {name}\n")
        self.watch("kernels/a.py", "kernels/b.py", "kernels/BUILD", "tilebuild.toml")

    def watch(self, *names: str, complete: bool = True) -> None:
        files = frozenset(str(self.root / name) for name in names)
        folders = frozenset({str(self.root), str(self.root / "kernels")})
        self.sentinel.adopt(Scope(files, folders), complete=complete)
        self.rest()

    def rest(self, seconds: float = 1.0) -> None:
        end = self.now + seconds
        while self.now < end:
            self.sentinel.step()
            self.now += _TICK_S

    def play(self, editor: Iterator[float]) -> None:
        for pause in editor:
            self.rest(pause)
        self.rest()

    def news(self) -> dict[str, str]:
        """What the next build is for; there must be something."""
        assert self.reports
        self.reports = 0
        found = self.sentinel.wait().changes
        return {change.path.removeprefix(f"{self.root}/"): change.kind for change in found}

    def _count(self) -> None:
        self.reports += 1


@pytest.fixture(params=["events", "polling"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    hints: Hints = EventHints(str(tmp_path)) if request.param == "events" else PollingHints()
    found = Bench(tmp_path, hints)
    yield found
    found.sentinel.close()


def vim(file: Path) -> Iterator[float]:
    """Renames the old file to a backup and writes a new one."""
    swap = file.with_name(f".{file.name}.swp")
    swap.write_text("swap")
    yield 0.05
    probe = file.with_name("4913")
    probe.touch()
    probe.unlink()
    backup = file.with_name(f"{file.name}~")
    file.rename(backup)
    yield 0.01
    file.touch()
    yield 0.01
    file.write_text(_NEW)
    file.chmod(0o644)
    yield 0.01
    backup.unlink()
    yield 0.3
    swap.unlink()


def vim_that_copies(file: Path) -> Iterator[float]:
    """`backupcopy=yes`: copies the old file, then writes into it; the backup stays."""
    shutil.copy(file, file.with_name(f"{file.name}~"))
    yield 0.01
    file.write_text("")
    yield 0.02
    file.write_text(_NEW)


def vscode(file: Path) -> Iterator[float]:
    """Truncates, then writes."""
    file.write_text("")
    yield 0.05
    file.write_text(_NEW)


def vscode_atomic(file: Path) -> Iterator[float]:
    temporary = file.with_name(f"{file.name}.vsctmp")
    temporary.write_text(_NEW)
    yield 0.02
    temporary.rename(file)


def jetbrains(file: Path) -> Iterator[float]:
    """Safe write: the old file steps aside, the new one steps in."""
    new = file.with_name(f"{file.name}___jb_tmp___")
    old = file.with_name(f"{file.name}___jb_old___")
    new.write_text(_NEW)
    yield 0.02
    file.rename(old)
    yield 0.02
    new.rename(file)
    yield 0.02
    old.unlink()


def emacs(file: Path) -> Iterator[float]:
    lock = file.with_name(f".#{file.name}")
    lock.symlink_to("me@machine.1:2")
    yield 0.5
    file.rename(file.with_name(f"{file.name}~"))
    yield 0.01
    file.write_text(_NEW)
    lock.unlink()


def sed(file: Path) -> Iterator[float]:
    temporary = file.with_name("sedAb12Cd")
    temporary.write_text(_NEW)
    temporary.rename(file)
    yield 0.0


def delete_and_create(file: Path) -> Iterator[float]:
    """Over a slow connection."""
    file.unlink()
    yield 0.4
    file.write_text(_NEW)


def formatter(file: Path) -> Iterator[float]:
    """VS Code saves, and a formatter that was started by the save writes the file once more."""
    yield from vscode(file)
    yield 0.12
    file.write_text(f"# formatted\n{_NEW}")


def formatter_without_effect(file: Path) -> Iterator[float]:
    """It writes the same text again, when the build has begun."""
    yield from vscode(file)
    yield 0.5
    file.write_text(_NEW)


def slow_writer(file: Path) -> Iterator[float]:
    for count in range(1, 12):
        file.write_text(_NEW * count)
        yield 0.1


def save_all(file: Path) -> Iterator[float]:
    """Two files and a BUILD file at once."""
    for name in (file.name, "b.py", "BUILD"):
        yield from jetbrains(file.with_name(name))


@pytest.mark.parametrize(
    "editor",
    [
        vim,
        vim_that_copies,
        vscode,
        vscode_atomic,
        jetbrains,
        emacs,
        sed,
        delete_and_create,
        formatter,
        formatter_without_effect,
        slow_writer,
    ],
)
def test_a_save_is_one_build(bench: Bench, editor: Editor) -> None:
    for _ in range(2):  # the second time everything is a new inode
        bench.play(editor(bench.root / "kernels/a.py"))
        assert bench.reports == 1
        assert bench.news() == {"kernels/a.py": "saved"}
        (bench.root / "kernels/a.py").write_text("the text before\n")
        bench.rest()
        assert bench.news() == {"kernels/a.py": "saved"}


def test_saving_all_is_one_build(bench: Bench) -> None:
    bench.play(save_all(bench.root / "kernels/a.py"))
    assert bench.reports == 1
    assert bench.news() == dict.fromkeys(["kernels/a.py", "kernels/b.py", "kernels/BUILD"], "saved")


def test_a_checkout_of_a_thousand_files_is_one_build(bench: Bench) -> None:
    names = [f"kernels/{number}.py" for number in range(1000)]
    for name in names:
        (bench.root / name).write_text("old")
    bench.watch("kernels/a.py", *names)
    bench.news()

    def checkout() -> Iterator[float]:
        (bench.root / ".git").mkdir()
        (bench.root / ".git/index.lock").touch()
        for number, name in enumerate(names):
            (bench.root / name).unlink()
            (bench.root / name).write_text("new")
            if number % 50 == 0:
                yield 0.1

    bench.play(checkout())
    assert bench.reports == 1
    assert bench.news() == dict.fromkeys(names, "saved")


def test_no_new_text_is_no_build(bench: Bench) -> None:
    file = bench.root / "kernels/a.py"
    text = file.read_text()
    file.touch()
    bench.rest()
    file.write_text(text)
    bench.rest()
    file.write_text("undone at once")
    bench.rest(0.05)
    file.write_text(text)
    bench.rest()
    os.replace(shutil.copy(file, file.with_name("copy.tmp")), file)
    bench.rest()
    assert bench.reports == 0


def test_files_beside_the_source_are_no_build(bench: Bench) -> None:
    for name in ("kernels/.a.py.swp", "kernels/a.py~", "kernels/4913"):
        (bench.root / name).touch()
    for name in ("kernels/__pycache__", ".git", ".ruff_cache"):
        (bench.root / name).mkdir()
    (bench.root / "elsewhere").mkdir()
    bench.rest()
    assert bench.news() == {"elsewhere/": "new"}
    (bench.root / "elsewhere/x.py").touch()  # no pattern looked there
    bench.rest()
    assert bench.reports == 0


def test_a_new_file_and_one_that_is_gone_are_builds(bench: Bench) -> None:
    (bench.root / "kernels/new.py").touch()
    bench.rest()
    assert bench.news() == {"kernels/new.py": "new"}
    (bench.root / "kernels/b.py").unlink()
    bench.rest()
    assert bench.news() == {"kernels/b.py": "gone"}


def test_settings_are_watched(bench: Bench) -> None:
    bench.play(jetbrains(bench.root / "tilebuild.toml"))
    assert bench.news() == {"tilebuild.toml": "saved"}


def test_a_folder_that_is_made_again_is_still_watched(bench: Bench) -> None:
    kernels = bench.root / "kernels"
    kernels.rename(bench.root / "away.tmp")
    bench.rest(0.3)
    shutil.copytree(bench.root / "away.tmp", kernels)
    bench.rest()
    assert bench.reports == 0
    bench.play(vim(kernels / "a.py"))
    assert bench.reports == 1
    assert bench.news() == {"kernels/a.py": "saved"}
    shutil.rmtree(kernels)
    bench.rest()
    assert bench.news()["kernels/"] == "gone"
    shutil.copytree(bench.root / "away.tmp", kernels)
    bench.rest()
    assert bench.news()["kernels/a.py"] == "new"
    bench.play(vscode(kernels / "a.py"))
    assert bench.news() == {"kernels/a.py": "saved"}


def test_the_target_of_a_link_is_watched(bench: Bench) -> None:
    (bench.root / "shared").mkdir()
    (bench.root / "shared/real.py").write_text("old")
    (bench.root / "kernels/link.py").symlink_to("../shared/real.py")
    bench.watch("kernels/link.py")
    bench.news()
    bench.play(jetbrains(bench.root / "shared/real.py"))
    assert bench.news() == {"kernels/link.py": "saved"}


def test_a_change_after_a_broken_load_keeps_what_was_watched(bench: Bench) -> None:
    bench.watch("kernels/BUILD", complete=False)
    bench.play(vscode(bench.root / "kernels/a.py"))
    assert bench.news() == {"kernels/a.py": "saved"}


def test_a_file_that_changed_while_the_build_began_is_built_again(bench: Bench) -> None:
    file = bench.root / "kernels/late.py"
    file.write_text("as it is now")
    bench.rest()
    bench.news()
    scope = Scope(frozenset({str(file)}), read={str(file): b"as the build read it"})
    bench.sentinel.adopt(scope, complete=True)
    bench.rest()
    assert bench.news() == {"kernels/late.py": "saved"}


def test_a_newer_save_cancels_the_build_that_runs(bench: Bench) -> None:
    cancelled: list[str] = []
    bench.sentinel.building(lambda: cancelled.append("first"))
    bench.play(vscode(bench.root / "kernels/a.py"))
    bench.sentinel.building(None)
    assert cancelled == ["first"]
    assert bench.sentinel.wait().changes == (Change(str(bench.root / "kernels/a.py"), "saved"),)
    bench.play(jetbrains(bench.root / "kernels/b.py"))  # nothing runs
    assert cancelled == ["first"]
    bench.sentinel.building(lambda: cancelled.append("second"))  # out of date before it begins
    assert cancelled == ["first", "second"]


class Refusing(PollingHints):
    """The kernel allows no more watches from some moment on."""

    refuses = False
    closed = False

    def cover(self, scope: Scope) -> bool:
        if self.refuses:
            raise OSError(28, "No space left on device")
        return super().cover(scope)

    def close(self) -> None:
        self.closed = True


def test_without_more_watches_it_goes_on_by_looking(tmp_path: Path) -> None:
    hints = Refusing()
    bench = Bench(tmp_path, hints)
    hints.refuses = True
    bench.watch("kernels/a.py")
    assert hints.closed
    assert len(bench.told) == 1
    assert "max_user_watches" in bench.told[0]
    bench.play(vim(bench.root / "kernels/a.py"))
    assert bench.news() == {"kernels/a.py": "saved"}


def test_an_error_of_the_thread_reaches_who_waits(tmp_path: Path) -> None:
    class Broken(PollingHints):
        def arrived(self, now: float) -> bool:
            raise ValueError("broken")

    sentinel = Sentinel(Broken(), lambda path: None, lambda text: None)
    sentinel.start()
    with pytest.raises(ValueError, match="broken"):
        sentinel.wait()
    sentinel.close()

"""Each mistake gets one clear message and its exit code."""

from __future__ import annotations

import pytest

from tests.end_to_end.space import Space

COMMAND_LINE = {
    "unknown command": (["biuld"], "no command 'biuld'; did you mean 'build'?"),
    "no pattern": (["build"], "Missing argument"),
    "unknown option": (["build", "--foo", "//..."], "No such option"),
    "unknown key": (["info", "workspce"], "did you mean 'workspace'?"),
    "no such folder": (["-C", "nowhere", "build", "//..."], "cannot enter nowhere"),
    "wrong architecture": (["build", "--arch", "h100", "//..."], "'h100' is not an architecture"),
}
BUILD_FILE = {
    "label typo": (["build", "//text:cuont"], "did you mean 'count'?"),
    "package typo": (["build", "//txet:count"], "no package 'txet'"),
    "query syntax": (["query", "deps("], "query"),
    "label typo of show": (["show", "//text:cuont"], "did you mean 'count'?"),
    "label typo of why": (["why", "//text:cuont"], "did you mean 'count'?"),
    "no port": (["show", "//text:count"], "//text:count has no port to show"),
}


@pytest.mark.parametrize("name", COMMAND_LINE)
def test_a_wrong_command_line(space: Space, name: str) -> None:
    arguments, message = COMMAND_LINE[name]
    done = space.run(*arguments)
    assert done.code == 2, done.text
    assert message in done.err
    assert "Traceback" not in done.text


@pytest.mark.parametrize("name", BUILD_FILE)
def test_a_wrong_target(space: Space, name: str) -> None:
    arguments, message = BUILD_FILE[name]
    done = space.run(*arguments)
    assert done.code == 7, done.text
    assert message in done.err
    assert "Traceback" not in done.text


def test_outside_a_workspace(space: Space) -> None:
    (space.root / "tilebuild.toml").unlink()
    done = space.run("build", "//...")
    assert done.code == 2
    assert "is not inside a tilebuild workspace" in done.err


def test_wrong_settings(space: Space) -> None:
    space.write("tilebuild.toml", "architecturs = ['sm_90']\n")
    done = space.run("build", "//...")
    assert done.code == 2
    assert "did you mean 'architectures'?" in done.err


def test_a_missing_source(space: Space) -> None:
    (space.root / "text/in.txt").unlink()
    done = space.run("build", "//text:count")
    assert done.code == 7
    assert "in.txt" in done.err
    assert "text/BUILD:" in done.err


def test_a_source_that_goes_away_before_it_is_read(space: Space) -> None:
    (space.root / "text/in.txt").unlink()
    (space.root / "text/in.txt").symlink_to("nowhere")
    done = space.run("build", "//text:count")
    assert done.code in (1, 7)
    assert "in.txt" in done.err
    assert "Traceback" not in done.text


def test_a_load_from_a_root_that_is_no_package(space: Space) -> None:
    space.write("op.bzl", "x = 1\n")
    space.write("loads/BUILD", 'load("//:op.bzl", "x")\n')
    done = space.run("build", "//loads/...")
    assert done.code == 7
    assert "the root is no package" in done.err
    assert "add an empty file BUILD at the root of the workspace" in done.err


def test_no_tests(space: Space) -> None:
    done = space.run("test", "//text/...")
    assert done.code == 4
    assert "no tests found" in done.err


def test_a_full_or_forbidden_disk_is_the_machines_fault(space: Space) -> None:
    (space.folder / "cache").write_text("a file where a folder should be")
    done = space.run("build", "//text:count")
    assert done.code in (36, 37)
    assert "cache" in done.err


def test_help_and_version(space: Space) -> None:
    assert "Commands:" in space.ok("--help").out
    assert "PATTERNS" in space.ok("build", "-h").out
    assert space.ok("--version").out.startswith("tilebuild, version ")
    assert space.run().code in (0, 2)


def test_keep_going_builds_what_is_sound(space: Space) -> None:
    space.write("broken/BUILD", 'genrule(name = "g", outs = ["x"], cmd = "echo > $@", srcs = [":nothing"])')
    assert space.run("build", "//...").code == 7
    done = space.run("build", "-k", "//...")
    assert done.code == 1
    assert "broken/BUILD:1:" in done.err
    assert "//text:count  ok" in done.out
    assert "FAILED: 1 problem kept targets from being built" in done.out


def test_an_output_folder_that_is_none(space: Space) -> None:
    (space.root / "tilebuild-out").write_text("mine\n")
    done = space.run("build", "//text:count")
    assert done.code == 36
    assert "tilebuild-out is no folder" in done.text
    assert (space.root / "tilebuild-out").read_text() == "mine\n"

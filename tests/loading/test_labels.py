"""Labels and target patterns, as Bazel reads them."""

from __future__ import annotations

import re

import pytest

from tilebuild.diagnostics import DiagnosticError
from tilebuild.label import Label, LabelError, parse_pattern


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("//a/b:c", "//a/b:c"),
        ("//a/b", "//a/b:b"),
        ("//:x", "//:x"),
        (":x", "//p:x"),
        ("x", "//p:x"),
        ("d/x.py", "//p:d/x.py"),
        ("@//a:b", "//a:b"),
        ("@@//a:b", "//a:b"),
        ("@tilebuild//rules:x.py", "@tilebuild//rules:x.py"),
        ("//p:x/.", "//p:x"),
        ("//p:a+b=c,d@e~f g", "//p:a+b=c,d@e~f g"),
    ],
)
def test_labels(text: str, label: str) -> None:
    assert str(Label.parse(text, "p")) == label


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("/a:b", "a label starts with exactly two slashes"),
        ("///a:b", "a label starts with exactly two slashes"),
        ("//a//b:c", "package names may not contain '//'"),
        ("//a/:b", "package names may not end with '/'"),
        ("//a:", "the name is empty"),
        ("", "the name is empty"),
        ("//a:b/", "target names may not end with '/'"),
        ("//a:/b", "target names may not start with '/'"),
        ("//a:../b", "up-level references '..' are not allowed"),
        ("//a:./b", "'.' as a path segment is not allowed"),
        ("//a:b//c", "an empty path segment is not allowed"),
        ("//a:b:c", "character ':' is not allowed"),
        ("//a\\b:c", "character '\\\\' is not allowed"),
        ("//a/.../b", "a segment consists of dots only"),
        ("@nosuch//a:b", "no repository '@nosuch'"),
    ],
)
def test_malformed_labels(text: str, fact: str) -> None:
    with pytest.raises(LabelError, match=re.escape(fact)):
        Label.parse(text, "p")


def test_subclasses_are_equal_to_plain_labels() -> None:
    class SpecialLabel(Label):
        pass

    assert SpecialLabel("p", "x") == Label("p", "x")
    assert {Label("p", "x"): 1}[SpecialLabel("p", "x")] == 1


def test_spellings() -> None:
    assert Label("a/b", "b").spellings("a/b") == ("//a/b:b", ":b", "b", "//a/b")
    assert Label("a", "b").spellings("c") == ("//a:b",)


@pytest.mark.parametrize(
    ("text", "cwd", "expected"),
    [
        ("//...", "", ("recursive", "", "", False)),
        ("//a/...", "", ("recursive", "a", "", False)),
        ("//a/...:*", "", ("recursive", "a", "", True)),
        ("//a/...:all", "", ("recursive", "a", "", False)),
        ("...", "a", ("recursive", "a", "", False)),
        ("b/...", "a", ("recursive", "a/b", "", False)),
        ("//a:all", "", ("package", "a", "all", False)),
        ("//a:*", "", ("package", "a", "*", True)),
        ("//a:all-targets", "", ("package", "a", "all-targets", True)),
        (":all", "a", ("package", "a", "all", False)),
        ("//a/b", "", ("target", "a/b", "b", False)),
        ("//a:b", "", ("target", "a", "b", False)),
        (":b", "a", ("target", "a", "b", False)),
        ("b:c", "a", ("target", "a/b", "c", False)),
        ("b/c", "a", ("path", "a/b/c", "", False)),
    ],
)
def test_patterns(text: str, cwd: str, expected: tuple[str, str, str, bool]) -> None:
    pattern = parse_pattern(text, cwd)
    assert (pattern.kind, pattern.package, pattern.name, pattern.everything) == expected
    assert not pattern.negative
    assert parse_pattern(f"-{text}", cwd).negative


@pytest.mark.parametrize(
    "text", ["/a:b", "///a:b", "//a/...:b", "//a//b:all", "@tilebuild//rules:all", "-", ""]
)
def test_malformed_patterns(text: str) -> None:
    with pytest.raises(DiagnosticError, match="invalid"):
        parse_pattern(text)


def test_a_recursive_pattern_compares_segments() -> None:
    pattern = parse_pattern("//foo/...")
    assert pattern.covers("foo")
    assert pattern.covers("foo/bar")
    assert not pattern.covers("food")

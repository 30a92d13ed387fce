"""Building from the command line: what is made, what is said, what is not done again."""

from __future__ import annotations

import os
import re

from tests.end_to_end.space import Space
from tilebuild.cli.why import together


def test_a_build_makes_files_and_says_where(space: Space) -> None:
    done = space.ok("build", "//text:count")
    assert "//text:count  ok\n  tilebuild-out/text/count/count.txt\n" in done.out
    assert done.counts == {"ran": 2}
    assert space.read("text/count/count.txt") == "2\n"


def test_only_what_was_asked_for_is_published(space: Space) -> None:
    space.ok("build", "//text:count")
    assert not (space.root / "tilebuild-out/text/upper").exists()
    space.ok("build", "//text/...")
    assert space.read("text/upper/upper.txt") == "A\nB\n"


def test_progress_is_one_line_per_action(space: Space) -> None:
    lines = space.ok("build", "//text:count").err.splitlines()
    assert len(lines) == 2
    assert re.fullmatch(r"Genrule //text:upper \S* ?ran in [\d.]+ s", lines[0])
    assert space.ok("build", "//text:all").err == "", "nothing is said about results that were there"


def test_patterns_relative_to_a_folder(space: Space) -> None:
    for pattern in (":count", "count", "//text:count", "...", ":all"):
        assert "//text:count" in space.ok("build", pattern, cwd="text").out


def test_an_edit_runs_what_it_changes(space: Space) -> None:
    space.ok("build", "//text:count")
    space.write("text/in.txt", "c\nd\n")
    assert space.ok("build", "//text:count").counts == {"ran": 2}
    space.write("text/in.txt", "C\nD\n")
    assert space.ok("build", "//text:count").counts == {"ran": 1, "cached": 1}, "cut off by equal content"


def test_another_clone_shares_the_cache(space: Space) -> None:
    space.ok("build", "//text:count")
    space.root.rename(space.folder / "elsewhere")
    (space.folder / "elsewhere").rename(space.root)
    (space.root / "tilebuild-out").rename(space.folder / "old-output")
    assert space.ok("build", "//text:count").counts == {"cached": 2}


def test_a_renamed_output_takes_the_old_file_away(space: Space) -> None:
    space.ok("build", "//text:upper")
    build = (space.root / "text/BUILD").read_text()
    space.write("text/BUILD", build.replace("upper.txt", "large.txt"))
    space.ok("build", "//text:upper")
    assert os.listdir(space.root / "tilebuild-out/text/upper") == ["large.txt"]


def test_deleted_and_edited_outputs_come_back(space: Space) -> None:
    space.ok("build", "//text:count")
    output = space.root / "tilebuild-out/text/count/count.txt"
    output.unlink()
    space.ok("build", "//text:count")
    assert output.read_text() == "2\n"
    output.chmod(0o644)
    output.write_text("9\n")
    space.ok("build", "//text:count")
    assert output.read_text() == "2\n"


def test_a_failure_is_one_error_and_one_line_per_target(space: Space) -> None:
    space.write("bad/BUILD", 'genrule(name = "bad", outs = ["x"], cmd = "echo no luck >&2; exit 3")')
    done = space.run("build", "//bad", "//text:count", "-k")
    assert done.code == 1
    assert done.err.count("no luck") == 1
    assert done.out.count("FAILED //bad:bad: Genrule") == 1
    assert "//text:count  ok" in done.out
    assert "build: 1 of 2 targets failed" in done.out


def test_a_dry_run_says_what_would_run(space: Space) -> None:
    done = space.ok("build", "//text:count", "--dry-run")
    assert "would run Genrule //text:upper" in done.out
    assert "may run after those: 1 action" in done.out
    assert not (space.root / "tilebuild-out/text").exists()


def test_why(space: Space) -> None:
    space.ok("build", "//text:count")
    assert "it has not been built here before" in space.ok("why", "//text:count").out
    space.write("text/in.txt", "c\n")
    told = space.ok("why", "//text:count").out
    assert "input text/in.txt changed" in told
    assert "1 action may run after those" in told
    space.ok("build", "//text:count")
    told = space.ok("why", "//text:count").out
    assert "//text:count is built" in told
    assert "input text/upper/upper.txt changed" in told


def test_why_says_what_actions_share_once() -> None:
    edit = ("input k.py changed",)
    rows = [(f"RustIr softmax s{i}/sm_90", "would run", edit) for i in range(4)]
    rows += [("Translate softmax safe", "took 0.10 s", edit)]
    assert list(together(rows)) == [
        "RustIr ×4 would run, the first of them RustIr softmax s0/sm_90",
        "  input k.py changed",
        "Translate softmax safe took 0.10 s",
        "  input k.py changed",
    ]


def test_log_lists_what_ran(space: Space) -> None:
    assert space.ok("log").err == "there was no build yet\n"
    space.ok("build", "//text:count")
    assert [line.split()[0] for line in space.ok("log").out.splitlines()] == ["ran", "ran"]
    space.ok("build", "//text:all")
    assert space.ok("log").out == ""
    assert len(space.ok("log", "--all").out.splitlines()) == 2


def test_json_events(space: Space) -> None:
    events = space.events("build", "--json", "//text:count")
    assert {event["version"] for event in events} == {1}
    finished = [event for event in events if event["event"] == "finished"]
    assert [event["status"] for event in finished] == ["ran", "ran"]
    assert len(finished[0]["key"].partition("/")[0]) == 64
    report = events[-1]
    assert report["event"] == "report"
    assert report["exit_code"] == 0
    assert report["targets"][0]["files"] == ["text/count/count.txt"]


def test_json_errors(space: Space) -> None:
    (event,) = [e for e in space.events("build", "--json", "//text:nope") if e["event"] == "error"]
    assert event["exit_code"] == 7
    assert "nope" in event["diagnostics"][0]["fact"]


def test_clean_removes_outputs_and_keeps_the_cache(space: Space) -> None:
    space.ok("build", "//text:count")
    space.ok("clean")
    assert os.listdir(space.root / "tilebuild-out") in ([".tilebuild"], [])
    assert space.ok("build", "//text:count").counts == {"cached": 2}


def test_the_cache_can_be_looked_after(space: Space) -> None:
    space.ok("build", "//text:count")
    assert "results: 2" in space.ok("cache", "stats").out
    assert space.ok("cache", "verify").out == "0 damaged blobs\n"
    assert space.ok("cache", "gc").out == "dropped 0 results, 0 blobs, 0 bytes\n"
    assert space.ok("cache", "gc", "--limit=0").out == "dropped 2 results, 2 blobs, 6 bytes\n"
    space.write("text/in.txt", "c\nd\n")
    assert space.ok("build", "//text:count").counts == {"ran": 2}
    space.ok("cache", "purge")
    assert "results: 0" in space.ok("cache", "stats").out


def test_a_damaged_cache_is_repaired(space: Space) -> None:
    space.ok("build", "//text:count")
    space.ok("clean")
    for blob in (space.folder / "cache").rglob("cas/*/*"):
        blob.chmod(0o644)
        blob.write_text("garbage")
    for result in (space.folder / "cache").rglob("ac/*/*"):
        result.write_text("garbage")
    assert space.ok("build", "//text:count").counts == {"ran": 2}
    assert space.read("text/count/count.txt") == "2\n"

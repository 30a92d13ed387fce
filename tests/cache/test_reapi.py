"""Keys are REAPI keys: golden bytes made with protobuf's deterministic serialisation, and the laws of
the form.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilebuild.cache.digest import EMPTY, Digest, digest_of_bytes
from tilebuild.cache.reapi import FileEntry, encode_action, encode_command, encode_platform, encode_tree

COMMAND = (
    "0a09707974686f6e5f69720a082d2d736f757263650a0a736f66746d61782e70790a0012060a014112013112060a01421201"
    "322a0d0a0b0a036770751204683230303a01613a05622f6f7574"
)
ROOT = (
    "0a4e0a067372632e707912440a40326437313136343262373236623034343031363237636139666261633332663563383533"
    "306662313930336363346462303232353837313739323161343838311001124e0a062e746f6f6c7312440a40353565663331"
    "3065646265333362316237616437353765376535326137356431616136313437353834653135316138303661663535656133"
    "3434636536363765104f124a0a02733012440a40386562633863373564356266646463653762666539623261663931393531"
    "37373030636464376231303833393261346230656466323434643234643236636466104f"
)
ACTION = (
    "0a440a4061346432373262366639323461393936616562353037396362356133303962343666376631303632333736633233"
    "346165626639646135626263633464393634104c12450a406234386461326230646164366262333438633035363466303434"
    "616132643365623437383331643230633036636238646132313366623363396638323963626610ec01320308d8044a013152"
    "0d0a0b0a03677075120468323030"
)


def command() -> bytes:
    arguments = ["python_ir", "--source", "softmax.py", ""]
    return encode_command(arguments, [("B", "2"), ("A", "1")], ["b/out", "a"], [("gpu", "h200")])


def tree() -> tuple[Digest, dict[Digest, bytes]]:
    return encode_tree(
        [
            FileEntry("src.py", digest_of_bytes(b"x")),
            FileEntry("s0/sm_90/kernel.tileir", EMPTY),
            FileEntry(".tools/run", digest_of_bytes(b"tool"), executable=True),
        ]
    )


def test_a_command_as_protobuf_writes_it() -> None:
    assert command().hex() == COMMAND


def test_a_directory_as_protobuf_writes_it() -> None:
    root, messages = tree()
    assert messages[root].hex() == ROOT
    assert len(messages) == 4


def test_an_action_as_protobuf_writes_it() -> None:
    root, _ = tree()
    encoded = encode_action(digest_of_bytes(command()), root, 600, b"1", [("gpu", "h200")])
    assert encoded.hex() == ACTION


def test_nothing_is_written_for_what_is_empty() -> None:
    assert encode_platform([]) == b""
    assert encode_command([], [], []) == b""
    assert encode_tree([])[0] == EMPTY


@pytest.mark.parametrize("path", ["/abs", "a//b", "../up", "a/./b", ""])
def test_only_relative_paths_enter_a_tree(path: str) -> None:
    with pytest.raises(ValueError, match="not a relative path"):
        encode_tree([FileEntry(path, EMPTY)])


def test_a_name_is_a_file_or_a_directory() -> None:
    with pytest.raises(ValueError, match="'a' is a file and a directory"):
        encode_tree([FileEntry("a", EMPTY), FileEntry("a/b", EMPTY)])


_name = st.text("abé", min_size=1, max_size=3)
_entries = st.dictionaries(
    st.tuples(st.just("d"), _name, _name) | st.tuples(_name.map("f{}".format)),
    st.tuples(st.binary(max_size=4).map(digest_of_bytes), st.booleans()),
    max_size=8,
).map(lambda files: [FileEntry("/".join(path), digest, x) for path, (digest, x) in files.items()])


@given(_entries, st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(files: list[FileEntry], random: object) -> None:
    shuffled = list(files)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert encode_tree(files)[0] == encode_tree(shuffled)[0]


@given(_entries, _entries)
def test_different_trees_have_different_roots(one: list[FileEntry], other: list[FileEntry]) -> None:
    assert (set(one) == set(other)) == (encode_tree(one)[0] == encode_tree(other)[0])

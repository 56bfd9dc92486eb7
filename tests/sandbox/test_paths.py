"""A path that an agent names never leaves its folder."""

import os
import threading
from pathlib import Path

import pytest

from sandbox import paths
from sandbox.paths import BadPath


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("outside")
    inside = tmp_path / "inside"
    (inside / "plain").mkdir(parents=True)
    (inside / "plain" / "file.txt").write_text("here")
    return inside


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "../secret.txt",
        "plain/../../secret.txt",
        "/etc/passwd",
        "plain//file.txt",
        "plain/./file.txt",
        "plain/",
        "~/secret",
        "a\x00b",
        "a\nb",
        "..\\secret.txt",
        "c:/secret",
        ".hidden",
        "plain/.part",
        "CON",
        "nul.txt",
        "com1/x",
        "trailing.",
        "trailing ",
        "x" * 256,
        "é" * 128,
        "a/" * 600 + "b",
        "\ud800",
    ],
)
def test_a_path_that_is_not_plain_is_refused(root: Path, path: str) -> None:
    with pytest.raises(BadPath, match="Nothing was opened"):
        paths.read(root, path)


def test_a_plain_path_is_read(root: Path) -> None:
    assert paths.read(root, "plain/file.txt") == b"here"


def test_a_missing_file_is_missing_not_refused(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        paths.read(root, "plain/none.txt")


@pytest.mark.parametrize("link", ["link.txt", "folder/secret.txt"])
def test_a_link_is_never_followed(root: Path, link: str) -> None:
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent)
    with pytest.raises(BadPath, match="a link"):
        paths.read(root, link)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_not_a_plain_file_is_refused_without_waiting(root: Path, kind: str) -> None:
    (os.mkfifo if kind == "pipe" else os.mkdir)(root / "odd")
    with pytest.raises(BadPath, match="not a plain file"):
        paths.read(root, "odd")


def test_a_link_swapped_in_meanwhile_leads_nowhere(root: Path) -> None:
    stop = threading.Event()
    (root / "away").symlink_to(root.parent)

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "plain", root / "kept")
            os.rename(root / "away", root / "plain")
            os.rename(root / "plain", root / "away")
            os.rename(root / "kept", root / "plain")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        seen = {_read(root, "plain/secret.txt") for _ in range(2000)}
    finally:
        stop.set()
        swapper.join()
    assert b"outside" not in seen


def _read(root: Path, path: str) -> bytes:
    try:
        return paths.read(root, path)
    except (BadPath, FileNotFoundError):
        return b""


def test_folders_on_the_way_are_made_when_asked(root: Path) -> None:
    with paths.folder_below(root, "new/deep/file.txt", make=True) as (folder, name):
        assert os.path.samestat(os.fstat(folder), (root / "new/deep").stat())
        assert name == "file.txt"

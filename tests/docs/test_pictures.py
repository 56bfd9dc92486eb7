"""The pictures of the documentation: there, small, said in words, and none without a page."""

from tests.docs import reading
from tests.docs.reading import ROOT

SHOWN = [shown for page in reading.pages() for shown in reading.pictures(page)]
SIZE_BYTES_MAX = 150_000
WORDS_MIN = 5


def test_every_picture_is_there_and_small() -> None:
    assert SHOWN
    sizes = {file.name: file.stat().st_size for _, file in SHOWN}
    assert {name: size for name, size in sizes.items() if size > SIZE_BYTES_MAX} == {}


def test_every_picture_is_said_in_words() -> None:
    assert [file.name for words, file in SHOWN if len(words.split()) < WORDS_MIN] == []


def test_no_picture_is_kept_without_a_page() -> None:
    kept = {file.name for file in (ROOT / "docs/pictures").iterdir()}
    assert kept == {file.name for _, file in SHOWN}

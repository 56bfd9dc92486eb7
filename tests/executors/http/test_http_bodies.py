"""Bodies are decoded under caps, and what is cut says so."""

import gzip
import tracemalloc
import zlib

import pytest

from executors.http.bodies import MAX_DECODED, Body

TEXT = b"".join(b"line %d of a plain answer\n" % number for number in range(4000))


def read(payload, encoding="", piece=1000):
    body = Body(encoding)
    for start in range(0, len(payload), piece):
        if not body.feed(payload[start : start + piece]):
            return body
    body.finish()
    return body


@pytest.mark.parametrize("piece", [1, 17, 1000, 10**7])
@pytest.mark.parametrize(
    ("encoding", "encode"),
    {
        "": bytes,
        "identity": bytes,
        "gzip": gzip.compress,
        "GZip ": gzip.compress,
        "x-gzip": gzip.compress,
        "deflate": zlib.compress,
        "deflate ": lambda text: zlib.compress(text)[2:-4],
        "gzip  ": lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:]),
    }.items(),
)
def test_a_whole_body_is_decoded_whatever_its_pieces(encoding, encode, piece):
    text = TEXT if piece > 1 else TEXT[:2000]
    body = read(encode(text), encoding, piece)
    assert (body.content, body.cut) == (text, "")


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate"])
def test_an_empty_body_is_whole(encoding):
    assert read(b"", encoding).cut == ""


def test_ten_mebibytes_are_whole_and_one_byte_more_is_cut():
    assert read(b"a" * MAX_DECODED, piece=65536).cut == ""
    body = read(b"a" * (MAX_DECODED + 1), piece=65536)
    assert len(body.content) == MAX_DECODED
    assert "longer than" in body.cut


def test_a_bomb_stops_at_a_hundred_times_its_size_and_costs_no_more():
    bomb = gzip.compress(bytes(200 * 1024 * 1024), compresslevel=9)
    tracemalloc.start()
    body = read(bomb, "gzip", piece=65536)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "100 times" in body.cut
    assert len(body.content) <= 100 * 65536
    assert peak < 4 * 100 * 65536


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_compressed_body_that_ends_early_is_cut_and_keeps_what_came(kept):
    whole = gzip.compress(TEXT)
    body = read(whole[: int(len(whole) * kept)], "gzip")
    assert "before its end" in body.cut
    assert TEXT.startswith(body.content)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_body_that_is_not_what_it_says_is_cut(encoding):
    assert "cannot be decoded" in read(b"\xff plain text after all", encoding).cut


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "nonsense"])
def test_an_encoding_that_is_not_read_keeps_the_bytes_as_they_came(encoding):
    body = read(b"as it came", encoding)
    assert body.content == b"as it came"
    assert "not read here" in body.cut

"""A picture goes from each form to each other, or leaves a text in its place."""

import pytest

from ledger.transcripts.neutral import Entry, Opaque, OpaqueKind, Role
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.shapes.pictures import LEFT_OUT, picture_in
from tests.ledger.transcripts.conversations import CONVERSATIONS, PIXEL

WITH_PICTURES = ("anthropic", "bedrock", "gemini", "openai-chat", "openai-responses")
TAKERS = sorted(set(profiles()) - {"neutral"})


def _picture_of(name: str) -> Opaque:
    parts = [p for entry in profile(name).shape.read(CONVERSATIONS[name]) for p in entry.parts]
    return next(p for p in parts if isinstance(p, Opaque) and p.kind is OpaqueKind.MEDIA)


@pytest.mark.parametrize("into", TAKERS)
@pytest.mark.parametrize("out_of", WITH_PICTURES)
def test_a_picture_keeps_its_bytes_in_every_form(out_of, into):
    shape = profile(into).shape
    said = Entry(Role.USER, (_picture_of(out_of),))

    (again,) = shape.read(shape.write([said]))

    picture = picture_in(again.parts[0].body)
    assert picture is not None
    assert PIXEL in picture.address
    assert picture.media_type == "image/png"


@pytest.mark.parametrize("into", TAKERS)
def test_what_a_provider_cannot_take_leaves_a_text_in_its_place(into):
    stored = Opaque(OpaqueKind.MEDIA, "elsewhere", {"type": "input_file", "file_id": "file-1"})
    shape = profile(into).shape

    (again,) = shape.read(shape.write([Entry(Role.USER, (stored,))]))

    assert again.text == LEFT_OUT


@pytest.mark.parametrize(
    "body",
    [
        None,
        {"type": "image"},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}},
        {"image_url": 7},
    ],
    ids=str,
)
def test_what_is_no_picture_is_none(body):
    assert picture_in(body) is None

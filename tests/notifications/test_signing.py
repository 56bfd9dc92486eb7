"""Signatures: the published vector, what they cover, and two of them while a secret changes."""

import base64
import hmac

import pytest

from notifications import signing

# The vector of the Standard Webhooks reference libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = 1614265330
BODY = b'{"test": 2432232314}'
SIGNED = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_published_vector_is_signed_alike() -> None:
    assert signing.signature(SECRET, ID, AT, BODY) == SIGNED


@pytest.mark.parametrize(
    ("id_", "at", "body"),
    [("msg_other", AT, BODY), (ID, AT + 1, BODY), (ID, AT, BODY + b" ")],
    ids=["another id", "another time", "another body"],
)
def test_a_signature_covers_id_time_and_every_byte(id_: str, at: int, body: bytes) -> None:
    assert signing.signature(SECRET, id_, at, body) != SIGNED


def test_a_fresh_secret_has_the_prefix_and_32_random_bytes() -> None:
    one, other = signing.new_secret(), signing.new_secret()
    assert one != other
    assert one.startswith("whsec_")
    assert len(base64.b64decode(one.removeprefix("whsec_"))) == 32


def test_each_secret_signs_the_newest_first() -> None:
    new = signing.new_secret()
    named = dict(signing.headers([new, SECRET], ID, AT, BODY))
    key = base64.b64decode(new.removeprefix("whsec_"))
    digest = hmac.new(key, f"{ID}.{AT}.".encode() + BODY, "sha256").digest()
    assert named["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()} {SIGNED}"
    assert (named["webhook-id"], named["webhook-timestamp"]) == (ID, str(AT))


def test_what_is_no_secret_says_so() -> None:
    with pytest.raises(ValueError, match="Renew"):
        signing.signature("whsec_%%%", ID, AT, BODY)

"""Signatures by Standard Webhooks 1.0.0: HMAC-SHA256 over id, timestamp and the raw body."""

import base64
import binascii
import hmac
import secrets
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32
"""The specification allows 24 to 64 random bytes."""


def new_secret() -> str:
    """A fresh secret as it is shown once: `whsec_` and base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signature(secret: str, id_: str, timestamp_s: int, body: bytes) -> str:
    """One signature, `v1,<base64>`. Raises ValueError for a secret that is not one."""
    signed = f"{id_}.{timestamp_s}.".encode() + body
    digest = hmac.digest(_key(secret), signed, "sha256")
    return "v1," + base64.b64encode(digest).decode()


def headers(
    secrets_: Sequence[str], id_: str, timestamp_s: int, body: bytes
) -> tuple[tuple[str, str], ...]:
    """The three headers; one signature for each secret, the newest first, with a space between."""
    signatures = " ".join(signature(each, id_, timestamp_s, body) for each in secrets_)
    return (
        ("webhook-id", id_),
        ("webhook-timestamp", str(timestamp_s)),
        ("webhook-signature", signatures),
    )


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError(f"A secret is {PREFIX} and base64. Renew the channel's secret.") from None

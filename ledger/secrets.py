"""Keyed hashes and encryption of what is secret at rest (security, sections 5 and 8)."""

import base64
import hashlib
import hmac
from functools import cache

from cryptography.fernet import Fernet
from django.conf import settings


def keyed_hash(value: str | bytes) -> bytes:
    """HMAC-SHA256 under the installation's pepper: equality without the value."""
    raw = value.encode() if isinstance(value, str) else value
    return hmac.digest(settings.ENVIRONMENT.key_pepper.encode(), raw, "sha256")


@cache
def _box() -> Fernet:
    derived = hashlib.sha256(b"clearhouse at rest" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(derived))


def encrypt(value: str) -> bytes:
    """The value as it may lie in the database."""
    return _box().encrypt(value.encode())


def decrypt(stored: bytes | memoryview) -> str:
    """What `encrypt` was given."""
    return _box().decrypt(bytes(stored)).decode()

"""Short, safe names for markers and keys, so that a file's own name can be searched by them."""

import hashlib


def digest(text: str) -> str:
    """Return 24 hexadecimal characters that stand for `text` in a file name."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:24]

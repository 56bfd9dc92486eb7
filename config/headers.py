"""The headers of every answer that Django's middleware does not set, or does not see (S6, S37)."""

from config.settings import CONTENT_SECURITY_POLICY, SECURE_HSTS_SECONDS


def _policy() -> str:
    directives = CONTENT_SECURITY_POLICY["DIRECTIVES"]
    return "; ".join(f"{name} {' '.join(values)}" for name, values in directives.items())


BESIDE_DJANGOS = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""What Django's own middleware does not set (S15)."""

SAME_ON_ALL: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", _policy().encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    *((name.lower().encode(), value.encode()) for name, value in BESIDE_DJANGOS.items()),
)
if SECURE_HSTS_SECONDS:
    SAME_ON_ALL += (
        (
            b"strict-transport-security",
            f"max-age={SECURE_HSTS_SECONDS}; includeSubDomains; preload".encode(),
        ),
    )

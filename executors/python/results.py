"""From what a tool returns to the bytes that are recorded.

A value that is not strict JSON never turns a success into an error: it is handed on as
text, and the ledger says why it is not JSON.
"""

import json
from typing import Any

from executors.contract import Result


def result_of(value: Any) -> Result:
    """Return what a tool brought as a `Result`: JSON where it can be, else its bytes or text."""
    if isinstance(value, Result):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return Result(body=bytes(value), media_type="application/octet-stream")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return Result(body=text.encode())
    except (TypeError, ValueError, RecursionError):  # UnicodeEncodeError is a ValueError
        return Result(body=shown(value).encode(errors="backslashreplace"), media_type="text/plain")


def shown(value: Any) -> str:
    """Return `repr(value)`, or the name of its type where even that raises."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__qualname__}, whose repr raised {type(error).__name__}>"

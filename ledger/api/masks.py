"""What a person's login is given of a call through the API: the same, with its secrets masked.

An agent's key reads its own arguments and results as they are, since it must use them.
"""

import base64
from typing import Any

from ledger import masking
from ledger.permissions import Person


def given_to(reader: Any, body: Any) -> Any:
    """The body as this reader may see it: a JSON object, a list of them, or None."""
    if not isinstance(reader, Person) or body is None:
        return body
    hidden = masking.masked(body)
    for each in hidden if isinstance(hidden, list) else [hidden]:
        if isinstance(each.get("result"), dict):
            each["result"] = _result(each["result"])
    return hidden


def _result(shown: dict[str, Any]) -> dict[str, Any]:
    """A result that is text and no JSON travels as base64, so its secrets are masked inside."""
    try:
        text = base64.b64decode(shown.get("base64") or "").decode()
    except UnicodeDecodeError:
        return shown
    raw = masking.masked_text(text).encode()
    return shown | ({"base64": base64.b64encode(raw).decode()} if shown.get("base64") else {})

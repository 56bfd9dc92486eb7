"""The strict rules for a Python value that did not come from bytes: a tool's return value."""

from ledger.strictjson.canonical import encode
from ledger.strictjson.limits import API, Limits
from ledger.strictjson.refusals import JSON, Code, NotStrict
from ledger.strictjson.walking import Walk


def check(value: JSON, *, limits: Limits = API) -> None:
    """Refuse a Python value that `parse` could not have returned under the same limits.

    Types are exact: a tuple, a set, a date, bytes or a subclass (an enum, an OrderedDict) has
    no JSON form of its own. The size is that of the canonical form. Raises NotStrict.
    """
    Walk(limits).visit(value)
    if len(encode(value)) > limits.size_bytes:
        raise NotStrict(Code.PAYLOAD_TOO_LARGE, limit=limits.size_bytes)

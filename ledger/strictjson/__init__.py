"""The one strict JSON reader at every edge: API, MCP, webhooks, forms, imports, tool results.

`parse` reads bytes, `check` judges a Python value that did not come from bytes, `canonical`
writes the form that is hashed and compared, `storable` takes a tool's result whatever it is.
What `parse` accepts means the same to Python, to PostgreSQL and to every other reader; the
rest is refused with a code, a JSON pointer and a sentence (security, section 2; S12).

It must never raise anything but `NotStrict`, never recurse on the depth of its input, never
change a string, and never put a value from the input into a sentence.
"""

from ledger.strictjson.canonical import canonical, digest
from ledger.strictjson.checking import check
from ledger.strictjson.identifiers import is_identifier
from ledger.strictjson.limits import API, RESULT, TRANSCRIPT, Limits
from ledger.strictjson.media import check_media_type
from ledger.strictjson.parsing import parse
from ledger.strictjson.reading import read_jsonb
from ledger.strictjson.refusals import JSON, Code, NotStrict
from ledger.strictjson.results import Stored, storable

__all__ = [
    "API",
    "JSON",
    "RESULT",
    "TRANSCRIPT",
    "Code",
    "Limits",
    "NotStrict",
    "Stored",
    "canonical",
    "check",
    "check_media_type",
    "digest",
    "is_identifier",
    "parse",
    "read_jsonb",
    "storable",
]

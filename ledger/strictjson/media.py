"""Which Content-Type and Content-Encoding a JSON body may carry (security, section 2, rule 1)."""

import re

from ledger.strictjson.refusals import Code, NotStrict

_STRICT = re.compile(r'application/json[ \t]*(?:;[ \t]*charset=(?:utf-?8|"utf-?8")[ \t]*)?', re.I)
_JSON_LIKE = re.compile(r"(?:application|text)/(?:json|[a-z0-9.!#$&^_-]{1,100}\+json)", re.I)


def check_media_type(content_type: str, content_encoding: str = "") -> None:
    """Refuse everything but application/json, in UTF-8 and not compressed.

    Raises NotStrict with code `media_type`: answer 415 and do not read the body.
    """
    if content_encoding.strip() or _STRICT.fullmatch(content_type.strip(" \t")) is None:
        raise NotStrict(Code.MEDIA_TYPE)


def is_json(media_type: str) -> bool:
    """True if a tool says that its result is JSON: application/json, text/json or any `+json`."""
    return _JSON_LIKE.fullmatch(media_type.partition(";")[0].strip()) is not None

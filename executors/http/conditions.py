"""Conditions on an answer, as data: a status, and a value found by a JSON pointer."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from executors.contract import JSON
from executors.http.client import Answer
from executors.http.templates import fill_json

MISSING: Any = object()
MAX_DIGITS = 64
Pointer = str


class NotJson(ValueError):
    """The answer's body is cut or is not JSON."""


def read_json(answer: Answer) -> JSON:
    """The body as a JSON value; raises NotJson."""
    if answer.cut:
        raise NotJson(answer.cut)
    try:
        return json.loads(answer.body, parse_int=_integer)
    except (ValueError, RecursionError):
        raise NotJson("The body of the answer is not JSON.") from None


def look_up(document: JSON, pointer: Pointer) -> JSON:
    """The value at a JSON pointer (RFC 6901), or MISSING."""
    for token in pointer.split("/")[1:]:
        document = _step(document, token.replace("~1", "/").replace("~0", "~"))
    return document


class Condition(BaseModel):
    """What must be true of an answer; all parts that are given must hold.

    `status`: one of these. `pointer` with one of `equals`, `values` (one of), `exists`
    (true or false), `empty` (true or false: an empty list, object, text or null). Texts in
    `equals` and `values` may hold placeholders.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: tuple[int, ...] = ()
    pointer: str | None = Field(default=None, pattern=r"^(/.*)?$")
    equals: Any = MISSING
    values: tuple[Any, ...] | None = None
    exists: bool | None = None
    empty: bool | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "Condition":
        tests = [self.equals is not MISSING, self.values is not None]
        tests += [self.exists is not None, self.empty is not None]
        if not self.status and self.pointer is None:
            raise ValueError("a condition needs a status, a pointer or both")
        if (self.pointer is not None) != (sum(tests) == 1):
            raise ValueError("a pointer needs exactly one of equals, values, exists or empty")
        return self

    @property
    def templates(self) -> list[JSON]:
        """The parts that may hold placeholders."""
        equals = [] if self.equals is MISSING else [self.equals]
        return [*equals, *(self.values or ())]

    def is_met(self, answer: Answer, filling: Mapping[str, JSON]) -> bool:
        """Whether `answer` meets this condition; one that cannot be read meets none."""
        if self.status and answer.status not in self.status:
            return False
        if self.pointer is None:
            return True
        try:
            document = read_json(answer)
        except NotJson:
            return False
        return self._test(look_up(document, self.pointer), filling)

    def _test(self, found: JSON, filling: Mapping[str, JSON]) -> bool:
        if self.exists is not None:
            return (found is not MISSING) == self.exists
        if found is MISSING:
            return False
        if self.empty is not None:
            return (found in ([], {}, "", None)) == self.empty
        wanted = (self.equals,) if self.values is None else self.values
        return any(_same(found, fill_json(value, filling)) for value in wanted)


def _same(found: JSON, wanted: JSON) -> bool:
    # `True == 1` in Python, not in JSON.
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)


def _step(document: JSON, token: str) -> JSON:
    if isinstance(document, dict):
        return document.get(token, MISSING)
    if isinstance(document, list) and token.isascii() and token.isdigit() and len(token) < 10:
        return document[int(token)] if int(token) < len(document) else MISSING
    return MISSING


def _integer(digits: str) -> JSON:
    return int(digits) if len(digits) <= MAX_DIGITS else digits

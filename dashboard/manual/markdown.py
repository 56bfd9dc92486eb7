"""Markdown from data: tables, code, and the paragraph that stands below a word of a vocabulary."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

DASH = "–"
_CITED = re.compile(r" \((?:[RSI][0-9]+|semantics|reliability|security|RFC)[^()]*\)")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; cells are text already, bars in them are escaped."""
    lines = [_row(heads), _row(["---"] * len(heads)), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(_cell(each) for each in cells) + " |"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|") or DASH


def code(value: object) -> str:
    """A word in code marks."""
    return f"`{value}`"


def codes(values: Iterable[object]) -> str:
    """Words in code marks, with commas; a dash where there is none."""
    return ", ".join(code(value) for value in values) or DASH


def seconds(value: float) -> str:
    """A duration in its largest whole unit."""
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if value >= length_s and value % length_s == 0:
            return f"{value / length_s:g} {unit}"
    return f"{value:g} s"


def plain(text: str) -> str:
    """A docstring as a page says it: on one line, without the numbers of rules in brackets."""
    return _CITED.sub("", " ".join(text.split()))


def paragraphs(words: type[StrEnum]) -> dict[str, str]:
    """The text that stands below each member in the source, by the member's value.

    Python keeps no such text at run time, so the class is read again; a member without a
    paragraph has an empty one.
    """
    body = ast.parse(textwrap.dedent(inspect.getsource(words))).body[0]
    found = {str(member): "" for member in words}
    lines: list[Any] = getattr(body, "body", [])
    for line, below in zip(lines, [*lines[1:], None], strict=True):
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            found[str(words[line.targets[0].id])] = _text_of(below)
    return found


def _text_of(node: Any) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return plain(str(node.value.value)) if is_text else ""

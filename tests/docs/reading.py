"""Reads the documentation as its readers do: pages, headings, links, fences, commands."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FRONT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
_FENCE = re.compile(r"^(?:<!-- shape: (\w+) -->\n)?```(\w*)\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.M)


@dataclass(frozen=True, slots=True)
class Fence:
    """A block between code marks: its language, its text, and the API shape it claims to have."""

    page: str
    language: str
    text: str
    shape: str


def pages() -> list[Path]:
    """Every page, the front ones first."""
    return [*(ROOT / name for name in FRONT), *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def fences(*languages: str) -> list[Fence]:
    """Every fence in one of these languages, over all pages."""
    return [
        Fence(name_of(page), language, text, shape)
        for page in pages()
        for shape, language, text in _FENCE.findall(page.read_text())
        if language in languages
    ]


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Each relative link of a page as (path, anchor); outside addresses are left out."""
    for target in _LINK.findall(_FENCE.sub("", page.read_text())):
        if not target.startswith(("http://", "https://", "mailto:")):
            path, _, anchor = target.partition("#")
            yield path, anchor


def pictures(page: Path) -> Iterator[tuple[str, Path]]:
    """Each picture of a page as (what it says in words, its file)."""
    for words, target in _PICTURE.findall(_FENCE.sub("", page.read_text())):
        yield words, page.parent / target


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings give, as code hosts make them."""
    return {_anchor(heading) for heading in _HEADING.findall(_FENCE.sub("", page.read_text()))}


def _anchor(heading: str) -> str:
    plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return plain.replace(" ", "-")


def commands() -> set[tuple[str, tuple[str, ...]]]:
    """Each `manage.py COMMAND` that a page names, with the long options it is given there."""
    found = set()
    for page in pages():
        for command, rest in re.findall(r"manage\.py ([a-z_]+)([^`\n|]*)", page.read_text()):
            found.add((command, tuple(re.findall(r"(?<=\s)--[a-z][a-z-]*", rest))))
    return found


def curl_bodies() -> list[tuple[str, str, str]]:
    """Each body that a page's curl lines send: (page, path, JSON with ids for shell variables)."""
    found = []
    for fence in fences("sh"):
        text = fence.text.replace("\\\n", " ")
        for line in re.findall(r"^(?:curl|ask) .*?(?='\n|'\Z)'$", text, re.M | re.S):
            path = re.search(r"/api/v1(/[^\s'\"?]*)", line)
            body = re.search(r"-d '(\{.*)'$", line, re.S)
            if path and body:
                filled = re.sub(r"'?\$(\w+)'?", r"\1", body[1])
                found.append((fence.page, path[1], filled))
    return found

"""Parts of a page that are asked for again and again: fragments under /parts/, with a tag.

A part's tag is made of ledger numbers without drawing it; an unchanged one is a 304. A part that
cannot change any more is drawn without its trigger, which ends the asking.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render


def tag_of(*numbers: Any) -> str:
    """A tag of what a part shows: anything that changes when it does."""
    return sha256("\x1f".join(map(str, numbers)).encode()).hexdigest()[:24]


Page = dict[str, Any]


def part(
    request: HttpRequest, template: str, page: Page | Callable[[], Page], numbers: Sequence[Any]
) -> HttpResponse:
    """The fragment, or 304 where the asker has it already; a `page` to be called is read then."""
    tag = tag_of(*numbers)
    if request.headers.get("HX-PTag") == tag:
        return HttpResponseNotModified()
    shown = page() if callable(page) else page
    answer = render(request, template, shown | {"tag": tag})
    answer["HX-PTag"] = tag
    return answer


def opened(
    request: HttpRequest, template: str, page: Page | Callable[[], Page], numbers: Sequence[Any]
) -> HttpResponse:
    """The same for a part that a control opens, and that then asks for itself.

    The control gets no tag: it would send it when pressed again, and be answered with nothing.
    """
    answer = part(request, template, page, numbers)
    if "HX-PTag" not in request.headers:
        del answer["HX-PTag"]
    return answer

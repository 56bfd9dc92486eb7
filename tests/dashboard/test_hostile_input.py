"""Whatever stands in a path, a query or a field: every page, form and list answers in sentences."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import cycle
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import transaction
from django.http import QueryDict
from django.test import Client
from django.urls import get_resolver

from bench.pages import once
from bench.pages.addresses import LEFT_OUT, filled, routes, rows_of
from bench.pages.installation import Installation
from bench.pages.stories import Stories
from config.api import api
from dashboard.deeds import KEY
from dashboard.models import Deed
from ledger.models import Membership
from tests import cast
from tests.dashboard.watching import signed_in, text_of

pytestmark = pytest.mark.django_db

NUL = "a\x00b"
HOSTILE = (
    NUL, "9" * 5000, "9999-12-31", "0001-01-01", "-1", "\\ud800", "x" * 20_000, "9" * 19, "{}",
    "\u0661", f"call_{'0' * 32}", f"ses_{'g' * 32}", "9999-12-31T23:59:59-14:00",
)  # fmt: skip
IN_A_PATH = ("9" * 5000, "9" * 19, "-1", f"call_{'0' * 32}", "0001-01-01")
FOR_THE_FRAME = {"csrfmiddlewaretoken", KEY}


@dataclass
class Form:
    """A form as a page drew it: its address, how it is sent, its fields as they stood."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[str, ...]:
        """The same for the forms that differ by their row alone."""
        return re.sub(r"[0-9a-f]{32}|[0-9]+", "", self.action), *sorted(self.fields)


class Forms(HTMLParser):
    """The forms of a page."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__()
        self._path, self.found = path, list[Form]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            address = (given.get("action") or self._path).partition("?")[0]
            self.found.append(Form(address, given.get("method", "get").lower()))
        elif given.get("name") and self.found:
            self.found[-1].fields.setdefault(given["name"], given.get("value", ""))


class Visitor:
    """A person with every role, whose requests leave nothing behind."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._login = client.cookies[settings.SESSION_COOKIE_NAME].value
        self._client.raise_request_exception = False
        self.broken: list[str] = []
        self.asked = 0

    def ask(self, method: str, path: str, **given: str) -> Any:
        self._client.cookies[settings.SESSION_COOKIE_NAME] = self._login
        with transaction.atomic():
            answer = getattr(self._client, method)(path, given)
            transaction.set_rollback(True)
        self.asked += 1
        if answer.status_code >= 500:
            self.broken.append(f"{method} {path[:200]} {str(given)[:200]}")
        return answer


@pytest.fixture
def visitor(acme: cast.Acme) -> Visitor:
    return Visitor(signed_in(cast.a_person("alma", acme.workspace, *Membership.ROLES)))


@pytest.fixture
def paths(acme: cast.Acme, visitor: Visitor) -> list[str]:
    """Every address, about rows that exist: one of each."""
    alma = Membership.objects.filter(person__username="alma")[0].person
    at = Stories.begin(acme.workspace, acme.ada, alma)
    at.live()
    once.make(at)
    rows = rows_of(Installation(alma, acme.ada, "", calls=0, incidents=0, fill_s=0))
    newest = {name: values[-1:] for name, values in rows.items()}
    every = [path for route in all_routes() for path in filled(route, newest)]
    return [f"/{path}" for path in every if f"/{path}" not in LEFT_OUT]


def all_routes() -> list[str]:
    return list(dict.fromkeys(routes(get_resolver().url_patterns)))


@pytest.fixture
def read_names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names that views ask a query for, while they ask."""
    names = set[str]()
    for method in ("__getitem__", "__contains__", "get", "getlist"):
        told = getattr(QueryDict, method)

        def noting(self: QueryDict, name: str, *more: Any, told: Any = told) -> Any:
            names.add(name)
            return told(self, name, *more)

        monkeypatch.setattr(QueryDict, method, noting)
    return names


def names_of_the_api(path: str) -> set[str]:
    """The names of a query that an operation of the API takes."""
    for template, operations in api.get_openapi_schema()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and "get" in operations:
            return {each["name"] for each in operations["get"]["parameters"]
                    if each.get("in") == "query"}  # fmt: skip
    return set()


def in_groups(names: Iterable[str], size: int) -> Iterator[list[str]]:
    """The names in groups of this size: a request brings a hostile value for each of a group."""
    found = sorted(names)
    return (found[at : at + size] for at in range(0, len(found), size))


def in_a_path(visitor: Visitor, route: str, value: str) -> None:
    path = "/" + re.sub(r"<[^>]*>", quote(value, safe=""), route)
    visitor.ask("get", path)
    if value is NUL and not path.startswith("/api/"):
        visitor.ask("post", path, **{KEY: "x"})


def in_queries(visitor: Visitor, path: str, names: set[str], values: Iterator[str]) -> list[Form]:
    """Ask a page for each name that it reads; return the forms that it drew."""
    names.clear()
    drawn = visitor.ask("get", path)
    is_page = drawn.get("Content-Type", "").startswith("text/html")
    asked = names_of_the_api(path) if path.startswith("/api/") else set(names)
    for some in in_groups(asked, 3):
        visitor.ask("get", path, **{name: next(values) for name in some})
    return Forms(path, text_of(drawn)).found if is_page else []


def in_fields(visitor: Visitor, form: Form, values: Iterator[str]) -> None:
    for some in in_groups(form.fields.keys() - FOR_THE_FRAME, 2):
        wrong = {name: next(values) for name in some}
        visitor.ask(form.method, form.action, **form.fields | wrong)


def test_no_address_and_no_form_breaks_on_what_is_sent(
    visitor: Visitor, paths: list[str], read_names: set[str]
) -> None:
    values, parts = cycle(HOSTILE), cycle(IN_A_PATH)
    for route in all_routes():
        if "<" in route:
            in_a_path(visitor, route, NUL)
            in_a_path(visitor, route, next(parts))
    forms = dict[tuple[str, ...], Form]()
    for path in paths:
        for form in in_queries(visitor, path, read_names, values):
            forms.setdefault(form.kind, form)
    for form in forms.values():
        in_fields(visitor, form, values)
    assert visitor.broken == []
    assert visitor.asked > 400


@pytest.mark.parametrize("name", ["actor", "target", "cursor"])
def test_a_nul_in_a_query_is_named_as_what_is_wrong(visitor: Visitor, name: str) -> None:
    answer = visitor.ask("get", "/audit", **{name: NUL})
    assert answer.status_code == 422
    assert f"The field &#x27;{name}&#x27; has a NUL character" in text_of(answer)


def test_what_else_was_typed_is_kept(visitor: Visitor) -> None:
    answer = visitor.ask("get", "/audit", actor=NUL, target="call_")
    assert 'href="/audit?actor=ab&amp;target=call_"' in text_of(answer)


def test_a_nul_in_a_path_is_named_as_what_is_wrong(visitor: Visitor) -> None:
    for path in ("/interrupts/a%00b", "/settings/keys/a%00b"):
        answer = visitor.ask("get", path)
        assert answer.status_code == 422
        assert "The address has a NUL character" in text_of(answer)


def test_a_nul_in_a_form_does_nothing(acme: cast.Acme) -> None:
    answer = signed_in(acme.olga).post("/audit/export", {"actor": NUL})
    assert answer.status_code == 422
    assert not Deed.objects.exists()


def test_a_nul_in_a_query_of_the_api_is_a_problem(visitor: Visitor) -> None:
    answer = visitor.ask("get", "/api/v1/audit", actor=NUL)
    assert answer.status_code == 422
    assert answer.json()["code"] == "validation"
    assert "NUL" in answer.json()["detail"]

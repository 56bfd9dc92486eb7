"""Refusals as problem documents, and the headers that every answer carries."""

from collections.abc import Callable

import httpx2
import pytest
from django.db import connection

from ledger.models import Tool
from tests import builders, cast
from tests.api.callers import API, Caller, the_problem
from tests.api.served import Served
from tests.api.wire import exchange, head

JSON = {"Content-Type": "application/json"}


def refusals(ada: Caller, acme: cast.Acme) -> list[httpx2.Response]:
    """One of each kind, by whoever says no: our verbs, ninja, Django, the transport's edge."""
    call = builders.a_call(acme, "succeeded")
    nobody = {"Authorization": ""}
    return [
        ada.get("/calls", headers=nobody),
        ada.get("/calls?api_key=clh_live_x"),
        ada.get("/nothing/here"),
        ada.get("/calls/call_1"),
        ada.get("/calls?limit=x"),
        ada.get("/calls?state=done"),
        ada.send("DELETE", "/calls"),
        ada.send("PATCH", f"/calls/{call.id}"),
        ada.send("PUT", f"/calls/{call.id}/cancellation"),
        ada.post(f"/calls/{call.id}/cancellation"),
        ada.put("/tools/pay", {}),
        ada.post("/calls", {"tool": "nothing"}),
        ada.post("/calls", []),
        ada.post("/sessions", {"label": 1}),
        ada.http.post(f"{API}/calls", content=b"{", headers=JSON),
        ada.http.post(f"{API}/sessions", content=b"{", headers=JSON),
        ada.http.post(f"{API}/calls", content=b"{}", headers={"Content-Type": "text/plain"}),
        ada.http.post(f"{API}/calls", content=b" " * 2**20 + b" ", headers=JSON),
        ada.http.post(f"{API}/sessions", content=b" " * 2**20 + b" ", headers=JSON),
        ada.get("/calls", headers={"X-Padding": "a" * 40_000}),
    ]


def test_every_refusal_is_a_problem_document_whose_page_exists(
    ada: Caller, acme: cast.Acme
) -> None:
    seen = set()
    for answer in refusals(ada, acme):
        document = the_problem(answer, answer.status_code, answer.json()["code"])
        page = ada.http.get(document["type"])
        assert page.status_code == 200, document["type"]
        assert document["code"] in page.text
        seen.add(answer.status_code)

    assert seen == {400, 401, 403, 404, 405, 409, 413, 415, 422, 431}


def test_a_wrong_method_names_the_right_ones(ada: Caller) -> None:
    answer = ada.send("DELETE", "/calls")

    problem = the_problem(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, POST"
    assert "GET, POST" in problem["detail"]


def test_unknown_addresses_outside_the_api_are_problems_too(ada: Caller) -> None:
    the_problem(ada.http.get("/api/v2/calls"), 404, "not_found")
    the_problem(ada.http.get("/nothing"), 404, "not_found")


A_BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_a_browser_is_given_a_page_where_there_is_none(ada: Caller) -> None:
    answer = ada.http.get("/nothing", headers=A_BROWSER)

    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "There is no page at this address" in answer.text
    the_problem(
        ada.http.get("/nothing", headers=A_BROWSER | {"HX-Request": "true"}), 404, "not_found"
    )
    the_problem(ada.http.get("/api/v1/nothing", headers=A_BROWSER), 404, "not_found")


def test_a_form_without_its_token_is_answered_with_a_page(ada: Caller) -> None:
    answer = ada.http.post("/login", data={"username": "olga"}, headers=A_BROWSER)

    assert answer.status_code == 403
    assert "The form came without its token, so nothing was done" in answer.text


def test_a_host_that_is_not_ours_is_refused_and_watchers_may_use_any(ada: Caller) -> None:
    for path in ("/", "/login", "/nothing", "/api/v1/tools", "/api/v1/calls"):
        answer = ada.http.get(path, headers={"Host": "evil.example"})
        the_problem(answer, 400, "validation")
    for path in ("/healthz", "/readyz"):
        assert ada.http.get(path, headers={"Host": "10.0.0.7"}).status_code != 400


@pytest.fixture
def broken_incidents(transactional_db: None) -> "object":
    """A fault of ours: a table is not where the code expects it."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE recovery_incident RENAME TO recovery_elsewhere")
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE recovery_elsewhere RENAME TO recovery_incident")


def test_a_fault_of_ours_says_nothing_of_itself(
    ada: Caller, web: Served, broken_incidents: None
) -> None:
    answer = ada.get("/incidents")

    the_problem(answer, 500, "internal")
    for word in ("recovery_incident", "SELECT", "Traceback", "psycopg", ".py", "Error"):
        assert word not in answer.text
    assert answer.headers["X-Request-Id"] in web.logged
    assert ada.get("/calls").status_code == 200


def test_a_fault_of_ours_is_a_page_for_people_with_its_id(
    alma: Caller, web: Served, broken_incidents: None
) -> None:
    answer = alma.http.get("/inbox", headers=A_BROWSER)

    assert answer.status_code == 500
    assert "Clearhouse failed while it worked on this" in answer.text
    assert answer.headers["X-Request-Id"] in answer.text
    for word in ("recovery_incident", "SELECT", "Traceback", "psycopg"):
        assert word not in answer.text


def answers_of_all_kinds(ada: Caller, acme: cast.Acme) -> list[httpx2.Response]:
    call = builders.a_call(acme, "succeeded")
    fine = [
        ada.get("/calls"),
        ada.get(f"/calls/{call.id}"),
        ada.get(f"/calls/{call.id}", headers={"If-None-Match": f'W/"{call.seq}"'}),
        ada.get(f"/calls/{call.id}/verdict"),
        ada.post("/sessions", {}),
        ada.post("/calls", {"tool": call.tool, "arguments": {"path": "x"}}),
        ada.get("/tools"),
        ada.get("/openapi.json"),
        ada.get("/docs"),
        ada.http.get("/healthz"),
        ada.http.get("/readyz"),
        ada.http.get("/login"),
        ada.http.get("/"),
    ]
    return [*fine, *refusals(ada, acme)]


def test_every_answer_carries_the_same_guards(ada: Caller, acme: cast.Acme) -> None:
    for answer in answers_of_all_kinds(ada, acme):
        policy = answer.headers["Content-Security-Policy"]
        where = f"{answer.request.method} {answer.request.url} {answer.status_code}"
        assert "default-src 'none'" in policy, where
        assert "frame-ancestors 'none'" in policy, where
        assert "unsafe" not in policy, where
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin", where
        assert "camera=()" in answer.headers["Permissions-Policy"], where
        assert answer.headers["X-Content-Type-Options"] == "nosniff", where
        assert answer.headers["Referrer-Policy"] == "same-origin", where
        assert "no-store" in answer.headers["Cache-Control"], where
        assert answer.headers["X-Request-Id"], where


def test_a_fault_carries_the_guards_too(ada: Caller, broken_incidents: None) -> None:
    headers = ada.get("/incidents").headers

    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize(
    ("path", "method", "size"),
    [
        ("/calls", "GET", 0), ("/calls/call_1", "GET", 0), ("/calls", "POST", 2),
        ("/calls", "DELETE", 0), ("/nothing", "GET", 0), ("/calls", "POST", 2**20 + 1),
        ("/sessions", "POST", 2**20 + 1),
    ],
)  # fmt: skip
def test_a_request_id_is_taken_and_returned(path: str, method: str, size: int, ada: Caller) -> None:
    named = ada.http.request(
        method, API + path, content=b" " * size, headers={**JSON, "X-Request-Id": "trace:4711"}
    )
    odd = ada.http.request(
        method, API + path, content=b" " * size, headers={**JSON, "X-Request-Id": "a b\t<script>"}
    )

    assert named.headers["X-Request-Id"] == "trace:4711"
    assert odd.headers["X-Request-Id"] != "a b\t<script>"
    assert len(odd.headers["X-Request-Id"]) == 32
    if named.status_code >= 400:
        assert named.json()["request_id"] == "trace:4711"


def test_an_address_with_control_characters_is_no_header(web: Served, ada: Caller) -> None:
    sent = [("Authorization", ada.http.headers["Authorization"])]
    answer = exchange(web.port, head("GET", f"{API}/calls/%0d%0aSet-Cookie:%20x=1", sent))

    assert answer.status == 404
    assert "set-cookie" not in answer.headers


def test_a_next_address_of_another_host_is_not_followed(web: Served, acme: cast.Acme) -> None:
    who = Caller(web.address)
    token = who.http.get("/login").cookies["csrftoken"]
    sent = {"username": "olga", "password": cast.PASSWORD, "csrfmiddlewaretoken": token}

    answer = who.http.post("/login?next=//evil.example/", data=sent)

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/")
    assert not answer.headers["Location"].startswith("//")


def test_arguments_and_results_are_in_no_log(
    ada: Caller, web: Served, acme: cast.Acme, lookup: Tool, person: Callable[..., Caller]
) -> None:
    canary = "canary-4711-of-the-arguments"
    call = ada.post("/calls", {"tool": "sandbox.lookup", "arguments": {"name": canary}}).json()
    ada.post("/calls", {"tool": "sandbox.lookup", "arguments": canary})
    person("olga").get(f"/calls/{call['id']}")

    assert canary not in web.logged

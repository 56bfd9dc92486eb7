"""The bad-input corpus through the API: the right class of answer, nothing stored on a refusal.

Every entry that names the channel `api` is sent as it says. What only an operation that does
not exist yet could take is named in `ELSEWHERE`, and a new class fails the test until it has
a way in.
"""

import base64
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection

from ledger import ids, keys
from ledger.keys import _base62, _check_of
from ledger.models import Agent, ApiKey, Event, Session, Tool, ToolCall, Turn
from tests import builders, cast, corpus_loader
from tests.api.callers import API, Caller, the_problem
from tests.api.served import Served
from tests.api.wire import CLOSED, Answer, Line, chunked, exchange, head, with_length
from tests.corpus_loader import Entry

BODIES = ("json_numbers", "json_structure", "unicode", "size_transport")
TEXTS = ("markup", "imitation", "regex_bait")
JSON = ("Content-Type", "application/json")
LONG = ("slow_body", "content_length_too_large")  # the server waits as long as a body may take
TABLES = (ToolCall, Event, Session, Turn)


@dataclass(frozen=True, slots=True)
class World:
    """Where entries go, and by whose key."""

    web: Served
    key: str

    @property
    def authorization(self) -> tuple[str, str]:
        return ("Authorization", f"Bearer {self.key}")


@pytest.fixture
def world(web: Served, ada: Caller, lookup: Tool) -> World:
    return World(web, str(ada.http.headers["Authorization"]).removeprefix("Bearer "))


def entries(*classes: str) -> list[Entry]:
    return [each for name in classes for each in corpus_loader.load(name, channel="api")]


def stored() -> dict[str, int]:
    return {table.__name__: table.objects.count() for table in TABLES}


def all_still_read(ada: Caller) -> int:
    """Every call of the workspace by list, detail and events; how many there are."""
    seen, cursor = 0, ""
    while cursor is not None:
        page = ada.get(f"/calls?limit=50&cursor={cursor}")
        assert page.status_code == 200, page.text[:300]
        for call in page.json()["items"]:
            for below in ("", "/events"):
                assert ada.get(f"/calls/{call['id']}{below}").status_code == 200
        seen += len(page.json()["items"])
        cursor = page.json()["next_cursor"]
    return seen


def test_every_class_of_the_corpus_has_a_way_through_the_api() -> None:
    classes = {entry.corpus for entry in corpus_loader.load_all(channel="api")}

    assert classes == {*BODIES, *TEXTS, "ids_paths", "authentication", "protocol_order", "time"}


# Bodies


def _sent(entry: Entry, world: World) -> Answer:
    body = entry.bytes()
    headers = [world.authorization, *(entry.headers or _ordinary(entry))]
    if copies := entry.more.get("header_copies"):
        headers += [(copies["name"], copies["value"])] * copies["times"]
    framed = with_length(headers, body)
    if ("Transfer-Encoding", "chunked") in framed:
        body = chunked(body)
    request = head("POST", f"{API}/calls", framed) + body
    return exchange(world.web.port, request, bytes_a_second=entry.more.get("bytes_a_second", 0))


def _ordinary(entry: Entry) -> list[tuple[str, str]]:
    return [] if entry.id == "no_content_type" else [JSON]


def _judged(entry: Entry, answer: Answer) -> str:
    """What is wrong with the answer to an entry; empty if nothing is."""
    expect = entry.expect
    if answer == CLOSED:
        return "" if expect.more.get("may_close") else "closed without an answer"
    if answer.status not in expect.status:
        return f"{answer.status} {answer.body[:200]!r}"
    problem = _problem_of(answer)
    if expect.codes and expect.status != (200,) and answer.status in (413, 415):
        return "" if problem["code"] in expect.codes else str(problem)
    if expect.codes and expect.outcome == "refused":
        told = {each["detail"] for each in problem.get("errors", [])}
        return "" if told & set(expect.codes) else str(problem)
    return ""


def _problem_of(answer: Answer) -> dict[str, Any]:
    if answer.headers.get("content-type") != "application/problem+json":
        return {}  # refused by the transport, before there was a request
    found: dict[str, Any] = json.loads(answer.body)
    return found


def test_hostile_bodies_get_their_answer_and_refusals_leave_no_row(
    world: World, ada: Caller
) -> None:
    wanted = entries(*BODIES)
    with ThreadPoolExecutor(len(LONG)) as threads:
        long = [(e, threads.submit(_sent, e, world)) for e in wanted if e.id in LONG]
        answers = [(e, _sent(e, world)) for e in wanted if e.id not in LONG]
        answers += [(entry, each.result()) for entry, each in long]

    wrong = {f"{e.corpus}/{e.id}": why for e, a in answers if (why := _judged(e, a))}
    recorded = sum(answer.status == 201 for _, answer in answers)
    assert wrong == {}
    assert recorded == sum(e.expect.outcome == "accepted" for e, _ in answers)
    assert stored() == {"ToolCall": recorded, "Event": 2 * recorded, "Session": 0, "Turn": 0}
    assert all_still_read(ada) == recorded


def test_equal_and_other_arguments_are_told_apart_over_the_wire(world: World) -> None:
    def digest(arguments: bytes) -> str:
        body = corpus_loader.SUBMIT[0] + arguments + corpus_loader.SUBMIT[1]
        headers = with_length([world.authorization, JSON], body)
        answer = exchange(world.web.port, head("POST", f"{API}/calls", headers) + body)
        found: str = json.loads(answer.body)["arguments_sha256"]
        return found

    compared = 0
    for entry in entries(*BODIES):
        for relation, equal in (("same_as", True), ("differs_from", False)):
            if other := entry.expect.more.get(relation):
                own = corpus_loader.build(entry.pieces)
                assert (digest(own) == digest(other.encode())) is equal, entry.id
                compared += 1
    assert compared >= 7


# Texts that are stored: kept exactly as sent, as arguments and in every free field


def test_hostile_texts_are_kept_exactly_as_sent(ada: Caller, lookup: Tool) -> None:
    kept = 0
    for entry in entries("markup", "imitation"):
        text = entry.bytes().decode("utf-8", "surrogateescape")
        body = {"tool": "sandbox.lookup", "arguments": {"text": text, "n": entry.id}}
        answer = ada.post("/calls", body | {"tool_call_id": text[:100]})
        if answer.status_code == 422:
            assert _says_why(answer.json()), entry.id
            continue
        assert answer.status_code == 201, entry.id
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        again = ada.get(f"/calls/{answer.json()['id']}").json()
        assert again["arguments"] == body["arguments"], entry.id
        kept += 1

    assert kept == ToolCall.objects.count() > 100
    assert all_still_read(ada) == kept


def _says_why(problem: dict[str, Any]) -> bool:
    return problem["errors"][0]["detail"] in ("nul_character", "noncharacter", "lone_surrogate",
                                              "string_too_long", "not_utf8")  # fmt: skip


def test_bait_for_expressions_is_answered_fast(ada: Caller, lookup: Tool) -> None:
    for entry in entries("regex_bait"):
        text = entry.bytes()[: 160 * 1024].decode("utf-8", "ignore")  # escaped, six bytes for two
        for name, body in {
            "tool": {"tool": text, "arguments": {}},
            "argument": {"tool": "sandbox.lookup", "arguments": {"text": text, "n": entry.id}},
            "session": {"tool": "sandbox.lookup", "arguments": {}, "session": text},
        }.items():
            answer = ada.post("/calls", body)
            assert answer.status_code in (201, 404, 422), (entry.id, name)
            assert answer.elapsed.total_seconds() < 2, (entry.id, name)


# Identifiers


PLACES: dict[str, str] = {
    "call": "/calls/{}",
    "events": "/calls/{}/events",
    "session": "/sessions/{}",
    "tool": "/tools/{}",
    "policy": "/policies/{}",
    "incident": "/incidents/{}",
    "by session": "/calls?session={}",
    "by call": "/incidents?call={}",
}


def asked_for(text: bytes) -> Iterator[tuple[str, str]]:
    """The text in every place of an address, escaped wholly and as little as can be."""
    for form in {quote(text, safe=""), quote(text, safe="/%")}:
        for name, place in PLACES.items():
            yield name, API + place.format(form)


def test_no_identifier_reaches_anything(world: World) -> None:
    wrong = {}
    # An empty one is the list's own address.
    wanted = [entry for entry in entries("ids_paths") if entry.bytes()]
    with Line(world.web.port) as line:
        for entry in wanted:
            for name, address in asked_for(entry.bytes()):
                answer = line.ask(head("GET", address, [world.authorization]))
                # A slash can make another address of it, which takes another method.
                right = (400, 404, 422, 405) if "/" in entry.text() else (400, 404, 422)
                if answer.status not in right or b"root:" in answer.body:
                    wrong[entry.id, name] = (answer.status, answer.body[:200])
    assert wrong == {}
    assert len(wanted) > 40


def test_identifiers_in_a_body_reach_nothing_either(ada: Caller, lookup: Tool) -> None:
    for entry in entries("ids_paths"):
        text = entry.bytes().decode("utf-8", "replace")
        for field in ("session", "turn", "tool"):
            wish = {"tool": "sandbox.lookup", "arguments": {}, field: text}
            assert ada.post("/calls", wish).status_code in (404, 422), (entry.id, field)
    assert stored()["ToolCall"] == 0


# Keys


@pytest.fixture
def secrets(
    world: World, acme: cast.Acme, mallory: Caller, person: Callable[..., Caller]
) -> dict[str, str]:
    """What the placeholders of the class `authentication` stand for."""
    _, env, id_, secret, check = world.key.split("_")
    expired, revoked = (keys.issue(agent=acme.ada) for _ in range(2))
    ApiKey.objects.filter(id=expired.split("_")[2]).update(expires_at="2020-01-01T00:00:00Z")
    keys.revoke(key_id=revoked.split("_")[2])
    login = person("olga").http.cookies["clearhouse_login"]
    return {
        "key": world.key, "env": env, "id": id_, "secret": secret, "check": check,
        "id_swapped": id_.swapcase(),
        "basic": base64.b64encode(f"ada:{world.key}".encode()).decode(),
        "login_cookie": f"clearhouse_login={login}",
        "wrong_secret_key": f"Bearer {_checked(env, id_, _base62(7**80, 43))}",
        "unknown_id_key": f"Bearer {_checked(env, 'A' * 12, secret)}",
        "expired_key": f"Bearer {expired}",
        "revoked_key": f"Bearer {revoked}",
        "read_only_key": f"Bearer {_scoped(acme.ada, 'calls:read')}",
        "worker_key": f"Bearer {_scoped(acme.ada, 'worker')}",
        "mallory_key": mallory.http.headers["Authorization"],
        "call": ids.shown("call", builders.a_call(acme).id),
    }  # fmt: skip


def _checked(*parts: str) -> str:
    front = "_".join(("clh", *parts))
    return f"{front}_{_check_of(front)}"


def _scoped(agent: Agent, scope: str) -> str:
    return keys.issue(agent=agent, scopes=(scope,))


# Those that would read may come in by a login too, so these prove themselves by a submit.
BY_SUBMIT = ("login_cookie_on_the_api", "key_without_the_scope", "worker_key_submits",
             "method_override", "key_as_a_json_field")  # fmt: skip
SUBMIT = b'{"tool":"sandbox.lookup","arguments":{}}'


def _filled(text: str, secrets: dict[str, str]) -> str:
    for name, value in secrets.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def test_only_the_right_key_in_the_right_place_opens(world: World, secrets: dict[str, str]) -> None:
    before = stored()
    answers = {entry.id: _as_told(entry, world, secrets) for entry in entries("authentication")}

    right = {entry.id: entry.expect.status for entry in entries("authentication")}
    wrong = {id_: answer for id_, answer in answers.items() if answer.status not in right[id_]}
    assert wrong == {}
    assert stored() == before


def _as_told(entry: Entry, world: World, secrets: dict[str, str]) -> Answer:
    path = _filled(entry.more.get("path", f"{API}/calls"), secrets)
    query = _filled(entry.more.get("query", ""), secrets)
    headers = [(name, _filled(value, secrets)) for name, value in entry.headers]
    method, body = "GET", b""
    if entry.id in BY_SUBMIT:
        method, body = "POST", _filled(entry.text(), secrets).encode() or SUBMIT
        headers = with_length([*headers, JSON], body)
    target = f"{path}?{query}" if query else path

    return exchange(world.web.port, head(method, target, headers) + body)


# Order


ELSEWHERE = {
    "claim", "cross", "heartbeat", "settle", "park", "lose_lease", "compact", "acknowledge",
    "raise_interrupt", "expire_interrupt", "answer_interrupt", "resolve", "await_ambiguous",
}  # fmt: skip
BY_API = {"open_turn", "close_turn", "submit", "cancel"}


def orders() -> Iterator[Entry]:
    """The entries whose last step, the attack, is an operation of the API."""
    for entry in entries("protocol_order"):
        *before, last = (step["do"] for step in entry.more["steps"])
        assert {*before, last} <= ELSEWHERE | BY_API, entry.id
        if last in BY_API and "compact" not in before:
            yield entry


class Story:
    """Plays the steps of an entry: what agents do by the API, what workers do by the verbs."""

    def __init__(self, ada: Caller) -> None:
        self.ada = ada
        self.session = ada.post("/sessions", {"host": "box-1"}).json()["id"]
        self.turn = self.call = ""

    def play(self, step: dict[str, Any]) -> Any:
        return getattr(self, step["do"])(**{k: v for k, v in step.items() if k != "do"})

    def open_turn(self) -> Any:
        answer = self.ada.post(f"/sessions/{self.session}/turns", {})
        self.turn = answer.json().get("id", "")
        return answer

    def close_turn(self) -> Any:
        path = f"/sessions/{self.session}/turns/{self.turn}/end"
        return self.ada.post(path, {"closed_as": "answered"})

    def submit(self, key: str = "", arguments: str = "{}", binding: str = "") -> Any:
        host = {"host": "box-2"} if binding else {}
        named = {"idempotency_key": key} if key else {}
        wish = {"tool": "sandbox.lookup", "session": self.session, "turn": self.turn}
        answer = self.ada.post(
            "/calls", {**wish, **host, **named, "arguments": json.loads(arguments)}
        )
        self.call = answer.json().get("id", "")
        return answer

    def cancel(self) -> Any:
        return self.ada.post(f"/calls/{self.call}/cancellation")

    def claim(self) -> None:
        builders.claimed(self.row())

    def cross(self) -> None:
        """A read has no boundary to cross."""

    def settle(self) -> None:
        builders.settle(self.row())

    def row(self) -> ToolCall:
        return ToolCall.objects.get(id=ids.read("call", self.call))


@pytest.mark.parametrize("entry", list(orders()), ids=lambda entry: entry.id)
def test_a_right_request_at_the_wrong_time_changes_nothing(
    entry: Entry, ada: Caller, lookup: Tool
) -> None:
    story = Story(ada)
    *before, last = entry.more["steps"]
    for step in before:
        answer = story.play(step)
        assert answer is None or answer.is_success, answer.text
    states = list(ToolCall.objects.values_list("id", "state", "seq"))

    answer = story.play(last)

    the_problem(answer, entry.expect.status[0], entry.expect.codes[0])
    assert list(ToolCall.objects.values_list("id", "state", "seq")) == states


# Time: the API's only duration is a policy's, in seconds, and it takes no instant at all


def _as_timeout(entry: Entry) -> str:
    value = entry.text() if entry.more["field"] == "duration_ms" else json.dumps(entry.text())
    times = f'{{"recovery_class":"read_only","timeouts":{{"heartbeat_s":{value}}}}}'
    return f'{{"grounds":"x","version":1,"policy":{times}}}'


def test_no_wrong_time_enters_a_policy(alma: Caller, lookup: Tool) -> None:
    # Timeouts are seconds here, so a fraction is one.
    wanted = [entry for entry in entries("time") if entry.id != "timeout_as_float"]
    path = f"{API}/policies/{lookup.name}"

    answers = {
        entry.id: alma.http.put(path, content=_as_timeout(entry), headers=dict([JSON])).status_code
        for entry in wanted
    }

    assert {id_: status for id_, status in answers.items() if status != 422} == {}
    assert lookup.policies.count() == 1


def test_the_database_holds_what_was_sent_and_no_jsonb_was_cast(world: World) -> None:
    """One entry of each class that grows or breaks when PostgreSQL parses it."""
    bodies = [SUBMIT.replace(b"{}", each) for each in (b'{"a":"\\\\u0000"}', b'{"n":1e300}')]
    for body in bodies:
        sent = with_length([world.authorization, JSON], body)
        assert exchange(world.web.port, head("POST", f"{API}/calls", sent) + body).status == 201

    with connection.cursor() as cursor:
        cursor.execute("SELECT arguments_received, arguments FROM ledger_toolcall ORDER BY id")
        texts = [row[0] or row[1] for row in cursor.fetchall()]

    assert [json.loads(text) for text in texts] == [{"a": "\\u0000"}, {"n": 1e300}]

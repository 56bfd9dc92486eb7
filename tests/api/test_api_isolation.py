"""The isolation matrix (S1): every route by everyone who must not come further than this.

The routes are taken from the URL configuration and from the OpenAPI document; a route that is
in neither table below fails the test, so whoever adds one says who may do what with it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.urls import get_resolver

from ledger import ids, keys, offers
from ledger.models import (
    ApiKey,
    Gate,
    Import,
    Membership,
    Policy,
    Session,
    Tool,
    ToolCall,
    ToolVersion,
    Turn,
)
from ledger.vocabulary import BreakerState, DeliveryMode
from recovery import breakers, bulk, rehearsals
from recovery.bulk import Selection
from recovery.models import Breaker, Grant, Incident, PersonsIntent, Resolution, Trial
from tests import builders, cast
from tests.api import callers
from tests.api.callers import API, Caller
from tests.api.served import Served
from tests.conversations import says
from tests.ledger.saying import place_of
from tests.ledger.test_compactions import a_call, a_history, compacted
from tests.ledger.test_handoffs import offered
from tests.recovery.deciding import a_decision, ambiguous, decide, found
from tests.recovery.test_imports import taken

CANARY = "canary-of-acme"
WHO = ("nobody", "malformed", "revoked", "expired", "foreign key", "low scope", "foreign login",
       "viewer")  # fmt: skip

#                     nobody malf. revoked expired foreign low  f.login viewer
READ_LIST = dict(zip(WHO, (401, 401, 401, 401, 200, 403, 200, 200), strict=True))
READ_ONE = dict(zip(WHO, (401, 401, 401, 401, 404, 403, 404, 200), strict=True))
AGENT_ONE = dict(zip(WHO, (401, 401, 401, 401, 404, 403, 401, 401), strict=True))
ADMIN_ONE = dict(zip(WHO, (401, 403, 403, 403, 403, 403, 404, 403), strict=True))
PEOPLES_LIST = dict(zip(WHO, (401, 403, 403, 403, 403, 403, 200, 200), strict=True))
PEOPLES_ONE = dict(zip(WHO, (401, 403, 403, 403, 403, 403, 404, 200), strict=True))
DECIDERS_ONE = dict(zip(WHO, (401, 401, 401, 401, 404, 403, 404, 403), strict=True))
OPEN = dict.fromkeys(WHO, 200)

API_ROUTES: dict[tuple[str, str], dict[str, int]] = {
    ("POST", "/calls"): AGENT_ONE | {"foreign key": 422},  # Acme's tools are unknown to Globex
    ("GET", "/calls"): READ_LIST,
    ("GET", "/calls/{call_id}"): READ_ONE,
    ("GET", "/calls/{call_id}/events"): READ_ONE,
    ("GET", "/calls/{call_id}/attempts"): READ_ONE,
    ("GET", "/calls/{call_id}/verdict"): READ_ONE,
    ("POST", "/calls/{call_id}/cancellation"): AGENT_ONE,
    ("POST", "/calls/{call_id}/hold-release"): ADMIN_ONE,
    ("GET", "/sessions"): READ_LIST,
    ("POST", "/sessions"): AGENT_ONE | {"foreign key": 201},  # one of its own
    ("GET", "/sessions/{session_id}"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/turns"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/turns/{turn_id}/messages"): AGENT_ONE,
    ("GET", "/sessions/{session_id}/turns/{turn_id}/messages"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/turns/{turn_id}/replies"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/turns/{turn_id}/interruption"): AGENT_ONE,
    ("GET", "/sessions/{session_id}/turns/{turn_id}/events"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/turns/{turn_id}/end"): AGENT_ONE,
    ("GET", "/sessions/{session_id}/turns/{turn_id}"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/resumption"): AGENT_ONE,
    ("GET", "/sessions/{session_id}/binding"): PEOPLES_ONE,
    ("POST", "/sessions/{session_id}/binding"): ADMIN_ONE,
    ("GET", "/sessions/{session_id}/changes"): PEOPLES_ONE,
    ("POST", "/sessions/{session_id}/stop"): ADMIN_ONE,
    ("POST", "/sessions/{session_id}/resume"): ADMIN_ONE,
    ("GET", "/sessions/{session_id}/transcript"): AGENT_ONE,
    ("GET", "/sessions/{session_id}/transcript/cuts"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/deliveries"): AGENT_ONE,
    ("GET", "/sessions/{session_id}/turns/{turn_id}/deliveries"): AGENT_ONE,
    ("GET", "/deliveries/{delivery_id}"): AGENT_ONE,
    ("POST", "/deliveries/{delivery_id}/acknowledgement"): AGENT_ONE,
    # The token is looked at first: one that is not good says nothing about any session.
    ("POST", "/sessions/{session_id}/compactions"): AGENT_ONE | {"foreign key": 422},
    ("GET", "/sessions/{session_id}/compactions/{compaction_id}"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/compactions/{compaction_id}/check"): AGENT_ONE,
    ("POST", "/sessions/{session_id}/handoffs"): AGENT_ONE,
    ("GET", "/handoffs/{hand_off_id}"): AGENT_ONE,
    ("POST", "/handoffs/{hand_off_id}/acceptance"): AGENT_ONE,
    ("POST", "/handoffs/{hand_off_id}/refusal"): AGENT_ONE,
    ("GET", "/events"): AGENT_ONE,
    ("POST", "/transcripts/validation"): READ_LIST,  # of nobody: nothing is stored or read
    ("POST", "/transcripts/repair"): READ_LIST,
    ("POST", "/imports"): DECIDERS_ONE | {"foreign key": 201},  # one of its own
    ("GET", "/imports"): READ_LIST,
    ("GET", "/imports/{import_id}"): READ_ONE,
    ("GET", "/imports/{import_id}/difference"): READ_ONE,
    ("GET", "/imports/{import_id}/original"): READ_ONE,
    ("GET", "/imports/{import_id}/transcript"): READ_ONE,
    ("POST", "/imports/{import_id}/reversion"): DECIDERS_ONE,
    ("DELETE", "/imports/{import_id}/reversion"): DECIDERS_ONE,
    ("POST", "/imports/{import_id}/discarding"): DECIDERS_ONE,
    ("GET", "/tools"): READ_LIST,
    ("GET", "/tools/{name}"): READ_ONE,
    ("PUT", "/tools/{name}/switch"): ADMIN_ONE,
    ("GET", "/tools/{name}/switch"): READ_ONE,
    ("GET", "/policies"): READ_LIST,
    ("GET", "/policies/{name}"): READ_ONE,
    ("PUT", "/policies/{name}"): ADMIN_ONE,
    ("POST", "/policies/{name}/trials"): ADMIN_ONE,
    ("GET", "/policies/{name}/trials/{trial_id}"): ADMIN_ONE | {"viewer": 200},
    ("GET", "/incidents"): READ_LIST,
    ("GET", "/holds"): READ_LIST,
    ("GET", "/incidents/summary"): READ_LIST,
    ("GET", "/incidents/{incident_id}"): READ_ONE,
    ("POST", "/incidents/{incident_id}/recovery-stop"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/confirmation"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/taking"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/release"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/aside"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/aside/end"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/assignment"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/resolutions/preview"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/resolutions"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/evidence"): ADMIN_ONE,
    ("POST", "/incidents/{incident_id}/proof-of-death"): ADMIN_ONE,
    ("GET", "/evidence/{evidence_id}"): READ_ONE,
    ("GET", "/resolutions/{resolution_id}"): READ_ONE,
    ("POST", "/resolutions/{resolution_id}/taking-back"): ADMIN_ONE,
    ("POST", "/resolutions/{resolution_id}/dispute"): ADMIN_ONE,
    ("POST", "/resolutions/{resolution_id}/approval"): ADMIN_ONE,
    ("GET", "/calls/{call_id}/file"): READ_ONE,
    ("POST", "/calls/{call_id}/evidence"): ADMIN_ONE,
    ("POST", "/calls/{call_id}/corrections/preview"): ADMIN_ONE,
    ("POST", "/calls/{call_id}/corrections"): ADMIN_ONE,
    # A filter finds what is Globex's own: nothing.
    ("POST", "/bulk-resolutions"): ADMIN_ONE | {"foreign login": 201},
    ("GET", "/bulk-resolutions"): PEOPLES_LIST,
    ("GET", "/audit"): READ_LIST | {"foreign key": 403},  # takes the scope export:read
    ("GET", "/approvals"): PEOPLES_LIST,
    ("GET", "/deadlines"): READ_LIST | {"foreign key": 403},  # takes the scope export:read
    ("GET", "/drills"): PEOPLES_LIST,  # of the installation, as workers are: the same for all
    ("GET", "/workers"): PEOPLES_LIST,
    ("GET", "/sweeps"): PEOPLES_LIST,
    ("GET", "/bulk-resolutions/{run_id}"): ADMIN_ONE | {"viewer": 200},
    ("POST", "/bulk-resolutions/{run_id}/run"): ADMIN_ONE,
    ("POST", "/bulk-resolutions/{run_id}/stop"): ADMIN_ONE,
    ("POST", "/bulk-resolutions/{run_id}/again"): ADMIN_ONE,
    ("POST", "/bulk-resolutions/{run_id}/taking-back"): ADMIN_ONE,
    ("GET", "/calls/{call_id}/budget"): READ_ONE,
    ("GET", "/budgets"): READ_LIST | {"foreign key": 422},  # the list is for people
    ("GET", "/budgets/audit"): READ_LIST | {"foreign key": 403},  # takes the scope export:read
    ("GET", "/budgets/grants"): PEOPLES_LIST,
    ("POST", "/budgets/grants"): ADMIN_ONE,
    ("GET", "/breakers"): READ_LIST,
    ("GET", "/breakers/{breaker_id}"): READ_ONE,
    ("POST", "/breakers/{breaker_id}"): ADMIN_ONE,
    ("GET", "/openapi.json"): OPEN,
    ("GET", "/docs"): OPEN,
    # Last, for it makes one of Globex's own by the same name.
    ("PUT", "/tools/{name}"): ADMIN_ONE | {"foreign login": 200},
}
ABANDON = {"answer": "abandon", "grounds": "Mischief.", "decision_version": 1}
HELLO = [{"role": "user", "content": "Hello."}]
LOOKED = {"kind": "checked", "finding": "happened", "message": "Mischief.", "reference": "4711"}
BODIES: dict[str, dict[str, Any]] = {
    "/incidents/{incident_id}/resolutions/preview": ABANDON,
    "/incidents/{incident_id}/resolutions": ABANDON,
    "/incidents/{incident_id}/evidence": LOOKED,
    "/incidents/{incident_id}/aside": {"minutes": 5},
    "/incidents/{incident_id}/assignment": {"to": "mallory"},
    "/incidents/{incident_id}/proof-of-death": {"attempt": 1, "grounds": "Mischief."},
    "/resolutions/{resolution_id}/taking-back": {"grounds": "Mischief."},
    "/resolutions/{resolution_id}/dispute": {"answer": "happened", "grounds": "Mischief."},
    "/resolutions/{resolution_id}/approval": {"approve": True, "grounds": "Mischief."},
    "/calls/{call_id}/evidence": LOOKED,
    "/calls/{call_id}/corrections/preview": ABANDON,
    "/calls/{call_id}/corrections": ABANDON,
    "/bulk-resolutions": {"answer": "abandon", "grounds": "Mischief.", "filter": {"tool": "pay"}},
    "/bulk-resolutions/{run_id}/run": {},
    "/bulk-resolutions/{run_id}/taking-back": {"grounds": "Mischief."},
    "/calls": {"tool": "pay", "arguments": {}},
    "/sessions": {},
    "/transcripts/validation": {"format": "openai-chat", "transcript": HELLO},
    "/transcripts/repair": {"format": "openai-chat", "transcript": HELLO},
    "/imports": {"format": "openai-chat", "transcript": HELLO},
    "/sessions/{session_id}/turns": {"key": "k"},
    "/sessions/{session_id}/turns/{turn_id}/messages": {
        "format": "openai-chat",
        "message": {"role": "user", "content": "Hello."},
    },
    "/sessions/{session_id}/turns/{turn_id}/replies": {
        "format": "openai-chat",
        "reply": {"role": "assistant", "content": "Hello."},
    },
    "/sessions/{session_id}/turns/{turn_id}/interruption": {},
    "/sessions/{session_id}/turns/{turn_id}/end": {"closed_as": "stopped"},
    "/calls/{call_id}/hold-release": {"grounds": "Mischief."},
    "/sessions/{session_id}/deliveries": {"turn": "turn_0199a3c2e4f07cc1a5d7b1f0a2b3c4d5"},
    "/deliveries/{delivery_id}/acknowledgement": {},
    "/sessions/{session_id}/compactions": {
        "token": "mischief",
        "cut": {"turn": 1, "position": 0},
        "summary": "Mischief.",
    },
    "/sessions/{session_id}/compactions/{compaction_id}/check": {"transcript": []},
    "/sessions/{session_id}/handoffs": {"to": {"agent": "mallory"}, "grounds": "Mischief."},
    "/handoffs/{hand_off_id}/acceptance": {},
    "/handoffs/{hand_off_id}/refusal": {},
    "/sessions/{session_id}/resumption": {},
    "/sessions/{session_id}/binding": {"host": "mine", "grounds": "Mischief.", "epoch": 1},
    "/sessions/{session_id}/stop": {"grounds": "Mischief."},
    "/sessions/{session_id}/resume": {"grounds": "Mischief."},
    "/tools/{name}": {"executor": "http", "grounds": "Mischief."},
    "/tools/{name}/switch": {"on": False, "grounds": "Mischief."},
    "/incidents/{incident_id}/recovery-stop": {"grounds": "Mischief."},
    "/incidents/{incident_id}/confirmation": {"grounds": "Mischief."},
    "/budgets/grants": {"scope": "tool", "id": "pay", "attempts": 1, "grounds": "Mischief."},
    "/breakers/{breaker_id}": {"state": "closed", "grounds": "Mischief."},
    "/policies/{name}/trials": {"policy": {"recovery_class": "read_only"}},
    "/policies/{name}": {
        "policy": {"recovery_class": "read_only"},
        "grounds": "Mischief.",
        "version": 1,
    },
}
QUERIES = {
    "/sessions/{session_id}/transcript": "?format=neutral",
    "/events": "?session={session_id}",
}
# Addresses without a login; all other pages of the console ask for one.
PUBLIC_PAGES = {"/healthz", "/readyz", "/login", "/logout", "/problems/<slug:code>"}


@dataclass(frozen=True, slots=True)
class Matrix:
    """The callers by name, and Acme's things by the names that addresses give them."""

    callers: dict[str, Caller]
    things: dict[str, str]

    def ask(self, who: str, method: str, path: str, **things: str) -> Any:
        address = (path + QUERIES.get(path, "")).format(**{**self.things, **things})
        body = BODIES.get(path) if method != "GET" else None
        return self.callers[who].send(method, address, body, headers={"Idempotency-Key": "key"})


@pytest.fixture
def matrix(
    web: Served, acme: cast.Acme, globex: cast.Globex, agent: Callable[..., Caller],
    person: Callable[..., Caller],
) -> Matrix:  # fmt: skip
    expired, revoked = (keys.issue(agent=acme.ada) for _ in range(2))
    ApiKey.objects.filter(id=expired.split("_")[2]).update(expires_at="2020-01-01T00:00:00Z")
    keys.revoke(key_id=revoked.split("_")[2])
    return Matrix(
        {
            "nobody": Caller(web.address),
            "malformed": Caller(web.address, Authorization="Bearer clh_live_x_y_z"),
            "revoked": Caller(web.address, Authorization=f"Bearer {revoked}"),
            "expired": Caller(web.address, Authorization=f"Bearer {expired}"),
            "foreign key": agent(globex.mallory),
            "low scope": agent(acme.ada, "worker"),
            "foreign login": person("mallory"),
            "viewer": person("vera"),
        },
        _acmes_things(acme),
    )


def _acmes_things(acme: cast.Acme) -> dict[str, str]:
    session = builders.a_session(acme, label=CANARY)
    turn = builders.a_turn(session)
    tool = builders.a_tool(acme, "pay", "side_effect", config={"url": CANARY})
    call = builders.a_call(
        acme, "ambiguous", tool=tool, arguments={"to": CANARY}, session_id=session.id,
        turn_id=turn.id,
    )  # fmt: skip
    olga, incident = cast.as_decider(acme.olga), Incident.objects.get()
    run = bulk.freeze(
        selection=Selection(incidents=[incident.id]), wish=a_decision(call, "abandon").wish,
        evidence={}, by=olga,
    )  # fmt: skip
    evidence = found(call, "unknown", olga, body=CANARY)
    resolution = decide(acme, call, "abandon")
    decide(acme, ambiguous(acme, second_person="always"), "abandon")
    return {
        "evidence_id": ids.shown("evidence", evidence.id),
        "resolution_id": ids.shown("resolution", resolution.id),
        "run_id": ids.shown("bulk_run", run.id),
        "call_id": ids.shown("call", call.id),
        "session_id": ids.shown("session", session.id),
        "turn_id": ids.shown("turn", turn.id),
        "incident_id": ids.shown("incident", incident.id),
        "breaker_id": ids.shown("breaker", _acmes_breaker(acme).id),
        "import_id": ids.shown("import", taken(acme, says(CANARY)).id),
        "name": "pay",
        "trial_id": ids.shown("trial", _acmes_trial(acme).id),
    } | _acmes_words(acme)


def _acmes_words(acme: cast.Acme) -> dict[str, str]:
    """What was offered, cut and handed on of a session of Acme's."""
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 1, crossed=True, arguments={"to": CANARY})
    shown = offers.offer(place_of(turn), mode=DeliveryMode.APPEND_BOTH, close=True).offer
    assert shown is not None
    cut = compacted(session)
    return {
        "delivery_id": ids.shown("delivery", shown.id),
        "compaction_id": ids.shown("compaction", cut.id),
        "hand_off_id": ids.shown("hand_off", offered(session).id),
    }


def _acmes_trial(acme: cast.Acme) -> Trial:
    """A policy of Acme's tool, tried on its calls."""
    return rehearsals.attempt(
        person=cast.as_decider(acme.olga), tool_name="pay", document={"review_s": 3600}
    )


def _acmes_breaker(acme: cast.Acme) -> Breaker:
    """An open breaker, and so a gate, of a provider that only Acme has."""
    breaker = Breaker.objects.create(workspace=acme.workspace, kind="provider", name=CANARY)
    breakers.put(workspace_id=acme.workspace.id, breaker_id=breaker.id, state=BreakerState.OPEN,
                 grounds="It hangs.", person=acme.olga)  # fmt: skip
    return Breaker.objects.get(id=breaker.id)


def acmes_rows(acme: cast.Acme) -> dict[str, Any]:
    """All that a stranger could have changed."""
    tables = (ToolCall, Session, Turn, Import, Tool, ToolVersion, Policy, Incident, Breaker, Gate,
              Grant, Resolution, PersonsIntent, Trial)  # fmt: skip
    return {
        table.__name__: list(table.objects.filter(workspace=acme.workspace).order_by("id").values())
        for table in tables
    }


def addresses(resolver: Any = None, before: str = "/") -> Iterator[str]:
    """Every address of the URL configuration."""
    for entry in (resolver or get_resolver()).url_patterns:
        if hasattr(entry, "url_patterns"):
            yield from addresses(entry, before + str(entry.pattern))
        else:
            yield before + str(entry.pattern)


def of_the_api() -> set[str]:
    return {
        each.removeprefix(API).replace("<", "{").replace(">", "}")
        for each in addresses()
        if each.startswith(API)
    }


def test_every_address_of_the_api_is_in_the_table(ada: Caller) -> None:
    documented = {
        (method.upper(), path.removeprefix(API))
        for path, operations in ada.get("/openapi.json").json()["paths"].items()
        for method in operations
    }
    undocumented = {("GET", "/openapi.json"), ("GET", "/docs")}

    assert documented | undocumented == API_ROUTES.keys()
    assert of_the_api() - {"/"} == {path for _, path in API_ROUTES}
    assert ada.get("/").status_code == 404


def test_nobody_comes_further_than_the_table_says(matrix: Matrix, acme: cast.Acme) -> None:
    before = acmes_rows(acme)
    wrong = []
    for (method, path), expected in API_ROUTES.items():
        for who, status in expected.items():
            answer = matrix.ask(who, method, path)
            if answer.status_code != status:
                wrong.append(f"{who}: {method} {path}: {answer.status_code}, not {status}")
            if who not in ("viewer",) and CANARY in answer.text:
                wrong.append(f"{who}: {method} {path} shows what is Acme's")

    assert wrong == []
    assert acmes_rows(acme) == before


def test_what_is_foreign_reads_like_what_is_absent(matrix: Matrix) -> None:
    absent = dict.fromkeys(matrix.things, ids.new().hex) | {"name": "nothing"}
    alike = 0
    for (method, path), expected in API_ROUTES.items():
        for who in ("foreign key", "foreign login"):
            if expected[who] != 404:
                continue
            answers = [matrix.ask(who, method, path), matrix.ask(who, method, path, **absent)]
            documents = [answer.json() for answer in answers]
            for document in documents:
                del document["instance"], document["request_id"]
            assert documents[0] == documents[1], (who, method, path)
            assert answers[0].headers.keys() == answers[1].headers.keys()
            alike += 1
    assert alike > 12


def test_lists_of_a_neighbour_are_empty(matrix: Matrix) -> None:
    for path in ("/calls", "/tools", "/policies", "/incidents"):
        for who in ("foreign key", "foreign login"):
            assert matrix.ask(who, "GET", path).json()["items"] == [], (who, path)
    for path in ("/approvals", "/deadlines"):
        assert matrix.ask("viewer", "GET", path).json()["items"] != [], path
        assert matrix.ask("foreign login", "GET", path).json()["items"] == [], path


def test_no_page_of_the_console_opens_without_a_login(web: Served, ada: Caller) -> None:
    pages = {each for each in addresses() if not each.startswith(API)}
    assert pages >= PUBLIC_PAGES
    for who in (Caller(web.address), ada):
        for page in pages - PUBLIC_PAGES:
            # A key is no login, and a place in an address needs no real thing to be refused.
            address = page.replace("<", "").replace(">", "").split(":")[0]
            answer = who.http.get(address)
            assert answer.status_code in (302, 404), (page, answer.status_code)
            if answer.status_code == 302:
                assert answer.headers["Location"].startswith("/login"), page


def test_a_person_of_no_workspace_reads_nothing(
    person: Callable[..., Caller], matrix: Matrix
) -> None:
    Membership.objects.filter(person__username="vera").delete()
    for (method, path), expected in API_ROUTES.items():
        if expected["viewer"] == 200 and expected is not OPEN:
            answer = matrix.ask("viewer", method, path)
            callers.the_problem(answer, 403, "permission_missing")

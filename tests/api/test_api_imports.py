"""A bricked conversation over HTTP: imported, looked at, continued; and what is refused."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from ledger.models import Import, Session, Tool, ToolCall, Turn
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.repair import predicted
from recovery import watchdog
from recovery.models import Incident
from tests import cast, conversations, corpus_loader
from tests.api.callers import Caller, the_problem
from tests.conversations import a_call, answers, asks, replies, says
from tests.corpus_loader import Entry

JSON, LINES = "application/json", "application/x-ndjson"
PROMPTED = says("Send the invitations")


def send(
    caller: Caller, body: Any, *, content_type: str = JSON, key: str = "k-1", **query: str
) -> httpx2.Response:
    """Import a file: a value as JSON, or bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": content_type} | ({"Idempotency-Key": key} if key else {})
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return caller.send("POST", f"/imports?{asked}", content=content, headers=headers)


def imported(caller: Caller, *transcript: Any, **more: Any) -> dict[str, Any]:
    answer = send(caller, list(transcript), **{"format": "openai-chat"} | more)
    assert answer.status_code == 201, answer.text[:500]
    return dict(answer.json())


def given(caller: Caller, path: str) -> Any:
    answer = caller.get(path)
    assert answer.status_code == 200, (path, answer.text[:500])
    return answer.json()


def faults_in(transcript: Any, name: str) -> list[str]:
    """What the provider would answer to a transcript of its own format."""
    return [each.code for each in predicted(transcript, format=name, profile=profile(name))]


# The seed's case


def test_the_seeds_bricked_session_is_repaired_shown_and_continued(
    ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    row = send(ada, conversations.the_rows(), format="rows").json()

    before, after = row["counts"]["before"], row["counts"]["after"]
    assert (before["calls"], before["results"], before["orphans"]) == (32, 35, 3)
    assert before["prompts_repeated"] == 1
    assert (after["calls"], after["results"], after["orphans"]) == (32, 32, 0)
    dropped = [each for each in row["report"]["changes"] if each["kind"] == "orphan_dropped"]
    named = [each["provider_id"] for each in dropped]
    assert named == [id_ for id_, _ in conversations.ORPHANS]
    assert (row["made"]["calls"], row["made"]["results"]) == (32, 32)
    incident = Incident.objects.get()
    assert (incident.kind, incident.session.calls.count()) == ("transcript", 32)

    every_copy_is_sound(ada, row)
    turn = continued(ada, row)
    every_copy_is_sound(ada, row)
    assert given(ada, f"/imports/{row['id']}")["continued_by"] == turn


def every_copy_is_sound(caller: Caller, row: dict[str, Any]) -> None:
    """The repaired copy and the session as it stands, for every provider."""
    for name in profiles():
        copy = given(caller, f"/imports/{row['id']}/transcript?profile={name}")
        assert copy["repaired"]
        assert faults_in(copy["transcript"], name) == []
        session = given(caller, f"/sessions/{row['session']}/transcript?format={name}")
        assert faults_in(session["body"], name) == []


def continued(caller: Caller, row: dict[str, Any]) -> str:
    """A new turn with a prompt and a reply that asks for a call; the turn's id."""
    opened = caller.post(f"/sessions/{row['session']}/turns", {"key": "go-on"}).json()
    place = f"/sessions/{row['session']}/turns/{opened['id']}"
    said = caller.post(f"{place}/messages", {"format": "openai-chat", "message": says("Go on")})
    assert said.status_code == 201, said.text
    reply = asks(a_call("call_9f01", "lookup", {"name": "prices"}))
    body = {"format": "openai-chat", "reply": reply, "names": {"lookup": "sandbox.lookup"}}
    answer = caller.post(f"{place}/replies", body)
    assert answer.status_code == 201, answer.text
    return str(opened["id"])


# What comes in


def test_lines_are_imported_and_given_back_as_received(ada: Caller) -> None:
    body = json.dumps(PROMPTED).encode() + b"\n\n" + json.dumps(replies("done")).encode() + b"\n"

    row = send(ada, body, content_type=LINES, format="openai-chat").json()

    kept = ada.get(f"/imports/{row['id']}/original")
    assert kept.content == body
    assert row["sha256"] == hashlib.sha256(body).hexdigest()
    assert kept.headers["Content-Disposition"].startswith("attachment")
    assert given(ada, f"/imports/{row['id']}/transcript")["repaired"]


def test_an_object_may_name_the_session_that_it_becomes(ada: Caller) -> None:
    binding = {"label": "Books", "working_directory": "/srv/books", "host": "box-1"}
    body = {"format": "openai-chat", "transcript": [PROMPTED], "session": binding}

    row = send(ada, body).json()

    session = given(ada, f"/sessions/{row['session']}")
    assert (session["label"], session["binding"]["host"]) == ("Books", "box-1")


def test_a_dry_run_keeps_nothing(ada: Caller) -> None:
    answer = send(ada, [PROMPTED, answers("x")], key="", format="openai-chat", dry_run="true")

    assert answer.status_code == 200
    assert answer.json()["report"]["before"]["orphans"] == 1
    assert (Import.objects.count(), Session.objects.count()) == (0, 0)


def test_an_import_needs_a_key(ada: Caller) -> None:
    answer = send(ada, [PROMPTED], key="", format="openai-chat")

    the_problem(answer, 422, "validation")
    assert Session.objects.count() == 0


def test_the_same_again_is_the_same_and_another_file_is_refused(ada: Caller) -> None:
    first = send(ada, [PROMPTED], format="openai-chat")
    again = send(ada, [PROMPTED], format="openai-chat")
    other = send(ada, [PROMPTED, replies("x")], format="openai-chat")

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    the_problem(other, 409, "key_reused")


def test_what_cannot_be_read_is_refused_with_its_place(ada: Caller) -> None:
    problem = the_problem(
        send(ada, [PROMPTED, {"role": "root", "content": "x"}], format="openai-chat"),
        422,
        "transcript_unreadable",
    )

    assert problem["errors"][0]["pointer"] == "/1/role"


@pytest.mark.parametrize("session", [7, {"label": 7}, {"host": "x" * 300}])
def test_a_binding_that_does_not_fit_is_refused(ada: Caller, session: Any) -> None:
    body = {"format": "openai-chat", "transcript": [PROMPTED], "session": session}

    the_problem(send(ada, body), 422, "validation")


def test_a_person_imports_for_an_agent_and_nobody_else_does(
    acme: cast.Acme, person: Callable[..., Caller], agent: Callable[..., Caller]
) -> None:
    olga, vera = person("olga"), person("vera")

    row = send(olga, [PROMPTED, asks(a_call("c1"))], format="openai-chat", agent="ada").json()

    assert Import.objects.get().agent == acme.ada
    event = ToolCall.objects.get().events.get(seq=1)
    assert (event.actor, event.actor_id) == ("operator", str(acme.olga.pk))
    assert given(vera, f"/imports/{row['id']}")["id"] == row["id"]
    the_problem(
        send(vera, [PROMPTED], format="openai-chat", agent="ada"), 403, "permission_missing"
    )
    the_problem(send(olga, [PROMPTED], format="openai-chat", agent="nobody"), 404, "not_found")
    reads = agent(acme.ada, "calls:read")
    the_problem(send(reads, [PROMPTED], format="openai-chat"), 403, "permission_missing")


# What is looked at


def test_the_difference_names_what_became_of_each_entry(ada: Caller) -> None:
    row = imported(
        ada, PROMPTED, asks(a_call("c1")), says("and the flowers"), answers("c1", "sent"),
        answers("lost", "ok"), asks(a_call("c2")), replies("bye"),
    )  # fmt: skip

    found = given(ada, f"/imports/{row['id']}/difference")

    became = {(each["from"], each["is"]) for each in found["items"]}
    assert {(0, "kept"), (1, "kept"), (3, "changed"), (4, "dropped"), (None, "added")} <= became
    by_from = {each["from"]: each["changes"] for each in found["items"]}
    assert by_from[3] == ["moved"]
    assert by_from[4] == ["orphan_dropped"]
    assert found["counts"] == {
        kind: sum(each["is"] == kind for each in found["items"])
        for kind in ("kept", "changed", "dropped", "added")
    }


def test_a_sound_conversation_has_no_difference(ada: Caller) -> None:
    told = [PROMPTED, asks(a_call("c1")), answers("c1"), replies("done"), says("thanks")]
    row = imported(ada, *told)

    found = given(ada, f"/imports/{row['id']}/difference")

    assert found["counts"] == {"kept": 5, "changed": 0, "dropped": 0, "added": 0}
    assert given(ada, f"/imports/{row['id']}/transcript")["transcript"] == told


def test_while_reverted_the_original_is_shown(ada: Caller) -> None:
    row = imported(ada, PROMPTED, answers("lost"))
    at = f"/imports/{row['id']}"

    assert ada.post(f"{at}/reversion").json()["reverted_at"]
    shown = given(ada, f"{at}/transcript")
    other = ada.get(f"{at}/transcript?profile=anthropic")
    assert ada.send("DELETE", f"{at}/reversion").json()["reverted_at"] is None

    assert (shown["repaired"], shown["transcript"]) == (False, [PROMPTED, answers("lost")])
    the_problem(other, 409, "import_reverted")
    assert given(ada, f"{at}/transcript")["transcript"] == [PROMPTED]


def test_a_discarded_import_says_so_and_stays_readable(ada: Caller) -> None:
    row = imported(ada, PROMPTED)

    discarded = ada.post(f"/imports/{row['id']}/discarding").json()

    assert discarded["discarded_at"]
    assert given(ada, f"/sessions/{row['session']}")["stopped_at"]
    assert ada.get(f"/imports/{row['id']}/original").status_code == 200
    the_problem(ada.post(f"/imports/{row['id']}/reversion"), 409, "import_discarded")


def test_what_went_on_is_not_undone(ada: Caller) -> None:
    row = imported(ada, PROMPTED)
    ada.post(f"/sessions/{row['session']}/turns", {})

    for verb in ("reversion", "discarding"):
        the_problem(ada.post(f"/imports/{row['id']}/{verb}"), 409, "import_continued")


def test_imports_are_listed_newest_first(ada: Caller) -> None:
    first = imported(ada, PROMPTED)
    second = imported(ada, says("else"), key="k-2")

    items = given(ada, "/imports")["items"]

    assert [each["id"] for each in items] == [second["id"], first["id"]]
    assert "report" not in items[0]


def test_a_neighbour_sees_nothing_of_an_import(ada: Caller, mallory: Caller) -> None:
    row = imported(ada, PROMPTED)
    at = f"/imports/{row['id']}"

    for path in (at, f"{at}/original", f"{at}/difference", f"{at}/transcript"):
        the_problem(mallory.get(path), 404, "not_found")
    for path in (f"{at}/reversion", f"{at}/discarding"):
        the_problem(mallory.post(path), 404, "not_found")
    assert given(mallory, "/imports")["items"] == []


def test_an_unanswered_call_reaches_the_operators_inbox(ada: Caller) -> None:
    row = imported(ada, PROMPTED, asks(a_call("c1")))

    watchdog.fire_due()

    [call] = given(ada, f"/calls?session={row['session']}")["items"]
    assert (call["state"], call["next_action"]) == ("ambiguous", "ask_person")
    told = given(ada, f"/calls/{call['id']}")["notice"]
    assert told["template"] == "unrecorded"
    saw = given(ada, f"/calls/{call['id']}/verdict")
    assert saw["started"]["answer"] == "unknown"


# Hostile files


def entries() -> Iterator[Entry]:
    return (each for each in corpus_loader.load_all(channel="import") if not each.headers)


def all_is_still_read(ada: Caller) -> None:
    """Every import, session and call there is, by every address that shows it."""
    for row in given(ada, "/imports?limit=200")["items"]:
        at = f"/imports/{row['id']}"
        for path in (
            at,
            f"{at}/difference",
            f"{at}/transcript",
            f"{at}/transcript?profile=mistral",
        ):
            assert ada.get(path).status_code == 200, (path, row["format"])
        for name in ("anthropic", "gemini"):
            given(ada, f"/sessions/{row['session']}/transcript?format={name}")
        for call in given(ada, f"/calls?session={row['session']}&limit=200")["items"]:
            for below in ("", "/events", "/verdict"):
                given(ada, f"/calls/{call['id']}{below}")


def test_no_hostile_file_breaks_the_import_or_what_is_read_later(ada: Caller) -> None:
    wrong = []
    for entry in entries():
        kept = Session.objects.count()
        format = "openai-chat" if entry.more.get("format") in ("openai", None) else "anthropic"
        answer = send(ada, entry.bytes(), key=entry.id, format=format)
        expected = {201 if status == 200 else status for status in entry.expect.status}
        new = Session.objects.count() - kept
        if answer.status_code not in expected or new != (answer.status_code == 201):
            wrong.append((entry.id, answer.status_code, answer.text[:200]))
    assert wrong == []
    assert Import.objects.count() > 0
    all_is_still_read(ada)


MARKS = "\u202e\u2066x\u2069\ufeff"
BOMB = "c" * 100_000


@pytest.mark.parametrize(
    "told",
    [
        [says(MARKS), asks(a_call(MARKS, "f", {MARKS: MARKS})), answers(MARKS, MARKS)],
        [PROMPTED, asks(a_call(BOMB)), answers(BOMB)],
        [PROMPTED, asks(a_call("c1", BOMB)), answers("c1")],
        [PROMPTED, asks(a_call("c1", "f", {"k": BOMB})), answers("c1", BOMB)],
        [PROMPTED, asks(*(a_call(f"c{n}", f"f{n}") for n in range(300)))],
        [PROMPTED, asks(a_call("c1", "f", '{"a":' * 60 + "1" + "}" * 60)), answers("c1")],
        [PROMPTED, asks(a_call("c1", "f", '{"a":' * 5000 + "1" + "}" * 5000)), answers("c1")],
        [PROMPTED, asks(a_call("c1", "f", '{"n": ' + "9" * 4000 + "}")), answers("c1")],
        [PROMPTED, asks(a_call("c1", "(imported)")), answers("c1")],
        [],
        [says("")],
        [replies("")],
    ],
    ids=["marks", "huge id", "huge name", "huge texts", "many tools", "deep", "deeper", "number",
         "the name of our own", "empty", "empty text", "empty reply"],
)  # fmt: skip
def test_an_odd_conversation_is_imported_and_read_again(ada: Caller, told: Any) -> None:
    answer = send(ada, told, format="openai-chat")

    assert answer.status_code in (201, 422), answer.text[:500]
    all_is_still_read(ada)


def test_a_call_with_a_huge_id_keeps_its_place(ada: Caller) -> None:
    row = imported(ada, PROMPTED, asks(a_call(BOMB)), answers(BOMB, "sent"))

    [call] = given(ada, f"/calls?session={row['session']}")["items"]

    assert call["state"] == "succeeded"
    assert len(call["tool_call_id"]) == 255


def test_two_imports_of_one_file_at_once_are_one(
    ada: Caller, acme: cast.Acme, agent: Callable[..., Caller]
) -> None:
    told = [
        PROMPTED,
        *(part for n in range(50) for part in (asks(a_call(f"c{n}")), answers(f"c{n}"))),
    ]
    callers = [ada, *(agent(acme.ada) for _ in range(3))]
    seen: list[tuple[int, str]] = []

    def one(caller: Caller, key: str) -> None:
        answer = send(caller, told, key=key, format="openai-chat")
        seen.append((answer.status_code, answer.json().get("id", answer.text)))

    threads = [
        threading.Thread(target=one, args=(caller, f"k-{n}")) for n, caller in enumerate(callers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert sorted(status for status, _ in seen) == [200, 200, 200, 201]
    assert len({id_ for _, id_ in seen}) == 1
    assert (Session.objects.count(), Turn.objects.count(), ToolCall.objects.count()) == (1, 1, 50)

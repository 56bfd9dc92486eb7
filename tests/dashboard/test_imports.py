"""The pages that import and repair: tried without keeping, taken in once, reverted, discarded."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dashboard import session_standing
from ledger import ids, masking, sessions
from ledger.models import Import, Message, Session, ToolCall
from tests import builders, cast, conversations
from tests.conversations import a_call, answers, asks, says
from tests.dashboard.conversations import HOSTILE, SECRET, a_story
from tests.dashboard.test_sessions import signed_in, text_of

pytestmark = pytest.mark.django_db

BROKEN = [
    says(f"Look it up. {HOSTILE} {SECRET}"),
    asks(a_call("call_1")),
    answers("call_1"),
    answers("call_lost", "from nowhere"),
    asks(a_call("call_2", "send_invoice")),
]


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    return signed_in(acme.olga)


def form(deed: str, transcript: Any = BROKEN, **more: str) -> dict[str, str]:
    text = transcript if isinstance(transcript, str) else json.dumps(transcript)
    return {"once": "k1", "deed": deed, "format": "openai-chat", "agent": "ada",
            "transcript": text, **more}  # fmt: skip


def imported(client: Client, **more: str) -> Import:
    answer = client.post("/imports/new", form("import", **more))
    assert answer.status_code == 302, answer.content.decode()[-2000:]
    return Import.objects.get()


def at(row: Import, word: str = "") -> str:
    return f"/imports/{ids.shown('import', row.id)}{word}"


def test_a_try_shows_the_report_and_keeps_nothing(olga: Client) -> None:
    answer = olga.post("/imports/new", form("try"))
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "nothing was kept" in page
    assert "orphan_output" in page
    assert "A reply was lost and its results were kept." in page
    assert "from nowhere" in page  # the typed text stands in the form again
    assert (Import.objects.count(), Session.objects.count()) == (0, 0)


def test_an_import_is_one_session_however_often_it_is_pressed(olga: Client) -> None:
    imported(olga)
    imported(olga)
    imported(olga, once="another press")
    row = Import.objects.get()
    assert ToolCall.objects.filter(session=row.session).count() == 2
    page = text_of(olga, at(row))
    assert "− dropped" in page
    assert "1 interrupted" in page
    assert "call_lost" in page


def test_a_prompt_said_twice_is_kept_and_marked_once(olga: Client) -> None:
    twice = [says("Look it up."), says("Look it up."), *BROKEN[1:]]
    row = imported(olga, transcript=json.dumps(twice))
    page = text_of(olga, at(row))
    assert "marked as a repeated prompt" in page
    assert page.count("= kept") == page.count(">unchanged<") == 1


def test_what_was_imported_stands_on_the_page_of_its_session(olga: Client) -> None:
    row = imported(olga, label="Bakery")
    page = text_of(olga, f"/sessions/{ids.shown('session', row.session_id)}")
    assert "Bakery" in page
    assert at(row) in page
    assert "1 unresolved" in page
    assert "1 orphan dropped" in page
    assert (
        at(row) in olga.get(f"/sessions/{ids.shown('session', row.session_id)}/repair")["Location"]
    )


def test_an_imported_turn_that_nobody_answered_says_so(olga: Client) -> None:
    asked = [says("Look it up."), says("Are you there?")]
    imported(olga, transcript=json.dumps(asked))
    row = Import.objects.get()
    page = text_of(olga, f"/sessions/{ids.shown('session', row.session_id)}")
    assert "imported, no reply" in page
    assert "as answered" not in page


def test_what_a_repair_changed_is_counted_in_words() -> None:
    changes = {"orphan_dropped": 2, "synthesized": 1, "prompt_repeated": 2, "text_moved": 1}
    words = [session_standing.changed(kind, number) for kind, number in changes.items()]
    assert ", ".join(words) == (
        "2 orphans dropped, 1 result synthesized, 2 repeated prompts, 1 text moved"
    )


def test_no_text_of_an_import_becomes_markup_and_no_secret_is_shown(olga: Client) -> None:
    row = imported(olga)
    session = f"/sessions/{ids.shown('session', row.session_id)}"
    for address in (at(row), session, f"{session}/rendering"):
        page = text_of(olga, address)
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert SECRET not in page


def test_the_original_is_a_file_with_its_secrets_masked(olga: Client) -> None:
    row = imported(olga)
    answer = olga.get(at(row, "/original"))
    given = answer.json()
    assert given[1:] == BROKEN[1:]
    assert given[0] == says(f"Look it up. {HOSTILE} {masking.masked_text(SECRET)}")
    assert "attachment" in answer["Content-Disposition"]


@pytest.mark.parametrize("profile", ["anthropic", "gemini", "openai-chat"])
def test_the_repaired_copy_is_given_for_each_provider(olga: Client, profile: str) -> None:
    answer = olga.get(at(imported(olga), f"/copy?profile={profile}"))
    assert answer.status_code == 200
    assert "from nowhere" not in answer.content.decode()


def test_a_repair_is_reverted_and_shown_again(olga: Client) -> None:
    row = imported(olga)
    olga.post(at(row, "/reversion"), {"once": "r1"})
    assert "The repair was reverted" in text_of(olga, at(row))
    olga.post(at(row, "/restoration"), {"once": "r2"})
    assert "The repair was reverted" not in text_of(olga, at(row))


def test_an_import_is_discarded_as_a_whole(olga: Client) -> None:
    row = imported(olga)
    assert olga.post(at(row, "/discarding"), {"once": "d"}).status_code == 302
    page = text_of(olga, at(row))
    assert "Discarded" in page
    assert 'aria-disabled="true"' in page


def test_an_import_that_somebody_built_on_says_why_it_stays(olga: Client) -> None:
    row = imported(olga)
    session = row.session
    sessions.open_turn(session=session)
    assert "somebody has built on it" in text_of(olga, at(row))
    assert olga.post(at(row, "/discarding"), {"once": "d"}).status_code == 409


def test_what_cannot_be_read_is_refused_with_its_place_and_kept_in_the_form(olga: Client) -> None:
    for deed in ("try", "import"):
        answer = olga.post("/imports/new", form(deed, '[{"role": "user"'))
        page = answer.content.decode()
        assert answer.status_code == 422
        assert 'role="alert"' in page
        assert "[{&quot;role&quot;: &quot;user&quot;" in page
    assert Import.objects.count() == 0


def test_an_empty_form_says_what_is_missing(olga: Client) -> None:
    answer = olga.post("/imports/new", form("try", ""))
    assert answer.status_code == 422
    assert "Paste a transcript, or choose a file" in answer.content.decode()


def test_a_viewer_may_look_at_an_import_and_its_copies_and_change_nothing(
    olga: Client, acme: cast.Acme
) -> None:
    row = imported(olga)
    vera = signed_in(acme.vera)
    assert "Ask olga" in text_of(vera, at(row))
    assert vera.post("/imports/new", form("try")).status_code == 403
    assert vera.get(at(row, "/original")).status_code == 200
    assert vera.get(at(row, "/copy")).status_code == 200
    assert vera.post(at(row, "/discarding"), {"once": "d"}).status_code == 403


def test_mallory_finds_no_import_of_acme(olga: Client, globex: cast.Globex) -> None:
    row = imported(olga)
    mallory = signed_in(globex.mallory_herself)
    for word in ("", "/original", "/copy"):
        assert mallory.get(at(row, word)).status_code == 404
    answer = mallory.post("/imports/new", form("import"))
    assert answer.status_code == 422


# Repair without storing


def repaired(client: Client, address: str = "/transcripts/repair", **more: Any) -> str:
    answer = client.post(address, form("show", **more) | {"profile": more.get("profile", "")})
    assert answer.status_code == 200, answer.content.decode()[-1500:]
    return answer.content.decode()


def test_a_pasted_transcript_is_repaired_and_nothing_of_it_is_stored(olga: Client) -> None:
    page = repaired(olga, profile="anthropic")
    assert "Report for anthropic, read as openai-chat" in page
    assert "orphan dropped" in page
    assert "synthesized" in page
    assert "<script>alert" not in page
    viewer = page[page.index('id="repaired"') :]
    assert SECRET not in viewer
    counted = (Import.objects.count(), Session.objects.count(), Message.objects.count())
    assert counted == (0, 0, 0)


def test_a_sound_transcript_says_that_there_is_nothing_to_repair(olga: Client) -> None:
    sound = [says("Look it up."), asks(a_call("call_1")), answers("call_1")]
    assert "there is nothing to repair" in repaired(olga, transcript=sound)


def test_a_chosen_file_of_lines_is_read_as_lines(olga: Client) -> None:
    lines = "\n".join(json.dumps(each) for each in conversations.the_rows())
    chosen = SimpleUploadedFile("rows.jsonl", lines.encode())
    answer = olga.post(
        "/transcripts/repair", {"deed": "download", "format": "rows", "file": chosen,
                                "profile": "openai-chat"},
    )  # fmt: skip
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    results = [each for each in json.loads(answer.content) if each["role"] == "tool"]
    assert len(results) == 32


def test_the_ledgers_result_takes_the_place_of_what_an_agent_lost(
    olga: Client, acme: cast.Acme
) -> None:
    story = a_story(acme)
    call = builders.fresh(story.settled)
    arguments = json.loads(call.arguments_received or call.arguments)
    asked = a_call(call.tool_call_id, call.tool, arguments)
    lost = [says("Close the month."), asks(asked)]
    address = f"/sessions/{ids.shown('session', story.session.id)}/repair"
    page = repaired(olga, address, transcript=lost)
    assert "replayed" in page
    assert "from the ledger" in page


def test_pages_of_imports_have_no_inline_style_or_script(olga: Client) -> None:
    row = imported(olga)
    for address in ("/imports/new", "/transcripts/repair", at(row)):
        page = text_of(olga, address)
        assert " style=" not in page
        assert "<style" not in page

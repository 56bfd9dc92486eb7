"""The page of an incident: looked at, decided on, by one operator or by two at once."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape

from ledger import deliveries, ids
from ledger.deliveries import Fetched
from ledger.errors import BindingDrift, LedgerError
from ledger.models import Evidence, ToolCall
from recovery import watchdog
from recovery.models import Dispute, Incident, Resolution
from tests import builders, cast
from tests.builders import a_submit, a_tool, answer_to, fresh
from tests.cast import as_decider
from tests.dashboard.deciding import address, key_of, operator, send, text, typed
from tests.dashboard.watching import an_hour_ago
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, delay_over, found, version_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    return operator(acme.olga)


@pytest.fixture
def omar(acme: cast.Acme) -> Client:
    return operator(cast.a_person("omar", acme.workspace, "operator"))


@pytest.fixture
def call(acme: cast.Acme) -> ToolCall:
    """A side effect that may have happened, its attempt proven dead."""
    return ambiguous(acme)


def seen(call: ToolCall, acme: cast.Acme, finding: str = "happened", **more: Any) -> str:
    """Olga has looked outside; the id of what she put on the file."""
    return ids.shown("evidence", found(call, finding, as_decider(acme.olga), **more).id)


# Looking


@pytest.mark.parametrize(
    ("runbook", "is_link"),
    [
        ("https://wiki.example/mail?x=1#top", True),
        ("Look at the outbox first.", False),
        ("javascript:alert(1)", False),
        ("https://wiki.example/ and then ask", False),
        ("https://wiki.example@evil.example/", False),
    ],
)
def test_the_runbook_of_the_tool_stands_beside_and_is_a_link_only_as_an_address(
    olga: Client, acme: cast.Acme, runbook: str, is_link: bool
) -> None:
    html = olga.get(address(ambiguous(acme, runbook=runbook))).content.decode()
    assert escape(runbook) in html
    assert (f'href="{escape(runbook)}"' in html) is is_link


POINTS = {"before_start": "https://wiki.example/first",
          "during_execution": "https://wiki.example/sent"}  # fmt: skip


@pytest.mark.parametrize("word", ["incidents", "calls"])
def test_the_runbook_of_the_failure_point_stands_before_that_of_the_tool(
    olga: Client, acme: cast.Acme, word: str
) -> None:
    call = ambiguous(acme, runbook="Ask Olga.", runbooks=POINTS)
    at = {"incidents": address(call), "calls": f"/calls/{ids.shown('call', call.id)}"}[word]
    page = olga.get(at).content.decode()
    assert 'href="https://wiki.example/sent"' in page
    assert "https://wiki.example/first" not in page
    assert "Ask Olga." not in page


def test_a_failure_point_without_a_runbook_has_that_of_the_tool(
    olga: Client, acme: cast.Acme
) -> None:
    call = ambiguous(acme, runbook="Ask Olga.", runbooks={"before_start": POINTS["before_start"]})
    assert "Runbook Ask Olga." in text(olga.get(address(call)))


def test_a_call_that_did_not_break_shows_no_runbook(olga: Client, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", "side_effect", policy={"runbook": "Ask Olga."})
    assert "Ask Olga." not in text(olga.get(f"/calls/{ids.shown('call', call.id)}"))


def test_the_page_answers_what_the_ledger_can_prove(olga: Client, call: ToolCall) -> None:
    page = text(olga.get(address(call)))
    assert "Did it start? Yes A worker claimed it once" in page
    assert "Did the effect happen? Not proved" in page
    assert "What did the model see? Nothing" in page
    assert "Failure point: during execution" in page


def test_the_form_offers_what_the_verbs_offer_with_their_reasons(
    olga: Client, call: ToolCall
) -> None:
    page = text(olga.get(address(call)))
    assert (
        "Only an idempotent write repeats under its key. This one is of the class side effect."
        in page
    )
    assert "The policy of this tool names no probe." in page


def test_denial_is_locked_with_its_countdown_while_the_attempt_may_live(
    olga: Client, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "ambiguous")
    page = olga.get(address(call))
    assert "is not proven dead" in text(page)
    assert 'value="did_not_happen:close" disabled' in page.content.decode()


def test_a_page_costs_the_same_queries_for_a_long_file(
    olga: Client, acme: cast.Acme, call: ToolCall, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(52):
        olga.get(address(call))
    for _ in range(12):
        seen(call, acme)
    with django_assert_max_num_queries(52):
        olga.get(address(call))


def test_untrusted_text_is_drawn_and_never_run(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    found(call, "happened", as_decider(acme.olga), reference="<script>alert(1)</script>\u202e")
    page = olga.get(address(call)).content.decode()
    assert "<script>alert" not in page
    assert "⟨U+202E⟩" in page


def test_a_neighbour_finds_no_incident(globex: cast.Globex, call: ToolCall) -> None:
    mallory = operator(globex.mallory_herself)
    for word in ("", "resolution", "correction"):
        assert mallory.get(address(call, word)).status_code == 404
    assert mallory.post(address(call, "taking")).status_code == 404
    assert send(mallory, call, typed(call)).status_code == 404


def test_a_viewer_reads_why_and_whom_to_ask(acme: cast.Acme, call: ToolCall) -> None:
    vera = operator(acme.vera)
    assert "Your roles do not include the right to decide. Ask olga." in text(
        vera.get(address(call))
    )
    assert send(vera, call, typed(call)).status_code == 403


def test_the_eye_stands_only_where_the_model_is_known_to_have_read(
    olga: Client, call: ToolCall
) -> None:
    labels = olga.get(address(call)).content.decode().partition('class="labels"')[2]
    assert "#mark-shown" not in labels.partition("</dl>")[0]
    deliveries.write([
        Fetched(call.id, call.workspace_id, "ada", str(call.state), str(call.effect), "", call.seq)
    ])  # fmt: skip
    labels = olga.get(address(call)).content.decode().partition('class="labels"')[2]
    assert "#mark-shown" in labels.partition("</dl>")[0]


def test_rungs_passed_over_are_one_line_a_round_and_the_newest_round_is_first(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    seen(call, acme)
    steps = text(olga.get(address(call))).partition("Steps of recovery")[2]
    assert "6 rungs passed over" in steps
    assert "Class rule:" in steps
    assert steps.index("olga found: happened.") < steps.index("Worker lost after the boundary")


# Sessions


def test_a_stale_binding_says_what_it_is_bound_to_and_what_came_back(
    olga: Client, acme: cast.Acme
) -> None:
    session = builders.a_session(acme, working_directory="/srv/books", label="Books of March")
    stated = "/tmp/<b>\u202e?token=sk-live-4f9a8b7c6d5e4f3a2b1c"
    with pytest.raises(BindingDrift):
        answer_to(a_submit(acme, a_tool(acme), session_id=session.id, working_directory=stated))
    watchdog.sweep()
    answer = olga.get(f"/incidents/{ids.shown('incident', Incident.objects.get().id)}")
    page, html = text(answer), answer.content.decode()
    assert "Stale binding: Books of March" in page
    assert "The session came back with another working directory." in page
    assert '<dt>Bound to</dt><dd><bdi class="id">/srv/books</bdi>' in html
    assert '<dt>Came back with</dt><dd><bdi class="id">/tmp/&lt;b&gt;⟨U+202E⟩' in html
    assert "4f9a8b7c6d5e" not in html
    assert f"/sessions/{ids.shown('session', session.id)}/binding" in html
    assert "Confirm that you looked" in page


# Deciding


def test_a_decision_is_previewed_in_four_boxes_and_changes_nothing(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    answer = send(olga, call, typed(call, evidence=[seen(call, acme)], version=version_of(call)))
    page = text(answer)
    assert answer.status_code == 200
    assert page.index("Outside Nothing will be called.") < page.index("Ledger ambiguous")
    assert "A person checked this call: its effect happened." in page
    assert "It is carried out after 10 s; until then it can be taken back." in page
    assert Resolution.objects.count() == 0


def test_what_was_previewed_is_recorded_once_however_often_it_is_pressed(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    piece = seen(call, acme)
    preview = send(olga, call, typed(call, evidence=[piece]))
    form = typed(call, evidence=[piece], step="record", once=key_of(preview))
    first, second = send(olga, call, form), send(olga, call, form)
    assert first["Location"] == second["Location"] == address(call)
    assert Resolution.objects.count() == 1
    assert "Undo" in text(olga.get(address(call)))


def test_undo_is_offered_until_the_decision_is_carried_out(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    resolution = decide(acme, call, "happened")
    undo = f"/resolutions/{ids.shown('resolution', resolution.id)}/taking-back"
    assert undo in olga.get(address(call)).content.decode()
    assert olga.post(undo, {"once": "x"})["Location"] == address(call)
    assert fresh(call).state == "ambiguous"
    decide(acme, call, "happened")
    delay_over(call)
    page = olga.get(address(call))
    assert "Undo" not in text(page)
    assert address(call, "correction") in page.content.decode()


def test_evidence_is_put_on_the_file_and_the_rest_of_the_form_stays(
    olga: Client, call: ToolCall
) -> None:
    form = typed(call, "happened", step="evidence", kind="document", finding="happened",
                 message="The export of today.", body="id;4711")  # fmt: skip
    page = send(olga, call, form)
    kept = Evidence.objects.get(call=call)
    assert bytes(kept.body) == b"id;4711"
    html = page.content.decode()
    assert f'value="{ids.shown("evidence", kept.id)}" checked' in html
    assert "The provider&#x27;s list has it." in html
    assert f'name="version" value="{version_of(call)}"' in html


FOUND = {"finding": "happened", "message": "The list of today.", "reference": "sent/4711"}


def test_evidence_is_a_statement_unless_said_otherwise(olga: Client, call: ToolCall) -> None:
    assert '<option value="statement" selected>' in olga.get(address(call)).content.decode()
    send(olga, call, typed(call, step="evidence", finding="happened", message="He said so."))
    assert Evidence.objects.get(call=call).kind == "statement"
    preview = send(olga, call, typed(call, evidence=[piece_of(call)]))
    assert f"Type {call.tool} 1" in text(preview)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("checked", "What was checked needs a reference"), ("document", "A document needs its text")],
)
def test_what_names_nothing_to_look_up_is_refused_at_the_evidence_and_kept(
    olga: Client, call: ToolCall, kind: str, sentence: str
) -> None:
    form = typed(call, step="evidence", **FOUND, kind=kind) | {"reference": " ", "grounds": "Mine."}
    answer = send(olga, call, form)
    assert (answer.status_code, Evidence.objects.count()) == (422, 0)
    place = answer.content.decode().partition("<legend>Rests on</legend>")[2]
    assert place.index(sentence) < place.index("The list of today.")
    assert f'<option value="{kind}" selected>' in place
    assert "Mine." in text(answer)


def piece_of(call: ToolCall) -> str:
    """The one piece of evidence on the file."""
    return ids.shown("evidence", Evidence.objects.get(call=call).id)


def test_typed_evidence_goes_on_the_file_with_the_preview_once_and_is_rested_on(
    olga: Client, call: ToolCall
) -> None:
    form = typed(call, **FOUND, kind="checked")
    preview = send(olga, call, form)
    html = preview.content.decode()
    assert "Your evidence is on the file; the decision is not recorded yet." in text(preview)
    assert f'name="evidence" value="{piece_of(call)}"' in html
    assert 'name="message" value=""' in html
    # The browser's own way back shows the form as it was, its evidence included.
    assert send(olga, call, form | {"grounds": "Other words."}).status_code == 200
    carried = {"evidence": [piece_of(call)], "version": version_of(call), "kind": "checked"}
    recorded = send(olga, call, typed(call, step="record", once="drawn-anew", **carried))
    assert recorded.status_code == 302
    assert [each.evidence.reference for each in Resolution.objects.get().backing.all()] == [
        "sent/4711"
    ]


def test_evidence_that_is_typed_by_half_stops_the_preview_and_nothing_is_filed(
    olga: Client, call: ToolCall
) -> None:
    answer = send(olga, call, typed(call, message="The list of today."))
    assert (answer.status_code, Evidence.objects.count()) == (422, 0)
    assert "Say what the evidence says of the effect." in text(answer)
    assert "The list of today." in text(answer)


def test_a_preview_that_cannot_be_read_files_no_evidence(olga: Client, call: ToolCall) -> None:
    answer = send(olga, call, typed(call, **FOUND, kind="checked", grounds=" "))
    assert (answer.status_code, Evidence.objects.count()) == (422, 0)
    assert "The list of today." in text(answer)


def test_a_side_effect_without_evidence_is_refused_at_the_evidence(
    olga: Client, call: ToolCall
) -> None:
    answer = send(olga, call, typed(call, grounds="I am sure of it."))
    assert answer.status_code == 422
    assert "This needs evidence whose finding is 'happened'" in text(answer)
    assert "I am sure of it." in text(answer)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [({"answer": ""}, "Choose an answer"), ({"grounds": " "}, "Say in one sentence why")],
    ids=["no answer", "no grounds"],
)
def test_a_form_that_is_not_filled_in_says_what_lacks(
    olga: Client, call: ToolCall, wrong: dict[str, str], sentence: str
) -> None:
    answer = send(olga, call, typed(call) | wrong)
    assert (answer.status_code, sentence in text(answer)) == (422, True)


def test_the_gravest_decisions_are_typed(olga: Client, acme: cast.Acme, call: ToolCall) -> None:
    preview = send(olga, call, typed(call, "abandon"))
    assert f"Type {call.tool} 1" in text(preview)
    form = typed(call, "abandon", step="record")
    refused = send(olga, call, form | {"confirm": "yes", "once": "a"})
    assert refused.status_code == 422
    assert Resolution.objects.count() == 0
    assert send(olga, call, form | {"confirm": f"{call.tool} 1", "once": "b"}).status_code == 302
    assert Resolution.objects.get().answer == "abandon"


def test_a_repeat_shows_the_exact_request(olga: Client, acme: cast.Acme, call: ToolCall) -> None:
    piece = seen(call, acme, "did_not_happen")
    page = text(send(olga, call, typed(call, "did_not_happen:repeat", evidence=[piece])))
    assert "The tool is called once more, with the same arguments and key." in page
    assert "report.txt" in page
    assert f"Type {call.tool} 1" in page


# Two people


def test_a_file_that_moved_says_what_and_by_whom_and_keeps_the_text(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    before = version_of(call)
    piece = seen(call, acme, kind="document")
    found(call, "happened", as_decider(cast.a_person("omar", acme.workspace, "witness")))
    answer = send(olga, call, typed(call, evidence=[piece], version=before, grounds="My own text."))
    assert answer.status_code == 409
    page = text(answer)
    assert "This file moved since it was shown to you. Your text is untouched." in page
    assert "omar: evidence checked at" in page
    assert "Review the change, then preview" in page
    assert "My own text." in page
    assert Resolution.objects.count() == 0


def test_the_same_decision_of_two_people_is_one_and_a_success(
    olga: Client, omar: Client, acme: cast.Acme, call: ToolCall
) -> None:
    piece = seen(call, acme)
    form = typed(call, evidence=[piece], step="record")
    assert send(olga, call, form).status_code == 302
    second = omar.post(address(call, "resolution"), form | {"once": "omar's"}, follow=True)
    assert "Already recorded by olga at" in text(second)
    assert Resolution.objects.count() == 1


def test_another_decision_stands_beside_ones_own_text(
    olga: Client, omar: Client, acme: cast.Acme, call: ToolCall
) -> None:
    happened, denied = seen(call, acme), seen(call, acme, "did_not_happen")
    version = version_of(call)
    assert send(olga, call, typed(call, evidence=[happened], step="record")).status_code == 302
    answer = send(omar, call, typed(
        call, "did_not_happen:close", evidence=[denied], step="record", version=version,
        grounds="It is not in my list."))  # fmt: skip
    assert answer.status_code == 409
    page = text(answer)
    assert "Not saved" in page
    assert "Recorded by olga" in page
    assert "It is not in my list." in page
    assert "Take theirs back" in page
    assert "Open a dispute" in page


def test_the_second_of_the_same_decision_has_the_own_evidence_added(
    olga: Client, omar: Client, acme: cast.Acme, call: ToolCall
) -> None:
    form = typed(call, evidence=[seen(call, acme)], step="record")
    assert send(olga, call, form).status_code == 302
    second = omar.post(
        address(call, "resolution"), form | FOUND | {"kind": "checked", "once": "o"}, follow=True
    )
    assert "Already recorded by olga at" in text(second)
    assert "Your evidence was added." in text(second)
    assert Evidence.objects.filter(call=call, by_name="omar").count() == 1


def machine_settles(call: ToolCall) -> None:
    """A result comes late, and recovery settles the call with it."""
    with pytest.raises(LedgerError):
        builders.settle(call, {"id": 7})
    builders.fire()
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")


@pytest.mark.parametrize("undone", ["taken back", "overtaken"])
def test_a_decision_that_came_to_nothing_makes_no_second_one_a_success(
    olga: Client, omar: Client, acme: cast.Acme, call: ToolCall, undone: str
) -> None:
    form = typed(call, "did_not_happen:close", evidence=[seen(call, acme, "did_not_happen")],
                 step="record")  # fmt: skip
    assert send(olga, call, form).status_code == 302
    if undone == "taken back":
        shown = ids.shown("resolution", Resolution.objects.get().id)
        olga.post(f"/resolutions/{shown}/taking-back", {"once": "b"})
    machine_settles(call)
    answer = send(omar, call, form | {"once": "omar's"})
    assert answer.status_code == 409
    page = text(answer)
    assert "Already recorded" not in page
    assert "The machine settled the call: succeeded." in page
    assert "Open a dispute" not in page


PARTLY = {"done": "invoice 7 sent", "not_done": "invoice 8"}


def test_partly_and_in_full_are_two_answers(
    olga: Client, omar: Client, acme: cast.Acme, call: ToolCall
) -> None:
    form = typed(call, evidence=[seen(call, acme)], step="record")
    assert send(olga, call, form | {"answer": "partly"} | PARTLY).status_code == 302
    answer = send(omar, call, form | {"once": "omar's"})
    assert answer.status_code == 409
    assert "Done: invoice 7 sent. Not done: invoice 8" in text(answer)
    # Both say that it happened, so there is nothing to dispute: it is kept, or corrected.
    assert "Open a dispute" not in text(answer)


@pytest.mark.parametrize("differs", ["result", "handle"])
def test_another_result_or_handle_is_another_decision(
    olga: Client, omar: Client, acme: cast.Acme, differs: str
) -> None:
    if differs == "result":
        call = ambiguous(acme)
        form = typed(call, evidence=[seen(call, acme)], step="record")
        more = {"result": seen(call, acme, reference="sent/4712")}
    else:
        call = builders.a_job_whose_handle_was_lost(acme)
        form = typed(call, "attach_handle", handle="job-1", step="record")
        more = {"handle": "job-2"}
    assert send(olga, call, form | {"version": version_of(call)}).status_code == 302
    assert send(omar, call, form | more | {"once": "omar's"}).status_code == 409
    same = omar.post(address(call, "resolution"), form | {"once": "again"}, follow=True)
    assert "Already recorded by olga at" in text(same)


def test_partly_is_disputed_as_happened_with_both_lists(
    olga: Client, omar: Client, acme: cast.Acme, call: ToolCall
) -> None:
    denied, happened = seen(call, acme, "did_not_happen"), seen(call, acme)
    hers = typed(call, "did_not_happen:close", evidence=[denied], step="record")
    assert send(olga, call, hers).status_code == 302
    answer = send(omar, call, typed(call, "partly", evidence=[happened], once="o") | PARTLY)
    form = answer.content.decode().partition("/dispute")[2].partition("</form>")[0]
    sent = dict(re.findall(r'name="(answer|grounds)" value="([^"]*)"', form))
    assert "Done: invoice 7 sent" in sent["grounds"]
    where = f"/resolutions/{ids.shown('resolution', Resolution.objects.get().id)}/dispute"
    assert omar.post(where, sent | {"once": "d"}).status_code == 302
    assert Dispute.objects.get().answer == "happened"


def test_an_agent_that_finishes_between_preview_and_record_is_seen_first(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    piece = seen(call, acme, "did_not_happen")
    form = typed(call, "did_not_happen:close", evidence=[piece])
    assert send(olga, call, form).status_code == 200
    with pytest.raises(LedgerError):
        builders.settle(call, {"id": 7})
    answer = send(olga, call, form | {"step": "record"})
    assert answer.status_code == 409
    assert "A late result of this call is on its file" in text(answer)
    assert "The provider's list has it." in text(answer)
    assert Resolution.objects.count() == 0


def test_a_settled_call_keeps_ones_text_and_leads_to_the_correction(
    olga: Client, omar: Client, acme: cast.Acme
) -> None:
    call = ambiguous(acme, **AT_ONCE)
    form = typed(call, "did_not_happen:close", grounds="Nothing is there.")
    decide(acme, call, "happened")
    answer = send(omar, call, form)
    assert answer.status_code == 409
    assert "Nothing is there." in text(answer)
    assert address(call, "correction") in answer.content.decode()


def test_taking_is_shown_to_others_and_released(olga: Client, omar: Client, call: ToolCall) -> None:
    assert olga.post(address(call, "taking")).status_code == 302
    assert "olga has been working on this for" in text(omar.get(address(call)))
    assert "Work on it too" in text(omar.get(address(call)))
    olga.post(address(call, "release"))
    assert "olga has been working" not in text(omar.get(address(call)))


def test_a_second_person_approves_on_the_page(olga: Client, acme: cast.Acme) -> None:
    call = ambiguous(acme, second_person="always")
    resolution = decide(acme, call, "happened")
    arno = operator(cast.a_person("arno", acme.workspace, "approver"))
    assert "waits for a second person" in text(arno.get(address(call)))
    where = f"/resolutions/{ids.shown('resolution', resolution.id)}/approval"
    form = {"grounds": "I see it too.", "answer": "yes", "version": version_of(call)}
    assert olga.post(where, form | {"once": "o"}).status_code == 403
    for lacking in ({"answer": "perhaps"}, {"grounds": " "}, {"grounds": "y" * 2001}):
        assert arno.post(where, form | lacking | {"once": "l"}).status_code == 422
    assert not resolution.events.exists()
    assert arno.post(where, form | {"once": "a"}).status_code == 302
    delay_over(call)
    assert fresh(call).state == "succeeded"


WAYS_OUT = "Nobody else here may approve it. There are two ways out"


def test_a_request_that_nobody_else_may_approve_says_so_and_names_the_ways_out(
    olga: Client, acme: cast.Acme
) -> None:
    call = ambiguous(acme, second_person="always")
    form = typed(call, evidence=[seen(call, acme)], version=version_of(call))
    assert WAYS_OUT in text(send(olga, call, form))
    assert send(olga, call, form | {"step": "record", "once": "r"}).status_code == 302
    for where in (address(call), "/approvals"):
        assert WAYS_OUT in text(olga.get(where))
    cast.a_person("arno", acme.workspace, "approver")
    for where in (address(call), "/approvals"):
        assert WAYS_OUT not in text(olga.get(where))


def test_who_needs_nobody_else_reads_nothing_of_it(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    assert WAYS_OUT not in text(send(olga, call, typed(call, evidence=[seen(call, acme)])))


# Logins


def test_a_login_that_ended_in_mid_form_loses_no_word(acme: cast.Acme, call: ToolCall) -> None:
    answer = send(Client(), call, typed(call, grounds="Half an hour of work."))
    assert answer.status_code == 401
    page = text(answer)
    assert "Nothing was sent. Your text is still here." in page
    assert "Half an hour of work." in page


def test_a_page_that_is_opened_with_an_old_login_says_so_and_lets_an_answer_be_chosen(
    olga: Client, call: ToolCall
) -> None:
    fresh_page = olga.get(address(call, "resolution")).content.decode()
    an_hour_ago(olga)
    page = olga.get(address(call, "resolution")).content.decode()
    assert "Your login is older than 15 minutes" in page
    assert f"/login/again?next={address(call, 'resolution')}" in page
    assert page.count(" disabled") == fresh_page.count(" disabled")
    assert "Your login is older" not in fresh_page


def test_a_stale_login_is_asked_to_sign_in_again_with_the_text_kept(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    an_hour_ago(olga)
    answer = send(olga, call, typed(call, evidence=[seen(call, acme)], grounds="My own text."))
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "/login/again?next=" in page
    assert "My own text." in text(answer)
    assert re.search(r'value="happened" checked[^>]*>', page), "what was chosen stays chosen"
    assert not re.search(r'value="happened" checked disabled', page)


def test_who_is_signed_in_may_sign_in_again(olga: Client) -> None:
    assert olga.get("/login/again").status_code == 200
    form = {"password": cast.PASSWORD, "next": "/inbox"}
    assert olga.post("/login/again", form)["Location"] == "/inbox"


# Afterwards


def test_a_correction_is_previewed_and_told(olga: Client, acme: cast.Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "happened")
    piece = seen(call, acme, "did_not_happen")
    form = typed(call, "did_not_happen", evidence=[piece])
    preview = send(olga, call, form, "correction")
    assert "Where it has read the earlier text:" in text(preview)
    assert send(olga, call, form | {"step": "record"}, "correction").status_code == 302
    assert Resolution.objects.filter(is_correction=True).count() == 1


# The parts


def test_an_unchanged_part_is_not_sent_again(olga: Client, acme: cast.Acme, call: ToolCall) -> None:
    part = f"/parts{address(call)}"
    tag = olga.get(part)["HX-PTag"]
    assert olga.get(part, headers={"HX-PTag": tag}).status_code == 304
    seen(call, acme)
    assert olga.get(part, headers={"HX-PTag": tag}).status_code == 200


def test_the_form_hears_what_came_while_it_was_filled_in(
    olga: Client, acme: cast.Acme, call: ToolCall
) -> None:
    version = version_of(call)
    seen(call, acme)
    page = olga.get(f"/parts{address(call, 'news')}?version={version}").content.decode()
    assert "olga" in page
    assert "Your text is untouched." in page


@pytest.mark.parametrize("version", ["", "x", "-1", "9" * 5000])
def test_a_version_that_is_none_is_as_if_none_was_named(
    olga: Client, acme: cast.Acme, call: ToolCall, version: str
) -> None:
    seen(call, acme)
    news = olga.get(f"/parts{address(call, 'news')}?version={version}")
    assert news.status_code == 200
    assert "Your text is untouched." not in text(news)
    assert send(olga, call, typed(call, version=version)).status_code == 428


def test_a_settled_incident_asks_for_nothing_any_more(olga: Client, acme: cast.Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "happened")
    page = olga.get(address(call))
    assert "data-live-part" not in page.content.decode()
    assert "The call has succeeded." in text(page)
    assert "<dt>Incident</dt>" in page.content.decode()


def test_a_decision_says_once_that_it_was_carried_out(olga: Client, acme: cast.Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "happened")
    given = text(olga.get(address(call))).partition("Decisions so far")[2]
    given = given.partition("Steps of recovery")[0].lower()
    assert given.count("carried out") == 1

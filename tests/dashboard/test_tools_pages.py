"""Tools and policies over HTTP: who sees and presses what, and that no typed text is lost."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from dashboard import policies, tools
from ledger import clock, ids, registry
from ledger.conditions import Seen
from ledger.models import Gate, Policy, Tool
from ledger.policies import Finding
from ledger.vocabulary import BreakerState
from recovery import breakers
from recovery.models import Breaker, Incident, Trial
from tests import builders, cast
from tests.cast import Acme
from tests.dashboard.test_pages import signed_in
from tests.recovery import deciding

pytestmark = pytest.mark.django_db

HOSTILE = '\u202e<script>alert("1")</script>'
WRITE = {"recovery_class": "idempotent_write", "key_template": "path:{path}"}


@pytest.fixture
def mail(acme: Acme) -> Tool:
    return builders.a_tool(acme, "send_invoice", "side_effect")


def an_open_breaker(acme: Acme) -> Breaker:
    breaker = Breaker.objects.create(workspace=acme.workspace, kind="tool", name="send_invoice")
    return breakers.put(
        workspace_id=acme.workspace.id, breaker_id=breaker.id, state=BreakerState.OPEN,
        grounds="The mail server hangs.", person=acme.olga,
    )  # fmt: skip


@pytest.fixture
def alma(acme: Acme) -> Client:
    """Acme's admin, signed in."""
    return signed_in(cast.a_person("alma", acme.workspace, "admin"))


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def fields_of(client: Client, path: str) -> dict[str, Any]:
    """The first form of the editor as a browser would send it."""
    page = client.get(path).content.decode()
    form = page[page.index('aria-label="Policy as a form"') :].split("</form>")[0]
    found: dict[str, Any] = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name, value = (re.search(rf' {key}="([^"]*)"', tag) for key in ("name", "value"))
        if name is None or ('type="checkbox"' in tag and " checked" not in tag):
            continue
        found.setdefault(name[1], []).append(value[1] if value else "")
    for name, options in re.findall(r'<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>', form):
        found[name] = re.findall(r'value="([^"]*)" selected', options)
    return found


def press(client: Client, do: str, **typed: Any) -> HttpResponse:
    path = "/tools/send_invoice/policy"
    answer: Any = client.post(path, fields_of(client, path) | typed | {"do": do})
    return answer


def press_text(client: Client, do: str, document: Any, **typed: Any) -> HttpResponse:
    text = document if isinstance(document, str) else json.dumps(document)
    sent = {"text": text, "do": do, "once": ids.new().hex, "version": "1"} | typed
    answer: Any = client.post("/tools/send_invoice/policy", sent)
    return answer


# The list


def test_the_list_shows_the_class_beside_the_hints_and_all_time_outs(
    acme: Acme, alma: Client
) -> None:
    registry.put(
        workspace=acme.workspace,
        declaration=registry.Declaration(
            name="lookup", executor="python", annotations={"readOnlyHint": False}
        ),
        policy={"recovery_class": "read_only"},
        by=builders.AUTHOR,
    )
    page = text_of(alma.get("/tools"))
    assert "read only" in page
    assert "not read-only" in page
    assert "it does not only read" in page
    for length in ("30 s", "4 m", "15 s"):
        assert length in page
    assert "Time to start Per attempt Over all Heartbeat" in page


def test_the_rates_count_the_newest_calls_of_each_tool(acme: Acme, mail: Tool) -> None:
    for number, state in enumerate(["succeeded", "failed", "ambiguous", "scheduled"]):
        builders.a_call(acme, state, tool=mail, arguments={"path": str(number)})

    rates = tools.rates(acme.workspace.id)["send_invoice"]

    assert (rates.calls, rates.succeeded, rates.not_well, rates.in_doubt) == (4, 1, 1, 1)
    assert (rates.settled, rates.succeeded_share) == (2, "50 %")


@pytest.mark.parametrize(
    ("settled", "succeeded", "share"),
    [(0, 0, "–"), (3, 2, "67 %"), (1000, 999, "99 %"), (1000, 1000, "100 %"), (2, 0, "0 %")],
)
def test_a_share_is_of_the_settled_calls_and_never_rounded_up_to_all(
    settled: int, succeeded: int, share: str
) -> None:
    rates = tools.Rates(calls=2000, settled=settled, succeeded=succeeded)
    assert rates.succeeded_share == share


def test_the_list_says_of_a_tool_that_it_is_on_and_what_stops_it(acme: Acme, mail: Tool) -> None:
    def stands() -> str:
        (row,) = tools.rows(acme.workspace.id)
        return row.stands.text

    assert stands() == "on"
    breaker = an_open_breaker(acme)
    assert stands() == "on, breaker open"
    Breaker.objects.filter(id=breaker.id).update(state=BreakerState.TRIAL)
    assert stands() == "on, breaker on trial"
    registry.switch(
        workspace_id=acme.workspace.id, tool_name=mail.name, on=False, by=builders.AUTHOR
    )
    assert stands() == "switched off"


@pytest.mark.parametrize("size", [1, 6])
def test_the_list_costs_the_same_queries_however_many_tools(
    acme: Acme, size: int, django_assert_max_num_queries: Any
) -> None:
    for number in range(size):
        builders.a_call(acme, "succeeded", tool=builders.a_tool(acme, f"tool-{number}"))
    client = signed_in(acme.olga)
    with django_assert_max_num_queries(13):
        assert client.get("/tools").status_code == 200


def test_without_a_tool_the_page_says_how_one_is_registered(acme: Acme) -> None:
    assert "No tool is registered" in text_of(signed_in(acme.vera).get("/tools"))


# One tool


def test_a_hostile_description_is_shown_as_text(acme: Acme, alma: Client) -> None:
    registry.put(
        workspace=acme.workspace,
        declaration=registry.Declaration(
            name="odd", executor="python", description=HOSTILE, annotations={HOSTILE: HOSTILE}
        ),
        policy={},
        by=builders.AUTHOR,
    )
    for path in ("/tools/odd", "/tools/odd/policy"):
        page = alma.get(path).content.decode()
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "⟨U+202E⟩" in page


@pytest.mark.parametrize("path", ["/tools/send_invoice", "/tools/send_invoice/policy", "/tools/a"])
def test_a_tool_of_another_workspace_reads_as_absent(
    globex: cast.Globex, mail: Tool, path: str
) -> None:
    assert signed_in(globex.mallory_herself).get(path).status_code == 404


def test_an_admin_switches_a_tool_off_on_grounds_and_the_page_tells_it_once(
    alma: Client, mail: Tool
) -> None:
    sent = {"on": "no", "grounds": "It misbehaves.", "once": "k1"}
    answer = alma.post("/tools/send_invoice/switch", sent, follow=True)
    again = alma.post("/tools/send_invoice/switch", sent)

    assert "send_invoice is switched off" in text_of(answer)
    assert "Switched off for" in text_of(answer)
    assert again.status_code == 302
    assert mail.switches.count() == 1


def test_a_switch_without_grounds_is_refused_at_its_field(alma: Client, mail: Tool) -> None:
    answer = alma.post("/tools/send_invoice/switch", {"on": "no", "grounds": " ", "once": "k"})
    assert answer.status_code == 422
    assert "needs grounds" in text_of(answer)
    assert not mail.switches.exists()


def test_a_viewer_sees_the_buttons_off_with_whom_to_ask(acme: Acme, mail: Tool) -> None:
    cast.a_person("alma", acme.workspace, "admin")
    vera = signed_in(acme.vera)
    page = vera.get("/tools/send_invoice").content.decode()
    assert 'aria-disabled="true"' in page
    assert "Ask alma." in page
    refused = vera.post("/tools/send_invoice/switch", {"on": "no", "grounds": "x", "once": "k"})
    assert refused.status_code == 403


def test_a_breaker_says_who_opened_it_and_why_and_is_closed_on_grounds(
    acme: Acme, mail: Tool
) -> None:
    breaker = an_open_breaker(acme)
    olga = signed_in(acme.olga)
    page = text_of(olga.get("/tools/send_invoice"))
    assert "closed → open, by olga : The mail server hangs." in page

    sent = {"state": "closed", "grounds": "It answers again.", "once": "k"}
    answer = olga.post(f"/breakers/{breaker.id}", sent, follow=True)

    assert "The breaker of send_invoice is closed." in text_of(answer)
    breaker.refresh_from_db()
    assert breaker.state is BreakerState.CLOSED


def test_a_breaker_says_since_when_a_trial_is_possible_once_it_is(acme: Acme, mail: Tool) -> None:
    an_open_breaker(acme)
    olga = signed_in(acme.olga)
    page = text_of(olga.get("/tools/send_invoice"))
    assert "has been open for" in page
    assert "One call passes as the trial at" in page
    Gate.objects.update(trial_at=clock.now() - timedelta(minutes=1))
    page = text_of(olga.get("/tools/send_invoice"))
    assert "The next call passes as the trial (possible since" in page


@pytest.mark.parametrize(
    ("recovery_class", "said"),
    [("read_only", "not needed: it only reads"),
     ("side_effect", "none: after the boundary a person decides")],
)  # fmt: skip
def test_a_tool_that_only_reads_needs_no_probe(acme: Acme, recovery_class: str, said: str) -> None:
    builders.a_tool(acme, "lookup", recovery_class)
    assert said in text_of(signed_in(acme.vera).get("/tools/lookup"))


def test_an_open_incident_stands_with_its_age_before_its_badges(acme: Acme, mail: Tool) -> None:
    builders.a_call(acme, "ambiguous", tool=mail)
    (incident,) = Incident.objects.all()
    page = text_of(signed_in(acme.vera).get("/tools/send_invoice"))
    assert re.search(rf"{incident.id.hex[-8:]} open for [0-9]+ s ambiguous may have", page)


# The policy


def test_the_form_unchanged_is_the_active_version(alma: Client, mail: Tool) -> None:
    answer = press(alma, "check")
    assert answer.status_code == 200
    assert "The same as the active version." in text_of(answer)
    assert "2 × 60 s + 1 s of waits = 121 s of 300 s" in text_of(answer)


def test_the_linter_names_what_blocks_saving_and_the_difference(alma: Client, mail: Tool) -> None:
    fields = fields_of(alma, "/tools/send_invoice/policy")
    changed = fields | {"timeouts.heartbeat_s": "90", "retry.attempts": "5"}
    answer = alma.post("/parts/tools/send_invoice/policy", changed)
    page = text_of(answer)
    assert "heartbeat_too_long" in page
    assert "attempts_do_not_fit" in page
    assert "timeouts.heartbeat_s 15 90" in page
    assert "2 difference" in page
    assert 'data-say="3 errors"' in answer.content.decode()


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ((), "No problem found"),
        (("warning",), "1 warning"),
        (("error", "warning", "warning"), "1 error, 2 warnings"),
    ],
)
def test_what_the_linter_found_is_said_in_a_few_words(levels: tuple[str, ...], said: str) -> None:
    assert policies.in_short([Finding(level, "a_code", "A sentence.") for level in levels]) == said


def test_a_number_that_is_none_stays_in_its_field_with_the_mistake_beside_it(
    alma: Client, mail: Tool
) -> None:
    answer = press(alma, "save", **{"review_s": "soon", "grounds": "My long text."})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="soon"' in page
    assert "&#x27;soon&#x27; is no number." in page
    assert "My long text." in page
    assert Policy.objects.count() == 1


@pytest.mark.parametrize("typed", ["nan", "inf", "-1"])
@pytest.mark.parametrize("knob", ["review_s", "retry.attempts"])
def test_a_number_beyond_all_bounds_is_not_saved(
    alma: Client, mail: Tool, knob: str, typed: str
) -> None:
    answer = press(alma, "save", **{knob: typed, "grounds": "Why."})
    assert answer.status_code == 422
    assert f'value="{typed}"' in answer.content.decode()
    assert Policy.objects.count() == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"unlimited": true}', '{"recovery_class": "x"}'])
def test_a_text_that_cannot_be_read_is_kept_with_the_reason(
    alma: Client, mail: Tool, text: str
) -> None:
    answer = press_text(alma, "save", text, grounds="Why.")
    assert answer.status_code == 422
    assert text.replace('"', "&quot;") in answer.content.decode()
    assert "1 error" in text_of(answer)


def test_saving_makes_a_new_version_with_grounds_and_its_trial(
    acme: Acme, alma: Client, mail: Tool
) -> None:
    builders.a_call(acme, tool=mail)
    answer = press(alma, "save", review_s="3600", grounds="Look sooner.")
    assert answer.status_code == 302

    page = text_of(alma.get("/tools/send_invoice"))
    assert "Saved as version 2." in page
    assert "2 active side effect alma" in page
    assert "none repeated of 1" in page
    assert "Look sooner." in page


def test_a_runbook_of_a_failure_point_is_checked_shown_as_a_difference_and_saved(
    alma: Client, mail: Tool
) -> None:
    named = {"runbooks.during_execution": "wiki/sent", "grounds": "Where to look."}
    assert "runbook_address" in text_of(press(alma, "check", **named))

    named["runbooks.during_execution"] = "https://wiki.example/sent"
    assert "runbooks.during_execution empty https://wiki" in text_of(press(alma, "check", **named))
    assert press(alma, "save", **named).status_code == 302
    assert "Runbook, during execution https://wiki" in text_of(alma.get("/tools/send_invoice"))


def test_the_dry_run_shows_first_what_would_have_been_repeated(
    acme: Acme, alma: Client, mail: Tool
) -> None:
    call = builders.a_call(acme, "ambiguous", tool=mail)
    deciding.found(call, "happened", cast.as_decider(acme.olga))
    answer = press_text(alma, "try", WRITE)
    page = text_of(answer)
    assert "1 would have repeated an effect that had happened level 4" in page
    assert f"call_…{call.id.hex[-8:]}" in page
    assert "Level 4: to save it all the same, type send_invoice 1" in page
    assert Trial.objects.count() == 1


def test_what_would_repeat_is_saved_only_after_typing_tool_and_number(
    acme: Acme, alma: Client, mail: Tool
) -> None:
    call = builders.a_call(acme, "ambiguous", tool=mail)
    deciding.found(call, "happened", cast.as_decider(acme.olga))

    refused = press_text(alma, "save", WRITE, grounds="Keys are kept now.")
    assert refused.status_code == 422
    assert "Keys are kept now." in refused.content.decode()
    assert Policy.objects.count() == 1

    saved = press_text(alma, "save", WRITE, grounds="Keys are kept.", confirm="send_invoice 1")
    assert saved.status_code == 302
    assert "1 repeated of 1" in text_of(alma.get("/tools/send_invoice"))


def test_a_version_that_loosens_is_saved_only_after_typing_and_says_in_what(
    acme: Acme, alma: Client
) -> None:
    builders.a_tool(acme, "send_invoice", "side_effect", second_person="always")
    refused = press(alma, "save", second_person="never", grounds="Nobody is there at night.")

    assert refused.status_code == 422
    assert "Less careful than version 1: second_person." in text_of(refused)
    assert "Level 4: to save it all the same, type send_invoice 0" in text_of(refused)
    assert "Nobody is there at night." in refused.content.decode()
    assert Policy.objects.count() == 1

    typed = {"second_person": "never", "grounds": "Nights.", "confirm": "send_invoice 0"}
    assert press(alma, "save", **typed).status_code == 302


def test_a_long_job_without_handles_is_said_by_the_linter_and_not_saved(
    alma: Client, mail: Tool
) -> None:
    answer = press_text(alma, "save", {"recovery_class": "long_running"}, grounds="It is slow.")
    assert answer.status_code == 422
    assert "error A long_running tool is resumed by its handle" in text_of(answer)
    assert Policy.objects.count() == 1


def test_a_secret_name_in_the_tools_schema_is_warned_of_until_it_is_masked(
    acme: Acme, alma: Client
) -> None:
    schema = {"type": "object", "properties": {"smtp_password": {"type": "string"}}}
    builders.a_tool(acme, "send_invoice", "side_effect", input_schema=schema)
    assert "warning /arguments/smtp_password: by its name" in text_of(press(alma, "check"))
    assert "looks_secret" not in text_of(press(alma, "check", masked="/arguments/smtp_password"))


def test_an_approver_who_cannot_sign_in_is_no_second_person(
    acme: Acme, alma: Client, mail: Tool
) -> None:
    petra = cast.a_person("petra", acme.workspace, "approver")
    wanted = {"second_person": "always"}
    assert "no_second_person" not in text_of(press(alma, "check", **wanted))
    petra.is_active = False
    petra.save(update_fields=["is_active"])
    assert "no_second_person" in text_of(press(alma, "check", **wanted))


def test_a_stale_version_is_a_conflict_field_by_field_with_the_typed_text_kept(
    acme: Acme, alma: Client, mail: Tool
) -> None:
    fields = fields_of(alma, "/tools/send_invoice/policy")
    registry.put_policy(
        workspace_id=acme.workspace.id, tool_name="send_invoice",
        document={"recovery_class": "side_effect", "review_s": 600}, by=builders.AUTHOR,
        seen=Seen(version=1),
    )  # fmt: skip
    sent = fields | {"review_s": "900", "grounds": "Mine.", "do": "save"}
    answer = alma.post("/tools/send_invoice/policy", sent)
    page = text_of(answer)

    assert answer.status_code == 409
    assert "Not saved: version 2 holds now" in page
    assert "review_s both changed it 14400 600 900" in page
    assert "Mine." in page
    assert Policy.objects.count() == 2


def test_rolling_back_starts_from_the_old_content_and_saves_a_new_version(
    alma: Client, mail: Tool
) -> None:
    press(alma, "save", review_s="3600", grounds="Look sooner.")
    path = "/tools/send_invoice/policy?from=1"
    page = alma.get(path).content.decode()
    assert "Roll back to version 1." in page

    sent = fields_of(alma, path) | {"grounds": "Roll back to version 1.", "do": "save"}
    assert alma.post("/tools/send_invoice/policy", sent).status_code == 302

    first, last = (Policy.objects.get(tool=mail, number=number) for number in (1, 3))
    assert first.document == last.document


def test_an_operator_tries_and_does_not_save(acme: Acme, mail: Tool) -> None:
    olga = signed_in(acme.olga)
    assert press(olga, "try").status_code == 200
    assert press(olga, "save", grounds="Mine.").status_code == 403


@pytest.mark.parametrize("path", ["/tools", "/tools/send_invoice", "/tools/send_invoice/policy"])
def test_the_pages_have_no_inline_style_script_or_event(
    alma: Client, mail: Tool, path: str
) -> None:
    page = alma.get(path).content.decode()
    assert not re.search(r"\sstyle=|<script(?![^>]+src=)|\son[a-z]+=|hx-on|js:", page)

"""The audit: every deed of a person with its grounds, filtered, in pages, and as a safe file."""

import csv
import io
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from dashboard import audit, members
from dashboard.audit import Filters
from dashboard.models import Deed
from ledger import clock, ids, keys, registry
from ledger.errors import Invalid
from recovery import asides
from tests import builders, cast
from tests.dashboard.watching import signed_in, text_of
from tests.recovery import deciding
from tests.recovery.test_disputes import dispute

pytestmark = pytest.mark.django_db


def deeds(at: Any, kept: Filters = Filters()) -> list[str]:  # noqa: B008 frozen
    return [each.deed for each in audit.read(at.workspace.id, kept).lines]


def decided(acme: cast.Acme, **policy: Any) -> Any:
    call = deciding.ambiguous(acme, delivery_delay_s=0, **policy)
    deciding.decide(acme, call, "happened", grounds="The provider's list says so.")
    return call


def test_a_decision_and_its_evidence_stand_with_person_target_and_grounds(acme: cast.Acme) -> None:
    call = decided(acme)
    found = {each.deed: each for each in audit.read(acme.workspace.id, Filters()).lines}
    line = found["decided: happened"]
    assert (line.actor, line.grounds) == ("olga", "The provider's list says so.")
    assert line.target == ids.shown("call", call.id)
    assert found["put evidence on file: checked"].actor == "olga"


def test_a_call_is_named_by_its_last_digits_and_leads_to_its_page(acme: cast.Acme) -> None:
    call = decided(acme)
    page = text_of(signed_in(acme.olga).get("/audit"))
    shown = ids.shown("call", call.id)
    assert f'<a href="/calls/{shown}"><bdi>call …{shown[-8:]}</bdi></a>' in page


@pytest.mark.parametrize(
    ("part", "target", "address"),
    [
        ("switches", "mail.send", "/tools/mail.send"),
        ("grants", "mail.send", "/tools/mail.send"),
        ("breakers of providers", "acme", ""),
        ("people", "nina", ""),
        ("grants", f"turn_{'0' * 32}", ""),
        ("sessions", f"ses_{'0' * 32}", f"/sessions/ses_{'0' * 32}"),
        ("the console", f"call_{'0' * 31}", ""),
    ],
)
def test_a_target_leads_to_its_page_where_it_has_one(part: str, target: str, address: str) -> None:
    line = audit.Line(clock.now(), "1", "olga", "did", target, "Because.", part)
    assert line.address == address


def test_a_tool_that_was_switched_off_is_linked(acme: cast.Acme) -> None:
    tool = builders.a_tool(acme)
    registry.switch(
        workspace_id=acme.workspace.id, tool_name=tool.name, on=False, by=builders.AUTHOR
    )
    assert f'<a href="/tools/{tool.name}">' in text_of(signed_in(acme.vera).get("/audit"))


def test_what_carrying_out_a_decision_wrote_is_no_deed_of_its_own(acme: cast.Acme) -> None:
    decided(acme)
    assert not [deed for deed in deeds(acme) if deed.startswith("call: ")]


def test_switches_policies_and_keys_are_deeds(acme: cast.Acme) -> None:
    tool = builders.a_tool(acme)
    registry.switch(
        workspace_id=acme.workspace.id, tool_name=tool.name, on=False, by=builders.AUTHOR
    )
    keys.issue(agent=acme.ada)
    assert {"switched off", "policy: version 1", "tool: version 1", "key issued"} <= set(
        deeds(acme)
    )


def test_what_is_done_about_an_incident_is_a_deed_with_its_grounds(acme: cast.Acme) -> None:
    olga = cast.as_decider(acme.olga)
    omar = cast.as_decider(cast.a_person("omar", acme.workspace, "operator"))
    call = deciding.ambiguous(acme)
    incident = deciding.incident_of(call)
    asides.set_aside(
        incident_id=incident.id, minutes=60, by=olga, grounds="The bank answers at ten."
    )
    asides.assign(incident_id=incident.id, to="omar", by=olga)
    dispute(deciding.decide(acme, deciding.ambiguous(acme, delivery_delay_s=60), "happened"), omar)
    found = {each.deed: each for each in audit.read(acme.workspace.id, Filters()).lines}
    assert found["incident: set_aside"].grounds.endswith("The bank answers at ten.")
    assert found["incident: assigned"].grounds == "Assigned to omar by olga."
    assert found["incident: assigned"].address == f"/incidents/{ids.shown('incident', incident.id)}"
    assert {line.actor for deed, line in found.items() if deed.startswith("incident: ")} == {"olga"}
    (disputed,) = (line for deed, line in found.items() if deed.startswith("disputed a decision"))
    assert disputed.actor == "omar"


def test_people_and_keys_are_changed_by_somebody_with_grounds(acme: cast.Acme) -> None:
    anna = cast.as_decider(cast.a_person("anna", acme.workspace, "admin"))
    members.invite(name="nina", roles=["viewer"], grounds="She is on call.", by=anna)
    members.make_key(agent="ada", scopes=["calls:read"], grounds="A second host.", by=anna)
    found = {each.deed: each for each in audit.read(acme.workspace.id, Filters()).lines}
    told = {deed: (found[deed].actor, found[deed].grounds) for deed in found}
    assert told["people: invited"] == ("anna", "She is on call.")
    assert told["key issued"] == ("anna", "A second host.")


def test_a_filter_keeps_a_person_a_part_of_the_target_and_days(acme: cast.Acme) -> None:
    call = decided(acme)
    assert "decided: happened" in deeds(acme, Filters(actor="OLGA"))
    assert deeds(acme, Filters(actor="nobody")) == []
    assert "decided: happened" in deeds(acme, Filters(target=call.id.hex[-8:]))
    assert "decided: happened" in deeds(acme, audit.filters_of({"from": "2026-01-01"}))
    assert deeds(acme, audit.filters_of({"to": "2020-01-01"})) == []


@pytest.mark.parametrize(
    "asked",
    [{"from": "x"}, {"from": "2026-02-02", "to": "2026-02-01"}, {"to": "9999-12-31"},
     {"from": "0001-01-01"}],
)  # fmt: skip
def test_a_range_that_cannot_be_is_refused_with_what_was_typed(
    acme: cast.Acme, asked: dict[str, str]
) -> None:
    answer = signed_in(acme.olga).get("/audit", asked | {"actor": "olga"})
    assert answer.status_code == 422
    assert 'value="olga"' in text_of(answer)


def test_pages_go_on_where_the_last_one_ended(acme: cast.Acme) -> None:
    for _ in range(3):
        decided(acme)
    whole = [each.id for each in audit.read(acme.workspace.id, Filters()).lines]
    seen, cursor = [], ""
    while True:
        page = audit.read(acme.workspace.id, Filters(), cursor, limit=2)
        seen += [each.id for each in page.lines]
        cursor = page.more
        if not cursor:
            break
    assert seen == whole


def test_a_cursor_of_other_filters_is_refused(acme: cast.Acme) -> None:
    decided(acme)
    cursor = audit.read(acme.workspace.id, Filters(), limit=1).more
    with pytest.raises(Invalid):
        audit.read(acme.workspace.id, Filters(actor="olga"), cursor)


def test_an_export_escapes_formulas_and_is_audited_itself(acme: cast.Acme) -> None:
    call = deciding.ambiguous(acme, delivery_delay_s=0)
    deciding.decide(acme, call, "happened", grounds="=HYPERLINK(1)")
    client = signed_in(acme.olga)
    answer = client.post("/audit/export", {"actor": "olga"})
    lines = list(csv.DictReader(io.StringIO(text_of(answer))))
    assert "'=HYPERLINK(1)" in {line["grounds"] for line in lines}
    assert answer["Content-Type"].startswith("text/csv")
    made = Deed.objects.get()
    assert (made.person_name, made.deed) == ("olga", "exported the audit")
    assert "exported the audit" in deeds(acme)


def test_a_deed_of_the_console_can_never_change(acme: cast.Acme) -> None:
    signed_in(acme.olga).post("/audit/export")
    with pytest.raises(DatabaseError, match="Cannot update or delete"), transaction.atomic():
        Deed.objects.update(deed="nothing")


def test_an_export_takes_a_post(acme: cast.Acme) -> None:
    assert signed_in(acme.olga).get("/audit/export").status_code == 405


def test_another_workspace_reads_no_deed_of_this_one(acme: cast.Acme, globex: cast.Globex) -> None:
    decided(acme)
    assert deeds(globex) == []
    assert "Nobody has decided" in text_of(signed_in(globex.mallory_herself).get("/audit"))


def test_the_page_costs_the_same_queries_at_any_size(
    acme: cast.Acme, django_assert_max_num_queries: object
) -> None:
    client = signed_in(acme.olga)
    for size in (1, 4):
        for _ in range(size):
            decided(acme)
        with django_assert_max_num_queries(20):  # type: ignore[operator]
            client.get("/audit")

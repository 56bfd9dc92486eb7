"""What is secret of a call: by its schema, by its policy then and now, wherever it stands."""

from typing import Any

import pytest

from ledger import masking, masks, registry
from ledger.conditions import Seen
from ledger.errors import UnsafePolicy
from ledger.models import Tool, ToolCall
from ledger.policies import policy_for
from ledger.registry import Author
from tests import builders, cast

CARD = "4929 1234 5678 9012"


def a_tool(acme: cast.Acme, **more: Any) -> Tool:
    return builders.a_tool(acme, "charge", "side_effect", **more)


def mark_as_secret(tool: Tool, *pointers: str) -> None:
    registry.put_policy(
        workspace_id=tool.workspace_id,
        tool_name=tool.name,
        document={"recovery_class": "side_effect", "masked": list(pointers)},
        by=Author(name="olga", grounds="Cards are secret."),
        seen=Seen(version=Tool.objects.get(id=tool.id).policy_version),
    )


def shown(call: ToolCall) -> Any:
    hidden = masks.of(call)
    return masking.masked({"card": CARD, "amount": 5}, pointers=hidden.arguments)


@pytest.mark.django_db
def test_a_field_that_a_policy_names_is_hidden_in_earlier_calls_too(acme: cast.Acme) -> None:
    tool = a_tool(acme)
    before = builders.a_call(acme, tool=tool, arguments={"card": CARD, "amount": 5})
    assert shown(before)["card"] == CARD

    mark_as_secret(tool, "/arguments/card", "/result/receipt")

    assert shown(before)["card"].startswith("•••• masked (card) #")
    assert shown(before)["amount"] == 5
    assert masks.of(before).result == ("/receipt",)


@pytest.mark.django_db
def test_a_field_stays_hidden_in_calls_recorded_while_it_was_secret(acme: cast.Acme) -> None:
    tool = a_tool(acme)
    mark_as_secret(tool, "/arguments/card")
    call = builders.a_call(acme, tool=tool, arguments={"card": CARD, "amount": 5})
    mark_as_secret(tool)
    assert shown(call)["card"].startswith("•••• masked")


@pytest.mark.django_db
def test_a_secret_argument_is_hidden_in_the_error_that_quotes_it(acme: cast.Acme) -> None:
    tool = a_tool(acme)
    mark_as_secret(tool, "/arguments/card")
    call = builders.a_call(acme, tool=tool, arguments={"card": CARD})
    text = masks.of(call).text(f"card {CARD} was refused")
    assert CARD not in text
    assert text.endswith(" was refused")
    assert shown(call)["card"] in text


@pytest.mark.django_db
def test_what_is_secret_of_many_calls_takes_two_queries(
    acme: cast.Acme, django_assert_num_queries: Any
) -> None:
    calls = [builders.a_call(acme, arguments={"n": n}) for n in range(5)]
    with django_assert_num_queries(2):
        assert len(masks.of_calls(calls)) == 5


@pytest.mark.parametrize(
    "pointers",
    [["card"], ["/card"], ["/arguments"], ["/arguments/"], ["/result/a~2"], ["/arguments/x"] * 101],
)
def test_a_pointer_that_leads_nowhere_is_refused(pointers: list[str]) -> None:
    with pytest.raises(UnsafePolicy, match="begin with /arguments/ or /result/"):
        policy_for({"masked": pointers})


@pytest.mark.parametrize("masked", ["/arguments/card", [1], None])
def test_the_knob_is_a_list_of_texts(masked: object) -> None:
    with pytest.raises(UnsafePolicy, match="masked"):
        policy_for({"masked": masked})

"""What a policy is warned of beside its tool: names of arguments that look secret, and people."""

from typing import Any

import pytest

from ledger.policies import policy_for
from recovery.advice import Surroundings, advise


def advised(properties: dict[str, Any], *masked: str) -> list[str]:
    """The sentences about secrets of a tool with these arguments."""
    around = Surroundings(annotations={}, input_schema={"properties": properties})
    found = advise(policy_for({"masked": list(masked)}), around)
    return [each.sentence for each in found if each.code == "looks_secret"]


TEXT = {"type": "string"}
CARD = {"type": "object", "properties": {"card_number": TEXT, "expires": TEXT}}


@pytest.mark.parametrize(
    "name",
    ["smtp_password", "dbPasswd", "chat secret", "stripe-api-key", "cardNumber", "bot_token",
     "authorization_header", "SSH_PRIVATE_KEY"],
)  # fmt: skip
def test_an_argument_whose_name_looks_secret_and_that_nothing_masks_is_named(name: str) -> None:
    [sentence] = advised({name: TEXT})
    assert sentence.startswith(f"/arguments/{name}: by its name this is secret")


@pytest.mark.parametrize(
    ("properties", "masked"),
    [
        ({"password": TEXT, "api_key": TEXT}, ()),
        ({"smtp_password": TEXT | {"x-secret": True}}, ()),
        ({"smtp_password": TEXT}, ("/arguments/smtp_password",)),
        ({"payments": {"type": "array", "items": CARD}}, ("/arguments/payments/*/card_number",)),
        ({"card": CARD}, ("/arguments/card",)),
        ({"has_password": {"type": "boolean"}, "max_tokens": {"type": "integer"}}, ()),
        ({"secretary": TEXT, "tokenizer": TEXT, "company": TEXT, "path": TEXT}, ()),
    ],
)
def test_what_is_masked_already_or_says_no_secret_is_not_spoken_of(
    properties: dict[str, Any], masked: tuple[str, ...]
) -> None:
    assert advised(properties, *masked) == []


def test_an_argument_deep_in_a_list_is_named_by_its_pointer() -> None:
    [sentence] = advised({"payments": {"type": "array", "items": CARD}})
    assert "/arguments/payments/*/card_number" in sentence


def test_a_mask_of_the_result_hides_no_argument() -> None:
    assert advised({"smtp_password": TEXT}, "/result/smtp_password")

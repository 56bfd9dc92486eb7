"""What is secret is masked, equal secrets look equal, and the rest reads as it was."""

import time

import pytest

from ledger import masking
from ledger.masking import masked, masked_text

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nsecondline\n-----END RSA PRIVATE KEY-----"
SECRETS = {
    "authorization": "Bearer abcdefghijklmnop",
    "signed token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP",
    "API key": "ghp_" + "a1B2" * 9,
    "private key": KEY,
    "password in an address": "postgres://ada:hunter2@db/one",
}


@pytest.mark.parametrize(
    "name", ["password", "Authorization", "api_key", "X-Api-Key", "refreshToken", "client secret"]
)
def test_a_value_is_masked_by_the_name_of_its_key(name: str) -> None:
    text = masked({name: "hunter2"})[name]
    assert "hunter2" not in text
    assert text.startswith(f"•••• masked ({name.lower()}) #")


@pytest.mark.parametrize("why", SECRETS)
def test_a_secret_is_masked_by_what_it_looks_like_inside_other_text(why: str) -> None:
    shown = masked_text(f"before {SECRETS[why]} after")
    assert f"masked ({why})" in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_a_whole_private_key_is_masked_and_not_its_first_line() -> None:
    assert "secondline" not in masked_text(KEY)
    assert "secondline" not in masked_text(KEY.removesuffix("-----END RSA PRIVATE KEY-----"))


def test_a_secret_beside_its_name_in_text_is_masked() -> None:
    assert "hunter2" not in masked_text("login failed: password=hunter2 for ada")
    assert "hunter2" not in masked_text('{"api_key": "hunter2"')
    assert masked_text("login failed: password=hunter2 for ada").endswith(" for ada")


def test_equal_secrets_look_equal_and_others_do_not() -> None:
    one, two, three = (masked({"token": each})["token"] for each in ("a", "a", "b"))
    assert one == two != three


def test_a_pointer_of_the_tool_masks_one_field_and_every_item_under_a_star() -> None:
    found = masked(
        {"card": {"number": "4111"}, "people": [{"iban": "DE1"}, {"iban": "DE2"}]},
        pointers=["/card/number", "/people/*/iban"],
    )
    assert "4111" not in str(found)
    assert "DE" not in str(found["people"])


def test_a_schema_says_what_is_secret() -> None:
    schema = {
        "properties": {
            "to": {"type": "string"},
            "a/b": {"x-secret": True},
            "rows": {"items": {"properties": {"code": {"format": "password"}}}},
        }
    }
    assert masking.secret_pointers(schema) == ["/a~1b", "/rows/*/code"]
    assert "x1" not in str(masked({"a/b": "x1"}, pointers=["/a~1b"]))


def test_a_whole_object_under_a_secret_key_is_masked() -> None:
    assert "hunter2" not in str(masked({"credentials": {"user": "ada", "pass": ["hunter2"]}}))


@pytest.mark.parametrize(
    "value",
    [{"token": None}, {"password": ""}, {"auth": True}, {"secret": {"$secret": "slack/bot"}},
     {"amount": "118.00"}, [1, 2.5, "text"], "plain", {"tokens_used": 12}],
)  # fmt: skip
def test_what_is_no_secret_stays_as_it_is(value: object) -> None:
    assert masked(value) == value


@pytest.mark.parametrize(
    "bait",
    ["-----BEGIN PRIVATE KEY-----" * 20_000, "eyJ" * 300_000, "Bearer " * 150_000,
     "://" * 300_000, "password: " * 100_000, "://a:" * 200_000, "sk-" * 300_000],
    ids=lambda bait: bait[:12],
)  # fmt: skip
def test_a_hostile_megabyte_takes_time_in_proportion_to_its_length(bait: str) -> None:
    def seconds(text: str) -> float:
        started = time.process_time()
        masked_text(text)
        return time.process_time() - started

    quarter = min(seconds(bait[: len(bait) // 4]) for _ in range(2))
    assert seconds(bait) < 16 * quarter + 0.25


def test_what_is_masked_already_stays_as_it_is() -> None:
    once = masked({"token": "hunter2", "text": "password=hunter2", "card": "4111"},
                  pointers=["/card"])  # fmt: skip
    assert masked(once, pointers=["/card"]) == once


def test_the_fields_that_are_masked_are_named_with_their_values() -> None:
    value = {"a/b": {"token": "one-secret"}, "rows": ["plain", "password=hunter2"], "n": 1}
    found = {each.pointer: each.value for each in masking.fields(value, ["/n"])}
    assert found == {"/a~1b/token": "one-secret", "/rows/1": "password=hunter2", "/n": 1}


def test_long_secret_texts_are_known_and_short_ones_are_not() -> None:
    known = masking.texts_in({"token": "one-secret", "pin": 1234, "card": 4111_2222}, ["/card"])
    assert known == {"one-secret": "token", "41112222": "card"}
    assert masked_text("sent one-secret to 41112222, 1234 times", known).endswith(", 1234 times")

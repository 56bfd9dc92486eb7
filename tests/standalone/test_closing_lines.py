"""The closing lines, and that the line to paste survives a shell."""

import json
import shlex

from standalone.closing import EXAMPLE, Closing


def closing(api_key: str | None = "clh_test_abc") -> Closing:
    return Closing(
        address="http://127.0.0.1:8000",
        username="olga",
        password="s3cret-pass",
        workspace="acme",
        api_key=api_key,
        data="/srv/state",
        seconds=6.12,
        ready=True,
    )


def test_the_line_to_paste_is_a_whole_request() -> None:
    words = shlex.split(closing().curl)

    assert "http://127.0.0.1:8000/api/v1/calls?wait=25" in words
    assert "Authorization: Bearer clh_test_abc" in words
    assert "Content-Type: application/json" in words
    assert any(word.startswith("Idempotency-Key: ") for word in words)
    assert json.loads(words[words.index("-d") + 1]) == EXAMPLE


def test_a_person_reads_address_login_key_and_what_to_do_next() -> None:
    text = closing().as_text()

    for fact in ("http://127.0.0.1:8000/", "olga", "s3cret-pass", "clh_test_abc", "/srv/state"):
        assert fact in text
    assert text.strip().splitlines()[-1].startswith("Next: ")


def test_a_program_reads_one_line_with_the_same_facts() -> None:
    line = closing().as_json()

    assert "\n" not in line
    assert json.loads(line)["operator"] == {"username": "olga", "password": "s3cret-pass"}
    assert json.loads(line)["curl"] == closing().curl


def test_a_key_that_is_not_known_is_said_to_be() -> None:
    assert "made for another database" in closing(api_key=None).as_text()
    assert json.loads(closing(api_key=None).as_json())["api_key"] is None

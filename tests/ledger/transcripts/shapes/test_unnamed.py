"""Gemini's calls without ids: whose answer is whose is found by name and place, never guessed."""

from typing import Any

from ledger.transcripts.shapes.gemini import Gemini


def _asks(*names: str) -> dict[str, Any]:
    return {"role": "model", "parts": [{"functionCall": {"name": name}} for name in names]}


def _answers(**told: str) -> dict[str, Any]:
    parts = [
        {"functionResponse": {"name": name, "response": {"result": text}}}
        for name, text in told.items()
    ]
    return {"role": "user", "parts": parts}


SAID: dict[str, Any] = {"role": "user", "parts": [{"text": "go on"}]}


def _answered(*contents: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Each answer's text with the id of the call it was given to."""
    entries = Gemini().read(list(contents))
    return [(result.text, result.answers) for entry in entries for result in entry.results]


def test_answers_take_the_calls_of_their_name_in_order():
    twice = {"role": "user", "parts": [*_answers(a="1")["parts"], *_answers(a="2")["parts"]]}

    assert _answered(SAID, _asks("a", "a"), twice) == [("1", "unnamed_1_0"), ("2", "unnamed_1_1")]


def test_answers_of_another_order_still_find_their_names():
    assert _answered(_asks("a", "b"), _answers(b="2", a="1")) == [
        ("2", "unnamed_0_1"),
        ("1", "unnamed_0_0"),
    ]


def test_a_displaced_answer_takes_the_only_open_call_of_its_name():
    assert _answered(_asks("a"), SAID, _answers(a="late")) == [("late", "unnamed_0_0")]


def test_a_displaced_answer_with_two_open_calls_takes_none():
    contents = (_asks("a"), SAID, _asks("a"), SAID, _answers(a="whose"))

    assert _answered(*contents) == [("whose", None)]


def test_an_answer_never_takes_a_later_call():
    assert _answered(_answers(a="early"), _asks("a")) == [("early", None)]


def test_an_answer_by_another_name_takes_no_call():
    assert _answered(_asks("a"), _answers(b="2")) == [("2", None)]


def test_ids_that_were_given_stay_and_those_made_here_are_not_written():
    named = {"role": "model", "parts": [{"functionCall": {"id": "x", "name": "a", "args": {}}}]}
    contents = [_asks("a"), _answers(a="1"), named]
    entries = Gemini().read(contents)

    assert [call.id for entry in entries for call in entry.calls] == ["unnamed_0_0", "x"]
    written = str(Gemini().write(entries))
    assert "unnamed" not in written
    assert "'id': 'x'" in written


def test_the_other_spelling_is_read_too():
    contents = [
        {"role": "model", "parts": [{"function_call": {"name": "a"}, "thought_signature": "s"}]},
        {"role": "user", "parts": [{"function_response": {"name": "a", "response": {"n": 1}}}]},
    ]

    asked, answered = Gemini().read(contents)

    assert asked.calls[0].opaque == {"thought_signature": "s"}
    assert answered.results[0].text == '{"n":1}'

"""Every shape gives back what it read: whole, and again after each message was touched."""

from dataclasses import replace
from typing import Any

import pytest

from ledger.transcripts.neutral import Call, Entry, Opaque, Result, Role, Text, Unreadable
from ledger.transcripts.profiles import formats, profile, profiles
from tests.ledger.transcripts.conversations import CONVERSATIONS

LISTS = {"openai-responses": "input", "gemini": "contents"}
EACH = pytest.mark.parametrize("name", sorted(CONVERSATIONS))


def _around(name: str, request: dict[str, Any]) -> dict[str, Any]:
    beside = {"system", "systemInstruction", "instructions", LISTS.get(name, "messages")}
    return {member: value for member, value in request.items() if member not in beside}


def _read(name: str) -> list[Entry]:
    return profile(name).shape.read(CONVERSATIONS[name])


def test_every_provider_has_a_conversation():
    assert sorted(CONVERSATIONS) == sorted(profiles())


@EACH
def test_a_sound_request_is_written_as_the_value_it_was_read_from(name):
    request = CONVERSATIONS[name]

    written = profile(name).shape.write(_read(name), _around(name, request))

    assert written == request


@EACH
def test_a_bare_list_is_written_as_a_bare_list(name):
    messages = CONVERSATIONS[name][LISTS.get(name, "messages")]
    shape = profile(name).shape

    assert shape.write(shape.read(messages)) == messages


@EACH
def test_touched_messages_are_written_so_that_they_read_the_same(name):
    shape = profile(name).shape
    touched = [replace(entry, raw=None) for entry in _read(name)]

    again = shape.read(shape.write(touched, _around(name, CONVERSATIONS[name])))

    named = shape.names_results
    assert [_meaning(e, named) for e in again] == [_meaning(e, named) for e in touched]


@EACH
def test_writing_touched_messages_twice_gives_equal_values(name):
    shape = profile(name).shape
    once = shape.write([replace(entry, raw=None) for entry in _read(name)], {})

    twice = shape.write([replace(entry, raw=None) for entry in shape.read(once)], {})

    assert list(once) == list(twice)
    assert once == twice


def _meaning(entry: Entry, named: bool) -> Any:
    """Role and parts; `named` where the format repeats a tool's name on its results."""
    told = [
        replace(part, name="") if isinstance(part, Result) and not named else part
        for part in entry.parts
    ]
    return entry.role, told


@EACH
def test_calls_find_their_results_by_id(name):
    entries = _read(name)
    asked = [call.id for entry in entries for call in entry.calls]
    answered = [result.answers for entry in entries for result in entry.results]

    assert asked == answered
    assert len(set(asked)) == len(asked)


@EACH
def test_arguments_are_objects(name):
    calls = [call for entry in _read(name) for call in entry.calls]

    assert all(isinstance(call.arguments, dict) for call in calls)


WITH_ERRORS = ("anthropic", "bedrock", "gemini", "neutral")


@pytest.mark.parametrize("name", WITH_ERRORS)
def test_an_error_is_read_as_one(name):
    results = [result for entry in _read(name) for result in entry.results]

    assert [result.is_error for result in results].count(True) == 1


@EACH
def test_reasoning_belongs_to_the_provider_that_made_it(name):
    parts = [part for entry in _read(name) for part in entry.parts]
    reasoning = [part for part in parts if isinstance(part, Opaque) and part.kind == "reasoning"]
    spoken = {"openai-chat": None, "openai-compatible": None, "neutral": "anthropic"}
    owner = spoken.get(name, name)

    assert {part.format for part in reasoning} == ({owner} if owner else set())


@EACH
@pytest.mark.parametrize("broken", [7, "words", None, {"other": []}, [7]], ids=repr)
def test_what_is_no_transcript_is_refused(name, broken):
    with pytest.raises(Unreadable):
        profile(name).shape.read(broken)


PLACES = {
    "anthropic": (
        [{"role": "user", "content": [{"type": "text", "text": 7}]}],
        "/0/content/0/text",
    ),
    "bedrock": ([{"role": "user", "content": [{"text": None}]}], "/0/content/0/text"),
    "gemini": ({"contents": [{"role": "user", "parts": [3]}]}, "/contents/0/parts/0"),
    "openai-responses": ([{"type": "function_call", "arguments": 3}], "/0/arguments"),
    "neutral": ([{"role": "king"}], "/0/role"),
    "rows": ([{"role": "tool", "tool_call_id": 5}], "/0/tool_call_id"),
}


@pytest.mark.parametrize("name", sorted(PLACES))
def test_a_refusal_names_the_place(name):
    broken, pointer = PLACES[name]

    with pytest.raises(Unreadable) as refused:
        formats()[name].read(broken)

    assert refused.value.pointer == pointer


@EACH
def test_a_plain_conversation_of_our_own_is_written_in_every_shape(name):
    entries = [
        Entry(Role.SYSTEM, (Text("Be brief."),)),
        Entry(Role.USER, (Text("Read it."),)),
        Entry(Role.ASSISTANT, (Text("Yes."), Call("abcdefghi", "read", {"at": 1}))),
        Entry(Role.TOOL, (Result("abcdefghi", (Text("seven"),), name="read"),)),
    ]
    shape = profile(name).shape

    again = shape.read(shape.write(entries, {}))

    assert [part for entry in again for part in entry.parts if isinstance(part, Text)] == [
        Text("Be brief."),
        Text("Read it."),
        Text("Yes."),
    ]
    assert [(call.id, call.name, call.arguments) for e in again for call in e.calls] == [
        ("abcdefghi", "read", {"at": 1})
    ]
    assert [(result.answers, result.text) for e in again for result in e.results] == [
        ("abcdefghi", "seven")
    ]

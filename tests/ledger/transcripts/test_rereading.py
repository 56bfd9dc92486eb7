"""What goes out is validated as it reads; what is plain reads as it was written, for everybody."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.transcripts.neutral import Call, Entry, Opaque, OpaqueKind, Result, Role, Text
from ledger.transcripts.profiles import ResultsIn, profile, profiles
from ledger.transcripts.render import render
from ledger.transcripts.rereading import as_read
from ledger.transcripts.validation import check

EACH = pytest.mark.parametrize("name", sorted(profiles()))
TRIED = settings(max_examples=15, deadline=None)
WORDS = st.text(max_size=8)
SAID = WORDS.filter(bool).map(Text)
IDS = st.sampled_from(["abcdefg01", "abcdefg02", "call:3", "x" * 70])
CALLS = st.builds(
    Call,
    IDS,
    st.sampled_from(["read", "send mail"]),
    st.dictionaries(WORDS, st.one_of(WORDS, st.integers(-9, 9), st.none()), max_size=2),
)
RESULTS = st.builds(
    Result, IDS, st.lists(WORDS.map(Text), max_size=2).map(tuple),
    name=st.sampled_from(["read", ""]), is_error=st.booleans(),
)  # fmt: skip


def _entries(role, parts, most=3):
    return st.lists(parts, min_size=1, max_size=most).map(lambda each: Entry(role, tuple(each)))


def _reply(said, calls):
    return Entry(Role.ASSISTANT, (*said, *calls))


def _speaks(entry):
    return bool(entry.parts)


def _histories(name):
    most = 1 if profile(name).results_in is ResultsIn.EACH else 3
    spoken = st.one_of(
        _entries(Role.USER, SAID, 1),
        st.builds(_reply, st.lists(SAID, max_size=2), st.lists(CALLS, max_size=3)).filter(_speaks),
        _entries(Role.TOOL, RESULTS, most),
    )
    return st.lists(spoken, min_size=1, max_size=6)


def _meaning(entries):
    """Every part in its order, whatever message it stands in."""
    return [_told(part) for part in chain.from_iterable(entry.parts for entry in entries)]


def _told(part):
    match part:
        case Call():
            return part.id, part.name, part.arguments
        case Result():
            return part.answers, part.text
    return part.text


@EACH
@TRIED
@given(data=st.data())
def test_plain_entries_read_as_they_were_written(name, data):
    entries, target = data.draw(_histories(name)), profile(name)
    body = target.shape.write(entries)

    assert as_read(entries, body, target) is entries
    assert _meaning(target.shape.read(body)) == _meaning(entries)


@EACH
@TRIED
@given(data=st.data())
def test_what_a_receiver_would_refuse_is_found_without_reading_it_back(name, data):
    entries, target = data.draw(_histories(name)), profile(name)

    refused = check(target.shape.read(target.shape.write(entries)), target)

    assert {each.code for each in refused} <= {each.code for each in check(entries, target)}


ODD = {
    "a member of one form": Text("Hello.", {"cache_control": {"type": "ephemeral"}}),
    "an empty text": Text(""),
    "a picture": Opaque(OpaqueKind.MEDIA, "chat", {"type": "image_url", "image_url": {"url": "x"}}),
    "a call of the user": Call("abcdefg01", "read", {}),
    "a result of the user": Result("abcdefg01", (Text("ok"),)),
}


@EACH
@pytest.mark.parametrize("odd", ODD)
def test_whatever_is_not_plain_is_read_back(name, odd):
    target = profile(name)
    entries = [Entry(Role.USER, (Text("Hello."), ODD[odd]))]
    body = target.shape.write([Entry(Role.USER, (Text("Hello."),))])

    assert as_read(entries, body, target) == target.shape.read(body)


def test_a_text_behind_a_call_is_read_back():
    target = profile("openai-chat")
    odd = [Entry(Role.ASSISTANT, (Call("abcdefg01", "read", {}), Text("Done.")))]

    read = as_read(odd, target.shape.write(odd), target)

    assert [type(part) for part in read[0].parts] == [Text, Call]


def test_an_entry_that_goes_out_as_it_came_is_read_back():
    target = profile("openai-chat")
    told = {"role": "user", "content": "Hello."}
    came = [Entry(Role.USER, (Text("Something else."),), raw=told)]

    assert as_read(came, target.shape.write(came), target)[0].text == "Hello."


@EACH
def test_a_session_of_plain_parts_is_not_read_back(name, monkeypatch):
    session = [
        Entry(Role.USER, (Text("Check the order."),)),
        Entry(Role.ASSISTANT, (Text("I look."), Call("c:1", "read", {"n": 1}))),
        Entry(Role.TOOL, (Result("c:1", (Text("118.00"),), name="read"),)),
    ]
    target, read = profile(name), []
    monkeypatch.setattr(type(target.shape), "read", lambda shape, body: read.append(body))

    assert render(session, profile=target).body
    assert read == []

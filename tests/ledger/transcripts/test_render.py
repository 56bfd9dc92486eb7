"""What the ledger made, rendered: manifest, ids, caps, and an error of ours where it would fail."""

import pytest

from ledger.transcripts.neutral import Call, Entry, Result, Role, Text
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.render import render
from ledger.transcripts.repair import Unrepairable
from ledger.transcripts.validation import check


def _asked(*labels):
    calls = (Call(label, "read", {"n": n}, ledger_id=f"call_{n}") for n, label in enumerate(labels))
    return Entry(Role.ASSISTANT, tuple(calls))


def _got(label, text="118.00", delivery="real"):
    result = Result(label, (Text(text),), ledger_id="", delivery=delivery)
    return Entry(Role.TOOL, (result,))


SESSION = [
    Entry(Role.USER, (Text("Check the order."),)),
    _asked("c:1", "c:1"),
    _got("c:1", "one"),
    _got("c:1", "two", "notice"),
    Entry(Role.ASSISTANT, (Text("Done."),)),
]


@pytest.mark.parametrize("name", sorted(profiles()))
def test_a_session_is_sound_for_every_provider(name):
    rendered = render(SESSION, profile=profile(name))

    assert check(profile(name).shape.read(rendered.body), profile(name)) == []
    assert [shown.call for shown in rendered.manifest] == ["call_0", "call_1"]
    assert [shown.delivery for shown in rendered.manifest] == ["real", "notice"]


def test_the_manifest_says_which_id_a_call_is_sent_under():
    rendered = render(SESSION, profile=profile("anthropic"))

    sent = [block["id"] for block in rendered.body[1]["content"]]
    assert [(shown.was, shown.provider_id) for shown in rendered.manifest] == [
        ("c:1", sent[0]),
        ("c:1", sent[1]),
    ]
    assert {shown.at for shown in rendered.manifest} == {2}


def test_a_capped_result_is_marked_in_the_manifest():
    session = [SESSION[0], _asked("a"), _got("a", "x" * 2000)]

    (shown,) = render(session, profile=profile("anthropic"), cap_bytes=600).manifest

    assert (shown.capped, shown.delivery) == (True, "real")


def test_the_stored_copy_may_end_with_open_calls_and_the_sent_copy_may_not():
    session = [SESSION[0], _asked("a", "b"), _got("a")]

    stored = render(session, profile=profile("openai-chat"), open_calls=True)

    assert [shown.delivery for shown in stored.manifest] == ["real", "open"]
    with pytest.raises(Unrepairable) as refused:
        render(session, profile=profile("openai-chat"))
    assert [each.code for each in refused.value.violations] == ["unanswered_call"]


def test_equal_sessions_give_equal_bodies():
    first, again = (render(SESSION, profile=profile("mistral")) for _ in range(2))

    assert first == again

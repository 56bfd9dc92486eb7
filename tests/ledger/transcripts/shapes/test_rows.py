"""Rows of an agent's own table, such as the ones that a bricked conversation was reported with."""

from typing import Any

import pytest

from ledger.transcripts.neutral import Role, Unreadable
from ledger.transcripts.profiles import formats, profile, profiles
from ledger.transcripts.repair import repair
from ledger.transcripts.shapes.rows import Rows
from ledger.transcripts.validation import check


def _row(pos: int, role: str, id: str = "-", tool: str = "-", content: Any = "") -> dict[str, Any]:
    return {"pos": pos, "role": role, "tool_call_id": id, "tool_name": tool, "content": content}


def test_rows_are_a_format_and_no_provider():
    assert "rows" in formats()
    assert "rows" not in profiles()


def test_rows_are_never_written():
    with pytest.raises(TypeError, match="never sent"):
        Rows().write([])


def test_a_row_of_a_tool_is_a_result_with_its_id_and_name():
    (entry,) = Rows().read([_row(90, "tool", "call_37ac", "read_document", "ok")])

    assert entry.role is Role.TOOL
    assert entry.results[0].answers == "call_37ac"
    assert (entry.results[0].name, entry.results[0].text) == ("read_document", "ok")


def test_call_rows_in_a_run_are_one_reply_with_the_text_before_them():
    entries = Rows().read(
        [
            _row(1, "user", content="Build it."),
            _row(2, "assistant", content="I read first."),
            _row(3, "assistant", "call_1", "read", '{"page": 1}'),
            _row(4, "assistant", "call_2", "read", {"page": 2}),
            _row(5, "tool", "call_1", "read", "one"),
            _row(6, "tool", "call_2", "read", "two"),
            _row(7, "assistant", content="Done."),
        ]
    )

    assert [entry.role.value for entry in entries] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert [call.arguments for call in entries[1].calls] == [{"page": 1}, {"page": 2}]
    assert entries[1].text == "I read first."


def test_rows_are_read_in_the_order_of_their_positions():
    entries = Rows().read([_row(2, "user", content="second"), _row(1, "user", content="first")])

    assert [entry.text for entry in entries] == ["first", "second"]


def test_a_row_may_bear_calls_as_chat_messages_do():
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}}
    (entry,) = Rows().read({"rows": [{"role": "assistant", "content": "", "tool_calls": [call]}]})

    assert entry.calls[0].arguments == {"a": 1}


def test_a_position_that_is_no_number_is_refused():
    with pytest.raises(Unreadable, match="position"):
        Rows().read([{"pos": "first", "role": "user"}])


@pytest.mark.parametrize("into", sorted(profiles()))
def test_rows_with_orphans_are_mended_for_every_provider(into):
    rows = [
        _row(88, "user", content="Build a page."),
        _row(89, "user", content="Build a page."),
        _row(90, "tool", "call_37ac", "read_document", "ok"),
        _row(91, "assistant", "call_dc2b", "insert", '{"html": "<p>"}'),
        _row(92, "tool", "call_dc2b", "insert", "inserted"),
        _row(93, "user", content="You only did the hero section."),
    ]

    repaired = repair(rows, format="rows", profile=profile(into))

    assert repaired.report.before.orphans == 1
    assert repaired.report.before.prompts_repeated == 1
    assert repaired.report.after.results == repaired.report.after.calls == 1
    assert check(profile(into).shape.read(repaired.body), profile(into)) == []

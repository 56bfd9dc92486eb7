"""Session files of agents of the command line are read as the conversation the model had (R93)."""

from typing import Any

import pytest

from ledger.transcripts.neutral import Entry, Opaque, Role, Unreadable
from ledger.transcripts.profiles import formats, profiles

HEAD = {"sessionId": "5b0c", "cwd": "/srv/books", "version": "2.0.1", "isSidechain": False}


def a_line(uuid: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A line of Claude Code: a message of the API and what the client keeps beside it."""
    return {**HEAD, "type": message["role"], "uuid": uuid, "message": message, **more}


def a_block(uuid: str, reply: str, block: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One block of a reply on a line of its own."""
    message = {"id": reply, "type": "message", "role": "assistant", "content": [block]}
    return a_line(uuid, message | {"model": "m-1", "usage": {"output_tokens": 3}}, **more)


def a_use(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "Read", "input": {"file_path": f"{id_}.md"}}


def an_answer(uuid: str, id_: str, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id_, "content": f"text of {id_}", **more}
    message = {"role": "user", "content": [block]}
    return a_line(uuid, message, toolUseResult={"file": {}})


def read(format: str, lines: list[Any]) -> list[Entry]:
    return formats()[format].read(lines)


def shown(entries: list[Entry]) -> list[str]:
    """What a model was sent, in short."""
    return [_short(entry) for entry in entries if not entry.screen_only]


def _short(entry: Entry) -> str:
    calls = [f"call {call.id}" for call in entry.calls]
    results = [f"result {result.answers}" for result in entry.results]
    return " ".join([str(entry.role), *([entry.text] if entry.text else []), *calls, *results])


CLAUDE_CODE = [
    {"type": "summary", "summary": "Reading the books", "leafUuid": "u9"},
    {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
    a_line("u1", {"role": "user", "content": "Compare the books"}),
    a_block("u2", "msg_1", {"type": "thinking", "thinking": "Both", "signature": "sig"}),
    a_block("u3", "msg_1", {"type": "text", "text": "I read both."}),
    a_block("u4", "msg_1", a_use("toolu_1")),
    an_answer("u5", "toolu_1"),
    a_block("u6", "msg_1", a_use("toolu_2")),
    {**HEAD, "type": "progress", "uuid": "u7", "data": {"type": "hook_progress"}},
    an_answer("u8", "toolu_2", is_error=True),
    a_block("u9", "msg_2", {"type": "text", "text": "They differ."}),
]


def test_the_blocks_of_a_reply_are_one_reply_wherever_its_results_stand() -> None:
    entries = read("claude-code", CLAUDE_CODE)

    assert shown(entries) == [
        "user Compare the books",
        "assistant I read both. call toolu_1 call toolu_2",
        "tool result toolu_1",
        "tool result toolu_2",
        "assistant They differ.",
    ]
    assert entries[-2].results[0].is_error
    thinking = entries[3].parts[0]
    assert isinstance(thinking, Opaque)
    assert thinking.format == "anthropic", "its signature goes back to the provider that gave it"


def test_each_entry_says_the_line_it_came_from() -> None:
    entries = read("claude-code", CLAUDE_CODE)

    assert [entry.at for entry in entries if not entry.screen_only] == [2, 3, 6, 9, 10]


def test_what_no_model_was_sent_is_for_the_screen() -> None:
    aside = a_line("s1", {"role": "user", "content": "Search the web"}, isSidechain=True)
    failed = a_block("s2", "x", {"type": "text", "text": "API Error"}, isApiErrorMessage=True)

    entries = read("claude-code", [aside, failed, *CLAUDE_CODE])

    assert [entry.at for entry in entries if entry.screen_only] == [0, 1, 2, 3, 10]


def test_a_line_that_was_copied_counts_once() -> None:
    said = a_line("u1", {"role": "user", "content": "Compare the books"})

    assert shown(read("claude-code", [said, said])) == ["user Compare the books"]


def an_item(**item: Any) -> dict[str, Any]:
    """A line of a rollout: an item of the Responses API."""
    return {"timestamp": "2026-01-05T10:00:00Z", "type": "response_item", "payload": item}


CODEX = [
    {"timestamp": "2026-01-05T10:00:00Z", "type": "session_meta", "payload": {"id": "0199"}},
    an_item(type="message", role="user", content=[{"type": "input_text", "text": "Compare"}]),
    {"timestamp": "2026-01-05T10:00:01Z", "type": "event_msg", "payload": {"type": "task_started"}},
    an_item(type="reasoning", summary=[], encrypted_content="opaque"),
    an_item(type="function_call", name="shell", call_id="call_1", arguments='{"command":["ls"]}'),
    an_item(type="ghost_snapshot", ghost_commit={}),
    an_item(type="function_call_output", call_id="call_1", output="a.md"),
    an_item(type="custom_tool_call", name="apply_patch", call_id="call_2", input="*** Begin"),
    an_item(type="custom_tool_call_output", call_id="call_2", output="Done"),
    {"timestamp": "2026-01-05T10:00:09Z", "type": "turn_context", "payload": {"model": "m-1"}},
]


def test_a_rollout_is_read_as_its_items() -> None:
    entries = read("codex", CODEX)

    assert shown(entries) == [
        "user Compare",
        "assistant",
        "assistant call call_1",
        "tool result call_1",
        "assistant call call_2",
        "tool result call_2",
    ]
    assert [entry.at for entry in entries if entry.screen_only] == [0, 2, 5, 9]
    assert [entry.role for entry in entries if entry.screen_only] == [Role.SYSTEM] * 4


def test_an_older_rollout_holds_its_items_bare() -> None:
    bare = [{"id": "0199", "timestamp": "2025-06-01T10:00:00Z", "instructions": None}]
    bare += [line["payload"] for line in CODEX if line["type"] == "response_item"]

    assert shown(read("codex", bare)) == shown(read("codex", CODEX))


@pytest.mark.parametrize(
    ("format", "line", "pointer"),
    [
        ("claude-code", a_line("u1", {"role": "user", "content": 7}), "/1/message/content"),
        ("codex", an_item(type="message", role="root", content=[]), "/1/payload/role"),
        ("codex", 7, "/1"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(format: str, line: Any, pointer: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(format, [{"type": "summary"}, line])

    assert refused.value.pointer == pointer


@pytest.mark.parametrize("format", ["claude-code", "codex"])
def test_such_a_file_is_read_and_never_sent(format: str) -> None:
    assert format not in profiles()
    with pytest.raises(TypeError, match="never sent"):
        formats()[format].write([])

"""The items of OpenAI Responses: each kind of call with the output that answers it."""

from dataclasses import replace

import pytest

from ledger.transcripts.neutral import OpaqueKind, Result, Text
from ledger.transcripts.profiles import profile
from ledger.transcripts.repair import repair
from ledger.transcripts.shapes.items import ANSWERED_BY, CALLS
from ledger.transcripts.shapes.responses import Responses
from ledger.transcripts.validation import check

CARRIED = {
    "function_call": {"name": "read", "arguments": '{"a": 1}'},
    "custom_tool_call": {"name": "patch", "input": "*** Begin"},
    "local_shell_call": {"action": {"type": "exec", "command": ["ls"], "env": {}}},
    "shell_call": {"action": {"commands": ["ls"]}},
    "apply_patch_call": {"operation": {"type": "delete_file", "path": "a.txt"}},
    "computer_call": {"action": {"type": "screenshot"}},
}


def test_every_kind_of_call_is_tried():
    assert sorted(CARRIED) == sorted(CALLS)


@pytest.mark.parametrize("kind", sorted(CARRIED))
def test_a_call_is_written_with_what_it_carried(kind):
    item = {
        "type": kind,
        "id": "own_1",
        "call_id": "call_1",
        **CARRIED[kind],
        "status": "completed",
    }
    (entry,) = Responses().read([item])

    (again,) = Responses().write([replace(entry, raw=None)])

    assert again == item


def test_a_local_shell_call_is_answered_by_a_function_output():
    (entry,) = Responses().read([{"type": "local_shell_call", "call_id": "c", "action": {}}])
    call = entry.calls[0]
    answer = replace(entry, parts=(Result("c", (Text("ok"),), kind=call.kind),), raw=None)

    assert Responses().write([answer]) == [
        {"type": "function_call_output", "call_id": "c", "output": "ok"}
    ]


def test_a_custom_call_is_answered_by_a_custom_output():
    assert ANSWERED_BY["custom"] == "custom_tool_call_output"


@pytest.mark.parametrize("kind", ["web_search_call", "mcp_list_tools", "image_generation_call"])
def test_what_the_provider_ran_itself_is_opaque(kind):
    (entry,) = Responses().read([{"type": kind, "id": "x"}])

    assert entry.parts[0].kind is OpaqueKind.PROVIDER_TOOL
    assert entry.calls == ()


def test_a_prompt_that_is_one_text_stays_one_text():
    request = {"model": "gpt-5", "input": "Hello"}

    written = Responses().write(Responses().read(request), {"model": "gpt-5"})

    assert written == request


def test_a_call_that_is_not_complete_makes_its_reply_a_failed_one():
    item = {"type": "function_call", "call_id": "c", "arguments": '{"a', "status": "incomplete"}

    (entry,) = Responses().read([item])

    assert entry.failed
    assert entry.calls[0].arguments is None
    assert entry.calls[0].unparsed == '{"a'


def test_an_output_may_answer_a_call_that_the_server_holds():
    output = {"type": "function_call_output", "call_id": "call_far", "output": "ok"}
    call = {"type": "function_call", "call_id": "call_near", "name": "a", "arguments": "{}"}
    request = {"previous_response_id": "resp_1", "input": [output, call]}
    target = profile("openai-responses")

    repaired = repair(request, format=target.name, profile=target)

    assert repaired.body["input"][:2] == [output, call]
    assert [change.kind for change in repaired.report.changes] == ["synthesized"]


def test_without_a_chain_such_an_output_is_an_orphan():
    output = {"type": "function_call_output", "call_id": "call_far", "output": "ok"}
    target = profile("openai-responses")

    assert [each.code for each in check(target.shape.read([output]), target)] == ["orphan_output"]

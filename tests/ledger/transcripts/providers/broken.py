"""Per provider and code: a small transcript that its provider refuses, and in which words.

Each breaks one rule only, in the provider's own shape. Words as transcripts, part a, gives them.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Broken:
    """A transcript with one fault; `mendable` unless no repair can know what is missing."""

    profile: str
    code: str
    transcript: Any
    text: str
    mendable: bool = True

    @property
    def name(self) -> str:
        return f"{self.profile}-{self.code}"


# Blocks: Anthropic and its like


def _said(text: str = "Go on.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _asks(*ids: str, before: tuple[Any, ...] = ()) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": id, "name": "read", "input": {}} for id in ids]
    return {"role": "assistant", "content": [*before, *blocks]}


def _told(*ids: str, after: tuple[Any, ...] = ()) -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in ids]
    return {"role": "user", "content": [*blocks, *after]}


_NOT_FOUND = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
_THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "Eq"}
_WEB = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
_FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

ANTHROPIC = (
    Broken(
        "anthropic",
        "unanswered_call",
        [_said(), _asks("toolu_1", "toolu_2"), _told("toolu_1")],
        _NOT_FOUND.format("toolu_2"),
    ),
    Broken(
        "anthropic",
        "orphan_output",
        [_said(), _asks("toolu_1"), _told("toolu_1", "toolu_9")],
        "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9. "
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous "
        "message.",
    ),
    Broken(
        "anthropic",
        "duplicate_result",
        [_said(), _asks("toolu_1"), _told("toolu_1", "toolu_1")],
        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
        "toolu_1",
    ),
    Broken(
        "anthropic",
        "duplicate_call_id",
        [_said(), _asks("toolu_1"), _told("toolu_1"), _asks("toolu_1"), _told("toolu_1")],
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    Broken(
        "anthropic",
        "id_charset",
        [_said(), _asks("call:1"), _told("call:1")],
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    Broken(
        "anthropic",
        "text_before_result",
        [
            _said(),
            _asks("toolu_1"),
            {"role": "user", "content": [_words("Here."), *_told("toolu_1")["content"]]},
        ],
        _NOT_FOUND.format("toolu_1"),
    ),
    Broken(
        "anthropic",
        "text_after_call",
        [
            _said(),
            {"role": "assistant", "content": [*_asks("toolu_1")["content"], _words("Reading.")]},
            _told("toolu_1"),
        ],
        _NOT_FOUND.format("toolu_1"),
    ),
    Broken(
        "anthropic",
        "empty_text",
        [_said(), _asks("toolu_1", before=(_words(""),)), _told("toolu_1")],
        "messages: text content blocks must be non-empty",
    ),
    Broken(
        "anthropic",
        "first_not_user",
        [_asks("toolu_1"), _told("toolu_1")],
        'messages: first message must use the "user" role',
    ),
    Broken(
        "anthropic",
        "reasoning_missing",
        [
            _said(),
            _asks("toolu_1"),
            _told("toolu_1"),
            _asks("toolu_2", before=(_THOUGHT,)),
            _told("toolu_2"),
        ],
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
    Broken(
        "anthropic",
        "server_tool_split",
        [
            _said(),
            {"role": "assistant", "content": [_WEB]},
            _said(),
            {"role": "assistant", "content": [_FOUND, _words("Found.")]},
        ],
        "messages.3.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: "
        "srvtoolu_1. Each `web_search_tool_result` block must have a corresponding "
        "`server_tool_use` block before it.",
        mendable=False,
    ),
)


# Items: OpenAI Responses


def _prompt() -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": "Go on."}


def _call(call_id: str, **members: Any) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"}
    return {**call, **members}


def _output(id: str, type: str = "function_call_output") -> dict[str, Any]:
    return {"type": type, "call_id": id, "output": "ok"}


_REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
_LONG = "call_" + "x" * 60

RESPONSES = (
    Broken(
        "openai-responses",
        "unanswered_call",
        [_prompt(), _call("call_1")],
        "No tool output found for function call call_1.",
    ),
    Broken(
        "openai-responses",
        "orphan_output",
        [_prompt(), _output("call_37ac")],
        "No tool call found for function call output with call_id call_37ac.",
    ),
    Broken(
        "openai-responses",
        "id_too_long",
        [_prompt(), _call(_LONG), _output(_LONG)],
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, "
        "but got a string with length 65 instead.",
    ),
    Broken(
        "openai-responses",
        "item_id_family",
        [_prompt(), _call("call_1", id="toolu_1"), _output("call_1")],
        "Invalid 'input[1].id': 'toolu_1'. Expected an ID that begins with 'fc'.",
    ),
    Broken(
        "openai-responses",
        "reasoning_alone",
        [_prompt(), _REASONING, _prompt()],
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    Broken(
        "openai-responses",
        "reasoning_missing",
        [
            _prompt(),
            _REASONING,
            _call("call_1", id="fc_1"),
            _output("call_1"),
            _call("call_2", id="fc_2"),
            _output("call_2"),
        ],
        "Item 'fc_2' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_…'.",
    ),
    Broken(
        "openai-responses",
        "output_type",
        [
            _prompt(),
            {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "x"},
            _output("call_1"),
        ],
        "No tool output found for custom call call_1.",
    ),
)


# Contents: Gemini


def _user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts) or [{"text": "Go on."}]}


def _model(*names: str, signed: bool = False) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"functionCall": {"name": name, "args": {}}} for name in names]
    if signed:
        parts[0]["thoughtSignature"] = "Ci"
    return {"role": "model", "parts": parts}


def _response(*names: str) -> dict[str, Any]:
    responses = [{"name": name, "response": {"result": "ok"}} for name in names]
    return _user(*({"functionResponse": response} for response in responses))


GEMINI = (
    Broken(
        "gemini",
        "count_mismatch",
        [_user(), _model("a", "b"), _response("a"), _user()],
        "Please ensure that the number of function response parts is equal to the number of "
        "function call parts of the function call turn.",
    ),
    Broken(
        "gemini",
        "first_not_user",
        [_model("a"), _response("a"), _user()],
        "Please ensure that function call turn comes immediately after a user turn or after a "
        "function response turn.",
    ),
    Broken(
        "gemini",
        "result_not_adjacent",
        [_user(), _response("a"), _user()],
        "Please ensure that function response turn comes immediately after a function call turn.",
    ),
    Broken(
        "gemini",
        "reasoning_missing",
        [_user(), _model("a", signed=True), _response("a"), _model("b"), _response("b")],
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly, and missing thought_signature may lead to degraded model "
        "performance.",
    ),
)


# Content blocks of one member: Bedrock


def _block(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks) or [{"text": "Go on."}]}


def _use(*ids: str) -> dict[str, Any]:
    uses = [{"toolUse": {"toolUseId": id, "name": "read", "input": {}}} for id in ids]
    return _block("assistant", *uses)


def _result(*ids: str, after: tuple[Any, ...] = ()) -> dict[str, Any]:
    results = [{"toolResult": {"toolUseId": id, "content": [{"text": "ok"}]}} for id in ids]
    return _block("user", *results, *after)


BEDROCK = (
    Broken(
        "bedrock",
        "unanswered_call",
        [_block("user"), _use("t_1", "t_2"), _result("t_1")],
        "Expected toolResult blocks at messages.2.content for the following Ids: t_2",
    ),
    Broken(
        "bedrock",
        "count_mismatch",
        [_block("user"), _use("t_1"), _result("t_1", "t_9")],
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse "
        "blocks of previous turn.",
    ),
    Broken(
        "bedrock",
        "roles_not_alternating",
        [_block("user"), _block("user")],
        "A conversation must alternate between user and assistant roles. Make sure the "
        "conversation alternates between user and assistant roles and try again.",
    ),
    Broken(
        "bedrock",
        "first_not_user",
        [_block("assistant"), _block("user")],
        "A conversation must start with a user message. Try again with a conversation that starts "
        "with a user message.",
    ),
    Broken(
        "bedrock",
        "id_charset",
        [_block("user"), _use("t:1"), _result("t:1")],
        "Value 't:1' at 'messages.1.member.content.0.member.toolUse.toolUseId' failed to satisfy "
        "constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
    ),
    Broken(
        "bedrock",
        "empty_text",
        [
            _block("user"),
            _use("t_1"),
            _block("user", {"toolResult": {"toolUseId": "t_1", "content": [], "status": "error"}}),
        ],
        "The content field at messages.2.content.0.toolResult cannot be empty when status value is "
        "error.",
    ),
    Broken(
        "bedrock",
        "text_beside_result",
        [_block("user"), _use("t_1"), _result("t_1", after=({"text": "And?"},))],
        "messages.2.content: Conversation blocks and tool result blocks cannot be provided in the "
        "same turn.",
    ),
    Broken(
        "bedrock",
        "tools_not_declared",
        {"modelId": "m", "messages": [_block("user"), _use("t_1"), _result("t_1")]},
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        mendable=False,
    ),
)


# Chat messages: Mistral, DeepSeek, Kimi, MiniMax, OpenAI and what is compatible with it


def _calls(*ids: str, arguments: str = "{}", name: str = "read", **members: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": None, **members, "tool_calls": calls}


def _tool(id: str, content: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "name": "read", "content": content}


_SYSTEM = {"role": "system", "content": "Be brief."}
_REPLY = {"role": "assistant", "content": "Yes."}
_ONE, _TWO = "abcDEF123", "abcDEF456"

MISTRAL = (
    Broken(
        "mistral",
        "id_charset",
        [_said(), _calls("call_1"), _tool("call_1")],
        "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
    ),
    Broken(
        "mistral",
        "count_mismatch",
        [_said(), _calls(_ONE, _TWO), _tool(_ONE), _REPLY, _said()],
        "Not the same number of function calls and responses",
    ),
    Broken(
        "mistral",
        "orphan_output",
        [_said(), _calls(_ONE), _tool(_ONE), _tool(_TWO), _REPLY, _said()],
        f"Unexpected tool call id {_TWO} in tool results",
    ),
    Broken(
        "mistral",
        "duplicate_result",
        [_said(), _calls(_ONE), _tool(_ONE), _tool(_ONE)],
        f"Duplicate tool call id {_ONE} in tool results",
    ),
    Broken(
        "mistral",
        "duplicate_call_id",
        [_said(), _calls(_ONE, _ONE), _tool(_ONE), _tool(_ONE)],
        f"Duplicate tool call id {_ONE} in assistant message",
    ),
    Broken(
        "mistral",
        "result_not_adjacent",
        [_said(), _tool(_ONE)],
        "Unexpected role 'tool' after role 'user'",
    ),
    Broken(
        "mistral",
        "roles_not_alternating",
        [_said(), _calls(_ONE), _tool(_ONE), _said()],
        "Unexpected role 'user' after role 'tool'",
    ),
    Broken(
        "mistral",
        "last_role",
        [_said(), _REPLY],
        "Expected last role User or Tool (or Assistant with prefix) for serving but got assistant",
    ),
    Broken(
        "mistral",
        "first_not_user",
        [_REPLY, _said()],
        "Conversation must start with a user message or system message",
    ),
)

DEEPSEEK = (
    Broken(
        "deepseek",
        "unanswered_call",
        [_said(), _calls("call_1"), _said()],
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
    ),
    Broken(
        "deepseek",
        "orphan_output",
        [_said(), _tool("call_37ac")],
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    ),
    Broken(
        "deepseek",
        "reasoning_missing",
        [
            _said(),
            _calls("call_1", reasoning_content="Hm."),
            _tool("call_1"),
            _calls("call_2"),
            _tool("call_2"),
        ],
        "Missing `reasoning_content` field in the assistant message at message index 3",
    ),
)

KIMI = (
    Broken("kimi", "orphan_output", [_said(), _tool("call_1")], "tool_call_id  is not found"),
    Broken(
        "kimi",
        "duplicate_result",
        [_said(), _calls("read:0"), _tool("read:0"), _calls("read:0"), _tool("read:0")],
        "duplicate_tool_result_in_request",
    ),
    Broken(
        "kimi",
        "unanswered_call",
        [_said(), _calls("read:0"), _said()],
        "an assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: read:0",
    ),
    Broken(
        "kimi",
        "reasoning_missing",
        [
            _said(),
            _calls("read:0", reasoning_content="Hm."),
            _tool("read:0"),
            _calls("read:1"),
            _tool("read:1"),
        ],
        "thinking is enabled but reasoning_content is missing in assistant tool call message at "
        "index 3",
    ),
)

MINIMAX = (
    Broken(
        "minimax",
        "result_not_adjacent",
        [_said(), _tool("call_1")],
        "invalid params, tool call result does not follow tool call (2013)",
    ),
    Broken(
        "minimax",
        "orphan_output",
        [_said(), _calls("call_1"), _tool("call_1"), _tool("call_9")],
        "invalid params, tool result's tool id(call_9) not found (2013)",
    ),
    Broken(
        "minimax",
        "count_mismatch",
        [_said(), _calls("call_1", "call_2"), _tool("call_1")],
        "tool call and result not match (2013)",
    ),
    Broken(
        "minimax",
        "id_charset",
        [_said(), _calls("call.1"), _tool("call.1")],
        "tool call id is invalid (2013)",
    ),
    Broken(
        "minimax",
        "arguments_invalid",
        [_said(), _calls("call_1", arguments='{"path": "a'), _tool("call_1")],
        "invalid function arguments json string, tool_call_id: call_1 (2013)",
    ),
    Broken(
        "minimax",
        "tools_not_declared",
        {
            "model": "MiniMax-M2",
            "tools": [{"type": "function", "function": {"name": "read"}}],
            "messages": [_said(), _calls("call_1"), _tool("call_1")],
        },
        "function parameters is empty",
        mendable=False,
    ),
    Broken(
        "minimax-messages",
        "text_beside_result",
        [_said(), _asks("toolu_1"), _told("toolu_1", after=(_words("And?"),))],
        "invalid params, tool call result does not follow tool call (2013)",
    ),
)

COMPATIBLE = (
    Broken(
        "openai-compatible",
        "unanswered_call",
        [_said(), _calls("call_1"), _said()],
        "Message 1 asks for calls without results directly behind it: call_1. Each call needs "
        "exactly one result.",
    ),
    Broken(
        "openai-compatible",
        "orphan_output",
        [_said(), _calls("call_1"), _tool("call_1"), _tool("call_9")],
        "Message 3 holds a result for call_9, which no reply directly before it asked for.",
    ),
    Broken(
        "openai-compatible",
        "duplicate_result",
        [_said(), _calls("call_1"), _tool("call_1"), _tool("call_1")],
        "Message 3 holds a further result for call_1.",
    ),
    Broken(
        "openai-compatible",
        "duplicate_call_id",
        [_said(), _calls("call_1"), _tool("call_1"), _calls("call_1"), _tool("call_1")],
        "Message 3 uses the call id call_1 a second time.",
    ),
    Broken(
        "openai-compatible",
        "result_not_adjacent",
        [_said(), _tool("call_1")],
        "Message 1 holds a result for call_1, but does not follow its call directly.",
    ),
    Broken(
        "openai-compatible",
        "result_order",
        [_said(), _calls("call_1", "call_2"), _tool("call_2"), _tool("call_1")],
        "The results behind message 1 do not stand in the order of their calls.",
    ),
    Broken(
        "openai-compatible",
        "id_charset",
        [_said(), _calls("read:0"), _tool("read:0")],
        "Message 1 uses the call id read:0: letters, digits, `_` and `-`, at most 40, are safe "
        "everywhere.",
    ),
    Broken(
        "openai-compatible",
        "name_invalid",
        [_said(), _calls("call_1", name=" read "), _tool("call_1")],
        "Message 1 calls a tool by a name that is not 1 to 64 letters, digits, `_` and `-`.",
    ),
    Broken(
        "openai-compatible",
        "arguments_invalid",
        [_said(), _calls("call_1", arguments="[1]"), _tool("call_1")],
        "Message 1 asks for call_1 with arguments that are no JSON object.",
    ),
    Broken(
        "openai-compatible",
        "empty_text",
        [_said(), _calls("call_1"), _tool("call_1", content=" ")],
        "Message 2 holds an empty text.",
    ),
    Broken(
        "openai-compatible",
        "first_not_user",
        [_REPLY, _said()],
        "The first message is not the user's.",
    ),
    Broken(
        "openai-compatible",
        "empty_calls",
        [_said(), {**_REPLY, "tool_calls": []}, _said()],
        "[] is too short - 'messages.1.tool_calls'",
    ),
)

BROKEN = (
    *ANTHROPIC,
    *RESPONSES,
    *GEMINI,
    *BEDROCK,
    *MISTRAL,
    *DEEPSEEK,
    *KIMI,
    *MINIMAX,
    *COMPATIBLE,
)

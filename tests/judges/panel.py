"""The judges themselves: run by their own Python, one JSON line in, one JSON line out.

A line in is `{"judge": name, "body": …}`, a line out `{"refusal": text or null}`. A judge takes
a body as its provider's request has it and raises where it refuses. Each is imported when it is
first asked. Nothing of Clearhouse may be imported here.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

Judge = Callable[[Any], None]


class Refused(Exception):
    """A judge without an exception of its own refuses."""


def _messages(body: Any, member: str = "messages") -> list[Any]:
    found = body[member] if isinstance(body, Mapping) else body
    return list(found)


def _exhaust(value: Any) -> None:
    """Walk to the end: pydantic reads an `Iterable` of a typed dictionary only as it is read."""
    if isinstance(value, Mapping):
        for each in value.values():
            _exhaust(each)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for each in value:
            _exhaust(each)


@cache
def _reader(kind: str, extra: str) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(list[_type_of(kind)], config=ConfigDict(extra=extra))  # type: ignore[misc,typeddict-item]


def _type_of(kind: str) -> Any:
    if kind == "openai-chat":
        from openai.types.chat import ChatCompletionMessageParam

        return ChatCompletionMessageParam
    if kind == "openai-responses":
        from openai.types.responses import ResponseInputItemParam

        return ResponseInputItemParam
    from anthropic.types import MessageParam

    return MessageParam


def openai_chat(body: Any) -> None:
    """The message types of the `openai` package, no member beyond them."""
    _exhaust(_reader("openai-chat", "forbid").validate_python(_messages(body)))


def openai_chat_and_more(body: Any) -> None:
    """The same types where a provider adds members of its own (`reasoning_content`)."""
    _exhaust(_reader("openai-chat", "ignore").validate_python(_messages(body)))


def openai_responses(body: Any) -> None:
    """The input item types of the `openai` package, no member beyond them."""
    _exhaust(_reader("openai-responses", "forbid").validate_python(_messages(body, "input")))


def anthropic(body: Any) -> None:
    """The message types of the `anthropic` package, no member beyond them."""
    _exhaust(_reader("anthropic", "forbid").validate_python(_messages(body)))


def gemini(body: Any) -> None:
    """The content types of `google-genai`, whose chat must keep the whole history."""
    from google.genai import chats, types

    contents = [types.Content.model_validate(each) for each in _messages(body, "contents")]
    if chats._extract_curated_history(contents) != contents:
        raise Refused("google-genai leaves contents out of the history: they are not valid.")


@cache
def _converse() -> Any:
    import botocore.session

    service = botocore.session.Session().get_service_model("bedrock-runtime")
    return service.operation_model("Converse").input_shape


def bedrock(body: Any) -> None:
    """The request shape of Converse in `botocore`; unknown members are refused by it."""
    from botocore.validate import ParamValidator

    request = body if isinstance(body, Mapping) else {"messages": body}
    report = ParamValidator().validate({"modelId": "judge", **request}, _converse())
    if report.has_errors():
        raise Refused(report.generate_report())


def mistral(body: Any) -> None:
    """The vendor's request validator, of tokenizers that take ids of nine only, and of the rest.

    That of version 3, the oldest, takes no text beside calls and is not asked.
    """
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
    from mistral_common.tokens.tokenizers.base import TokenizerVersion

    for version in (TokenizerVersion.v7, TokenizerVersion.v11, TokenizerVersion.v13):
        request: Any = ChatCompletionRequest(messages=_messages(body), model="judge")
        get_validator(version, mode=ValidationMode.serving).validate_request(request)


def langgraph(body: Any) -> None:
    """langgraph's check of a chat history, over messages as LangChain reads them."""
    import warnings

    warnings.simplefilter("ignore")
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.messages.utils import convert_to_messages
    from langgraph.prebuilt.chat_agent_executor import _validate_chat_history

    # LangChain wants the member that OpenAI lets a reply with calls leave out.
    read = convert_to_messages([{"content": None} | each for each in _messages(body)])
    _validate_chat_history(read)
    replies = [each for each in read if isinstance(each, AIMessage)]
    broken = [call for each in replies for call in each.invalid_tool_calls]
    if broken:
        raise Refused(f"LangChain cannot read the calls {broken}.")
    asked = {call["id"] for each in replies for call in each.tool_calls}
    results = [each for each in read if isinstance(each, ToolMessage)]
    if strays := [each for each in results if each.tool_call_id not in asked]:
        raise Refused(f"LangChain has no call for {strays}.")


def pydantic_ai(body: Any) -> None:
    """pydantic-ai loads the history, and its own repair finds nothing to close or to drop."""
    from pydantic_ai import messages as theirs

    loaded = theirs.ModelMessagesTypeAdapter.validate_python(_as_pydantic_ai(_messages(body)))
    before, after = _pairs(loaded), _pairs(theirs.repair_messages(loaded))
    if before != after:
        raise Refused(f"pydantic-ai repairs it: {before} become {after}.")


def _pairs(messages: Any) -> list[tuple[str, str]]:
    kinds = ("tool-call", "tool-return")
    return [
        (part.part_kind, part.tool_call_id)
        for each in messages
        for part in each.parts
        if part.part_kind in kinds
    ]


def _as_pydantic_ai(messages: list[Any]) -> list[Any]:
    names: dict[str, str] = {}
    return [_request_or_response(each, names) for each in messages]


def _request_or_response(message: Any, names: dict[str, str]) -> dict[str, Any]:
    role, content = message["role"], message.get("content")
    if role == "assistant":
        calls = message.get("tool_calls") or []
        names |= {call["id"]: call["function"]["name"] for call in calls}
        parts = [{"part_kind": "text", "content": _text(content)}] if content else []
        return {"kind": "response", "parts": parts + [_call(call) for call in calls]}
    if role == "tool":
        asked = message["tool_call_id"]
        part = {"part_kind": "tool-return", "tool_name": names.get(asked, "unknown")}
        part |= {"content": _text(content), "tool_call_id": asked}
    else:
        kind = "user-prompt" if role == "user" else "system-prompt"
        part = {"part_kind": kind, "content": _text(content)}
    return {"kind": "request", "parts": [part]}


def _call(call: Any) -> dict[str, Any]:
    said = call["function"]
    return {
        "part_kind": "tool-call", "tool_name": said["name"], "args": said["arguments"],
        "tool_call_id": call["id"],
    }  # fmt: skip


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


JUDGES: dict[str, Judge] = {
    judge.__name__: judge
    for judge in (
        openai_chat, openai_chat_and_more, openai_responses, anthropic, gemini, bedrock, mistral,
        langgraph, pydantic_ai,
    )
}  # fmt: skip


def _answer(question: dict[str, Any]) -> dict[str, str | None]:
    try:
        JUDGES[question["judge"]](question["body"])
    except Exception as refusal:
        return {"refusal": f"{type(refusal).__name__}: {refusal}"[:4000]}
    return {"refusal": None}


def main() -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr  # what a judge prints is no answer
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

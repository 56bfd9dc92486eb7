"""The kinds of calls that OpenAI Responses knows, as data: what each carries, what answers it.

Source: the Responses API reference (input items); transcripts, part a.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.transcripts import arguments
from ledger.transcripts.neutral import Call, OpaqueKind
from ledger.transcripts.shapes.places import Place


@dataclass(frozen=True, slots=True)
class CallKind:
    """One kind of call. `carries` is the member with what it asks for.

    `outputs` are the items that answer it, the one that we write first.
    """

    name: str
    carries: str
    outputs: tuple[str, ...]

    @property
    def item(self) -> str:
        return "function_call" if self.name == "function" else FREE.get(self.name, self._own)

    @property
    def _own(self) -> str:
        return f"{self.name}_call"


FREE = {"custom": "custom_tool_call"}
"""The kind whose calls carry a text that is no JSON."""

KINDS = (
    CallKind("function", "arguments", ("function_call_output",)),
    CallKind("custom", "input", ("custom_tool_call_output",)),
    CallKind("local_shell", "action", ("function_call_output", "local_shell_call_output")),
    CallKind("shell", "action", ("shell_call_output",)),
    CallKind("apply_patch", "operation", ("apply_patch_call_output",)),
    CallKind("computer", "action", ("computer_call_output",)),
)

BY_NAME = {kind.name: kind for kind in KINDS}
CALLS = {kind.item: kind for kind in KINDS}
"""Each kind by the type of its items."""

OUTPUTS = {output: kind.name for kind in reversed(KINDS) for output in kind.outputs}
"""The kind of call that each type of output answers, `function` where several do."""

ANSWERED_BY = {kind.name: kind.outputs[0] for kind in KINDS}
"""The type of the output that we write for each kind."""

OWN_TOOLS = ("mcp_", "tool_search")


def kind_of_opaque(item_type: str) -> OpaqueKind:
    """What an item is that is no message, call or output of ours."""
    if item_type == "reasoning":
        return OpaqueKind.REASONING
    if item_type.endswith("_call") or item_type.startswith(OWN_TOOLS):
        return OpaqueKind.PROVIDER_TOOL
    return OpaqueKind.OTHER


def call_in(kind: CallKind, item: Place) -> Call:
    """The call that an item holds; a kind without names is named by its kind."""
    asked, unparsed = _asked(kind, item.member(kind.carries))
    named = kind.name in ("function", "custom")
    return Call(
        id=item.member("call_id").maybe_text() or item.member("id").maybe_text(),
        name=(item.member("name").maybe_text() or "") if named else kind.name,
        arguments=asked,
        unparsed=unparsed,
        kind=kind.name,
        opaque=item.beside("type", "call_id", "name", kind.carries),
    )


def call_item(call: Call) -> dict[str, Any]:
    """The item of a call; of a kind that this format has not, it is a function's."""
    kind = BY_NAME.get(call.kind, KINDS[0])
    item: dict[str, Any] = {"type": kind.item}
    if "id" in call.opaque:
        item["id"] = call.opaque["id"]
    item["call_id"] = call.id
    if kind.name in ("function", "custom"):
        item["name"] = call.name
    item[kind.carries] = _carried(kind, call)
    return item | {name: value for name, value in call.opaque.items() if name != "id"}


def _asked(kind: CallKind, given: Place) -> tuple[Mapping[str, Any] | None, str | None]:
    if given.value is None:
        return None, None
    if kind.name == "function":
        return arguments.received(given.text())
    if kind.name == "custom":  # free text: the object that carries it is ours
        return {"input": given.text()}, None
    return given.mapping(), None


def _carried(kind: CallKind, call: Call) -> Any:
    asked = dict(call.arguments or {})
    if kind.name == "function":
        return arguments.written(asked) if call.unparsed is None else call.unparsed
    return str(asked.get("input", "")) if kind.name == "custom" else asked

"""The rules of part a, one function per code; `validation.check` asks those a profile has.

A rule reads the view and yields where it is broken; the words are the profile's. Each fault has one
code, the closest that the profile has: `count_mismatch` is told where there is no closer one.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ledger.transcripts.matching import Placed, Stretch
from ledger.transcripts.neutral import Call, Entry, Opaque, OpaqueKind, Result, Role, Text
from ledger.transcripts.profiles import Profile, Reasoning, ResultsIn
from ledger.transcripts.thinking import is_reasoning, lacking


@dataclass(frozen=True, slots=True)
class Finding:
    """Where a rule is broken: entry and part, the ids it is about, what was wanted and there.

    The roles of the entry and of the one before it, the kind and the family of an item, where the
    rule is about them.
    """

    at: int
    part: int = 0
    ids: tuple[str, ...] = ()
    wanted: int = 0
    there: int = 0
    role: str = ""
    before: str = ""
    kind: str = ""
    family: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """What the rules read: the visible entries by place, their calls, the steps matched once.

    Calls from the entry `open_from` on may be open: those of the last step, if any.
    """

    entries: Sequence[tuple[int, Entry]]
    profile: Profile
    around: Mapping[str, Any] | None
    steps: Sequence[Stretch]
    strays: Sequence[Placed]
    calls: Sequence[Placed]
    open_from: float = math.inf

    def has(self, code: str) -> bool:
        return code in self.profile.refusals

    def neighbours(self) -> Iterator[tuple[Entry | None, int, Entry]]:
        """Every entry but the system's, with the one before it."""
        before: Entry | None = None
        for at, entry in self.entries:
            if entry.role is not Role.SYSTEM:
                yield before, at, entry
                before = entry


ITEMS = {"function": "function_call", "custom": "custom_tool_call"}
"""The type of item of those kinds of calls whose item has not simply their name."""

CONVERSATION = {
    "contents",
    "input",
    "instructions",
    "messages",
    "system",
    "systemInstruction",
    "system_instruction",
}
"""Members that are the conversation itself: an object of these alone is no request."""

OWN_ID_MAX = 64
"""The longest own id of an item. Source: transcripts, part a, OpenAI Responses."""

Rule = Callable[[View], Iterator[Finding]]


def unanswered_call(view: View) -> Iterator[Finding]:
    """A call has no result where the provider looks for it."""
    for step in view.steps:
        missing = [] if step.at >= view.open_from else list(step.unanswered())
        if missing:
            yield Finding(step.at, missing[0].part, tuple(call.id for call in missing))


def orphan_output(view: View) -> Iterator[Finding]:
    """A result answers no call that stands where the provider looks for it."""
    unknown = [result for step in view.steps for result in step.unknown]
    strays = [] if view.has("result_not_adjacent") else view.strays
    yield from (_finding(result) for result in (*unknown, *strays))


def result_not_adjacent(view: View) -> Iterator[Finding]:
    """A result does not follow a reply with calls directly."""
    before = {at: _role(entry) for entry, at, _ in view.neighbours() if entry}
    for stray in view.strays:
        yield Finding(
            stray.at, stray.part, (stray.id,), role="tool", before=before.get(stray.at, "none")
        )


def result_order(view: View) -> Iterator[Finding]:
    """The results of a whole step in another order than its calls."""
    for step in view.steps:
        calls, results = [c.id for c in step.calls], [r.id for r in step.results]
        if calls != results and sorted(calls) == sorted(results):
            yield Finding(step.at, 0, tuple(results))


def count_mismatch(view: View) -> Iterator[Finding]:
    """More or fewer results than calls, as far as no closer code says it."""
    for step in view.steps:
        missing = (
            [] if view.has("unanswered_call") or step.at >= view.open_from else [*step.unanswered()]
        )
        unknown = [] if view.has("orphan_output") else step.unknown
        doubled = [] if view.has("duplicate_result") else step.doubled
        told = [*missing, *unknown, *doubled]
        if told:
            ids = tuple(each.id for each in told)
            yield Finding(told[0].at, 0, ids, len(step.calls), len(step.results))
    if not view.has("orphan_output") and not view.has("result_not_adjacent"):
        yield from (_finding(stray) for stray in view.strays)


def duplicate_result(view: View) -> Iterator[Finding]:
    """A call has more than one result; or, where ids are compared over the whole request,
    a later step repeats one.
    """
    doubled = [result for step in view.steps for result in step.doubled]
    yield from (_finding(result) for result in doubled)
    if view.profile.ids.scope == "request" and not view.has("duplicate_call_id"):
        told = {(result.at, result.part) for result in doubled}
        answers = (result for step in view.steps for result in step.results)
        again = (each for each in _repeated(answers) if (each.at, each.part) not in told)
        yield from (_finding(result) for result in again)


def duplicate_call_id(view: View) -> Iterator[Finding]:
    """Two calls bear the same id: of one step, or of the request where the provider compares so."""
    if view.profile.ids.scope == "request":
        yield from (_finding(call) for call in _repeated(view.calls))
        return
    for step in view.steps:
        yield from (_finding(call) for call in _repeated(step.calls))


def id_too_long(view: View) -> Iterator[Finding]:
    """The id of a call is longer than the provider takes."""
    longest = view.profile.ids.longest
    for call in view.calls:
        if longest and len(call.id) > longest:
            yield Finding(call.at, call.number, (call.id,), longest, len(call.id))


def id_charset(view: View) -> Iterator[Finding]:
    """The id of a call has characters or a form that the provider does not take."""
    fits, longest = re.compile(view.profile.ids.pattern), view.profile.ids.longest
    for call in view.calls:
        told_already = view.has("id_too_long") and 0 < longest < len(call.id)
        if not told_already and not fits.fullmatch(call.id):
            yield _finding(call)


def name_invalid(view: View) -> Iterator[Finding]:
    """A tool's name is not of the form that providers take."""
    fits = re.compile(view.profile.names)
    for call in view.calls:
        if isinstance(call.item, Call) and not fits.fullmatch(call.item.name):
            yield _finding(call)


def empty_calls(view: View) -> Iterator[Finding]:
    """A reply has an empty list of calls instead of none."""
    yield from (Finding(at) for at, entry in view.entries if entry.opaque.get("tool_calls") == [])


def arguments_invalid(view: View) -> Iterator[Finding]:
    """The arguments of a call do not parse to an object."""
    for call in view.calls:
        if isinstance(call.item, Call) and call.item.arguments is None:
            yield _finding(call)


def text_before_result(view: View) -> Iterator[Finding]:
    """Something stands before the results in the message that holds them."""
    for at, entry in view.entries:
        other = False
        for number, part in enumerate(entry.parts if entry.role is Role.TOOL else ()):
            if isinstance(part, Result) and other:
                yield Finding(at, number, (part.answers or "",))
                break
            other = other or not isinstance(part, Result)


def text_beside_result(view: View) -> Iterator[Finding]:
    """A text or a picture stands in the message that holds results."""
    for at, entry in view.entries:
        if entry.role is Role.TOOL:
            beside = (number for number, part in enumerate(entry.parts) if _is_said(part))
            yield from (Finding(at, number) for number in [*beside][:1])


def text_after_call(view: View) -> Iterator[Finding]:
    """A text stands behind a call in one reply."""
    for at, entry in view.entries:
        called: tuple[str, ...] = ()
        for number, part in enumerate(entry.parts if entry.role is Role.ASSISTANT else ()):
            if isinstance(part, Text) and called:
                yield Finding(at, number, called)
                break
            called += (part.id or "",) if isinstance(part, Call) else ()


def empty_text(view: View) -> Iterator[Finding]:
    """A message, a text or an error result is empty."""
    for at, entry in view.entries:
        if not entry.parts:
            yield Finding(at)
        yield from (
            Finding(at, number) for number, part in enumerate(entry.parts) if _says_nothing(part)
        )


def first_not_user(view: View) -> Iterator[Finding]:
    """A reply opens the conversation, or one with calls follows another reply."""
    leads = any(entry.role is Role.SYSTEM for _, entry in view.entries[:1])
    may_lead = leads and not view.profile.first_is_user
    for before, at, entry in view.neighbours():
        if entry.role is not Role.ASSISTANT:
            continue
        follows_reply = before is not None and before.role is Role.ASSISTANT
        if view.profile.calls_follow_user and entry.calls and (before is None or follows_reply):
            yield Finding(at)
        elif before is None and not may_lead and not view.profile.calls_follow_user:
            yield Finding(at)


def roles_not_alternating(view: View) -> Iterator[Finding]:
    """Two of one side in a row, or the user directly behind results, where a reply must stand."""
    profile = view.profile
    for before, at, entry in view.neighbours():
        if before is None:
            continue
        same = (entry.role is Role.ASSISTANT) is (before.role is Role.ASSISTANT)
        behind = before.role is Role.TOOL and entry.role is Role.USER
        if (profile.roles_alternate and same) or (profile.reply_after_results and behind):
            yield Finding(at, role=_role(entry), before=_role(before))
    if profile.system_leads and not profile.system_apart:
        yield from _system_behind_replies(view)


def _system_behind_replies(view: View) -> Iterator[Finding]:
    for (_, before), (at, entry) in pairwise(view.entries):
        if entry.role is Role.SYSTEM and before.role in (Role.ASSISTANT, Role.TOOL):
            yield Finding(at, role=_role(entry), before=_role(before))


def last_role(view: View) -> Iterator[Finding]:
    """The conversation ends with a reply."""
    if view.entries and view.open_from == math.inf:
        at, entry = view.entries[-1]
        # A reply that is to be continued may stand last (Mistral, `prefix`).
        if entry.role is Role.ASSISTANT and entry.opaque.get("prefix") is not True:
            yield Finding(at)


def reasoning_missing(view: View) -> Iterator[Finding]:
    """A step with calls comes without the reasoning that led to it."""
    if view.profile.results_in is ResultsIn.ITEMS:
        yield from _reasoning_item_missing(view)
        return
    places = lacking([(entry.role, entry.parts) for _, entry in view.entries], view.profile)
    # Of a run without reasoning where only its beginning counts, the first is what is refused.
    for place in places[:1] if view.profile.reasoning is Reasoning.OPENING else places:
        at, entry = view.entries[place]
        yield Finding(at, 0, tuple(call.id or "" for call in entry.calls[:1]))


def _reasoning_item_missing(view: View) -> Iterator[Finding]:
    """A call sent with its own item id brings the reasoning item before it, once any step does.

    One reasoning item stands for the whole run of items it led to.
    """
    if not any(is_reasoning(part) for _, entry in view.entries for part in entry.parts):
        return
    led = False
    for at, entry in view.entries:
        replied = entry.role is Role.ASSISTANT
        led = replied and (led or any(is_reasoning(part) for part in entry.parts))
        for call in entry.calls:
            if "id" in call.opaque and not led:
                yield Finding(at, 0, (str(call.opaque["id"]),))


def reasoning_alone(view: View) -> Iterator[Finding]:
    """A reasoning item with nothing of the same reply behind it."""
    behind = [*(entry for _, entry in view.entries[1:]), None]
    for (at, entry), after in zip(view.entries, behind, strict=False):
        alone = bool(entry.parts) and all(is_reasoning(part) for part in entry.parts)
        if alone and (after is None or after.role is not Role.ASSISTANT):
            yield Finding(at, 0, (_body_id(entry.parts[0]),))


def item_id_family(view: View) -> Iterator[Finding]:
    """An item's own id that does not begin as its type demands, or is too long."""
    families = view.profile.families
    for at, entry in view.entries:
        for number, kind, own in _own_ids(entry):
            family = families.get(kind, "")
            if not own.startswith(family) or len(own) > OWN_ID_MAX:
                yield Finding(at, number, (own,), kind=kind, family=family)


def _own_ids(entry: Entry) -> Iterator[tuple[int, str, str]]:
    """The ids that items bear beside those of their calls: part, type of item, id."""
    if "id" in entry.opaque and entry.role in (Role.ASSISTANT, Role.USER):
        yield 0, "message", str(entry.opaque["id"])
    for number, part in enumerate(entry.parts):
        if isinstance(part, Call) and "id" in part.opaque:
            yield number, item_kind(part), str(part.opaque["id"])
        elif is_reasoning(part) and (own := _body_id(part)):
            yield number, "reasoning", own


def item_kind(call: Call) -> str:
    """The type of the item that holds a call."""
    return ITEMS.get(call.kind, f"{call.kind}_call")


def output_type(view: View) -> Iterator[Finding]:
    """A result of another kind than the call it answers."""
    for step in view.steps:
        kinds = {call.id: call.item.kind for call in step.calls}
        for result in step.results:
            kind = kinds.get(result.id, result.item.kind)
            if (result.item.kind == "custom") is not (kind == "custom"):
                yield Finding(result.at, result.part, (result.id,), kind=f"{kind} call")


def server_tool_split(view: View) -> Iterator[Finding]:
    """The result of a provider-executed tool without its call before it in the same message."""
    for at, entry in view.entries:
        begun: set[str] = set()
        for number, part in enumerate(entry.parts):
            body = part.body if isinstance(part, Opaque) and isinstance(part.body, dict) else {}
            if not isinstance(part, Opaque) or part.kind is not OpaqueKind.PROVIDER_TOOL:
                continue
            if "tool_use_id" not in body:
                begun.add(str(body.get("id")))
            elif str(body["tool_use_id"]) not in begun:
                kind = str(body.get("type", ""))
                yield Finding(at, number, (str(body["tool_use_id"]),), kind=kind)


def tools_not_declared(view: View) -> Iterator[Finding]:
    """A request with calls that declares no tools, or a tool without a schema where one is needed.

    Asked only of a whole request: whoever gives the conversation alone declares tools elsewhere.
    """
    if view.around is None or view.around.keys() <= CONVERSATION:
        return
    offered, schema = view.around.get(view.profile.tools_key) or [], view.profile.schema_at
    broken = any(not _found(tool, schema) for tool in offered) if schema else not offered
    if broken:
        yield from (_finding(call) for call in view.calls[:1])


RULES: dict[str, Rule] = {
    "first_not_user": first_not_user,
    "roles_not_alternating": roles_not_alternating,
    "last_role": last_role,
    "unanswered_call": unanswered_call,
    "orphan_output": orphan_output,
    "result_not_adjacent": result_not_adjacent,
    "result_order": result_order,
    "count_mismatch": count_mismatch,
    "duplicate_result": duplicate_result,
    "duplicate_call_id": duplicate_call_id,
    "id_too_long": id_too_long,
    "id_charset": id_charset,
    "item_id_family": item_id_family,
    "name_invalid": name_invalid,
    "empty_calls": empty_calls,
    "arguments_invalid": arguments_invalid,
    "text_before_result": text_before_result,
    "text_beside_result": text_beside_result,
    "text_after_call": text_after_call,
    "empty_text": empty_text,
    "reasoning_missing": reasoning_missing,
    "reasoning_alone": reasoning_alone,
    "output_type": output_type,
    "server_tool_split": server_tool_split,
    "tools_not_declared": tools_not_declared,
}
"""Every code of part a with its rule."""


def _finding(each: Placed) -> Finding:
    return Finding(each.at, each.part, (each.id,))


def _repeated(items: Iterable[Placed]) -> Iterator[Placed]:
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            yield item
        seen.add(item.id)


def _role(entry: Entry) -> str:
    return entry.role.value


def _is_said(part: Any) -> bool:
    """Whether a part is content of its own, not a mark beside other parts."""
    return isinstance(part, Text) or (isinstance(part, Opaque) and part.kind is OpaqueKind.MEDIA)


def _says_nothing(part: Any) -> bool:
    if isinstance(part, Text):
        return not part.text.strip()
    if isinstance(part, Result):
        return any(_says_nothing(each) for each in part.parts) or (part.is_error and not part.parts)
    return False


def _found(tool: Any, path: Sequence[str]) -> Any:
    """What stands at a path of members; None where there is nothing."""
    for name in path:
        tool = tool.get(name) if isinstance(tool, Mapping) else None
    return tool


def _body_id(part: Any) -> str:
    return str(part.body.get("id", "")) if isinstance(part.body, dict) else ""

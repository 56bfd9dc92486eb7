"""What people and models say in the tests of turns: entries in the neutral form."""

from collections.abc import Mapping, Sequence
from typing import Any

from ledger import messages, replies
from ledger.messages import Place, Said
from ledger.models import Turn
from ledger.replies import Heard, Replied
from ledger.transcripts.neutral import Call, Entry, Part, Result, Role, Text

FORMAT = "neutral"


def place_of(turn: Turn, **other: Any) -> Place:
    session = turn.session
    mine = {
        "workspace_id": session.workspace_id,
        "agent_id": session.agent_id,
        "session_id": session.id,
        "turn_id": turn.id,
    }
    return Place(**(mine | other))


def by_user(text: str) -> Entry:
    return Entry(Role.USER, (Text(text),))


def by_tool(answers: str, text: str) -> Entry:
    return Entry(Role.TOOL, (Result(answers, (Text(text),)),))


def a_call_of(
    tool: str, id_: str | None = "toolu_1", arguments: Mapping[str, Any] | None = None, **more: Any
) -> Call:
    return Call(id_, tool, {"path": "report.txt"} if arguments is None else arguments, **more)


def cut_off(tool: str, id_: str = "toolu_1") -> Call:
    return Call(id_, tool, None, unparsed='{"path": "rep')


def by_model(*parts: Part, **more: Any) -> Entry:
    return Entry(Role.ASSISTANT, parts, **more)


def say(turn: Turn, *entries: Entry, key: str = "") -> Said:
    return messages.say(place_of(turn), format=FORMAT, entries=entries, key=key)


def reply(turn: Turn, *parts: Part, entries: Sequence[Entry] = (), **more: Any) -> Replied:
    heard = Heard(format=FORMAT, entries=entries or [by_model(*parts)], **more)
    return replies.reply(place_of(turn), heard)

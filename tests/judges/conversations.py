"""One conversation with everything that happens to one: for every provider and every judge.

Parallel calls, an error, two interruptions by the user, the summary of a compaction with its
carry-over, a call that came by a hand-off, and ids of several makers.
"""

from ledger import notices
from ledger.transcripts.neutral import Call, Entry, Part, Result, Role, Text

CARRIED = "Unresolved: call_0a, payments_refund, ambiguous, effect possible. Do not repeat it."


def by_user(text: str) -> Entry:
    return Entry(Role.USER, (Text(text),))


def by_model(*parts: Part | str) -> Entry:
    said = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Entry(Role.ASSISTANT, said)


def asked(id_: str, name: str = "lookup", **arguments: object) -> Call:
    return Call(id_, name, arguments, ledger_id=f"call_of_{id_}")


def real(id_: str, text: str, name: str = "lookup", *, is_error: bool = False) -> Result:
    return Result(
        id_, (Text(text),), name=name, is_error=is_error, ledger_id=f"call_of_{id_}",
        delivery="real",
    )  # fmt: skip


def noticed(id_: str, template: str, name: str = "lookup") -> Result:
    return Result(
        id_, (Text(notices.render(template).text),), name=name, is_error=True,
        ledger_id=f"call_of_{id_}", delivery="notice",
    )  # fmt: skip


def by_tools(*results: Result) -> Entry:
    return Entry(Role.TOOL, results)


SUMMARY = [
    by_user(CARRIED),
    by_model("Summary of what came before: the trip to Oslo is planned; one refund is unresolved."),
]
PARALLEL = [
    by_user("Find me a flight and a hotel."),
    by_model(
        "I shall look for both.",
        asked("toolu_flight", name="search_flights", to="Oslo", on="2026-05-01"),
        asked("toolu_hotel", name="search_hotels", where="Oslo — nær havnen"),
    ),
    by_tools(
        real("toolu_flight", '{"price": 120, "airline": "Vinge"}', "search_flights"),
        real("toolu_hotel", "The search timed out.", "search_hotels", is_error=True),
    ),
    by_model("A flight for 120; the hotels did not answer."),
]
INTERRUPTED_ONCE = [
    by_user("Try the hotels again, and the weather."),
    by_model(asked("c:blue", name="search_hotels"), asked("c:green", name="weather")),
    by_tools(
        real("c:blue", "[]", "search_hotels"),
        noticed("c:green", "cancelled", "weather"),
    ),
    by_user("Stop, that is enough about the weather."),
]
INTERRUPTED_TWICE = [
    by_model("Then I book.", asked("call_" + "b" * 60, name="book_hotel", nights=3)),
    by_tools(noticed("call_" + "b" * 60, "outlives_turn", "book_hotel")),
    by_user("Wait!"),
]
HANDED_OFF = [
    by_model(asked("call_render", name="render_map")),
    by_tools(noticed("call_render", "parked", "render_map")),
    by_model("The map is still being rendered elsewhere."),
    by_user("What is left to do?"),
]

EVERYTHING = [*SUMMARY, *PARALLEL, *INTERRUPTED_ONCE, *INTERRUPTED_TWICE, *HANDED_OFF]

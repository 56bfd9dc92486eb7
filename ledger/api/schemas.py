"""The shapes of the API. Types are strict: nothing is coerced; unknown members are ignored."""

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field

Label = Annotated[str, Field(max_length=255)]
Ordinal = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Strict(BaseModel):
    """Members mean what they are: no text is taken for a number, no number for a text.

    Not a ninja Schema: that reads attributes of whatever came, so `[]` or `7` would pass for an
    object whose members are all absent.
    """

    model_config = ConfigDict(strict=True, extra="ignore")


def shown(**example: Any) -> ConfigDict:
    """The settings of a strict shape that documents itself with this example."""
    return ConfigDict(strict=True, extra="ignore", json_schema_extra={"examples": [example]})


class SubmitIn(Strict):
    """One call to record. Timeouts, retries and recovery come from policy alone (R17)."""

    model_config = shown(
        tool="sandbox.lookup",
        arguments={"name": "opening-hours"},
        idempotency_key="opening-hours-of-monday",
    )

    tool: Annotated[str, Field(min_length=1, max_length=128, examples=["sandbox.lookup"])]
    arguments: dict[str, Any] = Field(default_factory=dict, examples=[{"name": "opening-hours"}])
    session: Label | None = None
    turn: Label | None = None
    tool_call_id: Label = ""
    model_step: Ordinal = 0
    position: Ordinal = 0
    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    repeat_intended: bool = False
    prompt_tokens: Ordinal | None = None
    epoch: Ordinal | None = None
    working_directory: Annotated[str, Field(max_length=4096)] | None = None
    host: Label | None = None
    model: Label | None = None


class BatchIn(Strict):
    """Up to a hundred calls; each is recorded, replayed or refused by itself."""

    model_config = shown(
        calls=[{"tool": "sandbox.lookup", "arguments": {"name": n}} for n in ("prices", "staff")]
    )

    calls: Annotated[list[SubmitIn], Field(min_length=1, max_length=100)]


Profile = Annotated[str, Field(min_length=1, max_length=40)]
Text = Annotated[str, Field(max_length=4096)]
TRANSCRIPT_EXAMPLE: list[dict[str, Any]] = [
    {"role": "user", "content": "When is the shop open?"},
    {
        "role": "assistant",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "lookup", "arguments": '{"name": "opening-hours"}'},
            }
        ],
    },
]


class ValidationIn(Strict):
    """A transcript to examine: its messages, or the whole request that holds them."""

    model_config = shown(format="openai-chat", profile="all", transcript=TRANSCRIPT_EXAMPLE)

    format: Profile
    profile: Profile = "all"
    transcript: list[Any] | dict[str, Any]


class RepairIn(Strict):
    """A transcript to repair. Each choice's default is the one that keeps most."""

    model_config = shown(
        format="openai-chat", profile="anthropic", transcript=TRANSCRIPT_EXAMPLE, unanswered="close"
    )

    format: Profile
    profile: Profile | None = None
    transcript: list[Any] | dict[str, Any]
    session: Label | None = None
    frontier: Literal["close", "open"] = "close"
    unanswered: Literal["close", "drop"] = "close"
    failed_reply: Literal["drop", "close"] = "drop"
    late_results: Literal["correction", "in_place"] = "correction"
    offered_tools: Annotated[list[Label], Field(max_length=10_000)] | None = None
    cap: Annotated[int, Field(ge=1024, le=2**31 - 1)] | None = None
    notices: Annotated[list[Text], Field(max_length=1000)] = Field(default_factory=list)


class ResultOut(Schema):
    """A result as received: `json` where it is strict JSON, else `base64` and why it is not."""

    media_type: str
    sha256: str
    size_bytes: int
    truncated: bool
    why_not_json: str
    json_: Any = Field(None, alias="json")
    base64: str | None = None


class NoticeOut(Schema):
    """What the model is told where there is no result: the words, by template and version."""

    kind: str
    template: str
    version: int
    text: str
    sha256: str


class CorrectionOut(Schema):
    """A person's correction of a settled call; `text` is for a model that read `earlier`."""

    answer: str
    at: str
    earlier: str
    now: str
    text: str
    read_before: bool


class PartialOut(Schema):
    """What a call brought before it stopped: size and digest of all, `text` its beginning."""

    size_bytes: int
    sha256: str
    text: str
    truncated: bool


class CallOut(Schema):
    """A call: the envelope first, then where it stands, then what it was asked for.

    `incomplete`: the work went on elsewhere and can no longer be followed. `partial` is what it
    brought so far, where it stopped without a result.
    """

    id: str
    state: str
    effect: str
    cause: str | None
    retryable: bool
    next_action: str
    replayed: bool
    twin_of: str | None
    settled: bool
    failure_point: str | None
    reason: str | None
    error: str | None
    result: ResultOut | None
    notice: NoticeOut | None
    correction: CorrectionOut | None
    incomplete: bool
    partial: PartialOut | None
    tool: str
    arguments: dict[str, Any]
    arguments_sha256: str
    idempotency_key: str | None
    session: str | None
    turn: str | None
    tool_call_id: str
    model_step: int
    position: int
    traceparent: str | None
    recovery_class: str
    boundary_crossed: bool
    attempts_used: int
    attempts_allowed: int
    cancel_requested: bool
    due_at: str | None
    deadlines: dict[str, str]
    times: dict[str, str]


class BatchOut(Schema):
    """The answers to a batch, in its order: each a call or a problem."""

    items: list[Any]


class PageOut(Schema):
    """One page of a list; `next_cursor` is null on the last."""

    items: list[Any]
    next_cursor: str | None


class EventOut(Schema):
    """One event of a call."""

    seq: int
    kind: str
    from_state: str | None
    to_state: str
    effect: str
    actor: str
    actor_id: str
    at: str
    fence: int | None
    cause: str | None
    facts: dict[str, Any]
    hash: str


class SessionIn(Strict):
    """A session's binding (R110)."""

    model_config = shown(label="Books", working_directory="/srv/books", host="box-1", model="m-1")

    label: Annotated[str, Field(max_length=200)] = ""
    working_directory: Annotated[str, Field(max_length=4096)] = ""
    host: Label = ""
    model: Label = ""


Messages = Annotated[
    list[Any] | dict[str, Any] | None,
    Field(description="A list of the format's messages, or the object that holds them."),
]


class TurnIn(Strict):
    """A turn, named by a key so that a doubled submit returns the running one (R90).

    With `message` or `messages` it is opened together with its prompt.
    """

    model_config = shown(
        key="question-1",
        format="openai-chat",
        message={"role": "user", "content": "When do you open on Monday?"},
    )

    key: Label = ""
    model: Label = ""
    format: Label = "neutral"
    message: dict[str, Any] | None = None
    messages: Messages = None
    epoch: Ordinal | None = None
    working_directory: Annotated[str, Field(max_length=4096)] | None = None
    host: Label | None = None


class SayIn(Strict):
    """What people said in a turn: one `message`, or several, in a format of your choice."""

    model_config = shown(
        format="openai-chat", message={"role": "user", "content": "And on Sunday?"}
    )

    format: Label
    message: dict[str, Any] | None = None
    messages: Messages = None
    key: Label = ""


class ReplyIn(Strict):
    """A model's reply as its provider gave it; an item-wise format gives the list of its items.

    `names` are your tools by the name that the model was given, where the two differ. Without
    `model_step` it is the next step of the turn.
    """

    model_config = shown(
        format="openai-chat",
        reply={
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "lookup", "arguments": '{"name":"opening-hours"}'},
                }
            ],
        },
        names={"lookup": "sandbox.lookup"},
        model_step=0,
        stop_reason="tool_calls",
    )

    format: Label
    reply: list[Any] | dict[str, Any]
    model_step: Ordinal | None = None
    key: Label = ""
    stop_reason: Annotated[str, Field(max_length=60)] = ""
    names: dict[str, Annotated[str, Field(min_length=1, max_length=128)]] = Field(
        default_factory=dict
    )
    prompt_tokens: Ordinal | None = None
    epoch: Ordinal | None = None
    working_directory: Annotated[str, Field(max_length=4096)] | None = None
    host: Label | None = None


class ResumptionIn(Strict):
    """What a process that comes back to a session believes it to be bound to."""

    model_config = shown(epoch=1, working_directory="/srv/books", host="box-1")

    epoch: Ordinal | None = None
    working_directory: Annotated[str, Field(max_length=4096)] | None = None
    host: Label | None = None
    model: Label | None = None


class BindingIn(Strict):
    """What a session is to be bound to: what is left out stays. `epoch` is the one looked at."""

    model_config = shown(host="box-2", epoch=1, grounds="box-1 has no power; it goes on on box-2.")

    working_directory: Annotated[str, Field(max_length=4096)] | None = None
    host: Label | None = None
    model: Label | None = None
    epoch: Ordinal | None = None
    grounds: Annotated[str, Field(min_length=1, max_length=2000)]


class InterruptionIn(Strict):
    """The user interrupts a turn. `said_until`: how many characters of the reply reached them."""

    model_config = shown(by="user", grounds="Changed the question.", grace_s=10.0)

    by: Annotated[str, Field(max_length=64)] = ""
    grounds: Annotated[str, Field(max_length=2000)] = ""
    said_until: Ordinal | None = None
    grace_s: Annotated[float, Field(ge=0, le=30)] = 10.0


class MessageOut(Schema):
    """One message of a turn. `parts` are neutral; `{"call": n}` is the n-th call of the reply."""

    id: str
    turn: str
    position: int
    role: str
    model_step: int | None
    key: str | None
    format: str
    parts: list[Any]
    model: str
    stop_reason: str | None
    failed: bool
    sha256: str
    at: str


class SaidOut(Schema):
    """The messages in order, which of them the turn held already, and results that came along."""

    messages: list[MessageOut]
    repeated: list[str]
    ignored: list[Any]


class RepliedOut(Schema):
    """The message of a reply, and its calls in order: each a call, or why it does not run."""

    message: MessageOut
    calls: list[Any]


class InterruptedOut(Schema):
    """An interrupted turn: its calls by what becomes of them, each in the order of their places.

    `clean`: nothing is left that the next turn has to hear of.
    """

    turn: dict[str, Any]
    clean: bool
    kept: list[str]
    cancelled: list[str]
    asked_to_stop: list[str]
    asked_outside: list[str]
    left: list[str]


class TurnEndIn(Strict):
    """How a turn ended."""

    model_config = shown(closed_as="answered")

    closed_as: Literal["answered", "interrupted", "generation_failed", "handed_off", "stopped"]


class ToolIn(Strict):
    """A tool as an admin registers it, with the policy and the grounds for the change."""

    model_config = shown(
        executor="http",
        config={"url": "https://shop.example/orders", "method": "POST"},
        input_schema={"type": "object", "required": ["amount"]},
        effect_kinds=["purchase"],
        policy={"recovery_class": "side_effect"},
        grounds="Orders are placed by the assistant from June on.",
    )

    executor: Literal["python", "http", "command"]
    config: dict[str, Any] = Field(default_factory=dict)
    input_schema: dict[str, Any] = Field(default_factory=dict)
    description: Annotated[str, Field(max_length=10_000)] = ""
    effect_kinds: list[str] = Field(default_factory=list)
    annotations: dict[str, Any] = Field(default_factory=dict)
    provider: Annotated[str, Field(max_length=128)] = ""
    policy: dict[str, Any] = Field(default_factory=dict)
    grounds: Annotated[str, Field(min_length=1, max_length=2000)]


class PolicyIn(Strict):
    """A new version of a policy: what differs from the preset of its class, and the grounds.

    `confirm` names tool and count where it would have repeated effects that had happened, or is
    less careful than the version before: a class that is less strict, no second person any more,
    a shorter delivery delay, or more attempts for a side effect.
    """

    model_config = shown(
        policy={"recovery_class": "side_effect", "timeouts": {"schedule_to_close_s": 900}},
        grounds="The shop answers slowly on Mondays.",
        version=1,
    )

    policy: dict[str, Any]
    grounds: Annotated[str, Field(min_length=1, max_length=2000)]
    version: Ordinal | None = None
    confirm: Annotated[str, Field(max_length=200)] = ""


class HoldAnswerIn(Strict):
    """What a person answers to a hold, and why. `confirm` where a side effect may be repeated."""

    model_config = shown(answer="approve", grounds="The guest list does not depend on the mail.")

    answer: Literal["approve", "reject"] = "approve"
    grounds: Annotated[str, Field(min_length=1, max_length=2000)]
    confirm: Annotated[str, Field(max_length=200)] = ""


class GroundsIn(Strict):
    """Why a person does this, or what was looked at."""

    model_config = shown(grounds="The agent repeats itself.")

    grounds: Annotated[str, Field(min_length=1, max_length=2000)]


class SwitchIn(Strict):
    """Whether a tool takes new calls, and why."""

    model_config = shown(on=False, grounds="The shop charges twice.")

    on: bool
    grounds: Annotated[str, Field(min_length=1, max_length=2000)]


class DeliveryIn(Strict):
    """What a turn is to be shown: to whom, and whether its history holds the calls already."""

    model_config = shown(
        turn="turn_0199a3c2e4f07cc1a5d7b1f0a2b3c4d5", mode="append_both", format="openai-chat"
    )

    turn: Label
    mode: Literal["append_both", "append_output"] = "append_both"
    consumer: Annotated[str, Field(min_length=1, max_length=64)] = "agent"
    format: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    close: bool = False


class PlaceIn(Strict):
    """A place in a session's history: behind a message, by turn number and position."""

    model_config = shown(turn=3, position=7)

    turn: Ordinal
    position: Ordinal


class CompactionIn(Strict):
    """A compaction to commit: the token of its cuts, where it cuts, and what stands for it."""

    model_config = shown(
        token="the token that came with the cuts",  # noqa: S106 an example
        cut={"turn": 3, "position": 7},
        summary="Ada asked for the guest list; it was written to guests.csv.",
        key="compaction-1",
    )

    token: Annotated[str, Field(min_length=1, max_length=1000)]
    cut: PlaceIn
    summary: Annotated[str, Field(min_length=1, max_length=200_000)]
    key: Label = ""
    epoch: Ordinal | None = None


class CompactionCheckIn(Strict):
    """The transcript that an agent holds after a compaction, in any shape of JSON."""

    model_config = shown(transcript=[{"role": "user", "content": "Go on."}])

    transcript: list[Any] | dict[str, Any]


class ReceiverIn(Strict):
    """To whom calls are offered: an agent by its name, and at will a session and a model."""

    model_config = shown(agent="ben", model="m-2")

    agent: Annotated[str, Field(min_length=1, max_length=200)]
    session: Label | None = None
    model: Label = ""


class HandOffIn(Strict):
    """An offer of a session's unresolved calls, and why."""

    model_config = shown(to={"agent": "ben"}, grounds="Ben knows the books.", key="hand-off-to-ben")

    to: ReceiverIn
    grounds: Annotated[str, Field(min_length=1, max_length=2000)]
    key: Label = ""


class AcceptanceIn(Strict):
    """Which session takes the calls, and the epoch it was seen at."""

    model_config = shown(session="ses_01990a2b3c4d7e8f9a0b1c2d3e4f5061")

    session: Label | None = None
    epoch: Ordinal | None = None


class RefusalIn(Strict):
    """Why a hand-off is declined."""

    model_config = shown(why="This session is about something else.")

    why: Annotated[str, Field(max_length=2000)] = ""

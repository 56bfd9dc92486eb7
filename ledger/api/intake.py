"""The two hot verbs of the API, without a framework around them: submit and fetch.

Both the ninja routes and the fast path in `config/fast.py` call these, so there is one code
path: the same schemas, the same refusals, the same group commit.
"""

from collections.abc import Mapping
from uuid import UUID

from pydantic import ValidationError

from ledger import ids, outcomes, strictjson, traces
from ledger.api import quotas
from ledger.api.replays import REPLAYED
from ledger.api.schemas import BatchIn, SubmitIn
from ledger.calls import Fetchable, Reader, read_many
from ledger.deliveries import Fetched, reads
from ledger.errors import Invalid, LedgerError
from ledger.groups import Group
from ledger.interruptions import are_interrupted
from ledger.keys import Principal
from ledger.submits import Recorded, Submit, record

KEY_CHARACTERS_MAX = 255

submits: Group[Submit, Recorded] = Group(record, name="intake", largest=128)
fetches: Group[tuple[Reader, UUID], Fetchable] = Group(read_many, name="reads", largest=128)
interruptions_of: Group[UUID, bool] = Group(are_interrupted, name="turns", largest=128)


def read_submits(
    body: bytes,
    content_type: str,
    encoding: str,
    principal: Principal,
    key: str | None,
    epoch: int | None = None,
    traceparent: str | None = None,
) -> tuple[list[Submit], bool]:
    """Read a body into submits; True if it was a batch. Raises NotStrict, Invalid or QuotaSpent.

    `epoch` is the header's; a call's own counts before it. `traceparent` is the header as it came,
    and all calls of the body get it.
    """
    strictjson.check_media_type(content_type, encoding)
    value = strictjson.parse(body)
    is_batch = isinstance(value, dict) and "calls" in value
    try:
        wanted = (
            BatchIn.model_validate(value).calls if is_batch else [SubmitIn.model_validate(value)]
        )
    except ValidationError as error:
        raise invalid(error) from None
    quotas.spend_more(principal.key_id, principal.workspace_id, len(wanted))
    trace = traces.read(traceparent)
    return [
        _submit(each, principal, _key(each, key, index if is_batch else None), epoch, trace)
        for index, each in enumerate(wanted)
    ], is_batch


def _key(each: SubmitIn, header: str | None, index: int | None) -> str | None:
    """The item's own key, else the header's; in a batch the header names each by its place."""
    if each.idempotency_key is not None or header is None:
        return each.idempotency_key
    key = header if index is None else f"{header}:{index}"
    if len(key) > KEY_CHARACTERS_MAX:
        raise Invalid(
            detail="The Idempotency-Key of a batch is too long: each call's key is this one, a "
            f"colon and its place, and has at most {KEY_CHARACTERS_MAX} characters. Shorten it."
        )
    return key


def _submit(
    each: SubmitIn, principal: Principal, key: str | None, epoch: int | None, trace: str | None
) -> Submit:
    return Submit(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        api_key_id=principal.key_id,
        tool=each.tool,
        arguments=each.arguments,
        session_id=None if each.session is None else ids.read("session", each.session),
        turn_id=None if each.turn is None else ids.read("turn", each.turn),
        tool_call_id=each.tool_call_id,
        model_step=each.model_step,
        position=each.position,
        idempotency_key=key,
        repeat_intended=each.repeat_intended,
        prompt_tokens=each.prompt_tokens,
        traceparent=trace,
        epoch=epoch if each.epoch is None else each.epoch,
        working_directory=each.working_directory,
        host=each.host,
        model=each.model,
    )


def invalid(error: ValidationError) -> Invalid:
    """The schema's findings as one refusal with JSON pointers, never echoing the input."""
    errors = [
        {
            "pointer": "".join(f"/{part}" for part in each["loc"])[:512],
            "detail": each["msg"][:300],
        }
        for each in error.errors(include_input=False, include_url=False, include_context=False)[:20]
    ]
    first = errors[0]
    return Invalid(
        detail=f"The body does not fit: {first['pointer'] or '/'}: {first['detail']}.",
        errors=errors,
    )


def note_fetch(fetched: Fetchable, reader: object) -> None:
    """Record that an agent fetched a settled call, without holding up the answer."""
    call = fetched.call
    if call.is_settled and isinstance(reader, Principal):
        sha256 = outcomes.digest_of(fetched)
        reads.submit(
            Fetched(call.id, call.workspace_id, reader.agent_id.hex, str(call.state),
                    str(call.effect), sha256, call.seq)
        )  # fmt: skip


def replay_headers(answers: list[Recorded | LedgerError]) -> Mapping[str, str]:
    """`Idempotent-Replayed: true` when a single submit gave an earlier call."""
    only = answers[0] if len(answers) == 1 else None
    return REPLAYED if isinstance(only, Recorded) and only.replayed else {}


def wait_s_of(text: str | None) -> float:
    """Seconds to wait, 0 to 30. Raises Invalid."""
    if text is None or text == "":
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 30:
        raise Invalid(detail="wait is a number of seconds between 0 and 30.")
    return seconds

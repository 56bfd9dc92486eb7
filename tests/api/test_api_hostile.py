"""Generated hostile bodies: none is a 5xx, none is stored otherwise than accepted."""

import json
from collections import Counter

from ledger.models import Event, Tool, ToolCall
from tests import corpus_mutations
from tests.api.callers import API, Caller
from tests.api.served import Served
from tests.api.wire import CLOSED, Answer, Line, head, with_length
from tests.corpus_mutations import NOBODY, READER
from tests.transcript_mutations import CANARY, bodies

SEED, COUNT = 20260101, 1000


def _sent(line: Line, body: bytes, authorization: str, path: str = "/calls") -> Answer:
    headers = [("Authorization", authorization), ("Content-Type", "application/json")]
    request = head("POST", f"{API}{path}", with_length(headers, body))
    return line.ask(request + body)


def test_a_thousand_hostile_bodies_cost_nothing_but_their_answers(
    web: Served, ada: Caller, lookup: Tool
) -> None:
    authorization = str(ada.http.headers["Authorization"])
    seen: Counter[tuple[str, int]] = Counter()
    with Line(web.port) as line:
        for mutant in corpus_mutations.generate(SEED, COUNT):
            answer = _sent(line, mutant.body, authorization)
            assert answer != CLOSED, mutant
            assert answer.status < 500, (mutant.name, mutant.body[:300], answer.body[:300])
            if mutant.by != NOBODY:
                wanted = (415, 413, 422, 404) if mutant.by == READER else (422, 404)
                assert answer.status in wanted, (mutant.name, mutant.body[:300], answer.body[:300])
            if answer.status >= 400:
                problem = json.loads(answer.body)
                assert problem.get("code") or problem["items"], mutant
            seen[mutant.by or "chance", answer.status] += 1

    by_status: Counter[int] = Counter()
    for (_, status), times in seen.items():
        by_status[status] += times
    print("hostile bodies by status:", dict(sorted(by_status.items())))
    assert sum(by_status.values()) == COUNT
    assert ToolCall.objects.count() == by_status[201]
    assert Event.objects.count() == 2 * by_status[201]
    for call in ToolCall.objects.all():
        for below in ("", "/events"):
            assert ada.get(f"/calls/{call.id}{below}").status_code == 200


def test_hostile_transcripts_cost_nothing_but_their_answers(web: Served, ada: Caller) -> None:
    """Neither address breaks on any of them, stores one, or writes a word of one into its log."""
    authorization = str(ada.http.headers["Authorization"])
    seen: Counter[int] = Counter()
    for number, body in enumerate(bodies(SEED, 400)):
        path = ("/transcripts/validation", "/transcripts/repair")[number % 2]
        with Line(web.port) as line:  # a body that is too large ends its connection
            answer = _sent(line, body, authorization, path)
        # 404 is what a session that does not exist is answered.
        assert answer.status in (200, 404, 413, 422), (path, body[:300], answer.body[:300])
        if answer.status != 200:
            assert json.loads(answer.body)["code"], body[:300]
        seen[answer.status] += 1

    print("hostile transcripts by status:", dict(sorted(seen.items())))
    assert min(seen[200], seen[422]) > 20
    assert not Event.objects.exists()
    assert CANARY not in web.logged

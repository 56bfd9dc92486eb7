"""API keys: where they are taken, what they permit, how fast they end, where they never appear."""

import statistics
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest

from ledger import keys
from ledger.keys import _base62, _check_of
from ledger.models import ApiKey, Tool, ToolCall
from tests import builders, cast, waits
from tests.api.callers import API, Caller, the_problem
from tests.api.served import Served
from tests.api.wire import Line, exchange, head

SUBMIT = {"tool": "sandbox.lookup", "arguments": {"name": "opening-hours"}}
OTHER_SECRET = _base62(7**80, 43)


def key_of(caller: Caller) -> str:
    return str(caller.http.headers["Authorization"]).removeprefix("Bearer ")


def forged(key: str, **parts: str) -> str:
    """The key with other parts and a right check."""
    names = ("prefix", "env", "id", "secret")
    given = dict(zip(names, key.split("_")[:4], strict=True)) | parts
    front = "_".join(given[name] for name in names)
    return f"{front}_{_check_of(front)}"


@pytest.mark.parametrize("path", ["/calls", "/tools", "/incidents", "/calls/call_1"])
@pytest.mark.parametrize("escaped", [False, True])
def test_a_key_in_the_address_is_refused_as_leaked(
    path: str, escaped: bool, ada: Caller, web: Served
) -> None:
    sent = "%63lh%5F" + key_of(ada)[4:] if escaped else key_of(ada)

    for who in (ada, Caller(web.address)):
        the_problem(who.get(f"{path}?api_key={sent}"), 400, "key_misplaced")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_key_in_a_cookie_is_refused_as_leaked(method: str, ada: Caller, web: Served) -> None:
    for who in (ada, Caller(web.address)):
        answer = who.send(method, "/calls", {}, headers={"Cookie": f"k={key_of(ada)}"})
        the_problem(answer, 400, "key_misplaced")


@pytest.mark.parametrize("path", ["/calls", "/tools", "/calls/call_1"])
def test_two_keys_are_refused_whichever_is_right(path: str, ada: Caller, web: Served) -> None:
    right = ("Authorization", ada.http.headers["Authorization"])
    wrong = ("Authorization", "Bearer x")

    for headers in ([right, right], [right, wrong], [wrong, right]):
        assert exchange(web.port, head("GET", API + path, headers)).status == 400


def test_a_key_of_another_shape_prefix_or_check_is_refused(ada: Caller, web: Served) -> None:
    key = key_of(ada)
    wrong = [
        key[:-1], key + "x", key.upper(), "clh_" + key, key.replace("clh_live", "clh_prod"),
        key.replace("clh_", "sk_"), key[:-6] + "000000", forged(key, secret=OTHER_SECRET),
        forged(key, id="A" * 12), "null", key + "\t" + key,
    ]  # fmt: skip

    for each in wrong:
        answer = Caller(web.address, Authorization=f"Bearer {each}").get("/calls")
        the_problem(answer, 401, "authentication_required")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_right_secret_under_another_environment_is_refused(ada: Caller, web: Served) -> None:
    """Its check is right, so only the key's own record can tell."""
    key = forged(key_of(ada), env="test")

    answer = Caller(web.address, Authorization=f"Bearer {key}").get("/calls")

    the_problem(answer, 401, "authentication_required")


def test_an_unknown_id_takes_as_long_as_a_wrong_secret(ada: Caller, web: Served) -> None:
    requests = {
        "unknown": forged(key_of(ada), id="A" * 12),
        "wrong": forged(key_of(ada), secret=OTHER_SECRET),
    }
    taken: dict[str, list[float]] = {name: [] for name in requests}
    with Line(web.port) as line:
        for _ in range(60):
            for name, key in requests.items():
                sent = head("GET", f"{API}/calls/call_1", [("Authorization", f"Bearer {key}")])
                began = time.perf_counter()
                assert line.ask(sent).status == 401
                taken[name].append(time.perf_counter() - began)

    unknown, wrong = (statistics.median(taken[name]) for name in ("unknown", "wrong"))
    assert abs(unknown - wrong) < 0.5 * max(unknown, wrong), taken


@pytest.mark.parametrize(
    ("scopes", "may"),
    [
        (("calls:read",), {"read"}),
        (("calls:submit",), {"submit"}),
        (("turns:write",), {"open"}),
        (("worker",), set()),
        (("interrupts:answer", "export:read"), set()),
    ],
)
def test_a_key_does_what_its_scopes_say(
    scopes: tuple[str, ...], may: set[str], acme: cast.Acme, agent: Callable[..., Caller],
    lookup: Tool,
) -> None:  # fmt: skip
    caller = agent(acme.ada, *scopes)
    did = {
        "read": caller.get("/calls"),
        "submit": caller.post("/calls", SUBMIT),
        "open": caller.post("/sessions", {}),
    }

    for name, answer in did.items():
        if name in may:
            assert answer.is_success, answer.text
        else:
            assert "scope" in the_problem(answer, 403, "permission_missing")["detail"]
    assert ToolCall.objects.count() == int("submit" in may)


def test_a_revoked_key_is_refused_everywhere_within_five_seconds(ada: Caller) -> None:
    paths = ("/calls", "/calls/call_1", "/tools", "/incidents")
    before = [ada.get(path).status_code for path in paths]
    keys.revoke(key_id=key_of(ada).split("_")[2])
    began = time.monotonic()

    def refused() -> bool:
        return {ada.get(path).status_code for path in paths} == {401}

    waits.until(refused, what="the key to be refused", limit_s=6)

    assert before == [200, 404, 200, 200]
    assert time.monotonic() - began <= 5.5


def test_an_expired_key_is_refused(ada: Caller) -> None:
    ApiKey.objects.update(expires_at="2020-01-01T00:00:00Z")

    the_problem(ada.get("/calls"), 401, "authentication_required")


def test_a_persons_login_submits_nothing(person: Callable[..., Caller], lookup: Tool) -> None:
    answer = person("olga").post("/calls", SUBMIT)

    the_problem(answer, 401, "authentication_required")
    assert not ToolCall.objects.exists()


def test_a_login_reads_what_a_key_reads(
    person: Callable[..., Caller], ada: Caller, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "succeeded")

    assert person("vera").get(f"/calls/{call.id}").json() == ada.get(f"/calls/{call.id}").json()


def test_keys_appear_in_no_answer_and_no_log(ada: Caller, web: Served, lookup: Tool) -> None:
    key = key_of(ada)
    secret = key.split("_")[3]
    ada.post("/calls", {"tool": key, "arguments": {}})  # told back to the caller, never logged
    asked = [
        ada.post("/calls", SUBMIT),
        ada.get(f"/calls?api_key={quote(key)}"),
        ada.get(f"/{key}"),
        ada.get(f"/tools/{key}"),
        Caller(web.address, Authorization=f"Basic {key}").get("/calls"),
        ada.http.post(f"{API}/calls", content=key, headers={"Content-Type": "application/json"}),
    ]

    told = [a for a in asked if secret in a.text.replace(a.url.path, "")]
    assert told == []
    assert secret not in web.logged


def test_only_the_keyed_hash_of_a_secret_is_stored(ada: Caller) -> None:
    secret = key_of(ada).split("_")[3]
    stored = ApiKey.objects.get()

    assert len(bytes(stored.secret_hmac)) == 32
    assert secret not in str(ApiKey.objects.values().get())

"""Keys: kept as a keyed hash only, refused alike for every reason, revoked within five seconds."""

import time
from types import SimpleNamespace

import pytest

from ledger import keys
from ledger.keys import KeyRefused
from ledger.models import ApiKey
from tests.cast import Acme, Globex
from tests.refusals import sql


def test_a_key_speaks_for_its_agent_and_workspace(acme: Acme) -> None:
    principal = keys.principal_of(keys.issue(agent=acme.ada))
    assert (principal.agent_id, principal.workspace_id) == (acme.ada.id, acme.workspace.id)
    assert principal.scopes == set(keys.AGENT_SCOPES)


def test_two_keys_speak_for_two_workspaces(acme: Acme, globex: Globex) -> None:
    adas, mallorys = keys.issue(agent=acme.ada), keys.issue(agent=globex.mallory)
    assert keys.principal_of(adas).workspace_id == acme.workspace.id
    assert keys.principal_of(mallorys).workspace_id == globex.workspace.id


def test_the_secret_is_nowhere_in_the_database(acme: Acme) -> None:
    key = keys.issue(agent=acme.ada)
    secret = key.split("_")[3]
    row = str(sql("SELECT * FROM ledger_apikey"))
    assert secret not in row
    assert key not in row
    assert len(bytes(ApiKey.objects.get().secret_hmac)) == 32


@pytest.mark.parametrize(
    "spoil",
    [lambda k: k[:-1] + ("a" if k[-1] != "a" else "b"), lambda k: k.replace("clh_", "clx_"),
     lambda k: k[:25] + ("a" if k[25] != "a" else "b") + k[26:], lambda k: k + "a",
     lambda k: k[:-7], lambda k: "", lambda k: k.upper(), lambda k: f" {k}", lambda k: k + "\n"],
    ids=["check", "prefix", "secret", "longer", "shorter", "empty", "case", "space", "newline"],
)  # fmt: skip
def test_a_spoilt_key_is_refused(acme: Acme, spoil) -> None:  # type: ignore[no-untyped-def]
    key = keys.issue(agent=acme.ada)
    with pytest.raises(KeyRefused):
        keys.principal_of(spoil(key))


def test_a_wrong_check_is_refused_without_a_look_up(
    acme: Acme, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    key = keys.issue(agent=acme.ada)
    with django_assert_num_queries(0), pytest.raises(KeyRefused):  # type: ignore[operator]
        keys.principal_of(key[:-6] + "000000")


def test_another_secret_under_a_known_id_is_refused(acme: Acme) -> None:
    one, other = keys.issue(agent=acme.ada), keys.issue(agent=acme.ada)
    front = "_".join([*one.split("_")[:3], other.split("_")[3]])
    with pytest.raises(KeyRefused):
        keys.principal_of(f"{front}_{keys._check_of(front)}")


def test_every_refusal_reads_the_same(acme: Acme) -> None:
    key = keys.issue(agent=acme.ada)
    keys.revoke(key_id=ApiKey.objects.get().id)
    said = set()
    for spoilt in (key, key[:-6] + "000000", "nonsense"):
        with pytest.raises(KeyRefused) as caught:
            keys.principal_of(spoilt)
        said.add(str(caught.value))
    assert len(said) == 1


def test_a_revoked_key_is_refused_within_five_seconds(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = keys.issue(agent=acme.ada)
    keys.principal_of(key)
    keys.revoke(key_id=ApiKey.objects.get().id)
    later = time.monotonic() + 5.0
    monkeypatch.setattr(keys, "time", SimpleNamespace(monotonic=lambda: later))
    with pytest.raises(KeyRefused):
        keys.principal_of(key)


def test_an_expired_key_is_refused(acme: Acme) -> None:
    key = keys.issue(agent=acme.ada)
    sql("UPDATE ledger_apikey SET expires_at = clock_timestamp() - interval '1 second'")
    with pytest.raises(KeyRefused):
        keys.principal_of(key)


def test_a_remembered_key_costs_no_look_up(
    acme: Acme, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    key = keys.issue(agent=acme.ada)
    keys.principal_of(key)
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert keys.remembered(key) == keys.principal_of(key)

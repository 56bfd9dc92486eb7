"""Secrets go out by name and are cut out of what comes back."""

import pytest

from executors.http.secrets import EnvironmentSecrets, Revealed, SecretMissing

VALUE = "canary-0123456789"


@pytest.mark.parametrize("name", ["slack/bot", "slack-bot", "SLACK_BOT"])
def test_a_secret_is_found_in_the_environment_by_its_name(name):
    assert EnvironmentSecrets({"CLEARHOUSE_SECRET_SLACK_BOT": VALUE})[name] == VALUE


def test_only_secrets_are_found_there():
    secrets = EnvironmentSecrets({"PATH": "/bin", "CLEARHOUSE_SECRET_A": VALUE})
    with pytest.raises(SecretMissing, match="CLEARHOUSE_SECRET_PATH"):
        Revealed(secrets).reveal("path")
    assert len(secrets) == 1


def test_a_secret_shows_in_no_representation():
    secrets = EnvironmentSecrets({"CLEARHOUSE_SECRET_A": VALUE})
    revealed = Revealed(secrets)
    revealed.reveal("a")
    assert VALUE not in f"{secrets!r} {revealed!r}"


def test_what_was_used_is_cut_and_what_was_not_is_left():
    revealed = Revealed({"a": VALUE, "b": "another-secret"})
    revealed.reveal("a")
    body = f"{VALUE} another-secret {VALUE}".encode()
    assert revealed.cut_from(body) == b"[secret a] another-secret [secret a]"


def test_a_short_value_is_not_cut_out_of_ordinary_words():
    revealed = Revealed({"a": "the"})
    revealed.reveal("a")
    assert revealed.cut_from(b"the theatre") == b"the theatre"

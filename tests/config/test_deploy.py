"""A production installation passes Django's own checks of a deployment (S15)."""

import os
import subprocess
import sys

import pytest
from pydantic import ValidationError

from config.environment import Environment
from standalone.places import ROOT

PRODUCTION = {
    "CLEARHOUSE_BOOTSTRAP": "0",
    "CLEARHOUSE_ENV": "production",
    "CLEARHOUSE_SECRET_KEY": "Vd3kq9xW" * 8,
    "CLEARHOUSE_KEY_PEPPER": "pR7mZt2c" * 8,
    "CLEARHOUSE_ALLOWED_HOSTS": "clearhouse.example.org",
}


def test_djangos_checks_of_a_deployment_find_nothing() -> None:
    words = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    found = subprocess.run(
        words, cwd=ROOT, env=os.environ | PRODUCTION, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    "reachable",
    [
        {"allowed_hosts": "clearhouse.example.org"},
        {"allowed_hosts": "localhost,10.0.0.7"},
        {"env": "production", "secret_key": "s" * 50, "key_pepper": "p" * 50},
    ],
)
def test_no_error_page_with_code_and_settings_is_shown_to_strangers(
    reachable: dict[str, str],
) -> None:
    with pytest.raises(ValidationError, match="CLEARHOUSE_DEBUG is on where others can reach"):
        Environment(debug=True, **reachable)
    assert Environment(debug=True, allowed_hosts="localhost").debug

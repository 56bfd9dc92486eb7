"""The example that documentation points to works as it stands, against a running stack."""

import os
import re
import subprocess
import sys

import pytest

from standalone.places import ROOT
from tests.acceptance.stack import Stack

pytestmark = pytest.mark.acceptance

LIMIT_S = 120
QUESTIONS = ("Did it start?", "Did the effect happen?", "What did the model see?")
FIVE = {
    "sandbox.lookup": "succeeded",
    "sandbox.write_artifact": "succeeded",
    "sandbox.send_mail": "succeeded",
    "sandbox.render": "succeeded",
}


def run(stack: Stack, *options: str) -> str:
    """Run the example as a program, told where and who by its environment; return what it says."""
    environ = {
        **os.environ,
        "CLEARHOUSE_URL": f"http://127.0.0.1:{stack.port}",
        "CLEARHOUSE_API_KEY": stack.keys["default"],
    }
    command = [sys.executable, str(ROOT / "examples" / "agent.py"), *options]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def states(said: str) -> dict[str, str]:
    return dict(re.findall(r"^(sandbox\.\w+) is (\w+);", said, re.MULTILINE))


def test_the_example_shows_five_verdicts_and_lets_the_sign_in_close_by_itself(
    stack: Stack,
) -> None:
    said = run(stack)

    found = states(said)
    assert found.pop("sandbox.device_login") in ("expired", "failed")
    assert found == FIVE
    assert [said.count(question) for question in QUESTIONS] == [5, 5, 5]


def test_the_example_completes_the_sign_in_when_it_is_asked_to(stack: Stack) -> None:
    assert states(run(stack, "--approve")) == FIVE | {"sandbox.device_login": "succeeded"}


def test_the_example_says_what_it_needs_when_it_is_told_nothing() -> None:
    bare = {name: text for name, text in os.environ.items() if not name.startswith("CLEARHOUSE_")}
    command = [sys.executable, str(ROOT / "examples" / "agent.py")]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 2
    assert "CLEARHOUSE_API_KEY" in done.stderr


def test_the_example_passes_on_the_sentence_of_a_refusal(stack: Stack) -> None:
    options = ["--url", f"http://127.0.0.1:{stack.port}", "--key", "mistyped"]
    command = [sys.executable, str(ROOT / "examples" / "agent.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 1
    assert "API key" in done.stderr

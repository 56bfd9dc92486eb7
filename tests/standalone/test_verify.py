"""`verify` over small suites of its own: real servers, a real pytest, real exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from standalone import verify
from standalone.places import ROOT

SUITE = """
import os
import psycopg, pytest, redis

def test_the_servers_are_there():
    with psycopg.connect(os.environ["CLEARHOUSE_TEST_DATABASE_URL"]) as link:
        assert link.execute("select current_setting('fsync')").fetchone() == ("off",)
    assert redis.Redis.from_url(os.environ["REDIS_URL"]).ping()

@pytest.mark.skipif(True, reason="no moon tonight")
def test_of_the_moon(): pass
"""
FAILING = "def test_that_fails(): assert False\n"
JUNIT = """<testsuites><testsuite>
<testcase classname="tests.ledger.test_a" name="a"/>
<testcase classname="tests.ledger.test_a" name="b"><failure/></testcase>
<testcase classname="tests.ledger.test_a" name="c"><error/></testcase>
<testcase classname="tests.browser.test_b" name="d"><skipped message="no chromium"/></testcase>
</testsuite></testsuites>"""


def verified(
    folder: Path, suite: str
) -> tuple["subprocess.CompletedProcess[str]", dict[str, object]]:
    """Run `verify` over one file, with its summary in `folder`."""
    (folder / "test_suite.py").write_text(suite)
    code = (
        "import sys; from pathlib import Path; from standalone import verify\n"
        "verify.FOLDER = Path(sys.argv[1])\n"
        "sys.exit(verify.verify(sys.argv[2:], workers=1))"
    )
    words = [str(folder / "test_suite.py"), "-c", os.devnull, "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder / "out"), *words, "-p", "no:django"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return run, json.loads((folder / "out" / "summary.json").read_text())


def test_tests_find_throw_away_servers_and_skips_are_counted_by_reason(folder: Path) -> None:
    run, summary = verified(folder, SUITE)

    assert run.returncode == 0, run.stdout + run.stderr
    assert (summary["passed"], summary["skipped"]) == (1, 1)
    assert "skipped 1: no moon tonight" in run.stdout
    assert run.stdout.strip().endswith("Verified: every test that ran has passed.")


def test_a_failure_is_the_exit_code_and_the_closing_sentence(folder: Path) -> None:
    run, summary = verified(folder, FAILING)

    assert run.returncode == summary["exit_code"] == 1
    assert summary["failed"] == 1
    assert "Not verified: the failures stand above" in run.stdout


def test_a_suite_that_cannot_be_read_is_never_verified(folder: Path) -> None:
    run, summary = verified(folder, "import nothing_of_that_name\n")

    assert run.returncode != 0
    assert "Not verified" in run.stdout
    assert summary["passed"] == 0


def test_errors_count_as_failures_and_browser_skips_have_a_line(folder: Path) -> None:
    units = folder / "junit.xml"
    units.write_text(JUNIT)

    summary = verify.summarise(1, [units], seconds=3.2, chromium=None)

    assert (summary.passed, summary.failed, summary.skipped) == (1, 2, 1)
    assert "browser: 1 skipped, no chromium; apt install chromium" in summary.as_text()


def test_no_report_at_all_is_said_plainly(folder: Path) -> None:
    summary = verify.summarise(4, [folder / "none.xml"], seconds=1, chromium="/usr/bin/chromium")

    assert "pytest ended with 4 before its tests could tell" in summary.as_text()


@pytest.mark.parametrize(
    ("words", "whole"), [([], True), (["-k", "fence"], True), (["tests/standalone"], False)]
)
def test_paths_among_the_words_replace_the_whole_suite(words: list[str], whole: bool) -> None:
    ends = [command[-1] for command in verify.commands(words, 2)]

    assert (ends == ["tests", "tests/acceptance", verify.TIMED]) is whole


def test_the_acceptance_tests_run_last_and_a_start_is_timed_alone() -> None:
    many, stacks, timed = verify.commands([], 8)

    assert "--ignore=tests/acceptance" in many
    assert many[many.index("-n") + 1] == "8"
    assert stacks[stacks.index("-n") + 1] == "2"
    assert f"--ignore={verify.TIMED}" in stacks
    assert "-n" not in timed

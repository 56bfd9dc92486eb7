"""What a drill says at its end, to people and to programs."""

import json
from dataclasses import replace
from pathlib import Path

from drills.report import Finding, Report
from drills.rows import TESTS
from drills.rows.row import Row

ROW = Row(
    number="6", name="a send", killed="the worker", where="at its boundary", expected="one mail",
    seen="one mail", passed=True, seconds=1.0, call="call_1", verdict="call_1.json",
    answers={"started": "yes", "effect": "happened", "model_saw": "fetched"},
)  # fmt: skip


def test_a_report_of_passed_rows_has_passed(tmp_path: Path) -> None:
    report = Report(kind="tests", seconds=9, rows=[ROW])
    assert report.passed
    assert "All as expected" in report.as_text(tmp_path)


def test_a_failed_row_or_a_finding_is_a_failed_report() -> None:
    assert not Report(kind="tests", seconds=1, rows=[replace(ROW, passed=False)]).passed
    lost = Finding(kind="lost", sentence="It is gone.", call="call_1")
    assert not Report(kind="chaos", seconds=1, findings=[lost]).passed


def test_a_test_that_is_not_there_yet_is_neither_passed_nor_failed(tmp_path: Path) -> None:
    seen = "not yet part of this installation"
    absent = replace(ROW, number="7", passed=None, seen=seen)
    report = Report(kind="tests", seconds=1, rows=[ROW, absent])
    assert report.passed
    assert [row["passed"] for row in report.to_json()["rows"]] == [True, None]
    assert "not yet part of this installation" in report.as_text(tmp_path)


def test_a_row_says_what_was_killed_expected_and_seen_and_names_its_verdict(tmp_path: Path) -> None:
    text = Report(kind="tests", seconds=1, rows=[ROW]).as_text(tmp_path)
    for words in ("the worker: at its boundary", "one mail", "effect: happened", "call_1.json"):
        assert words in text


def test_a_failed_report_says_how_to_run_it_again(tmp_path: Path) -> None:
    lost = Finding(kind="lost", sentence="It is gone.", call="call_1")
    again = "python3 manage.py drill chaos --seed 7"
    text = Report(kind="chaos", seconds=1, findings=[lost], again=again).as_text(tmp_path)
    assert again in text
    assert "lost: call_1: It is gone." in text


def test_both_forms_are_kept(tmp_path: Path) -> None:
    Report(kind="tests", seconds=1, rows=[ROW]).keep(tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["passed"] is True
    assert "a send" in (tmp_path / "report.txt").read_text()


def test_the_tests_are_numbered_as_the_operators_know_them() -> None:
    numbers = [test.number for test in TESTS]
    assert numbers == ["1", "2", "2b", "3", "3b", "4", "5", "6", "6b"]

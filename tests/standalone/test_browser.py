"""Which browser is chosen."""

import os
from pathlib import Path

import pytest

from standalone import browser
from standalone.errors import Refusal


def program(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_one_that_is_named_wins(folder: Path) -> None:
    program(folder, "chromium")

    assert browser.find({"CHROMIUM_BIN": "/opt/mine", "PATH": str(folder)}) == "/opt/mine"


def test_debians_name_is_looked_for_before_the_others(folder: Path) -> None:
    program(folder, "google-chrome")
    chromium = program(folder, "chromium")

    assert browser.find({"PATH": str(folder)}) == chromium


def test_without_any_there_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(folder))

    assert browser.find({"PATH": str(folder)}) is None


def test_an_ordinary_user_is_told_to_install_it_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(Refusal, match="needs root and apt"):
        browser.install()

"""The page on repairing a transcript shows what its commands print."""

import re
import subprocess
import sys
from pathlib import Path

from standalone.places import MANAGE
from tests.docs.reading import ROOT

PAGE = ROOT / "docs" / "how-to" / "repair-a-transcript.md"
SHOWN = re.compile(r"```sh\n(python3 manage.py transcript [^\n]*)\n```\n```text\n(.*?)```", re.S)


def said(command: str, folder: Path) -> str:
    """What a command prints, run as the page has it, in a folder with the examples."""
    words = command.split()[2:]
    done = subprocess.run(
        [sys.executable, str(MANAGE), *words], cwd=folder, text=True, timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


def test_each_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shown = SHOWN.findall(PAGE.read_text())

    assert len(shown) == 3
    for command, text in shown:
        assert said(command, tmp_path) == text, command

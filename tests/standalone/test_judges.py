"""The judges' environment, made from a lock of one wheel: real venv, real uv, no network."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from standalone import judges
from standalone.errors import Refusal
from standalone.places import ROOT
from tests.standalone.test_bootstrap import wheel

Lock = Callable[[str], None]


@pytest.fixture
def lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Lock:
    """Write a lock of one package, `opinion`, whose text is given; installed offline."""
    home = folder / "judges"
    for name, path in {
        "LOCK": folder / "requirements-judges.lock",
        "FOLDER": home,
        "PYTHON": home / "bin" / "python",
        "STAMP": home / "clearhouse.stamp",
    }.items():
        monkeypatch.setattr(judges, name, path)
    for name, value in {
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(folder),
        "UV_CACHE_DIR": str(folder / "cache"),
    }.items():
        monkeypatch.setenv(name, value)

    def write(text: str) -> None:
        body = f"TEXT = {text!r}\n".encode()
        judges.LOCK.write_text(wheel(folder, "opinion", {"opinion.py": body}))

    return write


def _opinion() -> str:
    code = "import opinion; print(opinion.TEXT)"
    asked = subprocess.run([judges.PYTHON, "-c", code], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def test_judges_are_found_once_they_are_installed(lock: Lock) -> None:
    lock("sound")
    assert judges.find() is None

    judges.install()

    assert judges.find() == judges.PYTHON
    assert _opinion() == "sound"


def test_judges_of_another_lock_are_not_asked_until_they_are_installed_anew(lock: Lock) -> None:
    lock("sound")
    judges.install()
    lock("broken")
    assert judges.find() is None

    judges.install()

    assert _opinion() == "broken"


def test_judges_that_are_not_what_the_lock_recorded_are_refused(lock: Lock) -> None:
    lock("sound")
    judges.LOCK.write_text(judges.LOCK.read_text()[:-10] + "0" * 9 + "\n")

    with pytest.raises(Refusal, match="so no outside judge is asked"):
        judges.install()

    assert judges.find() is None


def test_the_judges_are_no_packages_of_the_product() -> None:
    """What `up` installs on a fresh machine names none of them, so it costs no second more."""
    of_the_product = (ROOT / "requirements.lock").read_text()
    for judge in ("mistral-common", "openai", "anthropic", "google-genai", "langgraph", "botocore"):
        assert f"\n{judge}==" not in of_the_product
        assert f"\n{judge}==" in (ROOT / "requirements-judges.lock").read_text()

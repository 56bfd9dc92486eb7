"""The outside judges: other people's readers of transcripts, in an environment of their own.

Vendors' message types, validators and frameworks are asked by the tests whether they take what
Clearhouse renders. They are no part of the product and may want other versions of its packages,
so `verify` installs them apart, from `requirements-judges.lock`; no other command touches them.
"""

import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from standalone.errors import Refusal
from standalone.places import ROOT

LOCK = ROOT / "requirements-judges.lock"
FOLDER = ROOT / ".verify" / "judges"
PYTHON = FOLDER / "bin" / "python"
STAMP = FOLDER / "clearhouse.stamp"
REQUIRED = "CLEARHOUSE_REQUIRE_JUDGES"  # "1" turns skipped judgements into failures
LIMIT_S = 600


def find() -> Path | None:
    """The judges' Python; None where they are not installed as the lock says."""
    return PYTHON if PYTHON.exists() and _stamp() == _stamp_due() else None


def install() -> None:
    """Install what the lock names where that is due. Raises Refusal with what uv said."""
    if find() is not None:
        return
    FOLDER.parent.mkdir(exist_ok=True)
    uv = str(Path(sys.executable).with_name("uv"))
    _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(FOLDER))
    _run(uv, "pip", "sync", "--quiet", "--require-hashes", "--python", str(PYTHON), str(LOCK))
    # Last: an installation that was cut short is done again.
    STAMP.write_text(_stamp_due())


def _run(*words: str) -> None:
    environ = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    try:
        subprocess.run(  # noqa: S603
            words, cwd=ROOT, env=environ, check=True, capture_output=True, timeout=LIMIT_S
        )
    except subprocess.CalledProcessError as error:
        raise Refusal(_refusal(error.stderr.decode("utf-8", "replace").strip())) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refusal(_refusal(str(error))) from None


def _refusal(said: str) -> str:
    return (
        f"The packages of {LOCK.name} could not be installed, so no outside judge is asked. "
        f"Check the network and pip's index settings, then run this again. It said: {said[-500:]}"
    )


def _stamp() -> str:
    return STAMP.read_text() if STAMP.exists() else ""


def _stamp_due() -> str:
    kind = sysconfig.get_config_var("SOABI") or sys.version
    return f"{hashlib.sha256(LOCK.read_bytes()).hexdigest()} {kind}"

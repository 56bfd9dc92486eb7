"""Where things are: the checkout, and the state folder of this run."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANAGE = ROOT / "manage.py"


def state_folder() -> Path:
    """$CLEARHOUSE_DATA, or `.clearhouse` in the checkout."""
    return Path(os.environ.get("CLEARHOUSE_DATA") or ROOT / ".clearhouse")

"""What is served from other projects is what its manifest says, byte for byte."""

import json
from base64 import b64encode
from hashlib import sha384
from pathlib import Path

import pytest

VENDOR = Path(__file__).parents[2] / "static" / "vendor"
LISTED = json.loads((VENDOR / "VENDOR.json").read_text())


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry["file"])
def test_a_vendored_file_is_the_one_of_the_manifest(entry: dict[str, str]) -> None:
    digest = b64encode(sha384((VENDOR / entry["file"]).read_bytes()).digest()).decode()
    assert entry["sha384"] == f"sha384-{digest}"


def test_nothing_is_served_that_the_manifest_does_not_name() -> None:
    present = {path.name for path in VENDOR.iterdir()} - {"VENDOR.json"}
    assert present == {entry["file"] for entry in LISTED}

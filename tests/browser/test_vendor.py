"""What is vendored for the tests is what its manifest says, byte for byte."""

import base64
import hashlib
import json
from pathlib import Path

import pytest

VENDOR = Path(__file__).parent / "vendor"
MANIFEST = json.loads((VENDOR / "VENDOR.json").read_text())["files"]


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: entry["path"])
def test_a_vendored_file_has_the_digest_of_its_manifest(entry: dict[str, str]) -> None:
    digest = hashlib.sha384((VENDOR / entry["path"]).read_bytes()).digest()
    assert entry["integrity"] == f"sha384-{base64.b64encode(digest).decode()}"


def test_every_vendored_file_is_in_the_manifest() -> None:
    present = {path.name for path in VENDOR.iterdir()} - {"VENDOR.json"}
    assert present == {entry["path"] for entry in MANIFEST}

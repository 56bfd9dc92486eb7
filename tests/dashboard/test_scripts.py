"""The scripts of the pages: what one of them declares, nothing beside it declares again."""

import re
from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings

SCRIPTS = sorted((settings.BASE_DIR / "static").glob("*.js"))
DECLARED = re.compile(r"^(?:async )?(?:function\*?|const|let) (\w+)", re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_name_is_declared_twice(script: Path) -> None:
    # Of two functions with one name the later would answer for both, and nothing says so.
    counted = Counter(DECLARED.findall(script.read_text()))
    assert [name for name, times in counted.items() if times > 1] == []
    assert script.name != "app.js" or len(counted) > 40

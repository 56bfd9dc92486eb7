"""Which tools are known, and which declarations are refused with a sentence."""

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from executors.python import registry, tool
from executors.python.errors import BadTool
from ledger.vocabulary import Boundary, EffectKind, RecoveryClass


@pytest.fixture(autouse=True)
def _empty_registry() -> Iterator[None]:
    registry.forget()
    yield
    registry.forget()


@pytest.fixture
def a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("from executors.python import tool\n" + dedent(text))

    return write


def test_a_loaded_module_makes_its_tools_known(a_module: Callable[[str, str], None]) -> None:
    a_module(
        "plain_tools.py",
        """
        @tool("plain.read", recovery_class="read_only", description="Reads.")
        def read(context): return {}
        """,
    )
    known = registry.load(["plain_tools"])
    assert list(known) == ["plain.read"]
    assert registry.get("plain.read") is known["plain.read"]
    assert registry.get("plain.write") is None


def test_loading_a_package_finds_every_module_below_it(
    a_module: Callable[[str, str], None],
) -> None:
    a_module("deep_tools/__init__.py", "")
    a_module("deep_tools/one.py", "@tool('deep.one')\ndef one(context): ...\n")
    a_module("deep_tools/more/__init__.py", "")
    a_module("deep_tools/more/two.py", "@tool('deep.two')\ndef two(context): ...\n")
    assert sorted(registry.load(["deep_tools"])) == ["deep.one", "deep.two"]


def test_loading_twice_changes_nothing(a_module: Callable[[str, str], None]) -> None:
    a_module("twice_tools.py", "@tool('twice.once')\ndef once(context): ...\n")
    assert registry.load(["twice_tools"]) == registry.load(["twice_tools", "twice_tools"])


def test_a_duplicate_name_is_refused_naming_both_modules(
    a_module: Callable[[str, str], None],
) -> None:
    a_module("first_tools.py", "@tool('shared.name')\ndef one(context): ...\n")
    a_module("second_tools.py", "@tool('shared.name')\ndef two(context): ...\n")
    with pytest.raises(BadTool, match=r"second_tools declares .* first_tools has already"):
        registry.load(["first_tools", "second_tools"])


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(BadTool, match="Module no_such_tools could not be imported"):
        registry.load(["no_such_tools"])


def test_an_undeclared_recovery_class_stays_none() -> None:
    undeclared = tool("plain.undeclared")(lambda context: None)
    assert undeclared.recovery_class is None
    assert undeclared.boundary is Boundary.AT_START
    assert undeclared.version == 1


def test_a_declaration_keeps_what_it_was_told() -> None:
    kept = tool(
        "plain.kept",
        recovery_class="idempotent_write",
        effect_kinds=("file",),
        boundary="marked",
        policy={"attempts": 3},
    )(lambda context: None)
    assert kept.recovery_class is RecoveryClass.IDEMPOTENT_WRITE
    assert kept.effect_kinds == {EffectKind.FILE}
    assert kept.policy["attempts"] == 3
    assert (kept.has_probe, kept.has_poll, kept.has_cancel) == (False, False, False)
    kept.probe(lambda context: None)
    assert kept.has_probe


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"recovery_class": "careful"}, "recovery class 'careful', which does not exist"),
        ({"effect_kinds": ("smoke",)}, "effect kind 'smoke', which does not exist"),
        ({"boundary": "later"}, "boundary 'later', which does not exist"),
        ({"boundary": "transport"}, "only our own HTTP client can"),
        ({"schema": {"type": "no-such-type"}}, "schema that does not compile"),
        ({"schema": {"$ref": "http://127.0.0.1:9/schema"}}, "schema that does not compile"),
        ({"schema": {"type": "array"}}, "Arguments are an object"),
    ],
    ids=["class", "kind", "boundary", "transport", "type", "outside-reference", "not-an-object"],
)
def test_a_declaration_that_cannot_work_names_its_module(settings: dict, sentence: str) -> None:
    with pytest.raises(BadTool, match=sentence) as refused:
        tool("plain.wrong", **settings)(lambda context: None)
    assert __name__ in str(refused.value)


@pytest.mark.parametrize("name", ["", "with space", "x" * 129, "naïve", "a/b"])
def test_a_name_outside_the_rule_is_refused(name: str) -> None:
    with pytest.raises(BadTool, match="name that cannot be used"):
        tool(name)(lambda context: None)


def test_a_coroutine_function_is_refused() -> None:
    async def later(context: object) -> None: ...

    with pytest.raises(BadTool, match="coroutine"):
        tool("plain.later")(later)

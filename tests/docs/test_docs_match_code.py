"""The documentation says what the code does: it fails here when it lies."""

import argparse
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.urls import resolve, reverse

from dashboard import manual
from dashboard.manual import machine, policies, variables
from ledger.machine import TRANSITIONS
from ledger.vocabulary import SETTLED, CallState
from tests.docs import reading
from tests.docs.reading import ROOT

REFERENCE = ROOT / "docs" / "reference"
PRODUCT = ("ledger", "executors", "recovery", "config", "dashboard", "standalone", "sandbox",
           "bench", "drills", "demo")  # fmt: skip
PAGES = reading.pages()
PAGE_NAMES = [reading.name_of(page) for page in PAGES]


def product_files() -> list[Path]:
    return [file for folder in PRODUCT for file in sorted((ROOT / folder).rglob("*.py"))]


# Generated pages


@pytest.mark.parametrize("name", manual.PAGES)
def test_a_generated_page_is_what_the_code_generates(name: str) -> None:
    generated = manual.NOTE + manual.PAGES[name]().rstrip() + "\n"
    assert (REFERENCE / name).read_text() == generated, "run `manage.py docs`"


def test_a_page_with_the_note_is_one_that_is_generated() -> None:
    noted = {page.name for page in PAGES if page.read_text().startswith(manual.NOTE)}
    assert noted == set(manual.PAGES)


def test_every_field_of_the_environment_is_explained() -> None:
    assert set(variables.MEANINGS) == set(type(settings.ENVIRONMENT).model_fields)


def test_the_kinds_called_not_made_yet_are_those_that_no_verb_names() -> None:
    texts = "".join(
        file.read_text() for file in product_files()
        if file.parts[-1] not in ("machine.py", "vocabulary.py", "errors.py")
        and not {"verification", "dashboard", "migrations", "verdicts.py"} & set(file.parts)
    )  # fmt: skip
    made = {kind for kind in TRANSITIONS if re.search(rf"[\"']{kind}[\"']", texts)}
    assert set(machine.NOT_MADE_YET) == set(TRANSITIONS) - made


def test_the_linter_page_has_every_code_of_the_linter() -> None:
    source = (ROOT / "ledger" / "policies.py").read_text()
    said = re.findall(r"Finding\(\s*\"(\w+)\", \"(\w+)\"", source)
    assert {(name, level) for name, level, _ in policies.LINTER} == {(b, a) for a, b in said}


# Links and names


@pytest.mark.parametrize("leaf", PAGES, ids=PAGE_NAMES)
def test_every_relative_link_and_anchor_resolves(leaf: Path) -> None:
    broken = []
    for path, anchor in reading.links(leaf):
        target = (leaf.parent / path).resolve() if path else leaf
        if not target.exists() or anchor and anchor not in reading.anchors(target):
            broken.append(f"{path}#{anchor}")
    assert not broken


def test_every_page_is_reached_from_the_readme() -> None:
    seen, due = set(), [ROOT / "README.md"]
    while due:
        page = due.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        due += [(page.parent / path).resolve() for path, _ in reading.links(page) if path]
    assert set(PAGES) <= seen


@pytest.mark.parametrize(("command", "options"), sorted(reading.commands()))
def test_every_command_named_exists_with_its_options(
    command: str, options: tuple[str, ...]
) -> None:
    app = get_commands()[command]
    found = load_command_class(app, command) if isinstance(app, str) else app
    assert set(options) <= _options(found.create_parser("manage.py", command))


def _options(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a command, and of what it does by further words."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    acts = {option for each in below for act in each.choices.values() for option in _options(act)}
    return acts | {option for action in parser._actions for option in action.option_strings}


def test_every_path_of_the_tree_map_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    tree = re.search(r"## Map of the tree\n\n```\n(.*?)```", readme, re.S)
    assert tree is not None
    folder, missing = ROOT, []
    for line in tree[1].splitlines():
        paths = re.split(r"\s{2,}", line.strip())[0].split()
        below = folder if line.startswith(" ") else ROOT
        missing += [path for path in paths if not (below / path).exists()]
        if not line.startswith(" ") and len(paths) == 1:
            folder = ROOT / paths[0]
    assert not missing


def test_every_folder_of_the_product_is_on_the_tree_map() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [folder for folder in PRODUCT if f"\n{folder}/" not in readme] == []


@pytest.mark.parametrize("leaf", PAGES, ids=PAGE_NAMES)
def test_every_file_named_in_code_marks_exists(leaf: Path) -> None:
    named = re.findall(r"`((?:" + "|".join((*PRODUCT, "tests", "docs", "examples"))
                       + r")/[\w./-]*)`", leaf.read_text())  # fmt: skip
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("leaf", PAGES, ids=PAGE_NAMES)
def test_every_variable_named_is_one_of_the_settings(leaf: Path) -> None:
    known = variables.names() | {
        "CLEARHOUSE_URL", "CLEARHOUSE_API_KEY", "CLEARHOUSE_USER", "CLEARHOUSE_PASSWORD_FILE",
        "CLEARHOUSE_TEST_HISTORIES",
    }  # fmt: skip
    named = set(re.findall(r"\bCLEARHOUSE_[A-Z_]*[A-Z]\b", leaf.read_text()))
    assert {name for name in named - known if not name.startswith("CLEARHOUSE_SECRET_")} == set()


def test_every_address_of_the_api_that_a_page_names_is_served() -> None:
    view = resolve(reverse("api:openapi-json"))
    document = view.func.keywords["api"].get_openapi_schema()  # type: ignore[attr-defined]
    served = {re.sub(r"\{\w+\}", "{}", path) for path in document["paths"]}
    served |= {"/api/v1/openapi.json", "/api/v1/docs"}
    named = set()
    for page in PAGES:
        for path in re.findall(r"/api/v1/[\w/{}$.…-]+", page.read_text()):
            named.add(re.sub(r"\{\w+\}|\$\w+|desk\.\w+", "{}", path.rstrip(".")))
    assert named <= served


# Words


def test_the_glossary_has_the_states_of_a_call_in_their_order() -> None:
    table = (REFERENCE / "glossary.md").read_text().partition("## States of a call")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == [str(state) for state in CallState]


def test_the_glossary_gives_settled_states_to_nobody() -> None:
    table = (REFERENCE / "glossary.md").read_text().partition("## States of a call")[2]
    nobody = set(re.findall(r"^\| `(\w+)` \| nobody", table, re.M))
    assert nobody == {str(state) for state in SETTLED}


@pytest.mark.parametrize("leaf", PAGES, ids=PAGE_NAMES)
def test_exactly_once_is_only_ever_denied(leaf: Path) -> None:
    sentences = re.split(r"(?<=[.:])\s", " ".join(leaf.read_text().split()))
    said = [sentence for sentence in sentences if "exactly once" in sentence.lower()]
    assert [
        sentence for sentence in said if not re.search(r"\b(no|never|not)\b", sentence, re.I)
    ] == []


# Rules cited in code


def test_every_requirement_cited_in_code_is_on_the_page() -> None:
    page = (ROOT / "docs" / "design" / "requirements.md").read_text()
    known = set(re.findall(r"^\| ([RS]\d+) \|", page, re.M))
    cited = set()
    for file in product_files():
        # S101 and the like are rules of the linter, always behind `noqa`.
        text = re.sub(r"noqa:? .*", "", file.read_text())
        cited |= set(re.findall(r"(?<![\w%])(?:R\d{1,3}|S\d{1,2})(?!\w)", text))
    assert cited == known


@pytest.mark.parametrize("design", ["semantics", "reliability", "security"])
def test_every_section_cited_in_code_is_on_its_page(design: str) -> None:
    page = (ROOT / "docs" / "design" / f"{design}.md").read_text()
    known = set(re.findall(r"^## (\d+)\.", page, re.M))
    cited = set()
    for file in product_files():
        for text in re.findall(
            rf"{design}, (?:sections? )?((?:\d+(?:, | and |\.)?)+)", file.read_text()
        ):
            cited |= {part.split(".")[0] for part in re.split(r", | and ", text) if part}
    assert cited - known == set()


def test_decisions_are_numbered_without_gaps_and_say_all_five_things() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        heads = re.findall(r"^## (.+)$", record.read_text(), re.M)
        assert heads == ["Question", "Facts", "Alternatives", "Decision",
                         "What would change our mind"], record.name  # fmt: skip

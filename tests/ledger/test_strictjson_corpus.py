"""The corpus is complete and well formed, and the strict reader answers it as it says."""

import pytest

from ledger.strictjson import (
    API,
    RESULT,
    TRANSCRIPT,
    Limits,
    NotStrict,
    check_media_type,
    digest,
    is_identifier,
    parse,
    storable,
)
from tests.corpus_loader import SUBMIT, Entry, build, classes, load, reach
from tests.corpus_mutations import READER, SCHEMA, Mutant, generate

# Security, section 13: each class and how many entries it has at least.
REACH = {
    "json_numbers": 14,
    "json_structure": 14,
    "unicode": 16,
    "size_transport": 12,
    "ids_paths": 18,
    "outbound_urls": 60,
    "markup": 120,
    "imitation": 10,
    "protocol_order": 16,
    "authentication": 14,
    "tool_output": 12,
    "time": 8,
    "imports": 12,
    "regex_bait": 20,
}
BODIES = ["json_numbers", "json_structure", "unicode", "size_transport"]
AT_THE_EDGE = [
    entry
    for corpus in BODIES
    for entry in load(corpus)
    if not entry.headers and "media_type" not in entry.expect.codes
]
OUTCOMES = set("refused refused_by_schema accepted either allowed repaired".split()) | set(
    "inert framed kept ended bounded".split()
)
CHANNELS = set("api mcp webhook form result path command outbound import".split())


def cases(entries: list[Entry]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: f"{entry.corpus}-{entry.id}")


def code_of(body: bytes, limits: Limits = API) -> str:
    try:
        parse(body, limits=limits)
    except NotStrict as refusal:
        return refusal.code
    return ""


def test_the_classes_are_those_of_the_table() -> None:
    assert classes() == sorted(REACH)


@pytest.mark.parametrize(("corpus", "least"), REACH.items())
def test_a_class_reaches_far_enough(corpus: str, least: int) -> None:
    ids = [entry.id for entry in load(corpus)]
    assert reach(corpus) == least <= len(ids) == len(set(ids))


@pytest.mark.parametrize("corpus", REACH)
def test_every_entry_says_where_it_goes_and_what_must_come(corpus: str) -> None:
    for entry in load(corpus):
        assert entry.why
        assert set(entry.channels) <= CHANNELS
        assert entry.channels
        assert entry.expect.outcome in OUTCOMES, entry.id


@cases(AT_THE_EDGE)
def test_the_reader_answers_a_body_as_the_corpus_says(entry: Entry) -> None:
    code = code_of(entry.bytes())
    assert code in entry.expect.codes if entry.expect.outcome == "refused" else code == ""


@cases([entry for entry in AT_THE_EDGE if "same_as" in entry.expect.more])
def test_what_means_the_same_has_one_digest(entry: Entry) -> None:
    twin = parse(entry.expect.more["same_as"].encode())
    assert digest(parse(build(entry.pieces))) == digest(twin)


@cases([entry for entry in AT_THE_EDGE if "differs_from" in entry.expect.more])
def test_what_means_another_thing_has_another_digest(entry: Entry) -> None:
    other = parse(entry.expect.more["differs_from"].encode())
    assert digest(parse(build(entry.pieces))) != digest(other)


@cases([entry for entry in AT_THE_EDGE if "pointer" in entry.expect.more])
def test_the_pointer_is_that_of_the_corpus(entry: Entry) -> None:
    with pytest.raises(NotStrict) as caught:
        parse(build(entry.pieces))
    assert caught.value.pointer == entry.expect.more["pointer"]


@pytest.mark.parametrize("corpus", BODIES)
def test_a_class_of_bodies_holds_some_that_must_pass(corpus: str) -> None:
    outcomes = {entry.expect.outcome for entry in load(corpus)}
    assert {"refused", "accepted"} <= outcomes


@cases([entry for corpus in BODIES for entry in load(corpus, channel="result")])
def test_the_same_bytes_as_a_result_are_always_kept(entry: Entry) -> None:
    body = entry.bytes()
    stored = storable(body)
    strict = "accepted" in (entry.expect.outcome, entry.expect.more.get("result"))
    assert stored.body == body
    assert stored.json_text == body.decode() if strict else bool(stored.why_not_json)


@cases([entry for entry in load("size_transport") if "media_type" in entry.expect.codes])
def test_other_types_and_encodings_are_refused_unread(entry: Entry) -> None:
    headers = dict(entry.headers)
    with pytest.raises(NotStrict):
        check_media_type(headers.get("Content-Type", ""), headers.get("Content-Encoding", ""))


@cases([entry for entry in load("ids_paths") if "identifier" in entry.expect.more])
def test_identifiers_are_told_from_paths(entry: Entry) -> None:
    assert is_identifier(entry.text()) is entry.expect.more["identifier"]


@cases([entry for entry in load("imports") if entry.expect.codes])
def test_a_transcript_has_its_own_limits(entry: Entry) -> None:
    assert code_of(entry.bytes(), TRANSCRIPT) in entry.expect.codes


@cases([entry for corpus in ("imports", "regex_bait") for entry in load(corpus)])
def test_every_recipe_builds_the_same_bytes_twice(entry: Entry) -> None:
    assert entry.bytes() == entry.bytes()


def test_markup_and_imitation_are_accepted_as_text_and_kept_exactly() -> None:
    for corpus in ("markup", "imitation"):
        for entry in load(corpus):
            stored = storable(entry.bytes(), "text/plain")
            assert stored.body == entry.bytes(), entry.id


def test_a_submit_around_arguments_is_the_body_of_the_api() -> None:
    assert parse(b"{}".join(SUBMIT)) == {"tool": "sandbox.lookup", "arguments": {}}


def test_the_same_seed_gives_the_same_hostile_bodies() -> None:
    assert list(generate(7, 60)) == list(generate(7, 60)) != list(generate(8, 60))


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_hostile_bodies_are_answered_as_they_say(seed: int) -> None:
    mutants = list(generate(seed, 1000))
    assert {mutant.expect for mutant in mutants} == {"refused", "either"}
    for mutant in mutants:
        assert _is_answered(mutant), mutant


def _is_answered(mutant: Mutant) -> bool:
    code = code_of(mutant.body)
    wanted = {READER: bool(code), SCHEMA: not code}
    return wanted.get(mutant.by, True)


def test_no_result_of_the_corpus_is_inline_beyond_its_limit() -> None:
    kept = [storable(entry.bytes()) for entry in load("size_transport", channel="result")]
    assert all(stored.size_bytes <= RESULT.size_bytes for stored in kept if stored.json_text)

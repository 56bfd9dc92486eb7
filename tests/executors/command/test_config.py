"""Configuration and argument lists: what is refused, and that nothing is ever split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.command.config import ArgumentRefused, ConfigRefused, Limits, fill, parse


def test_an_argument_stays_one_element_whatever_it_contains():
    value = "a b; $(rm -rf /) `id` \n| 'x' \"y\" *"
    assert fill(["echo", "{x}", "--out={x}"], {"x": value}) == ["echo", value, f"--out={value}"]


@given(st.text(st.characters(exclude_characters="\0")))
def test_the_number_of_elements_never_depends_on_the_arguments(value):
    assert fill(["tool", "--", "{x}", "y={x}"], {"x": value}) == ["tool", "--", value, f"y={value}"]


def test_an_argument_is_not_read_for_placeholders_again():
    assert fill(["echo", "{x}"], {"x": "{secret}", "secret": "s"}) == ["echo", "{secret}"]


def test_a_brace_written_twice_is_a_brace():
    assert fill(["awk", "{{print $1}}", "{{x}}{x}"], {"x": "v"}) == ["awk", "{print $1}", "{x}v"]


def test_numbers_are_written_as_text():
    assert fill(["seq", "{n}", "{m}"], {"n": 3, "m": 2.5}) == ["seq", "3", "2.5"]


@pytest.mark.parametrize("argv", [["rm", "{x}"], ["rm", "{x}.txt"], ["rm", "{empty}{x}"]])
def test_an_argument_cannot_become_an_option(argv):
    with pytest.raises(ArgumentRefused, match="read as an option"):
        fill(argv, {"x": "-rf", "empty": ""})


@pytest.mark.parametrize("argv", [["rm", "--", "{x}"], ["rm", "--out={x}"], ["rm", "./{x}"]])
def test_an_argument_may_begin_with_a_dash_where_it_is_no_option(argv):
    assert fill(argv, {"x": "-rf"})[-1].endswith("-rf")


def test_an_admin_may_allow_a_dash():
    assert fill(["calc", "{x}"], {"x": "-5"}, allow_dash=True) == ["calc", "-5"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a\0b", "NUL"),
        (["a"], "text or a number"),
        ({}, "text or a number"),
        (True, "text"),
        (None, "text"),
    ],
)
def test_an_argument_that_cannot_be_one_element_is_refused(value, words):
    with pytest.raises(ArgumentRefused, match=words):
        fill(["echo", "{x}"], {"x": value})


def test_a_missing_argument_is_named():
    with pytest.raises(ArgumentRefused, match="'target', which was not given"):
        fill(["cp", "{target}"], {})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "incomplete"),
        ({"argv": "ls -l"}, "must be a list of texts"),
        ({"argv": []}, "must be a list of texts"),
        ({"argv": ["{program}"]}, "may not choose the program"),
        ({"argv": ["ls"], "shell": True}, "shell is not known here"),
        ({"argv": ["ls"], "stdin": "file"}, 'must be "arguments" or "none"'),
        ({"argv": ["ls"], "cwd": "here"}, "is relative"),
        ({"argv": ["ls"], "writable": "../up"}, "is relative"),
        ({"argv": ["ls"], "limits": {"memory_mb": 0}}, "limits.memory_mb is 0"),
        ({"argv": ["ls"], "limits": {"cores": 2}}, "limits.cores is not known"),
        ({"argv": ["ls"], "limits": {"output_bytes": 2**30}}, "64 MiB"),
        ({"argv": ["ls"], "require_sandbox": "total"}, "say full, partial or none"),
        ({"argv": ["ls"], "probe": {"argv": ["{x}"]}}, "may not choose the program"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_with_the_reason(config, words):
    with pytest.raises(ConfigRefused, match=words):
        parse(config)


def test_a_short_configuration_has_bounds():
    assert parse({"argv": ["ls"]}).limits == Limits()

"""A value can only ever become a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.http.targets import UnfitUrl, read_url
from executors.http.templates import (
    Unfillable,
    authority_of,
    fill_json,
    fill_text,
    fill_url,
    names_in,
)

URL = "https://api.example.com/a/{x}/b?q={x}&r=1"


@given(st.text())
def test_no_text_changes_the_shape_of_a_url(text):
    try:
        target = read_url(fill_url(URL, {"x": text}))
    except (Unfillable, UnfitUrl):
        return
    path, _, query = target.path.partition("?")
    assert (target.scheme, target.host, target.port) == ("https", "api.example.com", 443)
    assert [path.count("/"), query.count("&"), query.count("=")] == [3, 1, 2]
    assert (path[:3], path[-2:], query[-4:]) == ("/a/", "/b", "&r=1")


@given(st.text(), st.text())
def test_two_texts_never_make_the_same_url(one, other):
    try:
        urls = [fill_url(URL, {"x": text}) for text in (one, other)]
    except (Unfillable, UnicodeEncodeError):
        return
    assert (urls[0] == urls[1]) == (one == other)


@given(st.text())
def test_a_filled_value_is_never_filled_again(text):
    assert fill_text("{x}", {"x": text, "y": "other"}) == text
    assert fill_json(["{x} "], {"x": text, "y": "other"}) == [text + " "]


@pytest.mark.parametrize("value", [1, 1.0, True, None, "a", ["{y}"], {"{y}": "{y}"}])
def test_a_placeholder_alone_takes_the_value_with_its_type(value):
    (filled,) = fill_json(["{x}"], {"x": value, "y": "other"})
    assert (filled, type(filled)) == (value, type(value))


def test_doubled_braces_are_braces():
    assert fill_text("{{x}} {x}", {"x": 1}) == "{x} 1"


@pytest.mark.parametrize("template", ["{", "}", "{ x}", "{x", "{}", "{1}", "{x!r}"])
def test_a_stray_brace_is_refused(template):
    with pytest.raises(Unfillable, match="brace"):
        names_in(template)


def test_names_are_found_wherever_they_stand():
    assert names_in({"a": ["{x}", {"b": "{y} {z}"}], "c": 1}) == {"x", "y", "z"}


AUTHORITIES = {
    "https://a.b/c/{d}": "https://a.b",
    "https://a.b?c={d}": "https://a.b",
    "https://a.b": "https://a.b",
    "https:{x}/y": "https:{x}",
    "https://{x}": "https://{x}",
    "https:///{x}/y": "https:///{x}",
    "{x}": "{x}",
}


@pytest.mark.parametrize(("template", "authority"), AUTHORITIES.items())
def test_the_authority_of_a_template_ends_at_its_path_or_query(template, authority):
    assert authority_of(template) == authority

"""Hostile text costs no more than its length (S26)."""

import time

import pytest

from executors.http.client import Answer
from executors.http.conditions import NotJson, read_json
from executors.http.secrets import Revealed
from executors.http.targets import UnfitUrl, read_redirect, read_url
from executors.http.templates import fill_text
from executors.network import retry_after_s

LONG = 100_000
BAIT = {
    "digits": "9" * LONG,
    "digits and a letter": "9" * LONG + "x",
    "dots": "." * LONG,
    "labels": "a." * (LONG // 2),
    "hyphens": "a" + "-" * LONG,
    "slashes": "/" * LONG,
    "backslashes": "\\" * LONG,
    "climbing": "../" * (LONG // 3),
    "percents": "%2" * (LONG // 2),
    "encoded dots": "/%2e%2e" * (LONG // 7),
    "brackets": "[" * LONG,
    "at signs": "@" * LONG,
    "colons": ":" * LONG,
    "braces": "{{" * (LONG // 2),
    "spaces": " " * LONG,
    "commas": "," * LONG,
    "comments": "(" * LONG,
    "a date and spaces": "Wed, 21 Oct 2015" + " " * LONG + "x",
    "deep": '{"a":' * (LONG // 5),
    "deep lists": "[" * LONG + "]" * LONG,
}
READERS = {
    "url": lambda text: read_url("http://" + text),
    "path": lambda text: read_url("http://a.test/" + text),
    "redirect": lambda text: read_redirect(read_url("http://a.test/"), text),
    "retry-after": lambda text: retry_after_s({"retry-after": text, "date": text}),
    "json": lambda text: read_json(Answer(status=200, headers={}, body=text.encode())),
    "template": lambda text: fill_text("{x}", {"x": text}),
    "secret": lambda text: _revealed().cut_from(text.encode()),
}


def _revealed():
    revealed = Revealed({"a": "/" * 50 + "x"})
    revealed.reveal("a")
    return revealed


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("text", BAIT.values(), ids=BAIT)
def test_a_hostile_text_is_read_or_refused_at_once(read, text):
    begun = time.process_time()
    try:
        read(text)
    except (UnfitUrl, NotJson):
        pass
    assert time.process_time() - begun < 0.25

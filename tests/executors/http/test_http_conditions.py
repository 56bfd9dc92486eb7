"""Conditions on an answer: what holds, and what does not."""

import json

import pytest

from executors.http.client import Answer
from executors.http.conditions import MISSING, Condition, look_up

DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "m~n": 8,
    "deep": {"list": [{"id": None}]},
}
POINTERS = {
    "": DOCUMENT,
    "/foo": ["bar", "baz"],
    "/foo/0": "bar",
    "/": 0,
    "/a~1b": 1,
    "/m~0n": 8,
    "/deep/list/0/id": None,
    "/foo/2": MISSING,
    "/foo/-": MISSING,
    "/foo/-1": MISSING,
    "/foo/٠": MISSING,
    "/foo/0/0": MISSING,
    "/foo/99999999999999999999": MISSING,
    "/nope": MISSING,
    "/foo/bar": MISSING,
}


@pytest.mark.parametrize(("pointer", "found"), POINTERS.items())
def test_a_pointer_finds_what_rfc_6901_says(pointer, found):
    assert look_up(DOCUMENT, pointer) == found


def met(value, *, cut="", **condition):
    answer = Answer(status=200, headers={}, body=json.dumps(value).encode(), cut=cut)
    return Condition(**condition).is_met(answer, {"marker": "m-1", "count": 3})


HOLDS = {
    "status": ({}, {"status": [200, 201]}, True),
    "another status": ({}, {"status": [404]}, False),
    "equals": ({"a": 1}, {"pointer": "/a", "equals": 1}, True),
    "a truth value is no number": ({"a": True}, {"pointer": "/a", "equals": 1}, False),
    "null": ({"a": None}, {"pointer": "/a", "equals": None}, True),
    "absent is not null": ({}, {"pointer": "/a", "equals": None}, False),
    "one of": ({"a": "y"}, {"pointer": "/a", "values": ["x", "y"]}, True),
    "none of": ({"a": "z"}, {"pointer": "/a", "values": ["x", "y"]}, False),
    "the marker": ({"a": "m-1"}, {"pointer": "/a", "equals": "{marker}"}, True),
    "a number by name": ({"a": 3}, {"pointer": "/a", "equals": "{count}"}, True),
    "exists": ({"a": 0}, {"pointer": "/a", "exists": True}, True),
    "does not exist": ({}, {"pointer": "/a", "exists": False}, True),
    "exists and must not": ({"a": 0}, {"pointer": "/a", "exists": False}, False),
    "empty": ({"a": []}, {"pointer": "/a", "empty": True}, True),
    "not empty": ({"a": [0]}, {"pointer": "/a", "empty": False}, True),
    "zero is not empty": ({"a": 0}, {"pointer": "/a", "empty": True}, False),
    "absent is not empty": ({}, {"pointer": "/a", "empty": True}, False),
    "both parts": ({"a": 1}, {"status": [201], "pointer": "/a", "equals": 1}, False),
    "the whole": ([], {"pointer": "", "empty": True}, True),
}


@pytest.mark.parametrize(("value", "condition", "holds"), HOLDS.values(), ids=HOLDS)
def test_a_condition_holds_only_where_all_its_parts_do(value, condition, holds):
    assert met(value, **condition) is holds


def test_an_answer_that_is_cut_meets_no_condition_on_its_body():
    assert met({"a": 1}, cut="It ends early.", pointer="/a", exists=False) is False

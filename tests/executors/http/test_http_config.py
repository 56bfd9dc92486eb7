"""A tool's configuration is checked when it is read, in sentences."""

import pytest

from executors.http.config import UnfitConfig, load

PLAIN = {"method": "POST", "url": "https://api.example.com/orders"}
JOB = {
    "handle": "/id",
    "poll": {"url": "https://api.example.com/{handle}", "done": {"status": [200]}},
}
PROBE = {"url": "https://api.example.com/?ref={marker}", "happened": {"status": [200]}}


def test_the_hosts_of_the_urls_are_the_hosts_that_are_allowed():
    tool = load({**PLAIN, "probe": {**PROBE, "url": "https://find.example.com/{marker}"}})
    assert tool.rules.hosts == ("api.example.com", "find.example.com")


def test_hosts_that_are_listed_take_the_place_of_those_of_the_urls():
    assert load({**PLAIN, "allow": {"hosts": ["API.example.com"]}}).rules.hosts == (
        "api.example.com",
    )


def test_a_host_may_be_written_in_brackets_with_a_final_dot_or_in_capitals():
    allow = {"hosts": ["API.example.com."], "private_hosts": ["[::1]"]}
    rules = load({**PLAIN, "allow": allow}).rules
    assert (rules.hosts, rules.private_hosts) == (("api.example.com",), ("::1",))


def test_nothing_private_and_no_plain_http_is_allowed_unless_it_is_written():
    rules = load(PLAIN).rules
    assert (rules.private_hosts, rules.schemes, rules.ports) == ((), ("https",), ())


def test_a_full_configuration_is_read():
    tool = load(
        {
            **PLAIN,
            "headers": {"Authorization": {"$secret": "a", "prefix": "Bearer "}, "X-Shop": "1"},
            "query": {"q": "{item}"},
            "body": {"template": {"a": ["{item}"]}},
            "allow": {"headers": ["X-Shop"], "ports": [8443]},
            "success": [200],
            "refused_statuses": [503],
            "job": JOB,
            "probe": PROBE,
        }
    )
    assert tool.headers["Authorization"].name == "a"
    assert tool.job.accepted == (202,)


UNFIT = {
    "no url": ({"url": None}, "url"),
    "a placeholder in the host": ({"url": "https://{h}.example.com/"}, "placeholder may not stand"),
    "a placeholder as the host": ({"url": "https://{h}/x"}, "placeholder may not stand"),
    "a placeholder as the scheme": ({"url": "{s}://example.com/x"}, "placeholder may not stand"),
    "a placeholder as the port": ({"url": "https://e.com:{p}/"}, "placeholder may not stand"),
    "a placeholder before the host": ({"url": "https:{h}"}, "placeholder may not stand"),
    "a handle as the address": ({"url": "{handle}"}, "only poll and cancel"),
    "a stray brace": ({"url": "https://example.com/{"}, "single brace"),
    "a fragment": ({"url": "https://example.com/a#b"}, "fragment"),
    "another scheme": ({"url": "file:///etc/passwd"}, "http"),
    "another method": ({"method": "CONNECT"}, "method"),
    "an unknown key": ({"verify": False}, "verify"),
    "a header of ours": ({"headers": {"Host": "x"}}, "set by the client"),
    "a trace of its own": ({"headers": {"Traceparent": "x"}}, "set by the client"),
    "a length": ({"headers": {"content-LENGTH": "1"}}, "set by the client"),
    "a forged address": ({"headers": {"X-Forwarded-For": "::1"}}, "set by the client"),
    "a key of its own": ({"headers": {"Idempotency-Key": "1"}}, "set by the client"),
    "a header that is not listed": ({"headers": {"X-Shop": "1"}}, "allow.headers"),
    "a header of ours, listed": (
        {"headers": {"Host": "x"}, "allow": {"headers": ["Host"]}},
        "set by the client",
    ),
    "a success that is an error": ({"success": [404]}, "success"),
    "500 as refused": ({"refused_statuses": [500]}, "cannot know"),
    "504 as refused": ({"refused_statuses": [504]}, "cannot know"),
    "404 as refused": ({"refused_statuses": [404]}, "refused_statuses"),
    "a port too high": ({"allow": {"ports": [70000]}}, "ports"),
    "another scheme allowed": ({"allow": {"schemes": ["ftp"]}}, "schemes"),
    "one status twice": ({"job": JOB, "success": [200, 202]}, "leave it in one"),
    "no place for the handle": ({"job": {"poll": JOB["poll"]}}, "exactly one of handle"),
    "a poll without handle": (
        {"job": {**JOB, "poll": {**JOB["poll"], "url": "https://api.example.com/"}}},
        "asks after nothing",
    ),
    "a condition that says nothing": ({"probe": {**PROBE, "happened": {}}}, "a status"),
    "a pointer without a test": (
        {"probe": {**PROBE, "happened": {"pointer": "/a"}}},
        "exactly one of equals",
    ),
    "a pointer with two tests": (
        {"probe": {**PROBE, "happened": {"pointer": "/a", "equals": 1, "exists": True}}},
        "exactly one of equals",
    ),
    "a probe about no call": (
        {"probe": {**PROBE, "url": "https://api.example.com/"}},
        "about no call",
    ),
    "a probe that acts": ({"probe": {**PROBE, "method": "POST"}}, "method"),
}


@pytest.mark.parametrize(("change", "says"), UNFIT.values(), ids=UNFIT)
def test_a_configuration_that_cannot_work_is_refused_with_the_reason(change, says):
    with pytest.raises(UnfitConfig, match="Correct: ") as refused:
        load({**PLAIN, **change})
    assert says in str(refused.value)


def test_a_refusal_does_not_repeat_what_was_written():
    with pytest.raises(UnfitConfig) as refused:
        load({**PLAIN, "headers": {"Authorization": ["canary-0123456789"]}})
    assert "canary" not in str(refused.value)

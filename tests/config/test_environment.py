"""The environment: a value that cannot be used stops a program with a sentence that names it."""

import pytest
from pydantic import ValidationError

from config.environment import Environment

LINKS = (
    "",
    "https://traces.example.org/trace/{trace_id}",
    "http://127.0.0.1:16686/trace/{trace_id}?uiFind=1#{trace_id}",
    'https://grafana.example.org/explore?left={"query":"{trace_id}"}',
)
NO_LINKS = (
    "traces.example.org/{trace_id}",
    "//traces.example.org/{trace_id}",
    "javascript:alert(1)//{trace_id}",
    "data:text/html,/{trace_id}",
    "ftp://traces.example.org/{trace_id}",
    "HTTPS://traces.example.org/{trace_id}",
    "https://traces.example.org/trace",
    "https://traces.example.org/trace/{traceid}",
    "https://{trace_id}.example.org/",
    "https://traces.example.org{trace_id}",
    "https://user:secret@traces.example.org/{trace_id}",
    "https:///{trace_id}",
    "https://traces.example.org/{trace_id} x",
    "https://traces.example.org/{trace_id}\n",
    "https://traces.example.org/\u202e/{trace_id}",
)


@pytest.mark.parametrize("address", LINKS)
def test_the_link_to_a_trace_is_a_web_address_that_names_it(address: str) -> None:
    assert Environment(trace_url=address).trace_url == address


@pytest.mark.parametrize("address", NO_LINKS)
def test_a_link_that_could_lead_nowhere_or_elsewhere_stops_the_program(address: str) -> None:
    with pytest.raises(ValidationError, match="CLEARHOUSE_TRACE_URL cannot be used"):
        Environment(trace_url=address)

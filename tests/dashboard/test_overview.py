"""What the pages that count share."""

from datetime import timedelta

import pytest
from django.conf import settings

from dashboard.overview import Figure, late_before
from ledger import clock


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(0), "0"),
        (Figure(23), "23"),
        (Figure(1000), "1000"),
        (Figure(1001), "1\N{NO-BREAK SPACE}000+"),
        (Figure(412, at_least=True), "412+"),
        (Figure(0, at_least=True), "0"),
    ],
)
def test_a_figure_is_exact_up_to_a_thousand(figure: Figure, text: str) -> None:
    assert str(figure) == text


@pytest.mark.django_db
def test_a_deadline_is_overdue_after_ten_sweeps() -> None:
    now = clock.now()
    assert now - late_before(now) == timedelta(seconds=10 * settings.ENVIRONMENT.sweep_s)

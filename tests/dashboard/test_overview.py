"""What the pages that count share."""

import pytest

from dashboard.overview import Figure


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

"""What judging ahead of time costs."""

import pytest

from mind2web2.cli.tables import dropped_text
from mind2web2.speculation import Requests, counted_ahead, dropped_counted, note_dropped


@pytest.mark.parametrize(
    ("costs", "expected"), [((0.5, 0.25), 0.75), ((0.5, None), None), ((None, 0.5), None)]
)
def test_prices_add_up_as_long_as_they_are_known(costs, expected):
    """One that is not known makes the sum unknown."""
    total = Requests()
    for cost in costs:
        requests = Requests(sent=2)
        requests.note_answer(cost)
        total.add(requests)
    assert (total.sent, total.answered, total.cost_usd) == (4, 2, expected)


def test_what_is_dropped_is_counted_in_its_run():
    """Outside of any run nobody asks."""
    run = Requests()
    with dropped_counted(run), counted_ahead(Requests()):
        note_dropped(Requests(3, 2, 0.1))
    note_dropped(Requests(3, 2, 0.1))
    assert run == Requests(3, 2, 0.1)


@pytest.mark.parametrize(
    ("dropped", "expected"),
    [
        (Requests(3, 2, 0.1), "2 judgments for $0.1000, and 1 more broken off."),
        (Requests(1, 1, 0.00002), "1 judgment for $0.00002, and 0 more broken off."),
        (Requests(1, 1, None), "1 judgment at an unknown price, and 0 more broken off."),
    ],
)
def test_the_run_says_what_it_cost(dropped, expected):
    """In one line."""
    assert dropped_text(dropped) == f"Judged ahead of time and then skipped (--speculate): {expected}"

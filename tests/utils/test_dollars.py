"""Dollars are written so that a reader can read them."""

import pytest

from mind2web2.utils.text import dollars, dollars_as_given


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0.0, "$0.0000"),
        (1e-7, "$0.0000001"),
        (0.00003456, "$0.000035"),
        (0.0123456, "$0.0123"),
        (9.5, "$9.5000"),
        (12345.678, "$12,345.68"),
        (float("nan"), "unknown"),
    ],
)
def test_an_amount_has_the_digits_that_tell_something(amount, words):
    """What is spent is never shown as nothing."""
    assert dollars(amount) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [(1e-6, "0.000001"), (0.05, "0.05"), (5.0, "5"), (1000, "1000"), (1e20, "1" + "0" * 20)],
)
def test_a_given_amount_is_written_as_it_was(amount, words):
    """Never in powers of ten."""
    assert dollars_as_given(amount) == words

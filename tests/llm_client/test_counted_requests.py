"""Requests are counted, also failed ones."""

import pytest

from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.retries import Retries
from mind2web2.llm_client.sent_requests import count_requests, counted_requests


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ([], ""),
        (["503"], "1 request tried again (503: 1)"),
        (["503", "429", "429", "no reply"], "4 requests tried again (429: 2, 503: 1, no reply: 1)"),
        (["1", "2", "3", "4", "5"], "5 requests tried again (1: 1, 2: 1, 3: 1, 4: 1, ...)"),
    ],
)
def test_retries_are_listed_by_reason(reasons, words):
    """The most frequent first, and a few of them only."""
    retries = Retries()
    for reason in reasons:
        retries.note(reason)
    assert retries.in_words() == words


def test_requests_are_counted_in_their_block():
    """Not before, not after, and an inner block counts for itself."""
    count_requests(5)
    with counted_requests() as outer:
        count_requests(1, Usage(10, 0, 2))
        with counted_requests() as inner:
            count_requests(7)
        count_requests(usage=Usage(1, 0, 1))
    count_requests(5)
    assert outer.usage == Usage(11, 0, 3, requests=1, unreported_requests=1)
    assert inner.usage == Usage(requests=7, unreported_requests=7)

"""What asking takes is counted, also where nothing comes of it."""

import pytest

from mind2web2.llm_client.chat import TokenUsage
from mind2web2.llm_client.retry import Retries, note_toll, toll_counted


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ([], ""),
        (["503"], "1 request tried again (503: 1)"),
        (["503", "429", "429", "no reply"], "4 requests tried again (429: 2, 503: 1, no reply: 1)"),
        (["1", "2", "3", "4", "5"], "5 requests tried again (1: 1, 2: 1, 3: 1, 4: 1, ...)"),
    ],
)
def test_retries_are_told_by_reason(reasons, words):
    """The most frequent first, and a few of them only."""
    retries = Retries()
    for reason in reasons:
        retries.note(reason)
    assert retries.in_words() == words


def test_a_toll_counts_what_happens_in_its_block():
    """Not before, not after, and an inner block counts for itself."""
    note_toll(5)
    with toll_counted() as outer:
        note_toll(1, TokenUsage(10, 0, 2))
        with toll_counted() as inner:
            note_toll(7)
        note_toll(usage=TokenUsage(1, 0, 1))
    note_toll(5)
    assert (outer.requests, outer.usage) == (1, TokenUsage(11, 0, 3))
    assert (inner.requests, inner.usage) == (7, TokenUsage())

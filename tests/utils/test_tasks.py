"""Coroutines run together: none is left behind."""

import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.utils.tasks import all_or_first_error, results_until, to_the_end


class Crew:
    """Workers that take as many turns of the event loop as they are told, and note what becomes of them."""

    def __init__(self):
        self.begun, self.ended, self.most_at_once = [], [], 0

    async def work(self, number, turns=1, error=None):
        """Return the number, or raise."""
        self.begun.append(number)
        self.most_at_once = max(self.most_at_once, len(self.begun) - len(self.ended))
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
        finally:
            self.ended.append(number)
        if error is not None:
            raise error
        return number


async def test_the_first_error_ends_the_others():
    """They are cancelled and awaited before it is raised."""
    crew = Crew()
    with pytest.raises(ValueError, match="no"):
        await all_or_first_error([crew.work(0, 1000), crew.work(1, 1, ValueError("no"))])
    assert sorted(crew.ended) == [0, 1]


@given(
    turns=st.lists(st.integers(1, 5), max_size=8),
    at_once=st.integers(1, 4),
    last=st.integers(0, 9),
)
async def test_results_come_up_to_the_decisive_one(turns, at_once, last):
    """In order, with no more at a time than allowed, and nothing begun beyond what is."""
    crew = Crew()
    starts = [partial(crew.work, number, count) for number, count in enumerate(turns)]
    results = await results_until(starts, lambda number: number == last, at_once=at_once)
    assert sorted(crew.ended) == sorted(crew.begun)
    assert crew.most_at_once <= at_once
    if last < len(turns):
        assert results[-1] == last
        assert results[:-1] == sorted(results[:-1])
    else:
        assert results == list(range(len(turns)))
    if at_once == 1:
        assert results == crew.begun == list(range(min(last + 1, len(turns))))


async def test_a_decisive_result_cancels_the_rest():
    """Those under way end at once, those that wait never begin."""
    crew = Crew()
    starts = [partial(crew.work, number, turns) for number, turns in enumerate([10_000, 3, 10_000, 1])]
    assert await results_until(starts, lambda number: number == 1, at_once=2) == [1]
    assert (crew.begun, sorted(crew.ended)) == ([0, 1], [0, 1])


async def test_an_error_among_several_ends_them_all():
    """It is raised once everything has ended."""
    crew = Crew()
    starts = [partial(crew.work, 0, 10_000), partial(crew.work, 1, 1, ValueError("no"))]
    with pytest.raises(ValueError, match="no"):
        await results_until(starts, bool, at_once=2)
    assert sorted(crew.ended) == [0, 1]


async def test_cancelling_the_caller_cancels_all():
    """Nothing goes on without an owner."""
    crew = Crew()
    starts = [partial(crew.work, number, 10_000) for number in range(3)]
    task = asyncio.create_task(results_until(starts, bool, at_once=3))
    for _ in range(3):
        await asyncio.sleep(0)
    assert crew.begun == [0, 1, 2]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert sorted(crew.ended) == [0, 1, 2]


@pytest.mark.parametrize("error", [None, ValueError("no")])
async def test_what_is_done_to_the_end_ends_before_its_cancelled_caller(error):
    """The cancellation comes out, whatever has become of the work."""
    crew = Crew()
    task = asyncio.create_task(to_the_end(crew.work(7, 3, error)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), crew.ended) == (True, [7])


async def test_what_is_done_to_the_end_brings_its_result():
    """Or its error."""
    crew = Crew()
    assert await to_the_end(crew.work(3)) == 3
    with pytest.raises(ValueError, match="no"):
        await to_the_end(crew.work(4, 1, ValueError("no")))

"""Coroutines run together: none is left behind."""

import asyncio

import pytest

from mind2web2.utils.aio import all_or_first_error, to_the_end


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


@pytest.mark.parametrize("cancellations", [1, 3])
@pytest.mark.parametrize("error", [None, ValueError("no")])
async def test_what_is_done_to_the_end_ends_before_its_cancelled_caller(error, cancellations):
    """The cancellation comes out, whatever has become of the work."""
    crew = Crew()
    task = asyncio.create_task(to_the_end(crew.work(7, 5, error)))
    await asyncio.sleep(0)
    for _ in range(cancellations):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({task})
    assert (task.cancelled(), crew.ended) == (True, [7])


async def test_what_is_done_to_the_end_brings_its_result():
    """Or its error."""
    crew = Crew()
    assert await to_the_end(crew.work(3)) == 3
    with pytest.raises(ValueError, match="no"):
        await to_the_end(crew.work(4, 1, ValueError("no")))

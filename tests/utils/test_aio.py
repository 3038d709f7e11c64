"""Event loops: shared work, tasks that end together."""

import asyncio

import pytest

from mind2web2.utils.aio import SharedWork, all_or_first_error, to_the_end


class Work:
    """Work that goes on until it is told to end, and counts how often it was begun and given up."""

    def __init__(self, error=None):
        self.begun = self.given_up = 0
        self.error, self.may_end = error, asyncio.Event()

    async def __call__(self):
        """Return how often it has been begun, or raise."""
        self.begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.error is not None:
            raise self.error
        return self.begun


async def callers(shared, work, *keys):
    """Return tasks that wait for the work."""
    tasks = [asyncio.create_task(shared.result(key, work)) for key in keys]
    await turns()
    return tasks


async def turns():
    """Let all that is ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_equal_work_is_done_once_and_other_work_apart():
    shared, work = SharedWork(), Work()
    tasks = await callers(shared, work, "a", "a", "b", "a")
    work.may_end.set()
    await asyncio.gather(*tasks)
    assert work.begun == 2
    assert await shared.result("a", work) == 3


async def test_an_error_reaches_everybody():
    shared, work = SharedWork(), Work(ValueError("no"))
    tasks = await callers(shared, work, "a", "a")
    work.may_end.set()
    assert [str(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == [
        "no",
        "no",
    ]
    with pytest.raises(ValueError, match="no"):
        await shared.result("a", work)
    assert work.begun == 2


async def test_work_goes_on_for_those_who_still_wait():
    shared, work = SharedWork(), Work()
    first, second = await callers(shared, work, "a", "a")
    first.cancel()
    await turns()
    work.may_end.set()
    assert await second == 1
    assert first.cancelled()
    assert (work.begun, work.given_up) == (1, 0)


async def test_work_that_nobody_waits_for_is_given_up():
    """The last one to be cancelled takes it along, and it has ended by then."""
    shared, work = SharedWork(), Work()
    tasks = await callers(shared, work, "a", "a")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (work.begun, work.given_up) == (1, 1)


async def test_who_comes_while_work_is_given_up_begins_anew():
    shared, work = SharedWork(), Work()
    (first,) = await callers(shared, work, "a")
    first.cancel()
    (second,) = await callers(shared, work, "a")
    work.may_end.set()
    assert await second == 2


class Crew:
    """Workers that take so many turns of the event loop, and note their end."""

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
    crew = Crew()
    assert await to_the_end(crew.work(3)) == 3
    with pytest.raises(ValueError, match="no"):
        await to_the_end(crew.work(4, 1, ValueError("no")))

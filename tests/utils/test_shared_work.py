"""Work that several callers want: done once, given up when nobody waits any more."""

import asyncio

import pytest

from mind2web2.utils.aio import SharedWork


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
    """Let everything run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_equal_work_is_done_once_and_other_work_apart():
    """Whoever asks while it is under way gets the same; later it is done anew."""
    shared, work = SharedWork(), Work()
    tasks = await callers(shared, work, "a", "a", "b", "a")
    work.may_end.set()
    await asyncio.gather(*tasks)
    assert work.begun == 2
    assert await shared.result("a", work) == 3


async def test_an_error_reaches_everybody():
    """And is not remembered."""
    shared, work = SharedWork(), Work(ValueError("no"))
    tasks = await callers(shared, work, "a", "a")
    work.may_end.set()
    assert [str(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == ["no", "no"]
    with pytest.raises(ValueError, match="no"):
        await shared.result("a", work)
    assert work.begun == 2


async def test_work_goes_on_for_those_who_still_wait():
    """Though the one who began it is cancelled."""
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
    """Rather than being cancelled along with it."""
    shared, work = SharedWork(), Work()
    (first,) = await callers(shared, work, "a")
    first.cancel()
    (second,) = await callers(shared, work, "a")
    work.may_end.set()
    assert await second == 2

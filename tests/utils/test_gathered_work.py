"""Work that gathers for a thread: done in batches, in order, each item with an outcome of its own."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mind2web2.utils.aio import Failed, GatheredWork


class Thread:
    """Doubles numbers, in batches that it remembers; negative ones fail, and it can be held up."""

    def __init__(self):
        self.batches, self.may_go, self.began = [], threading.Event(), threading.Event()
        self.may_go.set()

    def double_all(self, numbers):
        """Return what becomes of each."""
        self.began.set()
        self.may_go.wait(60)
        self.batches.append(list(numbers))
        return [2 * number if number >= 0 else Failed(ValueError(f"{number}")) for number in numbers]


@pytest.fixture
def thread():
    """Give a thread's work."""
    return Thread()


@pytest.fixture
def executor():
    """Give the thread."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool


async def gathered(thread, work, numbers):
    """Hand in one number and, while that is done, the others; return the tasks that wait."""
    thread.may_go.clear()
    waiting = [asyncio.ensure_future(work.result(number)) for number in numbers]
    await asyncio.to_thread(thread.began.wait, 60)
    return waiting


async def test_what_gathers_is_done_together(thread, executor):
    """One batch under way, one that gathers."""
    work = GatheredWork(executor, thread.double_all)
    waiting = await gathered(thread, work, range(50))
    thread.may_go.set()
    assert await asyncio.gather(*waiting) == [2 * number for number in range(50)]
    assert thread.batches == [[0], list(range(1, 50))]


async def test_one_that_fails_costs_no_other(thread, executor):
    """Each hears of its own outcome."""
    work = GatheredWork(executor, thread.double_all)
    waiting = await gathered(thread, work, [1, 2, -3, 4])
    thread.may_go.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [results[0], results[1], results[3]] == [2, 4, 8]
    assert isinstance(results[2], ValueError)


async def test_a_batch_that_breaks_is_told_to_all(executor):
    """Nobody waits for ever."""

    def explode(_):
        raise RuntimeError("no thread's work")

    work = GatheredWork(executor, explode)
    results = await asyncio.gather(*(work.result(number) for number in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["no thread's work"] * 3


async def test_who_is_cancelled_does_not_stop_the_others(thread, executor):
    """Its work is done all the same, as that of a call that is under way."""
    work = GatheredWork(executor, thread.double_all)
    waiting = await gathered(thread, work, [1, 2, 3])
    waiting[1].cancel()
    thread.may_go.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert (results[0], results[2]) == (2, 6)
    assert isinstance(results[1], asyncio.CancelledError)
    assert await work.result(4) == 8


def test_one_loop_after_another(thread, executor):
    """A loop that ends with work under way leaves nothing behind for the next one."""
    work = GatheredWork(executor, thread.double_all)

    async def leave():
        for task in await gathered(thread, work, [1, 2]):
            task.cancel()

    asyncio.run(leave())
    thread.may_go.set()
    assert asyncio.run(work.result(5)) == 10

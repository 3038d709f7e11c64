"""Event loops: shared work, tasks that end together, turns, garbage collection."""

import asyncio
import gc
import weakref

import pytest

from mind2web2.utils.aio import SharedWork, all_or_first_error, to_the_end
from mind2web2.utils.garbage_collection import gc_frozen, pause_gc
from mind2web2.utils.loop_turns import LoopTurns, loop_turn


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
    crew = Crew()
    assert await to_the_end(crew.work(3)) == 3
    with pytest.raises(ValueError, match="no"):
        await to_the_end(crew.work(4, 1, ValueError("no")))


class Rounds:
    """Counts the rounds of the running loop, and is a clock that goes on as work is done."""

    def __init__(self):
        self.now_s, self.number, self.work, self.looks = 0.0, 0, [], 0

    def __call__(self):
        """Return the seconds of work so far."""
        self.looks += 1
        return self.now_s

    async def count(self):
        """Count for ever; the task is the first of its round."""
        while True:
            self.number += 1
            await asyncio.sleep(0)

    async def do(self, name, turns, takes_s):
        """Wait for a turn, work, and note the round."""
        await turns.turn()
        self.now_s += takes_s
        self.work.append((name, self.number))


async def worked(takes_s, pieces, rounds=None):
    """Return which piece was done in which round."""
    rounds = rounds or Rounds()
    turns = LoopTurns(asyncio.get_running_loop(), rounds)
    counting = asyncio.create_task(rounds.count())
    await asyncio.gather(*(rounds.do(piece, turns, takes_s) for piece in range(pieces)))
    counting.cancel()
    return rounds.work


@pytest.mark.parametrize(("takes_s", "in_a_round"), [(0.0, 12), (0.0004, 5), (0.0011, 2), (0.5, 1)])
async def test_a_round_takes_what_fits(takes_s, in_a_round):
    """The piece that begins within two milliseconds is the last one; the order stays."""
    work = await worked(takes_s, 12)
    assert work == [(piece, 1 + piece // in_a_round) for piece in range(12)]


async def test_waiting_costs_the_same_for_each_of_many():
    rounds = Rounds()
    work = await worked(0.5, 1000, rounds)
    assert [piece for piece, _ in work] == list(range(1000))
    assert rounds.looks < 20 * 1000


async def test_rounds_without_work_do_not_count():
    rounds = Rounds()
    turns = LoopTurns(asyncio.get_running_loop(), rounds)
    await rounds.do("first", turns, 10)
    await asyncio.sleep(0)
    await rounds.do("second", turns, 10)
    assert [name for name, _ in rounds.work] == ["first", "second"]


def test_each_loop_has_its_own_turns():
    """A loop may have ended in the middle of a round."""
    for _ in range(2):
        asyncio.run(asyncio.wait_for(loop_turn(), 60))


@pytest.fixture
def _nothing_is_frozen():
    """Undo for a while what all tests have frozen."""
    gc.unfreeze()
    yield
    gc.freeze()


class Knot:
    """Refers to itself."""

    def __init__(self):
        self.itself = self


@pytest.mark.usefixtures("_nothing_is_frozen")
def test_what_is_loaded_is_not_looked_at():
    knots = [Knot()]
    with gc_frozen():
        assert not any(found is knots[0] for found in gc.get_objects())
        knots.append(Knot())
        assert any(found is knots[1] for found in gc.get_objects())
        gc.collect()
        assert not any(found is knots[1] for found in gc.get_objects())


@pytest.mark.usefixtures("_nothing_is_frozen")
def test_what_refers_to_itself_is_freed():
    """Where it was made since the last full collection."""
    with gc_frozen():
        short, long = Knot(), Knot()
        seen_short, seen_long = weakref.ref(short), weakref.ref(long)
        del short
        gc.collect()
        assert seen_short() is None
        del long
        gc.collect()
        assert seen_long() is not None


@pytest.mark.usefixtures("_nothing_is_frozen")
def test_the_collector_is_left_as_it_was():
    """Thresholds and callbacks; objects that are frozen stay frozen."""
    before = (gc.get_threshold(), list(gc.callbacks))
    with gc_frozen():
        assert gc.get_threshold() != before[0]
    assert (gc.get_threshold(), list(gc.callbacks)) == before
    assert gc.get_freeze_count()


def test_nothing_is_collected_while_libraries_load():
    """The pauses may be nested, and the collector may have been off before."""
    with pause_gc():
        with pause_gc():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()

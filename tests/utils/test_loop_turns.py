"""Work that becomes ready at once is spread over rounds of the event loop."""

import asyncio

import pytest

from mind2web2.utils.aio import LoopTurns, loop_turn


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
    """Of a thousand that wait, few ask in each round; they still work in order."""
    rounds = Rounds()
    work = await worked(0.5, 1000, rounds)
    assert [piece for piece, _ in work] == list(range(1000))
    assert rounds.looks < 20 * 1000


async def test_rounds_without_work_do_not_count():
    """Who comes later finds a fresh round, however long ago the last one began."""
    rounds = Rounds()
    turns = LoopTurns(asyncio.get_running_loop(), rounds)
    await rounds.do("first", turns, 10)
    await asyncio.sleep(0)
    await rounds.do("second", turns, 10)
    assert [name for name, _ in rounds.work] == ["first", "second"]


def test_each_loop_has_its_own_turns():
    """Also after one has ended in the middle of a round."""
    for _ in range(2):
        asyncio.run(asyncio.wait_for(loop_turn(), 60))

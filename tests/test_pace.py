"""How an evaluation goes about its requests."""

import asyncio

from mind2web2.pace import Pace, current_pace, pace_kept


async def test_a_pace_is_kept_in_all_that_is_started():
    """Outside of it the usual one holds."""
    ahead = Pace(speculate=True)
    with pace_kept(ahead):
        task = asyncio.create_task(asyncio.to_thread(current_pace))
    assert (await task, current_pace()) == (ahead, Pace())

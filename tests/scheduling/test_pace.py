"""How an evaluation goes about its requests."""

import asyncio

from mind2web2.scheduling.scheduler import Pace, current_pace, pace_kept


async def test_a_pace_is_kept_in_all_that_is_started():
    """Outside of it the usual one holds."""
    kept = Pace(sequential=True)
    with pace_kept(kept):
        task = asyncio.create_task(asyncio.to_thread(current_pace))
    assert (await task, current_pace()) == (kept, Pace())

"""Execution options of an evaluation."""

import asyncio

from mind2web2.scheduling.options import (
    ExecutionOptions,
    current_options,
    execution_options,
)


async def test_options_hold_in_all_tasks_and_threads_of_the_block():
    """Outside of the block the defaults hold."""
    kept = ExecutionOptions(sequential=True)
    with execution_options(kept):
        task = asyncio.create_task(asyncio.to_thread(current_options))
    assert (await task, current_options()) == (kept, ExecutionOptions())

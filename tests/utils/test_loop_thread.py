"""A thread with an event loop of its own."""

import gc
import warnings

from mind2web2.utils.loop_thread import LoopThread


def test_a_thread_that_never_starts_leaves_no_loop_open():
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        LoopThread("unused")
        gc.collect()
    assert [str(each.message) for each in noted if "event loop" in str(each)] == []


def test_a_started_thread_runs_coroutines_until_it_is_stopped():
    async def answer():
        return 42

    thread = LoopThread("used")
    thread.start()
    assert thread.run(answer()).result() == 42
    thread.stop()
    thread.join(30)

"""Hosts are asked few at a time and left alone when they say so."""

import asyncio

from mind2web2.capture.host_turns import HostTurns


async def test_few_pages_of_one_host_at_once():
    """Other hosts are not held up by a busy one."""
    turns = HostTurns(max_pages_per_host=2)
    now, most = 0, 0
    full, others = asyncio.Event(), asyncio.Event()

    async def visit():
        nonlocal now, most
        async with turns.turn("a.example"):
            now += 1
            most = max(most, now)
            if now == 2:
                full.set()
            await others.wait()
            now -= 1

    visits = [asyncio.create_task(visit()) for _ in range(6)]
    await full.wait()
    async with turns.turn("b.example"):
        others.set()
    await asyncio.gather(*visits)
    assert most == 2


async def test_a_host_that_wants_rest_gets_it():
    turns = HostTurns(max_pages_per_host=1)
    loop = asyncio.get_running_loop()
    started = loop.time()
    turns.rest("a.example", 0.05)
    async with turns.turn("b.example"):
        assert loop.time() - started < 0.05
    async with turns.turn("a.example"):
        assert loop.time() - started >= 0.05


async def test_a_cancelled_visit_gives_its_turn_back():
    """A turn that is not given back would let nobody in again."""
    turns = HostTurns(max_pages_per_host=1)
    async with turns.turn("a.example"):
        waiting = asyncio.create_task(anext(_visits(turns)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(5), turns.turn("a.example"):
        pass


async def _visits(turns):
    async with turns.turn("a.example"):
        yield

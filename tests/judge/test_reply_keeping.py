"""What the judge said, kept in spite of a full disk and of Ctrl-C."""

import asyncio
import resource
import signal

import pytest

from mind2web2.errors import JudgmentStoreError
from mind2web2.judge.caching import ReplyKeeper
from mind2web2.judge.store import Judgment, JudgmentStore


def judgment(key, text="yes"):
    """Return a judgment."""
    created = "2026-01-01T00:00:00.000+00:00"
    fields = {"endpoint": "e", "model": "m", "outcome": "reply", "created": created, "purpose": "verify"}
    return Judgment(key=key, text=text, **fields)


@pytest.fixture
def store(tmp_path):
    """Open a store on disk."""
    with JudgmentStore(tmp_path / "judgments.sqlite3") as store:
        yield store


@pytest.fixture
def small_disk():
    """Return what makes files of this process grow no more, and what lets them grow again."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limit(size=before[0]):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    limit()
    signal.signal(signal.SIGXFSZ, ignored)


async def test_what_the_disk_did_not_take_is_written_as_soon_as_there_is_room(store, small_disk):
    """Until then whoever asks is told, by an error that names the file and the cure."""
    keeper = ReplyKeeper(store)
    small_disk(2000)
    for attempt in (keeper.keep(judgment("a", "x" * 9000)), keeper.write_rest()):
        with pytest.raises(JudgmentStoreError, match=r"judgments\.sqlite3 cannot be kept: .*room"):
            await attempt
    assert keeper.unwritten == 1
    small_disk()
    await keeper.write_rest()
    assert keeper.unwritten == 0
    assert (await store.get("a")).text == "x" * 9000


async def test_a_reply_that_has_come_is_kept_though_its_answer_is_given_up(store):
    """Cancelled while it is written, alone and beside others."""
    keeper = ReplyKeeper(store)
    keeping = [asyncio.create_task(keeper.keep(judgment(f"k{number}"))) for number in range(5)]
    await asyncio.sleep(0)
    for task in keeping:
        task.cancel()
    await asyncio.gather(*keeping, return_exceptions=True)
    assert all(task.cancelled() for task in keeping)
    assert [one.key for one in store.all()] == [f"k{number}" for number in range(5)]

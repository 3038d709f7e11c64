"""Locks among processes."""

import subprocess
import sys
import threading

import pytest
from projects import clean_environment

from mind2web2.utils.files import ProcessLock

HOLDER = """
import sys
from pathlib import Path
from mind2web2.utils.files import ProcessLock

lock = ProcessLock(Path(sys.argv[1]))
print(lock.take(), flush=True)
sys.stdin.readline()
lock.give_back()
"""


@pytest.fixture
def path(tmp_path):
    """Return where the lock is, in a folder that is not there yet."""
    return tmp_path / "new" / ".lock"


def started_holder(path):
    """Start a process that takes the lock and gives it back when it is told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "True\n"
    return process


def test_one_holder_at_a_time(path):
    """In one process as well; given back, it is free, and nothing of it is left."""
    first, second = ProcessLock(path), ProcessLock(path)
    assert first.take()
    assert not second.take()
    second.give_back()
    assert not ProcessLock(path).take()
    first.give_back()
    assert list(path.parent.iterdir()) == []
    assert second.take()
    second.give_back()


@pytest.mark.parametrize("end", ["give back", "kill"])
def test_another_process_keeps_it_until_it_gives_it_back_or_ends(path, end):
    """However it ends."""
    lock = ProcessLock(path)
    with started_holder(path) as holder:
        assert not lock.take()
        if end == "kill":
            holder.kill()
        else:
            holder.stdin.write("\n")
            holder.stdin.flush()
        assert lock.take(timeout_s=30)
    lock.give_back()
    assert list(path.parent.iterdir()) == []


def test_another_thread_may_give_it_back(path):
    """As with work that is handed to threads."""
    lock = ProcessLock(path)
    assert lock.take()
    thread = threading.Thread(target=lock.give_back)
    thread.start()
    thread.join()
    assert ProcessLock(path).take()


def test_a_folder_that_cannot_be_made(tmp_path):
    """The system's own error, for the caller to name the folder."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        ProcessLock(tmp_path / "file" / "new" / ".lock").take()

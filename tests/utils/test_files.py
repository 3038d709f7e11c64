"""Whole-file writes: whole or absent, and nothing left behind."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from projects import clean_environment

from mind2web2.errors import ResultWriteError
from mind2web2.utils.files import (
    is_leftover,
    remove_leftovers,
    write_new,
    write_whole,
)
from mind2web2.utils.machine import network_file_system
from mind2web2.utils.process_lock import ProcessLock


def names_in(folder):
    """Return the names of a folder's files, sorted."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("data", "expected"),
    [("Zürich\r\n", "Zürich\r\n".encode()), (b"\x00\xff", b"\x00\xff"), ("", b"")],
)
def test_writes_text_as_utf8_and_bytes_as_they_are(tmp_path, data, expected):
    """The folder is made, the content is exact, and no other file appears."""
    path = tmp_path / "new" / "folder" / "page.txt"
    write_whole(path, data)
    assert path.read_bytes() == expected
    assert names_in(path.parent) == ["page.txt"]


def test_replaces_a_file_under_its_readers(tmp_path):
    path = tmp_path / "page.txt"
    write_whole(path, "old content")
    with path.open() as reader:
        write_whole(path, "new")
        assert reader.read() == "old content"
    assert path.read_text() == "new"


def test_new_files_get_the_usual_permissions(tmp_path):
    """Others can read what they could read if the file were written plainly."""
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "whole", "")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_failure_leaves_nothing_behind(tmp_path):
    """A target that cannot be replaced keeps what it is, and the temporary file goes."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", "text")
    assert names_in(tmp_path) == ["folder"]


def test_text_that_is_not_unicode_leaves_the_old_file(tmp_path):
    """A lone surrogate cannot be written; the old content survives."""
    write_whole(tmp_path / "page.txt", "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "page.txt", "\ud800")
    assert names_in(tmp_path) == ["page.txt"]
    assert (tmp_path / "page.txt").read_text() == "old"


def test_a_name_of_the_greatest_length_can_be_written(tmp_path):
    """The temporary name does not grow with the target's."""
    write_whole(tmp_path / ("n" * 255), "text")
    assert (tmp_path / ("n" * 255)).read_text() == "text"


ENDLESS = """
import itertools, sys
from pathlib import Path
from mind2web2.utils.files import write_whole
folder = Path(sys.argv[1])
for number in itertools.count():
    write_whole(folder / "big", str(number % 10) * 200_000)
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    for writes in (1, 2, 5, 9, 27):
        with subprocess.Popen(
            [sys.executable, "-c", ENDLESS, tmp_path], stdout=subprocess.PIPE
        ) as writer:
            for _ in range(writes):
                assert writer.stdout.readline()
            writer.kill()
        content = (tmp_path / "big").read_text()
        assert (len(content), len(set(content))) == (200_000, 1)
        left = set(names_in(tmp_path)) - {"big"}
        assert all(map(is_leftover, left))


@pytest.mark.parametrize("has_links", [True, False])
def test_a_new_file_takes_no_other_ones_place(tmp_path, monkeypatch, has_links):
    def no_link(*_):
        raise OSError(errno.EPERM, "no links here")

    if not has_links:
        monkeypatch.setattr(Path, "hardlink_to", no_link)
    path = tmp_path / "new" / "page.txt"
    write_new(path, "first")
    with pytest.raises(FileExistsError):
        write_new(path, "second")
    assert path.read_text() == "first"
    assert names_in(path.parent) == ["page.txt"]


def test_old_leftovers_are_removed(tmp_path):
    """Young ones may be under way; a folder that is not there has none."""
    for name in (".writing-old", ".writing-young", "page.txt"):
        (tmp_path / name).write_text("half")
    os.utime(tmp_path / ".writing-old", (1, 1))
    remove_leftovers(tmp_path)
    assert names_in(tmp_path) == [".writing-young", "page.txt"]
    remove_leftovers(tmp_path, min_age_s=0)
    assert names_in(tmp_path) == ["page.txt"]
    remove_leftovers(tmp_path / "missing")


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:35 / /mnt/share rw,relatime shared:20 master:1 - nfs4 server:/export rw,vers=4.2
41 40 254:1 / /mnt/share/scratch rw - xfs /dev/vdb rw
42 22 0:36 / /mnt/two\\040words rw - cifs //server/share rw
43 22 0:37 / /mnt/ssh rw - fuse.sshfs me@host:/ rw
44 22 0:38 / /mnt/usb rw - fuseblk /dev/sdb1 rw
45 22 0:39 / /lustre rw - lustre 10.0.0.1@tcp:/fs rw
46 22 254:2 / /hidden rw - nfs server:/old rw
47 46 254:2 / /hidden rw - ext4 /dev/vdc rw
no mount
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/home/me/eval_results", None),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/eval_results/bot", "nfs4"),
        ("/mnt/shared", None),
        ("/mnt/share/scratch/eval_results", None),
        ("/mnt/two words/eval_results", "cifs"),
        ("/mnt/ssh/eval_results", "fuse.sshfs"),
        ("/mnt/usb", None),
        ("/lustre/project", "lustre"),
        ("/hidden", None),
    ],
)
def test_network_file_systems_are_known(tmp_path, place, kind):
    """The innermost and latest mount counts; a system without a list of mounts counts as local."""
    mounts = tmp_path / "mountinfo"
    assert network_file_system(Path(place), mounts) is None
    mounts.write_text(MOUNTS)
    assert network_file_system(Path(place), mounts) == kind


HOLDER = """
import sys
from pathlib import Path
from mind2web2.utils.process_lock import ProcessLock

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
    lock = ProcessLock(path)
    assert lock.take()
    thread = threading.Thread(target=lock.give_back)
    thread.start()
    thread.join()
    assert ProcessLock(path).take()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultWriteError, match="file"):
        ProcessLock(tmp_path / "file" / "new" / ".lock").take()

"""Caching runs that are killed: none of their processes runs on."""

import subprocess
import sys
import threading
import time
from pathlib import Path

from faults.caching import page
from projects import clean_environment
from servers.local_http import LocalHttp

COMMAND = [
    *(sys.executable, "-c", "from mind2web2.cli import main; raise SystemExit(main())"),
    *("cache", "bot", "--no_llm", "--allow_private_network"),
]


def test_a_killed_run_leaves_no_browser(tmp_path):
    """Its processes end when it does, and clean up."""
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(request):
        is_asked.set()
        may_answer.wait(120)
        return page(request)

    answer = tmp_path / "answers" / "bot" / "task" / "answer_1.md"
    answer.parent.mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    environment = clean_environment(TMPDIR=str(tmp_path / "tmp"))
    with LocalHttp(wait) as site:
        answer.write_text(f"{site.url}/page/1", encoding="utf-8")
        with subprocess.Popen(
            COMMAND, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                assert is_asked.wait(120)
                started = descendants(process.pid)
            finally:
                process.kill()
        may_answer.set()
    assert len(started) > 2
    deadline_s = time.monotonic() + 20
    while any(map(is_running, started)):
        assert time.monotonic() < deadline_s
    assert list((tmp_path / "tmp").iterdir()) == []


def descendants(ancestor):
    """Return the ids of a process's children, their children, and so on."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with_parent = stat_fields(path)
        if with_parent:
            parents[int(path.parent.name)] = int(with_parent[1])
    found = {ancestor}
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {ancestor}


def is_running(pid):
    """Tell whether a process is there and has not ended; nobody may have asked how it did."""
    fields = stat_fields(Path(f"/proc/{pid}/stat"))
    return bool(fields) and fields[0] != "Z"


def stat_fields(path):
    """Return state, parent and so on of a process, nothing if it is gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []

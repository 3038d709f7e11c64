"""Caching runs that are killed: nothing half-written is seen, nothing is lost, nothing runs on."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults.caching import PageSite, page
from projects import clean_environment
from servers.local_http import LocalHttp

PAGES = 12
COMMAND = [
    *(sys.executable, "-c", "from mind2web2.cli import main; raise SystemExit(main())"),
    *("cache", "bot", "--no_llm", "--allow_private_network", "--max_concurrent_pages", "3"),
]


@pytest.fixture(scope="module")
def site():
    """Serve the pages."""
    with PageSite() as site:
        yield site


@pytest.fixture
def project(tmp_path, site):
    """Return a folder with one answer that cites all pages."""
    folder = tmp_path / "project"
    answer = folder / "answers" / "bot" / "task" / "answer_1.md"
    answer.parent.mkdir(parents=True)
    links = [f"- {site.url}/page/{number}" for number in range(PAGES)]
    answer.write_text("\n".join(links), encoding="utf-8")
    (folder / "tmp").mkdir()
    return folder


@contextmanager
def caching(project):
    """Run the command in a process of its own, which is killed at the end."""
    with subprocess.Popen(
        COMMAND,
        cwd=project,
        env=clean_environment(TMPDIR=str(project / "tmp")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_killed_run_leaves_no_browser(project):
    """Its processes end when it does, and clean up."""
    is_asked, may_answer = threading.Event(), threading.Event()

    def wait(request):
        is_asked.set()
        may_answer.wait(120)
        return page(request)

    with LocalHttp(wait) as site:
        answer = project / "answers" / "bot" / "task" / "answer_1.md"
        answer.write_text(f"{site.url}/page/1", encoding="utf-8")
        with caching(project) as process:
            assert is_asked.wait(120)
            started = descendants(process.pid)
        may_answer.set()
    assert len(started) > 2
    deadline_s = time.monotonic() + 20
    while any(map(is_running, started)):
        assert time.monotonic() < deadline_s
    assert list((project / "tmp").iterdir()) == []


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

"""Caching runs that are killed: none of their processes runs on."""

import subprocess
import sys
import threading

from faults.caching import page
from fixtures.process_tree import descendants, wait_for_end
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
    wait_for_end(started)
    assert list((tmp_path / "tmp").iterdir()) == []

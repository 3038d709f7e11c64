"""``mind2web2 cache`` and its two scripts, with the real browser on a site of this machine."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from urllib.request import urlopen

import pytest
from fixtures.pdf_files import pdf
from projects import REPOSITORY, call, clean_environment, read_json
from servers.judge_server import JudgeServer, prompt_text
from servers.local_http import Answer, LocalHttp

from mind2web2.cli import batch_cache_main, cache_all_main, main
from mind2web2.pages.cache import CacheFileSys

OPTIONS = ("--allow_private_network", "--max_retries", "0", "--overall_timeout", "30")
PAGE = (
    "<!doctype html><title>{0}</title><h1>{0}</h1><p>The {0} is worth a page of its own, with "
    "words.</p>"
)


class Site(LocalHttp):
    """A few pages; ``replies`` says otherwise by path."""

    def __init__(self):
        self.replies = {
            "/paper": Answer(pdf(["A paper."]), headers={"Content-Type": "application/pdf"}),
            "/dead": Answer(drops=True),
            "/moved": Answer(status=302, headers={"Location": "/moon"}),
        }
        self.is_waiting = threading.Event()
        self.may_go_on = threading.Event()
        super().__init__(self.reply)

    def reply(self, request):
        """Answer with the page of that name; that of ``/slow`` comes when it is let go."""
        if request.path == "/slow":
            self.is_waiting.set()
            self.may_go_on.wait()
        name = request.path.strip("/")
        page = Answer(PAGE.format(name).encode(), headers={"Content-Type": "text/html"})
        return self.replies.get(request.path, page)

    def asked_for(self, path):
        """Return how often a page was asked for."""
        return [request.path for request in self.requests].count(path)


@pytest.fixture
def site():
    """Serve the site."""
    with Site() as site:
        yield site
        site.may_go_on.set()


class Project:
    """The answers and caches of agents in the working directory."""

    def __init__(self, root, site):
        self.root = root
        self.site = site

    def answer(self, *paths, task="lake", name="answer_1", agent="bot", text=""):
        """Write an answer that cites pages of the site."""
        folder = self.root / "answers" / agent / task
        folder.mkdir(parents=True, exist_ok=True)
        links = "\n".join(f"- [{path}]({self.site.url}{path})" for path in paths)
        (folder / f"{name}.md").write_text(f"{links}\n{text}", encoding="utf-8")

    def cache(self, task="lake", agent="bot"):
        """Return a task's cache."""
        return CacheFileSys(self.root / "cache" / agent / task)

    def url(self, path):
        """Return a page's URL."""
        return self.site.url + path

    def store(self, path, **of):
        """Store a page, so that it needs no capture."""
        self.cache(**of).put_web(self.url(path), f"The page {path}.", None)


@pytest.fixture
def project(tmp_path, monkeypatch, site):
    """Return a project, in which commands run without a key."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, site)


def complaints(stderr):
    """Return what was said on standard error, but for whose account it is."""
    return [line for line in stderr.splitlines() if "running as root" not in line]


def cache_bot(*words):
    """Run ``mind2web2 cache bot`` in this process."""
    return call(main, "cache", "bot", *OPTIONS, *words)


def test_a_first_and_a_second_run(project, site):
    """Every cited page once, in each task's folder; then there is nothing to do."""
    project.answer("/lake", "/paper", "/moved")
    project.answer("/lake", task="moon")
    run = cache_bot()
    assert (run.returncode, complaints(run.stderr)) == (0, [])
    assert site.asked_for("/lake") == 1
    for task in ("lake", "moon"):
        assert "The lake is worth a page" in project.cache(task).get_web(project.url("/lake"))[0]
    assert project.cache().get_pdf(project.url("/paper")) == site.replies["/paper"].body
    assert project.cache().get_web(project.url("/moon")) == project.cache().get_web(
        project.url("/moved")
    )
    assert f"[1/3] {site.url}/" in run.stdout
    listed = read_json(project.root / "cache" / "bot" / "lake.json")
    assert (listed["total_unique_urls"], listed["cached_url_count"]) == (3, 3)
    asked = len(site.requests)
    assert cache_bot().returncode == 0
    assert len(site.requests) == asked


def test_failed_and_suspect_pages_are_listed(project, site):
    """Exit status 1, the reasons and what to do; ``--only`` then gets just those."""
    site.replies["/odd"] = Answer(PAGE.format("odd").encode(), 500, {"Content-Type": "text/html"})
    project.answer("/dead", "/odd", "/lake")
    run = cache_bot()
    assert (run.returncode, complaints(run.stderr)) == (1, [])
    assert row(run.stdout, "lake") == ["lake", "3", "2", "0", "1", "1", "0"]
    for words in (
        "Failed: ",
        f"  {site.url}/dead (lake)",
        "Suspect: http error: ",
        f"  {site.url}/odd (lake)",
        "again: mind2web2 cache bot --only suspect --allow_private_network\n",
        "again: mind2web2 cache bot --only failed --allow_private_network\n",
    ):
        assert words in run.stdout
    assert project.cache().has(project.url("/dead")) is None
    site.replies.clear()
    site.requests.clear()
    assert cache_bot("--only", "failed").returncode == 0
    assert site.asked_for("/dead") == 1
    assert site.asked_for("/odd") == site.asked_for("/lake") == 0
    run = cache_bot("--only=suspect")
    assert row(run.stdout, "lake") == ["lake", "3", "3", "0", "0", "0", "0"]
    assert site.asked_for("/odd") == 1


def row(output, first):
    """Return a row of the closing table."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in output.splitlines()]
    return next(cells for cells in rows if cells[0] == first and len(cells) > 1)


def test_private_addresses_are_refused_by_default(project, site):
    project.answer("/lake")
    run = call(main, "cache", "bot", "--max_retries", "0")
    assert run.returncode == 1
    assert "cache bot --only failed --allow_private_network" in run.stdout
    assert site.requests == []


def test_the_scripts(project, site):
    project.answer("/lake")
    project.answer("/moon", task="moon")
    project.answer("/moon", agent="other")
    project.store("/moon", agent="other")
    assert call(batch_cache_main, "bot", "moon", *OPTIONS).returncode == 0
    assert [request.path for request in site.requests if request.path != "/favicon.ico"] == [
        "/moon"
    ]
    script = REPOSITORY / "cache_all_answers.sh"
    run = subprocess.run(
        [script, *OPTIONS],
        cwd=project.root,
        env=clean_environment(PYTHON=sys.executable),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, complaints(run.stderr)) == (0, [])
    assert project.cache().has(project.url("/lake")) == "web"
    listed = read_json(project.root / "cache" / "other" / "lake.json")
    assert (listed["total_unique_urls"], listed["cached_url_count"]) == (1, 1)


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        (main, ["cache", "nobody"], "no agent nobody under answers. Found: bot"),
        (
            main,
            ["cache", "bot", "--task_id", "none"],
            "no answers to task none under answers/bot",
        ),
        (batch_cache_main, ["bot", "none"], "no answers to task none"),
        (main, ["cache", "bot", "--answer_folder", "empty"], "no answers folder empty"),
        (cache_all_main, ["--answer_folder", "empty"], "no answers under empty"),
        (main, ["cache", "../bot"], "give its plain folder name"),
    ],
)
def test_a_run_that_cannot_start(project, command, words, message):
    project.answer("/lake")
    run = call(command, *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert message in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_a_browser_of_ones_own_that_does_not_run(project):
    """Exit status 2; the citations are listed all the same."""
    project.answer("/lake")
    run = cache_bot("--cdp_url", "http://127.0.0.1:9")
    assert run.returncode == 2
    assert "127.0.0.1:9" in run.stderr
    assert read_json(project.root / "cache" / "bot" / "lake.json")["cached_url_count"] == 0


@contextmanager
def running_chrome(profile):
    """Run a browser as a user would who wants to lend it, and yield its address."""
    flags = (
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
    )
    with subprocess.Popen(
        ["/usr/bin/chromium-headless-shell", *flags, "about:blank"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as chrome:
        try:
            line = next(
                line for line in chrome.stderr if line.startswith("DevTools listening on ws://")
            )
            yield "http://" + line.split("ws://")[1].partition("/")[0]
        finally:
            os.killpg(chrome.pid, signal.SIGKILL)


def test_a_browser_of_ones_own(project, site, tmp_path):
    site.replies["/odd"] = Answer(
        PAGE.format("puzzle").encode(), 403, {"Content-Type": "text/html"}
    )
    project.answer("/odd")
    assert cache_bot().returncode == 0
    assert project.cache().capture_record(project.url("/odd")).is_suspect
    site.replies.clear()
    with running_chrome(tmp_path / "profile") as address:
        run = cache_bot("--only", "suspect", "--cdp_url", address)
        with urlopen(f"{address}/json/version") as version:
            assert version.status == 200
    assert (run.returncode, complaints(run.stderr)) == (0, [])
    assert not project.cache().capture_record(project.url("/odd")).is_suspect


def test_links_that_only_a_judge_sees(project, site):
    """A named model is asked once for each answer; without a key there is a warning."""
    host = site.url.removeprefix("http://")
    project.answer("/lake", text=f"See the page called moon at {host.replace(':', ' port ')}.")
    project.store("/lake")

    def reply(body):
        assert "page called moon" in prompt_text(body)
        return {"urls": [f"{site.url}/moon"]}

    with JudgeServer(reply) as judge:
        without_key = cache_bot("--judge_model", "m")
        assert without_key.returncode == 0
        assert "set OPENAI_API_KEY" in without_key.stderr
        assert "in 1 answer (m did not reply)." in without_key.stdout
        for _ in range(2):
            assert cache_bot("--judge_base_url", judge.base_url).returncode == 0
        assert len(judge.requests) == 1
    assert project.cache().has(project.url("/moon")) == "web"
    assert read_json(project.root / "cache" / "bot" / "lake.json")["total_unique_urls"] == 2


def test_an_answer_that_cannot_be_read(project):
    project.answer("/lake")
    project.store("/lake")
    (project.root / "answers/bot/lake/answer_2.md").write_bytes(b"\xff\xfe")
    run = cache_bot()
    assert run.returncode == 1
    assert [line.partition(": left out: ")[0] for line in complaints(run.stderr)] == ["warning"]
    assert "1 answer could not be read: lake/answer_2.md" in run.stdout
    assert "warning" not in run.stdout


def test_a_python_without_the_dependencies(project):
    project.answer("/lake")
    run = subprocess.run(
        [sys.executable, "-S", REPOSITORY / "batch_answer_cache.py", "bot", "lake"],
        cwd=project.root,
        env=clean_environment(PYTHONPATH=str(REPOSITORY)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert len(run.stderr.splitlines()) == 1
    assert "uv run batch_answer_cache.py" in run.stderr


def test_ctrl_c_keeps_finished_pages(project, site):
    """Exit status 130; the same command goes on."""
    project.answer("/lake", "/slow")
    command = [
        sys.executable,
        "-c",
        "from mind2web2.cli import main; raise SystemExit(main())",
        "cache",
        "bot",
    ]
    with subprocess.Popen(
        [*command, *OPTIONS],
        cwd=project.root,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert any("/lake: saved" in line for line in process.stdout)
        site.is_waiting.wait()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert (process.returncode, complaints(stderr)) == (130, [])
    assert "Stopped. 1 of 2 pages done and kept. The same command continues from here." in stdout
    assert read_json(project.root / "cache" / "bot" / "lake.json")["cached_url_count"] == 1
    site.may_go_on.set()
    assert cache_bot().returncode == 0
    assert site.asked_for("/lake") == 1

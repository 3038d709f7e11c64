"""From answers to cached pages: what is captured, copied, kept and listed."""

import asyncio
import io
from contextlib import asynccontextmanager

import pytest
from PIL import Image
from projects import read_json

from mind2web2.capture.models import CapturedPage, CaptureRecord, Trouble
from mind2web2.errors import MachineError
from mind2web2.pages.cited_pages import AgentCache, TaskCitations
from mind2web2.pages.crawl import CrawlProgress, crawl, find_citations
from mind2web2.pages.link_judge import LinkJudge

A, B, C = "https://a.example/1", "https://b.example/2", "https://c.example/3"
PUZZLE = Trouble(kind="challenge", detail="a puzzle")


class ScriptedCapturer:
    """A browser to which each page looks as it is told, by default clean.

    Args:
        version: of the pages' texts.
        replies: by page: troubles, the text of a failure, an exception, or what a redirect leads
            to.
    """

    def __init__(self, version=1, **replies):
        self.version = version
        self.replies = {{"a": A, "b": B, "c": C}[name]: reply for name, reply in replies.items()}
        self.captured = []
        self.times_opened = 0

    @asynccontextmanager
    async def open(self):
        """Count how often a browser is opened."""
        self.times_opened += 1
        yield self

    async def capture(self, url, _logger=None, *, is_patient=False):
        """Return the page; a "slow" one answers patient callers only, a "dead" one never."""
        self.captured.append(url)
        await asyncio.sleep(0)
        reply = self.replies.get(url)
        if reply in ("slow", "dead"):
            is_silent = reply == "dead" or not is_patient
            reply = (
                {"failure": "no answer", "is_transient": True, "is_silent": True}
                if is_silent
                else None
            )
        if isinstance(reply, Exception):
            raise reply
        failure = reply.get("failure") if isinstance(reply, dict) else None
        trouble = reply.get("trouble") if isinstance(reply, dict) else reply
        record = CaptureRecord(
            requested_url=url,
            final_url=reply.get("final_url", url) if isinstance(reply, dict) else url,
            kind=None if failure else "web",
            captured_at="2026-01-02T03:04:05+00:00",
            troubles=(trouble,) if trouble else (),
            failure=failure,
            is_transient=isinstance(reply, dict) and reply.get("is_transient", False),
        )
        text = f"version {self.version} of {url}"
        screenshot = reply.get("screenshot", jpeg()) if isinstance(reply, dict) else jpeg()
        if failure:
            return CapturedPage(record, is_unanswered=reply.get("is_silent", False))
        return CapturedPage(record, text, screenshot)


def jpeg():
    """Return a small screenshot."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(buffer, "JPEG")
    return buffer.getvalue()


def citing(task_id, *urls):
    """Return the citations of a task with one answer."""
    return TaskCitations(task_id, {"answer_1.md": list(urls)})


@pytest.fixture
def cache(tmp_path):
    """Return an agent's caches."""
    return AgentCache(tmp_path / "bot")


async def run(cache, capturer, *tasks, **keywords):
    """Crawl and return what is stored, and the run's progress."""
    progress = CrawlProgress()
    pages = await crawl(tasks, cache, capturer.open, progress, **keywords)
    return pages, progress


async def test_a_page_of_several_tasks_is_captured_once(cache):
    """One browser captures it, and each task's folder gets it, whatever its spelling there."""
    capturer = ScriptedCapturer()
    spelled = "http://www.a.example/1/"
    tasks, progress = await run(cache, capturer, citing("one", A, B), citing("two", spelled))
    assert (sorted(capturer.captured), capturer.times_opened) == ([A, B], 1)
    assert cache.of("one").digest(A) == cache.of("two").digest(A)
    assert cache.of("two").get_all_urls() == ["http://www.a.example/1"]
    assert [[page.kind for page in task.pages] for task in tasks] == [
        ["web", "web"],
        ["web"],
    ]
    assert (progress.pages_cited, progress.pages_total, len(progress.outcomes)) == (
        2,
        2,
        2,
    )
    assert progress.running == {}


async def test_a_page_is_opened_as_it_is_cited(cache):
    cited = [
        "http://a.example/api/item/",
        "https://b.example/a%3Ab%3Bc/#part",
        "c.example/x/#/route/",
    ]
    answers = {
        "one": {"answer_1.md": " ".join(f"[page]({url})" for url in cited[:2]) + f" {cited[2]}"}
    }
    judge = LinkJudge(cache.folder, None, None)
    citations = await find_citations(answers, judge, CrawlProgress())
    capturer = ScriptedCapturer()
    (task,), _ = await run(cache, capturer, *citations)
    opened = [
        "http://a.example/api/item/",
        "https://b.example/a%3Ab%3Bc/#part",
        "http://c.example/x/#/route/",
    ]
    assert (sorted(capturer.captured), [page.url for page in task.pages]) == (
        sorted(opened),
        opened,
    )
    assert sorted(cache.of("one").get_all_urls()) == [
        "http://a.example/api/item",
        "http://c.example/x/#/route/",
        "https://b.example/a:b;c",
    ]
    assert read_json(cache.folder / "one.json")["all_unique_urls"] == sorted(
        cache.of("one").get_all_urls()
    )


async def test_a_slow_server_is_waited_for_once_more_at_the_end(cache):
    """Longer than before; of a host that stays silent, one page is enough to know it."""
    also_dead = "https://c.example/4"
    capturer = ScriptedCapturer(a="slow", c="dead")
    capturer.replies[also_dead] = "dead"
    (task,), progress = await run(
        cache, capturer, citing("one", A, C, also_dead, B), pages_at_once=1
    )
    assert sorted(capturer.captured[:4]) == [A, B, C, also_dead]
    assert capturer.captured.count(A) == 2
    assert {page.url: page.kind for page in task.pages} == {
        A: "web",
        B: "web",
        C: None,
        also_dead: None,
    }
    assert (len(progress.outcomes), progress.pages_total) == (4, 4)


async def test_a_second_run_has_nothing_to_do(cache):
    await run(cache, ScriptedCapturer(), citing("one", A, B))
    again = ScriptedCapturer()
    _, progress = await run(cache, again, citing("one", A, B))
    assert (again.times_opened, progress.pages_cited, progress.pages_total) == (0, 2, 0)


async def test_what_another_task_has_is_copied(cache):
    await run(cache, ScriptedCapturer(a=PUZZLE), citing("other", A))
    cache.of("older").put_pdf(B, b"%PDF-1.7")
    capturer = ScriptedCapturer()
    _, progress = await run(cache, capturer, citing("one", A, B))
    assert capturer.times_opened == 0
    assert cache.of("one").capture_record(A) == cache.of("other").capture_record(A)
    assert cache.of("one").get_pdf(B) == b"%PDF-1.7"
    assert all(outcome.is_copied for outcome in progress.outcomes)


async def test_a_failure_is_recorded_and_tried_again(cache):
    [task], progress = await run(
        cache, ScriptedCapturer(a={"failure": "no such host"}), citing("one", A, B)
    )
    assert [(page.kind, page.failure) for page in task.pages] == [
        (None, "no such host"),
        ("web", None),
    ]
    assert cache.of("one").has(A) is None
    assert {outcome.record.failure for outcome in progress.outcomes} == {
        "no such host",
        None,
    }
    for choice in ("missing", "failed"):
        capturer = ScriptedCapturer(a={"failure": "still none"})
        [task], _ = await run(cache, capturer, citing("one", A, B), choice=choice)
        assert (capturer.captured, task.pages[0].failure) == ([A], "still none")
    [task], _ = await run(cache, ScriptedCapturer(), citing("one", A, B), choice="failed")
    assert task.pages[0].kind == "web"


@pytest.mark.parametrize(
    ("reply", "kept"),
    [(None, False), (PUZZLE, False), ({"failure": "timed out"}, True)],
    ids=["clean", "suspect", "failed"],
)
async def test_only_what_looks_wrong(cache, reply, kept):
    await run(cache, ScriptedCapturer(a=PUZZLE), citing("one", A, B))
    record = cache.of("one").capture_record(A)
    capturer = ScriptedCapturer(version=2, a=reply)
    [task], progress = await run(cache, capturer, citing("one", A, B, C), choice="suspect")
    assert capturer.captured == [A]
    assert [outcome.is_kept for outcome in progress.outcomes] == [kept]
    assert task.pages[0].is_suspect is (reply is not None)
    assert (cache.of("one").capture_record(A) == record) is kept


async def test_a_clean_copy_makes_up_for_a_suspect_page(cache):
    for task_id in ("one", "two"):
        await run(cache, ScriptedCapturer(a=PUZZLE, b=PUZZLE), citing(task_id, A, B))
    cache.of("two").clear()
    await run(cache, ScriptedCapturer(), citing("two", A))
    assert cache.of("two").capture_record(A).is_suspect
    cache.of("two").clear()
    cache.of("two").put_capture(await ScriptedCapturer().capture(A))
    cache.of("two").put_web(B, "from an older tool", None)
    capturer = ScriptedCapturer()
    [task], _ = await run(cache, capturer, citing("one", A, B), choice="suspect")
    assert capturer.captured == [B]
    assert not any(page.is_suspect for page in task.pages)


async def test_what_a_server_out_of_order_sent_is_captured_again(cache):
    broken = {
        "is_transient": True,
        "trouble": Trouble(kind="http_error", detail="HTTP status 503"),
    }
    await run(cache, ScriptedCapturer(a=broken), citing("one", A))
    capturer = ScriptedCapturer(version=2)
    [task, other], progress = await run(cache, capturer, citing("one", A), citing("two", A))
    assert capturer.captured == [A]
    assert not task.pages[0].is_suspect
    assert cache.of("two").get_web(A) == cache.of("one").get_web(A)
    assert other.pages[0].kind == "web"
    assert [outcome.is_copied for outcome in progress.outcomes] == [False]


async def test_the_target_of_a_redirect_is_not_captured_again(cache):
    capturer = ScriptedCapturer(a={"final_url": B})
    await run(cache, capturer, citing("one", A))
    [task], _ = await run(cache, capturer, citing("one", A, B))
    assert capturer.captured == [A]
    assert [page.kind for page in task.pages] == ["web", "web"]


async def test_the_citations_are_listed(cache):
    listed_at_first = []

    class Looking(ScriptedCapturer):
        async def capture(self, url, _logger=None):
            listed_at_first.append(read_json(cache.folder / "one.json")["cached_url_count"])
            return await super().capture(url)

    await run(cache, Looking(), citing("one", A))
    listed = read_json(cache.folder / "one.json")
    assert listed_at_first == [0]
    assert (listed["total_unique_urls"], listed["cached_url_count"]) == (1, 1)
    assert listed["url_types"] == {A: "web"}


class EndingCapturer(ScriptedCapturer):
    """Does something when it comes to the second page, once the first is stored."""

    def __init__(self, cache, end):
        super().__init__()
        self.cache = cache
        self.end = end

    async def capture(self, url, _logger=None):
        """Return the page, unless it is the second."""
        if url == B:
            await asyncio.to_thread(until, lambda: self.cache.of("one").has(A))
            await self.end()
        return await super().capture(url)


def until(is_so):
    """Wait for something that another thread does."""
    while not is_so():
        pass


@pytest.mark.parametrize("end", ["no browser", "a cancellation"])
async def test_a_run_that_ends_early_keeps_what_it_has(cache, end):
    """The pages that were captured by then are stored and listed."""

    async def stop():
        if end == "no browser":
            raise MachineError("the browser does not start")
        running.cancel()
        await asyncio.Event().wait()

    tasks = (citing("one", A, B), citing("two", C))
    running = asyncio.ensure_future(run(cache, EndingCapturer(cache, stop), *tasks))
    with pytest.raises(MachineError if end == "no browser" else asyncio.CancelledError):
        await running
    assert read_json(cache.folder / "one.json")["cached_url_count"] == 1


async def test_answers_give_citations(tmp_path):
    async def ask(answer):
        return [B] if "bee" in answer else []

    judge = LinkJudge(tmp_path, "model-1", ask)
    progress = CrawlProgress()
    answers = {
        "one": {"answer_1.md": f"[a]({A})", "answer_2.md": f"{A} and the bee site"},
        "two": {},
    }
    found = await find_citations(answers, judge, progress)
    assert [task.task_id for task in found] == ["one", "two"]
    assert found[0].urls_by_answer == {"answer_1.md": [A], "answer_2.md": [A, B]}
    assert found[0].urls() == [A, B]
    assert (progress.answers_read, progress.answers_total) == (2, 2)
    silent = LinkJudge(tmp_path / "none", None, None)
    [alone, _] = await find_citations(answers, silent, progress)
    assert alone.urls() == [A]


async def test_all_pages_are_captured_again(cache):
    """Another task's old copy does not replace a new capture."""
    tasks = [citing("one", A, B), citing("two", A)]
    await run(cache, ScriptedCapturer(), *tasks)
    capturer = ScriptedCapturer(version=2)
    await run(cache, capturer, *tasks, choice="all")
    assert sorted(capturer.captured) == [A, B]
    for task_id in ("one", "two"):
        text, _ = cache.of(task_id).get_web(A)
        assert text == f"version 2 of {A}"

"""Captures during an evaluation: each page once, with its record or failure."""

import asyncio
import logging
from contextlib import nullcontext
from functools import partial

import pytest
from evaluations import OTHER, PAGE, image, page_request, started, stored
from fixtures.pdf_files import pdf
from projects import ClaimJudge, Project, evaluate
from scripted_judge import ScriptedJudge

from mind2web2 import CacheFileSys
from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import (
    CapturedPage,
    CaptureRecord,
    RefusedConnection,
    Trouble,
)
from mind2web2.errors import CacheWriteError, CaptureError, MachineError
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.captures import DoubtfulPageError, SharedCaptures
from mind2web2.pages.library import PageLibrary

log = logging.getLogger("tests")
CHALLENGE = Trouble(kind="challenge", detail="[the claim is true]")


def record(url=PAGE, kind="web", **details):
    """Return the record of a capture."""
    return CaptureRecord(
        requested_url=url,
        final_url=url,
        kind=kind,
        captured_at="2025-07-14T00:00:00+00:00",
        **details,
    )


def page(url, **details):
    """Return a page with text and screenshot."""
    return CapturedPage(record(url, **details), "Depth: 80 m", image())


def failure(url, reason, **details):
    """Return what is left of a capture that yielded nothing."""
    return CapturedPage(record(url, kind=None, failure=reason, **details))


class Browser:
    """Captures pages as told, and notes when it was opened, asked and closed."""

    def __init__(self, shot=page, opening_error=None):
        self.shot, self.opening_error = shot, opening_error
        self.urls, self.openings, self.closings, self.busy, self.most_at_once = (
            [],
            0,
            0,
            0,
            0,
        )

    async def __aenter__(self):
        if self.opening_error:
            raise self.opening_error
        self.openings += 1
        return self

    async def __aexit__(self, *_):
        self.closings += 1

    async def capture(self, url, logger):
        """Return the page."""
        logger.debug("capturing")
        self.urls.append(url)
        self.busy += 1
        self.most_at_once = max(self.busy, self.most_at_once)
        await asyncio.sleep(0)
        self.busy -= 1
        return self.shot(url)


def bring(captures, cache, url=PAGE, limit=None):
    """Ask for a page."""
    return captures.capture_into(url, cache, limit or nullcontext(), log)


@pytest.fixture
def cache(tmp_path):
    """Return an empty page cache."""
    return CacheFileSys(tmp_path / "a")


async def test_no_browser_is_opened_before_it_is_needed(tmp_path):
    """Most runs find every page in the cache."""
    browser = Browser()
    async with SharedCaptures(lambda: browser) as captures:
        await bring(captures, stored(tmp_path))
    assert (browser.openings, browser.closings) == (0, 0)


async def test_equal_requests_share_a_capture(cache):
    """Whatever the spelling; one browser serves all, and is closed at the end."""
    browser = Browser()
    spellings = [
        PAGE,
        f"{PAGE}/",
        "http://www.lake.example/depth#top",
        f"{PAGE}?utm_source=x",
    ]
    async with SharedCaptures(lambda: browser) as captures:
        await asyncio.gather(*(bring(captures, cache, url) for url in [*spellings, OTHER]))
    assert sorted(browser.urls) == [PAGE, OTHER]
    assert (browser.openings, browser.closings) == (1, 1)
    assert cache.get_web(spellings[2]) == ("Depth: 80 m", image())


@pytest.mark.parametrize("own", [page, lambda url: failure(url, "timed out")])
async def test_what_another_process_has_stored_meanwhile_stays(cache, own):
    """The stored page is as good, and claims may rest on it by now."""

    def shot(url):
        CacheFileSys(cache.task_dir).put_capture(CapturedPage(record(url), "Depth: 81 m", image()))
        return own(url)

    async with SharedCaptures(lambda: Browser(shot)) as captures:
        await bring(captures, cache)
    assert cache.get_web(PAGE) == ("Depth: 81 m", image())


async def test_a_page_of_several_tasks_is_captured_once(cache, tmp_path):
    """Each task's cache has it afterwards, with its record."""
    other, browser = (
        CacheFileSys(tmp_path / "b"),
        Browser(partial(page, troubles=(CHALLENGE,))),
    )
    async with SharedCaptures(lambda: browser) as captures:
        await asyncio.gather(bring(captures, cache), bring(captures, other, f"{PAGE}/"))
    assert len(browser.urls) == 1
    assert cache.get_web(PAGE) == other.get_web(PAGE)
    assert other.capture_record(PAGE).troubles == (CHALLENGE,)


async def test_a_page_that_has_vanished_is_captured_again(cache, tmp_path):
    """The first task's copy is all there was."""
    browser = Browser()
    async with SharedCaptures(lambda: browser) as captures:
        await bring(captures, cache)
        cache.clear()
        await bring(captures, CacheFileSys(tmp_path / "b"))
    assert browser.urls == [PAGE, PAGE]


async def test_captures_keep_to_the_limit(cache):
    """Waiting for another's capture of the same page takes no place."""
    browser = Browser()
    limit = asyncio.Semaphore(2)
    urls = [f"https://lake.example/{number}" for number in range(6)] * 3
    async with SharedCaptures(lambda: browser) as captures:
        await asyncio.gather(*(bring(captures, cache, url, limit) for url in urls))
    assert (len(browser.urls), browser.most_at_once) == (6, 2)


@pytest.mark.parametrize(
    ("is_transient", "kind"), [(False, CaptureError), (True, DoubtfulPageError)]
)
async def test_a_failure_is_remembered_for_the_run(is_transient, kind, cache, tmp_path):
    browser = Browser(partial(failure, reason="the name does not exist", is_transient=is_transient))
    async with SharedCaptures(lambda: browser) as captures:
        for each in (cache, cache, CacheFileSys(tmp_path / "b")):
            with pytest.raises(CaptureError, match=r"^the name does not exist$") as caught:
                await bring(captures, each)
            assert type(caught.value) is kind
    assert browser.urls == [PAGE]
    assert cache.has(PAGE) is None
    assert cache.capture_record(PAGE).failure == "the name does not exist"


@pytest.mark.parametrize(("was_transient", "kept"), [(False, "gone"), (True, "no host")])
async def test_a_page_that_fails_once_more_leaves_the_cache_as_it_was(was_transient, kept, cache):
    url = "https://lake.example/gone"
    cache.put_capture(failure(url, "gone", status=404, is_transient=was_transient))
    captures = SharedCaptures.by(Browser(partial(failure, reason="no host")))
    with pytest.raises(CaptureError, match="no host"):
        await captures.capture_into(url, cache, nullcontext(), log)
    assert cache.capture_record(url).failure == kept


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("refused", "gone", "gone"),
        ("gone", "refused", "gone"),
        ("refused", "refused", "refused"),
    ],
)
async def test_a_refusal_gives_way_to_what_a_visit_shows(before, after, kept, cache):
    """A private address that may be visited by now fails for a reason of its own, or not at all."""
    connection = RefusedConnection(
        host="10.0.0.1", port=80, reason="it is private", is_private=True
    )
    trouble = Trouble(kind="refused_address", detail="it is private")
    failures = {
        "refused": {"refused": (connection,), "troubles": (trouble,)},
        "gone": {"status": 404},
    }
    cache.put_capture(failure(PAGE, before, **failures[before]))
    written = cache.capture_record(PAGE)
    captures = SharedCaptures.by(Browser(partial(failure, reason=after, **failures[after])))
    with pytest.raises(CaptureError, match=after):
        await bring(captures, cache)
    assert cache.capture_record(PAGE).failure == kept
    assert captures.is_refused_as_private(PAGE) is (after == "refused")
    assert (cache.capture_record(PAGE) == written) is (before == kept)


async def test_a_new_run_tries_a_failed_page_again(cache):
    for shot in (partial(failure, reason="HTTP status 404 without content"), page):
        async with SharedCaptures(lambda shot=shot: Browser(shot)) as captures:
            await asyncio.gather(bring(captures, cache), return_exceptions=True)
    assert cache.get_web(PAGE)[0] == "Depth: 80 m"
    assert cache.capture_record(PAGE).failure is None


async def test_a_run_without_captures_repeats_an_earlier_reason(cache):
    cache.put_capture(failure(PAGE, "the name does not exist"))
    cache.put_capture(failure(OTHER, "the page did not answer in time", is_transient=True))
    for url, reason in (
        (PAGE, "the name does not exist"),
        (OTHER, "not in the cache, and this run captures no pages"),
    ):
        with pytest.raises(CaptureError, match=f"^{reason}$"):
            await PageLibrary().page(page_request(cache, url))


@pytest.mark.parametrize("url", ["no address", "http://", "mailto:a@lake.example"])
async def test_what_is_no_address_is_not_captured(url, cache):
    browser = Browser()
    with pytest.raises(CaptureError, match="not an address of a page"):
        await bring(SharedCaptures.by(browser), cache, url)
    assert browser.urls == []


async def test_without_a_browser_nothing_is_decided(cache):
    """The failure is not remembered, and the message says what to do."""
    captures = SharedCaptures(
        lambda: Browser(opening_error=MachineError("no browser: install chromium"))
    )
    for _ in range(2):
        with pytest.raises(
            MachineError,
            match=r"^no browser: install chromium\. Or evaluate with --no_capture",
        ):
            await bring(captures, cache)


async def test_a_capture_that_is_given_up_harms_nobody(cache):
    """Another answer that waits for the same page has it captured for itself."""
    reached = asyncio.Event()

    class Slow(Browser):
        async def capture(self, url, logger):
            if not reached.is_set():
                reached.set()
                await asyncio.Event().wait()
            return await super().capture(url, logger)

    browser = Slow()
    async with SharedCaptures(lambda: browser) as captures:
        first = asyncio.create_task(bring(captures, cache))
        await reached.wait()
        second = asyncio.create_task(bring(captures, cache))
        await asyncio.sleep(0)
        first.cancel()
        await second
    assert (first.cancelled(), browser.urls, cache.has(PAGE)) == (True, [PAGE], "web")


async def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "blocked").write_text("in the way")
    blocked = CacheFileSys(tmp_path / "blocked" / "lake")
    with pytest.raises(CacheWriteError):
        await bring(SharedCaptures.by(Browser()), blocked)
    with pytest.raises(CaptureError, match="gone"):
        await bring(SharedCaptures.by(Browser(partial(failure, reason="gone"))), blocked)


async def test_a_callers_browser_gets_a_record_too(cache):
    """The record rests on the text alone."""

    class Plain:
        async def capture_page(self, _url, _logger):
            return None, "Please verify you are human."

    shown = await PageLibrary().page(page_request(cache, capture=Plain()))
    assert shown.troubles == ("challenge",)
    assert cache.capture_record(PAGE).troubles[0].kind == "challenge"


class OthersCache:
    """A cache of another make, with the published methods alone."""

    def __init__(self):
        self.pages, self.pdfs = {}, {}

    def has(self, url):
        """Return what is stored."""
        return "web" if url in self.pages else "pdf" if url in self.pdfs else None

    def put_web(self, url, text, screenshot):
        """Store a page."""
        self.pages[url] = (text, screenshot)

    def put_pdf(self, url, pdf_bytes):
        """Store a PDF."""
        self.pdfs[url] = pdf_bytes


async def test_caches_of_another_make_are_filled():
    others = OthersCache()
    content = pdf(["Depth"])
    await bring(SharedCaptures.by(Browser()), others)
    await bring(
        SharedCaptures.by(Browser(lambda url: CapturedPage(record(url, kind="pdf"), pdf=content))),
        others,
        OTHER,
    )
    assert (others.pages, others.pdfs) == (
        {PAGE: ("Depth: 80 m", image())},
        {OTHER: content},
    )


# Notes for the judge


async def test_the_judge_is_shown_suspect_pages_flagged(cache):
    cache.put_capture(page(PAGE, troubles=(CHALLENGE,)))
    judge = ScriptedJudge()
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "leaf")
    assert await evaluator.verify("claim", leaf, PAGE)
    note = (
        "[signs of trouble when this page was captured: the site may have shown a robot check or "
        "a block instead of the page]"
    )
    assert note in judge.questions[0].text
    assert "[the claim is true]" not in judge.questions[0].text
    shown = leaf.evidence.pages[0].page
    assert (shown.troubles, f"[{shown.notes[0]}]") == (("challenge",), note)


@pytest.mark.parametrize(
    "record_of",
    ["nobody", "a clean capture", "a failed capture afterwards", "another page"],
)
async def test_other_pages_are_shown_as_ever(record_of, cache):
    """Stored judgments hold: without trouble there is no note."""
    if record_of == "a clean capture":
        cache.put_capture(page(PAGE))
    else:
        cache.put_web(PAGE, "Depth: 80 m", image())
    if record_of == "a failed capture afterwards":
        cache.put_capture(failure(PAGE, "gone", troubles=(CHALLENGE,)))
    if record_of == "another page":
        cache.put_capture(page(OTHER, troubles=(CHALLENGE,)))
    shown = await PageLibrary().page(page_request(cache))
    assert (shown.notes, shown.troubles) == ((), ())


# Whole runs


CLAIMS = {"first": ("The lake is deep.", PAGE), "second": ("The lake is cold.", PAGE)}


@pytest.fixture
def project(tmp_path):
    """Return a project with two answers to each of two tasks, all about one page."""
    project = Project(tmp_path)
    for task in ("lake", "pond"):
        for stem in ("answer_1", "answer_2"):
            project.add_answer(stem, task=task)
        project.add_script(CLAIMS, task=task)
    return project


def results(outcomes):
    """Return scores and reasons."""
    return [outcome.reason if outcome.result is None else outcome.score for outcome in outcomes]


async def test_a_page_that_is_gone_for_good_fails_the_claims_on_it(project):
    """The result holds: nothing of this machine is to blame."""
    for expected_reuse in (False, True):
        captures = SharedCaptures.by(Browser(partial(failure, reason="the name does not exist")))
        outcomes = await evaluate(project, ClaimJudge(), captures=captures)
        assert results(outcomes) == [0.0] * 4
        assert [outcome.reused for outcome in outcomes] == [expected_reuse] * 4


async def test_a_failure_that_may_pass_is_judged_anew_next_time(project):
    """The result is in doubt until then."""
    shots = [partial(failure, reason="no answer in time", is_transient=True), page]
    scores = []
    for shot in shots:
        outcomes = await evaluate(project, ClaimJudge(), captures=SharedCaptures.by(Browser(shot)))
        scores.append(results(outcomes))
        assert not any(outcome.reused for outcome in outcomes)
    assert scores == [[0.0] * 4, [1.0] * 4]


async def test_results_without_captures_do_not_stand_in_for_those_with(project):
    """Claims that failed since nothing was captured are judged on the page once it can be had."""
    assert results(await evaluate(project, ClaimJudge())) == [0.0] * 4
    assert [outcome.reused for outcome in await evaluate(project, ClaimJudge())] == [True] * 4
    outcomes = await evaluate(project, ClaimJudge(), captures=SharedCaptures.by(Browser()))
    assert results(outcomes) == [1.0] * 4


async def test_an_error_page_that_may_have_passed_is_tried_again(project):
    """The error page is shown until the page can be had, and a result on it is in doubt."""
    busy = partial(
        page,
        status=503,
        is_transient=True,
        troubles=(Trouble(kind="http_error", detail="HTTP status 503"),),
    )
    for shot in (busy, partial(failure, reason="no answer"), page):
        browser = Browser(shot)
        outcomes = await evaluate(project, ClaimJudge(), captures=SharedCaptures.by(browser))
        assert (results(outcomes), browser.urls) == ([1.0] * 4, [PAGE])
        doubts = [doubt for outcome in outcomes for doubt in outcome.result.document["doubts"]]
        in_doubt = f"{PAGE}: the server answered with an error that may pass: HTTP status 503"
        assert set(doubts) == (set() if shot is page else {in_doubt})
    outcomes = await evaluate(project, ClaimJudge(), captures=SharedCaptures.by(Browser()))
    assert all(outcome.reused for outcome in outcomes)


@pytest.mark.parametrize(
    ("of_run", "given", "asked"),
    [
        ("run", None, "run"),
        ("run", "ours", "run"),
        ("run", "other", "other"),
        (None, "ours", None),
        (None, "other", None),
    ],
)
async def test_who_captures_within_a_run(of_run, given, asked, cache):
    """The run's browser before another one of ours.

    Nobody where the run captures nothing, as in a replay.
    """

    class Other(Browser):
        """A browser of a script's own making."""

    class Ours(BatchBrowserManager, Browser):
        """Ours, opened by a script."""

        def __init__(self):
            Browser.__init__(self)

        capture = Browser.capture

    browsers = {"run": Browser(), "ours": Ours(), "other": Other()}
    captures = SharedCaptures.by(browsers["run"]) if of_run else None
    answer_cache = AnswerCache(cache, captures=captures)
    evaluator = started(ScriptedJudge(), answer_cache, browser_manager=browsers.get(given))
    assert await evaluator.verify("claim", None, PAGE) is (asked is not None)
    assert [name for name, browser in browsers.items() if browser.urls] == (
        [asked] if asked else []
    )

"""The pages of a run: prepared once, captured once, in bounded memory."""

import asyncio
import base64
import json
import logging

import pytest
from evaluations import (
    OTHER,
    PAGE,
    TextCache,
    image,
    page_request,
    reason_for,
    started,
    stored,
)
from fixtures.pdf_files import pdf
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge

from mind2web2 import CacheFileSys
from mind2web2.capture.models import CapturedPage, CaptureRecord
from mind2web2.errors import CacheReadError, CaptureError
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.captures import DoubtfulPageError
from mind2web2.pages.cited_pages import CitedPage
from mind2web2.pages.library import PageLibrary, PageMemory
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import HashedText

log = logging.getLogger("tests")


@pytest.fixture
def cache(tmp_path):
    """Return an empty page cache."""
    return CacheFileSys(tmp_path)


class CountingCache:
    """A real cache that notes what is read from it."""

    def __init__(self, cache):
        self.cache, self.reads = cache, []

    def __getattr__(self, name):
        return getattr(self.cache, name)

    def get_web(self, url, get_screenshot=True):
        """Return the page."""
        self.reads.append((url, get_screenshot))
        return self.cache.get_web(url, get_screenshot)

    def get_pdf(self, url):
        """Return the PDF."""
        self.reads.append((url, True))
        return self.cache.get_pdf(url)


class Camera:
    """Captures pages as told, and notes which."""

    def __init__(self, screenshot=None, text="Captured", error=None):
        self.shown, self.error, self.urls = (screenshot, text), error, []

    async def capture_page(self, url, logger):
        """Return screenshot and text, or raise."""
        logger.debug("capturing")
        self.urls.append(url)
        if self.error is not None:
            raise self.error
        return self.shown


async def test_without_images_the_text_alone_is_shown(cache):
    """The screenshot is not even read."""
    cache.put_web(PAGE, "text", image())
    counting = CountingCache(cache)
    page = await PageLibrary().page(page_request(counting, with_images=False))
    assert (page.text, page.images) == ("text", ())
    assert counting.reads == [(PAGE, False)]


async def test_claims_at_the_same_time_prepare_a_page_once(cache):
    """Ten claims and both trials of each share one reading, and the very same text."""
    cache.put_web(PAGE, "text", image(1100, 3000))
    counting, judge = CountingCache(cache), ScriptedJudge()
    evaluator = started(judge, counting)
    await evaluator.batch_verify([(f"claim {number}", PAGE, None, None) for number in range(10)])
    assert counting.reads == [(PAGE, True)]
    assert len(judge.questions) == 20
    assert all(question.parts[:-1] == judge.questions[0].parts[:-1] for question in judge.questions)


async def test_answers_of_a_task_share_its_pages(cache):
    """The task's cache is read once."""
    cache.put_pdf(PAGE, pdf(["Depth: 80 m"]))
    task_cache, library = CountingCache(cache), PageLibrary()
    pages = await asyncio.gather(*(library.page(page_request(task_cache)) for _ in range(3)))
    assert task_cache.reads == [(PAGE, True)]
    assert [page.sha256 for page in pages] == [cache.digest(PAGE)] * 3


async def test_other_settings_prepare_the_page_anew(cache):
    cache.put_web(PAGE, "x" * 100, image())
    library = PageLibrary()
    small = await library.page(page_request(cache, max_text_chars=10))
    whole = await library.page(page_request(cache))
    plain = await library.page(page_request(cache, with_images=False))
    assert (small.text_chars, whole.text_chars, plain.text_chars) == (10, 100, 100)
    assert (len(whole.images), len(plain.images)) == (1, 0)
    assert await library.page(page_request(cache)) is whole


async def test_memory_is_bounded(tmp_path):
    """The least recently used page is dropped and read again when it is wanted."""
    cache = CountingCache(stored(tmp_path, a="a" * 1000, b="b" * 1000, c="c" * 1000))
    library = PageLibrary(memory_bytes=2500)
    for name in "aabacab":
        await library.page(page_request(cache, f"https://lake.example/{name}", with_images=False))
    assert [url[-1] for url, _ in cache.reads] == list("abcb")


async def test_a_disk_that_fails_is_not_remembered(cache):
    cache.put_web(PAGE, "text", None)
    (text_file,) = cache.task_dir.glob("*.txt")
    text = text_file.read_bytes()
    library = PageLibrary()
    text_file.unlink()
    text_file.mkdir()
    with pytest.raises(CacheReadError):
        await library.page(page_request(cache))
    text_file.rmdir()
    text_file.write_bytes(text)
    assert (await library.page(page_request(cache))).text == "text"


@pytest.mark.parametrize("capture", [(None, None), ("", ""), (None, " \n")])
async def test_a_capture_of_nothing_is_not_stored(capture, cache):
    reason = await reason_for(page_request(cache, capture=Camera(*capture)))
    assert reason == "the page yielded neither text nor a screenshot"
    assert cache.has(PAGE) is None


async def test_a_capture_with_a_damaged_picture_cannot_be_had(cache):
    """Pages are stored whole or not at all."""
    assert "image" in await reason_for(
        page_request(cache, capture=Camera(base64.b64encode(b"no picture").decode()))
    )
    assert cache.has(PAGE) is None


async def test_a_page_that_is_stored_later_is_found(cache):
    """A script may put what it fetched itself into the cache after a first look."""
    library = PageLibrary()
    wish = page_request(cache)
    for _ in range(2):
        with pytest.raises(CaptureError, match="captures no pages"):
            await library.page(wish)
    cache.put_web(PAGE, "text", None)
    assert (await library.page(wish)).text == "text"


async def test_a_page_that_a_script_stores_after_a_failed_capture_is_found(cache):
    """The page is not captured again as long as nothing is stored."""
    library, camera = PageLibrary(), Camera(error=CaptureError("HTTP status 404"))
    wish = page_request(cache, capture=camera)
    for _ in range(2):
        with pytest.raises(CaptureError, match="404"):
            await library.page(wish)
    cache.put_web(PAGE, "from the script", None)
    assert (await library.page(wish)).text == "from the script"
    assert camera.urls == [PAGE]


async def test_pages_of_a_cache_can_be_forgotten(tmp_path):
    caches = [CountingCache(stored(tmp_path / name, depth=name, other=f"o{name}")) for name in "ab"]
    library = PageLibrary()

    async def texts():
        wishes = [page_request(cache, url) for cache in caches for url in (PAGE, OTHER)]
        return [(await library.page(wish)).text for wish in wishes]

    assert await texts() == ["a", "oa", "b", "ob"]
    caches[0].put_web(PAGE, "new", None)
    library.forget(caches[0])
    assert await texts() == ["new", "oa", "b", "ob"]
    assert [len(cache.reads) for cache in caches] == [3, 2]


async def test_a_page_written_while_it_is_prepared_is_not_taken_for_new(tmp_path):
    cache = stored(tmp_path, depth="old")
    library = PageLibrary()

    class Interrupted(CountingCache):
        def get_web(self, url, get_screenshot=True):
            page = super().get_web(url, get_screenshot)
            library.forget(self)
            return page

    interrupted = Interrupted(cache)
    assert (await library.page(page_request(interrupted))).text == "old"
    cache.put_web(PAGE, "new", None)
    assert (await library.page(page_request(interrupted))).text == "new"


async def test_a_page_replaced_while_it_is_read_is_read_again(tmp_path):
    cache = stored(tmp_path, depth="old")

    class Replaced(CountingCache):
        def get_web(self, url, get_screenshot=True):
            page = super().get_web(url, get_screenshot)
            cache.put_web(PAGE, "new", None)
            return page

    page = await PageLibrary().page(page_request(Replaced(cache)))
    assert (page.text, page.sha256) == ("new", cache.digest(PAGE))


async def test_a_page_that_never_stands_still_cannot_be_had_for_now(tmp_path):
    """The result is in doubt rather than wrong."""
    cache = stored(tmp_path, depth="0")

    class Restless(CountingCache):
        def get_web(self, url, get_screenshot=True):
            page = super().get_web(url, get_screenshot)
            cache.put_web(PAGE, f"{len(self.reads)}", None)
            return page

    with pytest.raises(DoubtfulPageError, match="replaced again and again"):
        await PageLibrary().page(page_request(Restless(cache)))


# Shared between addresses and tasks


async def test_spellings_of_a_page_share_what_is_prepared(cache):
    """Each is shown under the address that the claim's source has."""
    cache.put_web(PAGE, "text", image())
    counting, library = CountingCache(cache), PageLibrary()
    spellings = [PAGE, f"{PAGE}/?utm_source=x", "www.lake.example/depth#top"]
    pages = await asyncio.gather(*(library.page(page_request(counting, url)) for url in spellings))
    assert [page.url for page in pages] == spellings
    assert all(page.text is pages[0].text and page.images is pages[0].images for page in pages)
    assert len(counting.reads) == 1


async def test_tasks_share_equal_copies_of_a_page(tmp_path):
    """The address may differ; other settings give another prepared page."""
    caches = [CountingCache(stored(tmp_path / name, depth="same", other="same")) for name in "ab"]
    library = PageLibrary()
    wishes = [page_request(cache, url) for cache in caches for url in (PAGE, OTHER)]
    pages = [await library.page(wish) for wish in wishes]
    assert all(page.text is pages[0].text for page in pages)
    assert [page.url for page in pages] == [PAGE, OTHER] * 2
    assert (await library.page(page_request(caches[1], max_text_chars=2))).text_chars == 2
    assert [len(cache.reads) for cache in caches] == [1, 1]


async def test_what_is_known_of_a_capture_is_each_copys_own(tmp_path):
    """The same content may have been captured well here and in doubt there."""
    library, doubts = PageLibrary(), []
    for name, status in (("a", 200), ("b", 503)):
        cache = CacheFileSys(tmp_path / name)
        record = CaptureRecord(
            requested_url=PAGE,
            final_url=PAGE,
            kind="web",
            status=status,
            is_transient=status == 503,
            captured_at="2026-01-01T00:00:00+00:00",
        )
        cache.put_capture(CapturedPage(record, "same", None))
        doubts.append((await library.page(page_request(cache))).doubt)
    assert doubts == [
        None,
        "the server answered with an error that may pass: HTTP status 503",
    ]


async def test_who_gives_up_leaves_the_page_to_the_others(cache):
    """The capture goes on though the claim that wanted it first is settled by now."""
    may_end, camera = asyncio.Event(), Camera()

    class Slow(Camera):
        async def capture_page(self, url, logger):
            await may_end.wait()
            return await camera.capture_page(url, logger)

    library, wish = PageLibrary(), page_request(cache, capture=Slow())
    first, second = (asyncio.create_task(library.page(wish)) for _ in range(2))
    # Nothing else tells that the second caller has joined the first.
    while [work.waiting for work in library._looking_up._running.values()] != [2]:  # noqa: ASYNC110
        await asyncio.sleep(0)
    first.cancel()
    may_end.set()
    assert (await second).text == "Captured"
    assert (first.cancelled(), camera.urls) == (True, [PAGE])


async def test_what_is_at_hand_does_not_change_with_captures(tmp_path):
    cache, library = stored(tmp_path, depth="text"), PageLibrary()
    await library.page(page_request(cache, OTHER, capture=Camera()))
    assert cache.has(OTHER) == "web"
    assert await library.cached(cache, [OTHER, f"{PAGE}#top", "no url"]) == [
        False,
        True,
        False,
    ]
    assert await PageLibrary().cached(cache, [OTHER, PAGE]) == [True, True]
    assert await PageLibrary().cached(TextCache("x"), [PAGE]) == [True]


async def test_a_page_that_a_script_writes_anew_is_shown_anew(tmp_path):
    cache = AnswerCache(stored(tmp_path, depth="old"))
    judge = ScriptedJudge()
    evaluator = started(judge, cache)
    await evaluator.verify("claim", None, PAGE, num_trials=1)
    cache.put_web(PAGE, "new", None)
    await evaluator.verify("claim", None, PAGE, num_trials=1)
    cache.put_pdf(PAGE, pdf(["newest"]))
    await evaluator.verify("claim", None, PAGE, num_trials=1)
    shown = [question.blocks["page"] for question in judge.questions]
    assert shown == ["old", "new", "[page 1 of 1]\nnewest"]


async def test_a_connection_that_breaks_is_a_page_that_cannot_be_had(cache):
    """A capture's own trouble says why."""
    camera = Camera(error=ConnectionResetError("reset by peer"))
    assert await reason_for(page_request(cache, capture=camera)) == (
        "cannot be captured: ConnectionResetError: reset by peer"
    )


async def test_what_a_script_stores_later_is_not_at_hand(tmp_path):
    cache, library = stored(tmp_path, depth="text"), PageLibrary()
    at_first = await library.stored_at_first(cache)
    AnswerCache(cache, at_first).put_web(OTHER, "text", None)
    assert await library.cached(cache, [OTHER, PAGE]) == [False, True]


# Lists that newer tools leave in a cache folder (file-layouts.md)


async def test_a_page_listed_as_failed_is_unavailable_and_not_captured(tmp_path):
    cache, browser = stored(tmp_path), Camera()
    gone = "https://lake.example/gone"
    failures = {
        gone: {
            "reason": "HTTP 451",
            "blocked": True,
            "attempts": 2,
            "time": "2025-07-14",
        },
        OTHER: {},
    }
    (tmp_path / "failures.json").write_text(json.dumps(failures))
    for capture in (browser, None):
        assert (
            await reason_for(page_request(cache, f"{gone}/?utm_source=x", capture=capture))
            == "HTTP 451"
        )
    assert browser.urls == []
    [record] = [record for url, record in cache.capture_records().items() if url == gone]
    assert (record.kind, record.failure, record.tries) == (None, "HTTP 451", 2)
    assert CitedPage(gone, cache.has(gone), cache.capture_record(gone)).is_chosen("failed")
    assert (await PageLibrary().page(page_request(cache, OTHER))).text == "Fish: none"
    cache.put_web(gone, "back again", None)
    assert (
        await PageLibrary().page(page_request(cache, gone, capture=browser))
    ).text == "back again"


async def test_a_final_url_finds_the_page_that_redirected_there(tmp_path):
    cache = stored(tmp_path)
    final, both = "https://lake.example/moved", "https://lake.example/both"
    cache.put_web(both, "of its own", None)
    listed = {final: PAGE, both: PAGE, "x y": 3, f"{final}/2": "gone"}
    (tmp_path / "redirects.json").write_text(json.dumps(listed))
    assert cache.has("http://www.lake.example/moved#part") == "web"
    assert cache.get_web(final)[0] == cache.get_web(PAGE)[0]
    assert cache.get_web(both)[0] == "of its own"
    assert cache.has(f"{final}/2") is None
    assert final not in cache.get_all_urls()
    assert await PageLibrary().cached(cache, [final, f"{final}/2"]) == [True, False]


@pytest.mark.parametrize("content", ["[]", "{", '{"https://lake.example/gone": 3}'])
def test_a_damaged_list_costs_nothing(content, tmp_path):
    cache = stored(tmp_path)
    others = (
        "failures.json",
        "redirects.json",
        "pending.json",
        "flags.json",
        "reviewed.json",
    )
    for name in others:
        (tmp_path / name).write_text(content)
    assert cache.has(PAGE) == "web"
    assert cache.has("https://lake.example/gone") is None
    assert cache.capture_record("https://elsewhere.example") is None
    cache.save()
    cache.clear()
    assert {name: (tmp_path / name).read_text() for name in others} == dict.fromkeys(
        others, content
    )


def content(size_chars):
    """Return a page of text."""
    return PreparedPage("", "web", None, HashedText("x" * size_chars), size_chars, size_chars)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3000)), max_size=30),
    st.integers(0, 6000),
)
def test_the_least_recently_used_are_dropped(uses, limit_bytes):
    """A model that keeps everything in a list agrees about what is there, use by use."""
    memory, model = PageMemory(limit_bytes), []
    for key, size in uses:
        kept = memory.get(key)
        assert (kept is not None) is any(key == known for known, _ in model)
        if kept is None:
            kept = content(size)
            dropped = memory.keep(key, kept)
            model.append((key, kept))
            expected = []
            while sum(each.memory_bytes for _, each in model) > limit_bytes and len(model) > 1:
                expected.append(model.pop(0)[0])
            assert dropped == expected
        else:
            model.sort(key=lambda each: each[0] == key)


def test_texts_and_images_count_with_their_encoding():
    image = HashedText("data:image/jpeg;base64," + "A" * 1000).prepare()
    text = HashedText('"quoted"' * 100).prepare()
    page = PreparedPage("", "web", None, text, 800, 800, (image, image))
    assert 2 * 1000 + 2 * 800 < page.memory_bytes < 2 * 1000 + 2 * 800 + 1000

"""What the judge is shown of a page: real caches, images, PDFs and worker processes."""

import asyncio
import base64
import hashlib
import io
import logging
from contextlib import nullcontext

import pytest
from evaluations import PAGE, TextCache, image, started, stored
from fixtures.pdf_files import encrypted_pdf, pdf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scripted_judge import ScriptedJudge

from mind2web2 import CacheFileSys, EvaluatorConfig
from mind2web2.answer_cache import AnswerCache
from mind2web2.errors import CacheReadError, CaptureError
from mind2web2.page_library import PageLibrary, PageRequest, PageSettings, PreparedPage
from mind2web2.prompts import HashedText

log = logging.getLogger("tests")
TEXT = "".join(f"line {number}\n" for number in range(1000))


@pytest.fixture
def cache(tmp_path):
    """Return an empty page cache."""
    return CacheFileSys(tmp_path)


def request(cache, url=PAGE, *, with_images=True, capture=None, **settings):
    """Return a wish for a page."""
    return PageRequest(cache, url, PageSettings(**settings), with_images, capture, nullcontext(), log)


async def reason_for(wish):
    """Return why a page cannot be had."""
    with pytest.raises(CaptureError) as caught:
        await PageLibrary().page(wish)
    return str(caught.value)


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
        self.capture, self.error, self.urls = (screenshot, text), error, []

    async def capture_page(self, url, logger):
        """Return screenshot and text, or raise."""
        logger.debug("capturing")
        self.urls.append(url)
        if self.error is not None:
            raise self.error
        return self.capture


def pictures(page):
    """Return the images of a page, decoded."""
    prefix = "data:image/jpeg;base64,"
    assert all(url.startswith(prefix) for url in page.images)
    return [Image.open(io.BytesIO(base64.b64decode(url.removeprefix(prefix)))) for url in page.images]


# Web pages


async def test_a_web_page_is_shown_with_text_and_screenshot(cache):
    """The record says of which content, and how much."""
    cache.put_web(PAGE, "Depth: 80 m\n\nFish: none", image())
    page = await PageLibrary().page(request(cache))
    assert (page.text, page.kind, page.url, page.notes) == ("Depth: 80 m\n\nFish: none", "web", PAGE, ())
    assert [picture.size for picture in pictures(page)] == [(60, 40)]
    assert (page.sha256, page.text_chars, page.text_chars_stored) == (cache.digest(PAGE), 23, 23)


async def test_a_tall_screenshot_is_cut_into_readable_parts(cache):
    """Each keeps the width; neighbours overlap; what is left out at the bottom is said."""
    cache.put_web(PAGE, "text", image(300, 3000))
    settings = {"part_height": 500, "part_overlap": 50, "image_max_height": 1000, "image_max_width": 200}
    page = await PageLibrary().page(request(cache, **settings))
    assert {picture.width for picture in pictures(page)} == {200}
    heights = [picture.height for picture in pictures(page)]
    assert max(heights) <= 500
    assert sum(heights) - 50 * (len(heights) - 1) == 1000
    assert page.notes == ("screenshot cut: 1000 of 2000 pixels from the top are shown",)


async def test_a_damaged_screenshot_is_noted(cache):
    """The text is still there to judge from."""
    cache.put_web(PAGE, "Depth: 80 m", image(600, 400)[:3000])
    page = await PageLibrary().page(request(cache))
    assert (page.text, page.images) == ("Depth: 80 m", ())
    (note,) = page.notes
    assert note.startswith("screenshot left out: image is damaged")


async def test_a_page_of_a_damaged_screenshot_alone_cannot_be_had(cache):
    """The reason says both that nothing is left and why."""
    cache.put_web(PAGE, " \n", image(600, 400)[:3000])
    reason = await reason_for(request(cache))
    assert reason.startswith("the stored page is empty; screenshot left out: image is damaged")


async def test_a_missing_screenshot_is_noted(cache):
    """Not so where none was asked for."""
    cache.put_web(PAGE, "text", None)
    assert (await PageLibrary().page(request(cache))).notes == ("no screenshot is stored",)
    assert (await PageLibrary().page(request(cache, with_images=False))).notes == ()


async def test_without_images_the_text_alone_is_shown(cache):
    """The screenshot is not even read."""
    cache.put_web(PAGE, "text", image())
    counting = CountingCache(cache)
    page = await PageLibrary().page(request(counting, with_images=False))
    assert (page.text, page.images) == ("text", ())
    assert counting.reads == [(PAGE, False)]


@pytest.mark.parametrize("text", ["", "  \n\t "])
async def test_an_empty_page_cannot_be_had(text, cache):
    """It would support nothing, and the judge need not be asked."""
    cache.put_web(PAGE, text, None)
    assert (await reason_for(request(cache))).startswith("the stored page is empty")


async def test_a_screenshot_alone_is_a_page(cache):
    """Some pages have no text."""
    cache.put_web(PAGE, "", image())
    assert len((await PageLibrary().page(request(cache))).images) == 1


@given(limit=st.integers(1, 2 * len(TEXT)))
async def test_long_text_is_cut_with_a_visible_mark(limit):
    """Line breaks are kept, nothing else is lost, and the record counts the page's own characters."""
    page = await PageLibrary().page(request(TextCache(TEXT), max_text_chars=limit))
    shown = min(limit, len(TEXT))
    assert page.text.startswith(TEXT[:shown])
    mark = f"\n[The page is cut here: {shown} of {len(TEXT)} characters.]"
    assert page.text[shown:] == (mark if limit < len(TEXT) else "")
    assert (page.text_chars, page.text_chars_stored) == (shown, len(TEXT))
    assert any("text cut" in note for note in page.notes) is (limit < len(TEXT))


async def test_text_that_no_provider_takes_is_cleaned():
    """Lone surrogates of a foreign cache become question marks; it has no digest to give."""
    page = await PageLibrary().page(request(TextCache("a\ud800b")))
    assert (page.text, page.sha256) == ("a?b", None)


# PDFs


async def test_a_pdf_is_shown_with_text_and_page_images(cache):
    """One image a page, at 144 dots an inch."""
    cache.put_pdf(PAGE, pdf(["Depth: 80 m"], ["Fish: none"], size_pt=(300, 800)))
    page = await PageLibrary().page(request(cache))
    assert page.kind == "pdf"
    assert page.text.splitlines()[:2] == ["[page 1 of 2]", "Depth: 80 m"]
    assert [picture.size for picture in pictures(page)] == [(600, 1600)] * 2
    assert (page.notes, page.sha256) == ((), cache.digest(PAGE))


async def test_a_long_pdf_is_cut_and_says_so(cache):
    """Images and text have limits of their own."""
    cache.put_pdf(PAGE, pdf(*[[f"number {number}"] for number in range(5)]))
    page = await PageLibrary().page(request(cache, max_pdf_images=2, max_pdf_text_pages=3))
    assert (len(page.images), "number 2" in page.text, "number 3" in page.text) == (2, True, False)
    assert [note.startswith("PDF cut: ") and "of 5 pages" in note for note in page.notes] == [True, True]


async def test_a_pdf_without_images_is_text(cache):
    """No page is drawn."""
    cache.put_pdf(PAGE, pdf(["Depth: 80 m"]))
    page = await PageLibrary().page(request(cache, with_images=False))
    assert ("Depth: 80 m" in page.text, page.images, page.notes) == (True, (), ())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<!doctype html><title>Sign in</title>", "begins like a web page"),
        (encrypted_pdf("secret", "Depth"), "encrypted"),
        (b"", "empty"),
        (b"%PDF-1.7 and then nothing", "damaged"),
    ],
)
async def test_a_pdf_that_cannot_be_read_cannot_be_had(content, reason, cache):
    """The claim fails without a question, and the evidence says why."""
    cache.put_pdf(PAGE, content)
    judge = ScriptedJudge()
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "")
    assert not await evaluator.verify("claim", leaf, PAGE)
    assert (leaf.status, judge.questions) == ("failed", [])
    assert reason in leaf.evidence.pages[0].reason


# Prepared once


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
    """Each answer's cache notes what it looked up; the task's is read once."""
    cache.put_pdf(PAGE, pdf(["Depth: 80 m"]))
    task_cache, library = CountingCache(cache), PageLibrary()
    caches = [AnswerCache(task_cache, library) for _ in range(3)]
    await asyncio.gather(*(started(ScriptedJudge(), each).verify("c", None, PAGE) for each in caches))
    assert task_cache.reads == [(PAGE, True)]
    assert [each.pages_used() for each in caches] == [{PAGE: cache.digest(PAGE)}] * 3


async def test_other_settings_prepare_the_page_anew(cache):
    """What a script asks for differently is another thing to show."""
    cache.put_web(PAGE, "x" * 100, image())
    library = PageLibrary()
    small = await library.page(request(cache, max_text_chars=10))
    whole = await library.page(request(cache))
    plain = await library.page(request(cache, with_images=False))
    assert (small.text_chars, whole.text_chars, plain.text_chars) == (10, 100, 100)
    assert (len(whole.images), len(plain.images)) == (1, 0)
    assert await library.page(request(cache)) is whole


async def test_pages_of_two_caches_are_told_apart(tmp_path):
    """Tasks may have stored one address at different times."""
    library = PageLibrary()
    pages = [await library.page(request(stored(tmp_path / name, depth=name))) for name in ("a", "b")]
    assert [page.text for page in pages] == ["a", "b"]


async def test_memory_is_bounded(tmp_path):
    """The least recently used page is dropped and read again when it is wanted."""
    cache = CountingCache(stored(tmp_path, a="a" * 1000, b="b" * 1000, c="c" * 1000))
    library = PageLibrary(memory_bytes=9000)
    for name in "aabacab":
        await library.page(request(cache, f"https://lake.example/{name}", with_images=False))
    assert [url[-1] for url, _ in cache.reads] == list("abcb")


async def test_a_page_over_the_bound_is_still_shown(tmp_path):
    """The one just asked for always stays."""
    cache = CountingCache(stored(tmp_path, depth="x" * 1000))
    library = PageLibrary(memory_bytes=1)
    for _ in range(2):
        assert (await library.page(request(cache))).text_chars == 1000
    assert len(cache.reads) == 1


async def test_a_disk_that_fails_is_not_remembered(cache):
    """Nor is it taken for a page that cannot be had."""
    cache.put_web(PAGE, "text", None)
    (text_file,) = cache.task_dir.glob("*.txt")
    text = text_file.read_bytes()
    library = PageLibrary()
    text_file.unlink()
    text_file.mkdir()
    with pytest.raises(CacheReadError):
        await library.page(request(cache))
    text_file.rmdir()
    text_file.write_bytes(text)
    assert (await library.page(request(cache))).text == "text"


# Captured pages


async def test_a_page_is_captured_once_and_stored(cache):
    """Claims that arrive together share it, and so does the next run."""
    camera = Camera(base64.b64encode(image()).decode(), "Captured text")
    evaluator = started(ScriptedJudge(), cache, browser_manager=camera)
    assert await evaluator.batch_verify([("a", PAGE, None, None)] * 5) == [True] * 5
    assert camera.urls == [PAGE]
    text, screenshot = cache.get_web(PAGE)
    assert (text, screenshot) == ("Captured text", image())
    assert await started(ScriptedJudge(), cache).verify("b", None, PAGE)


async def test_a_stored_page_is_not_captured(tmp_path):
    """The cache comes first."""
    camera = Camera()
    assert await started(ScriptedJudge(), stored(tmp_path), browser_manager=camera).verify("a", None, PAGE)
    assert camera.urls == []


async def test_a_capture_that_fails_says_why_and_is_not_tried_again(cache):
    """Nothing is stored; later claims get the same reason at once."""
    camera, judge = Camera(error=CaptureError("the server answered 404")), ScriptedJudge()
    evaluator = started(judge, cache, browser_manager=camera)
    leaves = [evaluator.add_leaf("leaf", "") for _ in range(3)]
    await asyncio.gather(*(evaluator.verify("a", leaf, PAGE) for leaf in leaves))
    assert [leaf.evidence.pages[0].reason for leaf in leaves] == ["the server answered 404"] * 3
    assert (camera.urls, cache.has(PAGE), judge.questions) == ([PAGE], None, [])


@pytest.mark.parametrize("capture", [(None, None), ("", ""), (None, " \n")])
async def test_a_capture_of_nothing_is_not_stored(capture, cache):
    """It is a page that cannot be had."""
    reason = await reason_for(request(cache, capture=Camera(*capture)))
    assert reason == "the page yielded neither text nor a screenshot"
    assert cache.has(PAGE) is None


async def test_a_capture_with_a_damaged_picture_cannot_be_had(cache):
    """Pages are stored whole or not at all."""
    assert "image" in await reason_for(
        request(cache, capture=Camera(base64.b64encode(b"no picture").decode()))
    )
    assert cache.has(PAGE) is None


async def test_captures_enter_their_limit(cache):
    """The limit for pages, and not that for the judge, is held around a capture."""
    page_limit = asyncio.Semaphore(1)

    class Watching(Camera):
        async def capture_page(self, url, logger):
            assert page_limit.locked()
            return await super().capture_page(url, logger)

    camera = Watching()
    wish = PageRequest(cache, PAGE, PageSettings(), True, camera, page_limit, log)
    assert (await PageLibrary().page(wish)).text == "Captured"
    assert not page_limit.locked()


async def test_a_page_that_is_stored_later_is_found(cache):
    """A script may put what it fetched itself into the cache after a first look."""
    library = PageLibrary()
    wish = request(cache)
    for _ in range(2):
        with pytest.raises(CaptureError, match="captures no pages"):
            await library.page(wish)
    cache.put_web(PAGE, "text", None)
    assert (await library.page(wish)).text == "text"


async def test_pages_of_a_cache_can_be_forgotten(tmp_path):
    """When one is written anew; those of other caches stay."""
    caches = [CountingCache(stored(tmp_path / name, depth=name)) for name in "ab"]
    library = PageLibrary()
    for _ in range(2):
        for cache in caches:
            await library.page(request(cache))
        library.forget(caches[0])
    assert [len(cache.reads) for cache in caches] == [2, 1]


async def test_a_page_that_a_script_writes_anew_is_shown_anew(tmp_path):
    """By way of the cache that it was given."""
    cache = AnswerCache(stored(tmp_path, depth="old"), PageLibrary())
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
    assert await reason_for(request(cache, capture=camera)) == (
        "cannot be captured: ConnectionResetError: reset by peer"
    )


# Shown less


@given(st.text(st.sampled_from("ab\n"), max_size=50), st.integers(0, 5))
def test_a_halved_page_shows_half_of_each(text, image_count):
    """The mark and the record count from what is stored; halving again halves what was left."""
    images = tuple(HashedText(f"image {number}") for number in range(image_count))
    page = PreparedPage(PAGE, "web", None, HashedText(text), len(text), 1000, images)
    for expected, count in ((len(text) // 2, image_count // 2), (len(text) // 4, image_count // 4)):
        page = page.halved()
        assert page.text.startswith(text[:expected])
        assert (page.text_chars, len(page.images)) == (expected, count)
        assert (
            page.notes[-1]
            == f"cut for the judge's context: {expected} characters and {count} images are shown"
        )
    assert (page.text_chars_stored, page.times_halved, len(page.notes)) == (1000, 2, 2)


def test_the_record_says_what_is_shown():
    """Kind, digest, sizes and notes, as they stand in the result."""
    page = PreparedPage(PAGE, "pdf", "ab", HashedText("text"), 4, 9, (HashedText("i"),), ("cut",))
    shown = {
        "kind": "pdf",
        "sha256": "ab",
        "text_chars": 4,
        "text_chars_stored": 9,
        "images": 1,
        "notes": ("cut",),
    }
    assert page.shown().model_dump() == shown


async def test_texts_and_images_know_their_hashes(cache):
    """Judgments are keyed by them; they are computed once, off the event loop."""
    cache.put_web(PAGE, "text", image())
    page = await PageLibrary().page(request(cache))
    for shared in (page.text, *page.images):
        assert vars(shared)["sha256"] == hashlib.sha256(shared.encode()).hexdigest()


async def test_settings_of_the_evaluation_reach_the_page(cache):
    """The published configuration decides how much is shown."""
    cache.put_web(PAGE, "x" * 100, image(200, 900))
    config = EvaluatorConfig(max_text_chars=10, image_max_width=100, image_max_height=300)
    judge = ScriptedJudge()
    evaluator = started(judge, cache, config=config)
    leaf = evaluator.add_leaf("leaf", "")
    await evaluator.verify("claim", leaf, PAGE)
    notes = leaf.evidence.pages[0].page.notes
    assert ["300 of 450 pixels" in note or "first 10 of 100" in note for note in notes] == [True, True]
    await evaluator.verify("claim", leaf, PAGE, use_screenshot=False)
    assert [len(question.images) for question in judge.questions] == [1, 1, 0, 0]

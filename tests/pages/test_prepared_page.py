"""Prepared pages for the judge, from real caches, images, PDFs and worker processes."""

import base64
import hashlib
import io

import pytest
from evaluations import PAGE, TextCache, image, page_request, reason_for, started
from fixtures.pdf_files import encrypted_pdf, pdf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scripted_judge import ScriptedJudge

from mind2web2 import CacheFileSys, EvaluatorConfig
from mind2web2.errors import CaptureError
from mind2web2.pages.library import PageLibrary
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.rubric.verdicts import Flag

TEXT = "".join(f"line {number}\n" for number in range(1000))


@pytest.fixture
def cache(tmp_path):
    """Return an empty page cache."""
    return CacheFileSys(tmp_path)


def pictures(page):
    """Return the images of a page, decoded."""
    prefix = "data:image/jpeg;base64,"
    assert all(url.startswith(prefix) for url in page.images)
    return [
        Image.open(io.BytesIO(base64.b64decode(url.removeprefix(prefix)))) for url in page.images
    ]


async def test_a_web_page_is_shown_with_text_and_screenshot(cache):
    """The record says of which content, and how much."""
    cache.put_web(PAGE, "Depth: 80 m\n\nFish: none", image())
    page = await PageLibrary().page(page_request(cache))
    assert (page.text, page.kind, page.url, page.notes) == (
        "Depth: 80 m\n\nFish: none",
        "web",
        PAGE,
        (),
    )
    assert [picture.size for picture in pictures(page)] == [(60, 40)]
    assert (page.sha256, page.text_chars, page.text_chars_stored) == (
        cache.digest(PAGE),
        23,
        23,
    )


async def test_a_tall_screenshot_is_cut_into_readable_parts(cache):
    """Each keeps the width; neighbours overlap; what is left out at the bottom is said."""
    cache.put_web(PAGE, "text", image(300, 3000))
    settings = {
        "part_height": 500,
        "part_overlap": 50,
        "image_max_height": 1000,
        "image_max_width": 200,
    }
    page = await PageLibrary().page(page_request(cache, **settings))
    assert {picture.width for picture in pictures(page)} == {200}
    heights = [picture.height for picture in pictures(page)]
    assert max(heights) <= 500
    assert sum(heights) - 50 * (len(heights) - 1) == 1000
    assert page.notes == ("screenshot cut: 1000 of 2000 pixels from the top are shown",)


async def test_a_damaged_screenshot_is_noted(cache):
    """The text is still there to judge from."""
    cache.put_web(PAGE, "Depth: 80 m", image(600, 400)[:3000])
    page = await PageLibrary().page(page_request(cache))
    assert (page.text, page.images) == ("Depth: 80 m", ())
    (note,) = page.notes
    assert note.startswith("screenshot left out: image is damaged")


async def test_a_page_of_a_damaged_screenshot_alone_cannot_be_had(cache):
    """The reason says both that nothing is left and why."""
    cache.put_web(PAGE, " \n", image(600, 400)[:3000])
    reason = await reason_for(page_request(cache))
    assert reason.startswith("the stored page is empty; screenshot left out: image is damaged")


async def test_a_missing_screenshot_is_noted(cache):
    """A question without pictures has no such note."""
    cache.put_web(PAGE, "text", None)
    assert (await PageLibrary().page(page_request(cache))).notes == ("no screenshot is stored",)
    assert (await PageLibrary().page(page_request(cache, with_images=False))).notes == ()


@pytest.mark.parametrize("text", ["", "  \n\t "])
async def test_an_empty_page_cannot_be_had(text, cache):
    cache.put_web(PAGE, text, None)
    assert (await reason_for(page_request(cache))).startswith("the stored page is empty")


async def test_a_screenshot_alone_is_a_page(cache):
    """Some pages have no text."""
    cache.put_web(PAGE, "", image())
    assert len((await PageLibrary().page(page_request(cache))).images) == 1


@given(limit=st.integers(1, 2 * len(TEXT)))
async def test_long_text_is_cut_with_a_visible_mark(limit):
    page = await PageLibrary().page(page_request(TextCache(TEXT), max_text_chars=limit))
    shown = min(limit, len(TEXT))
    assert page.text.startswith(TEXT[:shown])
    mark = f"\n[The page is cut here: {shown} of {len(TEXT)} characters.]"
    assert page.text[shown:] == (mark if limit < len(TEXT) else "")
    assert (page.text_chars, page.text_chars_stored) == (shown, len(TEXT))
    assert any("text cut" in note for note in page.notes) is (limit < len(TEXT))


async def test_text_that_no_provider_takes_is_cleaned():
    """Lone surrogates of a foreign cache become question marks; it has no digest to give."""
    page = await PageLibrary().page(page_request(TextCache("a\ud800b")))
    assert (page.text, page.sha256) == ("a?b", None)


async def test_a_pdf_is_shown_with_text_and_page_images(cache):
    cache.put_pdf(PAGE, pdf(["Depth: 80 m"], ["Fish: none"], size_pt=(300, 800)))
    page = await PageLibrary().page(page_request(cache))
    assert page.kind == "pdf"
    assert page.text.splitlines()[:2] == ["[page 1 of 2]", "Depth: 80 m"]
    assert [picture.size for picture in pictures(page)] == [(600, 1600)] * 2
    assert (page.notes, page.sha256) == ((), cache.digest(PAGE))
    plain = await PageLibrary().page(page_request(cache, with_images=False))
    assert (plain.text, plain.images, plain.notes) == (page.text, (), ())


async def test_a_pdf_without_text_is_shown_as_images(cache):
    """The judge sees the scanned pages with a note; without images, nothing is left to show."""
    cache.put_pdf(PAGE, pdf([], []))
    page = await PageLibrary().page(page_request(cache))
    assert (page.text, len(page.images)) == ("", 2)
    assert page.notes == ("PDF without text: its pages are shown as images only",)
    with pytest.raises(CaptureError, match="empty"):
        await PageLibrary().page(page_request(cache, with_images=False))


async def test_a_long_pdf_is_cut_and_says_so(cache):
    """Images and text have limits of their own."""
    cache.put_pdf(PAGE, pdf(*[[f"number {number}"] for number in range(5)]))
    page = await PageLibrary().page(page_request(cache, max_pdf_images=2, max_pdf_text_pages=3))
    assert (len(page.images), "number 2" in page.text, "number 3" in page.text) == (
        2,
        True,
        False,
    )
    assert [note.startswith("PDF cut: ") and "of 5 pages" in note for note in page.notes] == [
        True,
        True,
    ]


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


@given(st.text(st.sampled_from("ab\n"), max_size=50), st.integers(0, 5))
def test_a_halved_page_shows_half_of_each(text, image_count):
    """The mark and the record count from what is stored; halving again halves what was left."""
    images = tuple(HashedText(f"image {number}") for number in range(image_count))
    page = PreparedPage(PAGE, "web", None, HashedText(text), len(text), 1000, images)
    for expected, count in (
        (len(text) // 2, image_count // 2),
        (len(text) // 4, image_count // 4),
    ):
        page = page.halve()
        assert page.text.startswith(text[:expected])
        assert (page.text_chars, len(page.images)) == (expected, count)
        assert (
            page.notes[-1]
            == f"cut for the judge's context: {expected} characters and {count} images are shown"
        )
    assert (page.text_chars_stored, page.times_halved, len(page.notes)) == (1000, 2, 2)


def test_the_record_says_what_is_shown():
    """Kind, digest, sizes and notes, as they stand in the result."""
    flag = Flag(kind="instruction", excerpt="obey")
    more = {"captured_at": "2026-01-02T03:04:05+00:00", "captured_by": "Chromium 140"}
    texts = (HashedText("text"), 4, 9, (HashedText("i"),), ("cut",), ("challenge",))
    page = PreparedPage(PAGE, "pdf", "ab", *texts, **more, flags=(flag,))
    sizes = {"text_chars": 4, "text_chars_stored": 9, "images": 1}
    signs = {
        "notes": ("cut",),
        "troubles": ("challenge",),
        "flags": (flag.model_dump(),),
    }
    assert page.evidence_record().model_dump() == {
        "kind": "pdf",
        "sha256": "ab",
        **sizes,
        **signs,
        **more,
    }


async def test_texts_and_images_know_their_hashes(cache):
    """Judgments are keyed by them; they are computed once, off the event loop."""
    cache.put_web(PAGE, "text", image())
    page = await PageLibrary().page(page_request(cache))
    for shared in (page.text, *page.images):
        assert vars(shared)["_sha256"] == hashlib.sha256(shared.encode()).hexdigest()


async def test_settings_of_the_evaluation_reach_the_page(cache):
    """The published configuration decides how much is shown."""
    cache.put_web(PAGE, "x" * 100, image(200, 900))
    config = EvaluatorConfig(max_text_chars=10, image_max_width=100, image_max_height=300)
    judge = ScriptedJudge()
    evaluator = started(judge, cache, config=config)
    leaf = evaluator.add_leaf("leaf", "")
    await evaluator.verify("claim", leaf, PAGE)
    notes = leaf.evidence.pages[0].page.notes
    assert ["300 of 450 pixels" in note or "first 10 of 100" in note for note in notes] == [
        True,
        True,
    ]
    await evaluator.verify("claim", leaf, PAGE, use_screenshot=False)
    assert [len(question.images) for question in judge.questions] == [1, 1, 0, 0]

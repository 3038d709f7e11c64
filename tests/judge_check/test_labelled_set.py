"""The labelled set: made as its generator says, balanced, and shown to judges as stored pages are."""

import io
import logging
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
from PIL import Image
from projects import REPOSITORY

import mind2web2
from mind2web2.capture.models import CapturedPage
from mind2web2.judge_check.check import LabelledPages
from mind2web2.judge_check.labelled_set import labelled_set
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.prepared_page import PageSettings

FILE = Path(mind2web2.__file__).parent / "judge_check" / "labelled_set.json"


def test_the_set_is_what_its_generator_makes(monkeypatch):
    """From the seed, byte for byte; else run benchmarks/make_labelled_set.py and raise the version."""
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "benchmarks"), *sys.path])
    from labelled_set import VERSION, labelled_set_json

    assert labelled_set_json() == FILE.read_text(encoding="utf-8")
    assert labelled_set().version == VERSION
    assert FILE.stat().st_size < 2_000_000


def test_half_of_the_claims_are_false_twins():
    """Each differs from a true claim in its text or in its pages, never in both."""
    claims = labelled_set().claims
    assert len(claims) >= 240 and len(labelled_set().forms) == 60
    assert len({claim.category for claim in claims}) == 19
    pairs = list(zip(claims[::2], claims[1::2], strict=True))
    for true, false in pairs:
        assert (true.right, false.right, true.pair) == (True, False, false.pair)
        assert (true.question != false.question) is (true.urls == false.urls)
        assert set(true.supported_by) <= set(true.urls)
        assert not false.supported_by
    asked = Counter((claim.question, claim.urls) for claim in claims)
    assert max(asked.values()) == 1


def test_a_sample_has_all_categories_and_whole_pairs():
    """As far as its size allows; parts of the set know that they are parts."""
    whole = labelled_set()
    sample = whole.sample(60)
    assert len(sample.cases) == 60 and sample.categories == whole.categories
    assert all(
        2 * len([c for c in part.claims if c.right]) == len(part.claims)
        for part in (sample, whole.sample(47))
    )
    assert [whole.is_whole, whole.sample(326).is_whole, sample.is_whole] == [
        True,
        True,
        False,
    ]
    tables = whole.of(["table cell"])
    assert [len(tables.cases), len(tables.pages), tables.is_whole] == [14, 7, False]


def request(cache, url):
    """Return the request for a page with its screenshot."""
    return PageRequest(
        cache, url, PageSettings(), True, None, nullcontext(), logging.getLogger()
    )


@pytest.mark.parametrize(
    "category", ["fact only in an image", "login wall", "other language"]
)
async def test_pages_are_shown_as_a_page_cache_would_have_them(tmp_path, category):
    """Text, images and notes are the same as those of a capture with this content."""
    part = labelled_set().of([category])
    urls = [claim.urls[0] for claim in part.claims[2:4]]
    drawn, stored = LabelledPages(part.pages), CacheFileSys(tmp_path)
    for url in dict.fromkeys(urls):
        stored.put_capture(CapturedPage(drawn.capture_record(url), *drawn.get_web(url)))
        one = await PageLibrary().page(request(drawn, url))
        other = await PageLibrary().page(request(stored, url))
        assert (one.text, one.images, one.notes) == (
            other.text,
            other.images,
            other.notes,
        )


def test_a_picture_is_in_the_screenshot_alone():
    """A poster's words are not in the text, and the screenshot has room for it."""
    part = labelled_set().of(["fact only in an image"])
    posters = {
        url: page for url, page in part.pages.items() if page.picture.kind == "poster"
    }
    assert len(posters) == 4
    for url, page in posters.items():
        text, screenshot = LabelledPages(part.pages).get_web(url)
        assert not any(words in text for (words,) in page.picture.rows)
        assert Image.open(io.BytesIO(screenshot)).height > 26 * len(text.splitlines())

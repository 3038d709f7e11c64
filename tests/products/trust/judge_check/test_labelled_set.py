"""The labelled set: labels that follow from its pages, shown as stored pages are."""

import io
import logging
import re
from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from statistics import median

import pytest
from PIL import Image

from mind2web2.capture.models import CapturedPage
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.prepared_page import PageSettings
from mind2web2_trust.judge_check.check import labelled_pages
from mind2web2_trust.judge_check.labelled_set import SHIPPED, shipped_set

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
DIGEST = "4e39b0acaebc"
NEGATED = re.compile(r"\b(not|no|cannot)\b", re.IGNORECASE)
STRONG = (
    "reduces",
    "keeps",
    "All ",
    "since",
    "exactly",
    "precisely",
    "caused",
    "leads",
)


@pytest.fixture
def drawn():
    """Return the set."""
    return shipped_set()


def shown_by(page, url):
    """Return all that a page shows: its text, its picture and its address."""
    rows = () if page.picture is None else page.picture.rows
    return "\n".join([page.text, *(str(part) for row in rows for part in row), url])


def test_the_package_ships_what_the_generator_makes(monkeypatch):
    """Raise its VERSION, and write the new digest here, where the set changes."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    generator = import_module("labelled_set")
    assert generator.invented_set() == shipped_set()
    assert (shipped_set().digest, shipped_set().version) == (DIGEST, 2)
    assert SHIPPED.stat().st_size < 1_000_000


def test_half_of_the_claims_are_false_twins(drawn):
    """Each differs from a true claim in its text or in its pages, never in both."""
    claims = drawn.claims
    assert len(claims) == 400 and len(drawn.forms) == 60
    assert len({claim.category for claim in claims}) == 30
    pairs = list(zip(claims[::2], claims[1::2], strict=True))
    for true, false in pairs:
        assert (true.right, false.right, true.pair) == (True, False, false.pair)
        assert (true.question != false.question) is (true.urls == false.urls)
        assert set(true.supported_by) <= set(true.urls)
        assert not false.supported_by
    asked = Counter((claim.question, claim.urls) for claim in claims)
    assert max(asked.values()) == 1


def test_what_decides_a_claim_is_on_its_pages(drawn):
    """The passages of a true claim are on the page that supports it.

    A wrong page has none of them.
    """
    for true, false in zip(drawn.claims[::2], drawn.claims[1::2], strict=True):
        if not true.urls:
            continue
        assert true.shows
        (url,) = true.supported_by
        page = shown_by(drawn.pages[url], url)
        assert [text for text in true.shows if text not in page] == [], true.id
        if false.urls == true.urls:
            assert false.shows == true.shows
            continue
        (other,) = false.urls
        elsewhere = shown_by(drawn.pages[other], other)
        assert not any(text in elsewhere for text in true.shows), false.id


def test_a_value_to_extract_stands_where_it_is_to_be_found(drawn):
    for form in drawn.forms:
        place = form.answer if form.url is None else drawn.pages[form.url].text
        for value in form.right.values():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    texts = (f"{one:,}", str(one)) if isinstance(one, int) else (one,)
                    assert any(text in place for text in texts), form.id


SUBJECT = re.compile(r"[A-Z][a-z]{4,} (?:Bridge|Tower|Canal|Lighthouse|Shipping)")


def test_what_surrounds_a_fact_names_none_of_the_subjects(drawn):
    """The subject of a claim stands on the pages of its own pair alone."""
    for true, false in zip(drawn.claims[::2], drawn.claims[1::2], strict=True):
        for name in SUBJECT.findall(true.question):
            named = {url for url, page in drawn.pages.items() if name in page.text}
            assert named <= {*true.urls, *false.urls}, name


def test_pages_are_as_long_as_real_ones(drawn):
    lengths = [len(page.text) for page in drawn.pages.values()]
    short = [chars for chars in lengths if chars < 1_000]
    assert len(short) == sum("wall" in claim.category for claim in drawn.claims) / 2 + 5
    lengths = [chars for chars in lengths if chars >= 1_000]
    assert min(lengths) >= 5_000 and 300_000 < max(lengths) < 400_000
    assert 8_000 < median(lengths) < 20_000
    years = [
        year
        for url, page in drawn.pages.items()
        for year in re.findall(r"(?<![\d,.-])20(?:2[7-9]|[3-9]\d)(?![\d,.])", f"{page.text} {url}")
    ]
    assert years == []
    assert not any(re.search(r"\b20(2[7-9]|[3-9]\d)\b", claim.question) for claim in drawn.claims)


@pytest.mark.parametrize("category", ["negation", "force"])
def test_the_form_of_a_claim_does_not_give_its_label_away(drawn, category):
    claims = [one for one in drawn.claims if one.category.startswith(category)]
    marked = Counter(
        one.right
        for one in claims
        if (
            NEGATED.search(one.question)
            if category == "negation"
            else any(word in one.question for word in STRONG)
        )
    )
    assert marked[True] == marked[False] > 0
    assert sum(marked.values()) < len(claims)


def test_a_sample_has_all_categories_and_whole_pairs():
    whole = shipped_set()
    sample = whole.sample(72)
    assert len(sample.cases) == 72 and sample.categories == whole.categories
    assert all(
        2 * len([c for c in part.claims if c.right]) == len(part.claims)
        for part in (sample, whole.sample(47))
    )
    assert [whole.is_whole, whole.sample(460).is_whole, sample.is_whole] == [
        True,
        True,
        False,
    ]
    tables = whole.of(["table cell"])
    assert [len(tables.cases), len(tables.pages), tables.is_whole] == [14, 7, False]


def request(cache, url):
    """Return the request for a page with its screenshot."""
    return PageRequest(cache, url, PageSettings(), True, None, nullcontext(), logging.getLogger())


@pytest.mark.parametrize("category", ["fact only in an image", "login wall", "other language"])
async def test_pages_are_shown_as_a_page_cache_would_have_them(tmp_path, category):
    """Text, images and notes are the same as those of a capture with this content."""
    part = shipped_set().of([category])
    urls = [claim.urls[0] for claim in part.claims[2:4]]
    drawn, stored = labelled_pages(part.pages), CacheFileSys(tmp_path)
    for url in dict.fromkeys(urls):
        stored.put_capture(CapturedPage(drawn.capture_record(url), *drawn.get_web(url)))
        one = await PageLibrary().page(request(drawn, url))
        other = await PageLibrary().page(request(stored, url))
        assert (one.text, one.images, one.notes) == (
            other.text,
            other.images,
            other.notes,
        )


def test_a_picture_is_at_the_top_of_the_screenshot_alone():
    """A poster's words are not in the text, and the judge is shown the part that has them."""
    part = shipped_set().of(["fact only in an image", "text against picture"])
    posters = {url: page for url, page in part.pages.items() if page.picture.kind == "poster"}
    assert len(posters) == 10
    for url, page in posters.items():
        text, screenshot = labelled_pages(part.pages).get_web(url)
        assert not all(words in text for (words,) in page.picture.rows)
        assert len(text[: text.index("[image]")]) < 1_000
        assert Image.open(io.BytesIO(screenshot)).height > 1_000

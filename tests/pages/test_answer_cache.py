"""An answer's view of the task's cache, with a note of the pages looked up."""

import pytest
from evaluations import OTHER, PAGE, image, stored
from pydantic import HttpUrl

from mind2web2.capture.models import CapturedPage, CaptureRecord
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.cache import listing_sha256
from mind2web2.pages.library import PageLibrary

GONE = "https://lake.example/gone"


@pytest.fixture
def cache(tmp_path):
    """Return an answer's cache over two stored pages."""
    return AnswerCache(stored(tmp_path))


@pytest.mark.parametrize(
    "look",
    [
        lambda cache, url: cache.has(url),
        lambda cache, url: cache.has_web(url),
        lambda cache, url: cache.has_pdf(url),
        lambda cache, url: cache.digest(url),
        lambda cache, url: cache.get_web(url),
        lambda cache, url: cache.get_web(url, get_screenshot=False),
    ],
)
def test_every_way_of_looking_is_noted(look, cache):
    assert cache.pages_used() == {}
    look(cache, PAGE)
    assert cache.pages_used() == {PAGE: cache.task_cache.digest(PAGE)}


def test_pages_that_are_not_there_are_noted_too(cache):
    """Storing one of them later changes what the answer rests on."""
    assert cache.has(GONE) is None
    with pytest.raises(KeyError, match=GONE):
        cache.get_web(GONE)
    with pytest.raises(KeyError, match=GONE):
        cache.get_pdf(GONE)
    assert cache.pages_used() == {GONE: None}


def test_everything_else_is_passed_on(cache):
    """Scripts see a whole cache."""
    cache.put_web(GONE, "text", image())
    cache.put_pdf(OTHER, b"%PDF-1.4")
    assert cache.summary() == {"total_urls": 3, "web_pages": 2, "pdf_pages": 1}
    assert (cache.get_pdf(OTHER), cache.get_web(GONE)) == (
        b"%PDF-1.4",
        ("text", image()),
    )
    assert cache.get_all_urls() == cache.task_cache.get_all_urls() == sorted([PAGE, OTHER, GONE])
    cache.save()
    cache.clear()
    assert cache.get_all_urls() == []


def test_what_was_shown_counts_rather_than_what_is_there_now(cache):
    """A page may be written anew while an answer is judged."""
    cache.has(PAGE)
    cache.note_questions([{PAGE: "first"}, {PAGE: "second"}])
    assert cache.pages_used() == {PAGE: "first"}


def test_asking_for_the_list_of_pages_is_noted(cache):
    """A script that counts them depends on which there are, and a page more makes another list."""
    assert cache.listing_used() is None
    cache.get_all_urls()
    before = cache.listing_used()
    assert before == listing_sha256(cache.task_cache)
    cache.put_web(GONE, "text", None)
    assert cache.listing_used() != before


def test_addresses_of_other_types_are_taken(cache):
    """Templates hold URLs of pydantic's own type."""
    assert cache.has(HttpUrl(PAGE)) == "web"
    assert cache.get_web(HttpUrl(PAGE))[0] == "Depth: 80 m"
    assert list(cache.pages_used()) == [PAGE]


def test_notes_of_two_answers_are_apart(cache):
    other = AnswerCache(cache.task_cache)
    cache.has(PAGE)
    other.has(OTHER)
    assert (list(cache.pages_used()), list(other.pages_used())) == ([PAGE], [OTHER])


async def watched(tmp_path):
    """Return an answer's cache in a run, with a page captured since its start."""
    task_cache = stored(tmp_path)
    cache = AnswerCache(task_cache, await PageLibrary().stored_at_first(task_cache))
    cache.task_cache.put_web(GONE, "captured", None)
    return cache


async def test_what_is_captured_by_chance_is_not_seen(tmp_path):
    """Ahead of time, or for another answer; what was stored before the run is."""
    cache = await watched(tmp_path)
    assert (cache.has(PAGE), cache.has(GONE), cache.has_web(GONE)) == (
        "web",
        None,
        False,
    )
    assert (cache.has_pdf(GONE), cache.digest(GONE)) == (False, None)
    with pytest.raises(KeyError, match=GONE):
        cache.get_web(GONE)
    assert GONE not in cache.get_all_urls()
    assert cache.summary() == {"total_urls": 2, "web_pages": 2, "pdf_pages": 0}
    assert cache.pages_used()[GONE] is None


@pytest.mark.parametrize(
    "bring",
    [
        lambda cache: cache.note_captured(GONE),
        lambda cache: cache.put_web(GONE, "put", None),
    ],
)
async def test_what_is_brought_is_seen(bring, tmp_path):
    cache = await watched(tmp_path)
    bring(cache)
    assert (cache.has(GONE), len(cache.get_all_urls())) == ("web", 3)


async def test_where_a_page_was_redirected_to_is_seen_with_it(tmp_path):
    """A capture stores it under both addresses."""
    cache = await watched(tmp_path)
    record = CaptureRecord(
        requested_url=f"{GONE}/old",
        final_url=f"{GONE}/new",
        captured_at="2026-01-01T00:00:00+00:00",
        kind="web",
    )
    cache.task_cache.put_capture(CapturedPage(record, "text", None))
    assert (cache.has(f"{GONE}/old"), cache.has(f"{GONE}/new")) == (None, None)
    cache.note_captured(f"{GONE}/old")
    assert (cache.has(f"{GONE}/old"), cache.has(f"{GONE}/new")) == ("web", "web")

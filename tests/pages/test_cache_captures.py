"""Captured pages in the cache: their records, what replaces what, and redirects."""

import hashlib
import io
import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import pytest
from faults.caching import page
from fixtures.process_tree import descendants, wait_for_end
from PIL import Image
from projects import clean_environment
from servers.local_http import LocalHttp

from mind2web2.capture.models import CapturedPage, CaptureRecord, Trouble
from mind2web2.errors import CacheWriteError, DocumentError
from mind2web2.pages.cache import CacheFileSys

URL = "https://example.com/page"
CLEAN, SUSPECT, FAILED = "clean", "suspect", "failed"


def jpeg(color="red"):
    """Return a small screenshot."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), color).save(buffer, "JPEG")
    return buffer.getvalue()


def captured(quality=CLEAN, text="text", url=URL, final_url=None, pdf=None, **changes):
    """Return what a capture yields: a page that looks right or suspect, or nothing."""
    kind = None if quality == FAILED else "web" if pdf is None else "pdf"
    record = CaptureRecord(
        requested_url=url,
        final_url=final_url or url,
        kind=kind,
        captured_at="2026-01-02T03:04:05+00:00",
        troubles=() if quality == CLEAN else (Trouble(kind="challenge", detail="a puzzle"),),
        failure="timed out" if quality == FAILED else None,
        **changes,
    )
    if kind == "web":
        return CapturedPage(record, text=text, screenshot=jpeg())
    return CapturedPage(record, pdf=pdf)


@pytest.fixture
def cache(tmp_path):
    """Return a cache whose folder does not exist yet."""
    return CacheFileSys(tmp_path / "agent" / "task")


def names(cache):
    """Return the names of a cache's files, the index apart."""
    return sorted(path.name for path in cache.task_dir.iterdir() if path.name != "index.json")


def stem(key):
    """Return how a page's files begin."""
    return hashlib.md5(key.encode()).hexdigest()


def test_a_page_is_stored_with_its_record(cache):
    """Found by any spelling, at once and after reopening.

    The record is readable JSON with the digest.
    """
    assert cache.put_capture(captured(text="täxt", title="Zürich \ud800", timings_s={"load": 0.5}))
    for opened in (cache, CacheFileSys(cache.task_dir)):
        assert opened.get_web("http://www.example.com/page/") == ("täxt", jpeg())
        record = opened.capture_record("http://www.example.com/page/")
        assert (record.title, record.timings_s, record.text_chars) == (
            "Zürich \ufffd",
            {"load": 0.5},
            4,
        )
        assert record.sha256 == opened.digest(URL)
        assert opened.capture_records() == {URL: record}
    assert names(cache) == [f"{stem(URL)}{suffix}" for suffix in (".capture.json", ".jpg", ".txt")]
    text = (cache.task_dir / f"{stem(URL)}.capture.json").read_text(encoding="utf-8")
    assert '\n  "title": "Zürich \ufffd",\n' in text
    assert json.loads(text)["requested_url"] == URL


def test_a_failure_is_a_record_alone(cache):
    """No page, no index entry; the reason is found by likely spellings."""
    assert cache.put_capture(captured(FAILED))
    assert cache.has(URL) is None
    assert names(cache) == [f"{stem(URL)}.capture.json"]
    assert not (cache.task_dir / "index.json").exists()
    assert cache.capture_record("http://www.example.com/page").failure == "timed out"
    assert [record.failure for record in cache.capture_records().values()] == ["timed out"]


def test_a_page_had_at_last_replaces_the_failure(cache):
    """The page may have another spelling of the failure's URL."""
    cache.put_capture(captured(FAILED))
    cache.put_capture(captured(url="http://www.example.com/page"))
    assert cache.capture_record(URL).kind == "web"
    assert [record.kind for record in cache.capture_records().values()] == ["web"]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (CLEAN, CLEAN, "second"),
        (CLEAN, SUSPECT, "first"),
        (CLEAN, FAILED, "first"),
        (SUSPECT, CLEAN, "second"),
        (SUSPECT, SUSPECT, "second"),
        (SUSPECT, FAILED, "first"),
        (None, CLEAN, "second"),
        (None, SUSPECT, "first"),
        (None, FAILED, "first"),
    ],
)
def test_nothing_is_replaced_by_something_worse(cache, first, second, kept):
    """``None`` is an older tool's page, without a record; what stays keeps its own record."""
    if first is None:
        cache.put_web(URL, "first", jpeg())
    else:
        cache.put_capture(captured(first, "first"))
    before = cache.capture_record(URL)
    assert cache.put_capture(captured(second, "second")) is (kept == "second")
    assert cache.get_web(URL) == (kept, jpeg())
    after = cache.capture_record(URL)
    assert after == before if kept == "first" else after.sha256 == cache.digest(URL)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (CLEAN, CLEAN, "first"),
        (SUSPECT, SUSPECT, "first"),
        (SUSPECT, CLEAN, "second"),
        (None, CLEAN, "second"),
    ],
)
def test_a_page_that_another_process_stored_stays_unless_it_is_worse(cache, first, second, kept):
    """Claims may rest on it by now."""
    if first is None:
        cache.put_web(URL, "first", jpeg())
    else:
        cache.put_capture(captured(first, "first"))
    assert cache.put_capture(captured(second, "second"), must_be_better=True) is (kept == "second")
    assert cache.get_web(URL) == (kept, jpeg())


def test_what_a_server_sent_while_it_was_out_of_order_gives_way_to_as_good(cache):
    cache.put_capture(captured(SUSPECT, "first", is_transient=True))
    assert cache.put_capture(captured(SUSPECT, "second"), must_be_better=True)
    assert cache.get_web(URL) == ("second", jpeg())


def test_another_spelling_replaces_the_same_page(cache):
    """Two entries of one page would be two truths."""
    cache.put_capture(captured(SUSPECT, "first", url="http://www.example.com/page"))
    cache.put_capture(captured(CLEAN, "second"))
    assert cache.get_all_urls() == ["http://www.example.com/page"]
    assert cache.get_web("http://www.example.com/page")[0] == "second"


def test_a_page_may_become_a_pdf(cache):
    cache.put_capture(captured(SUSPECT))
    cache.put_capture(captured(pdf=b"%PDF-1.7 content"))
    assert (cache.has(URL), cache.get_pdf(URL)) == ("pdf", b"%PDF-1.7 content")
    record = cache.capture_record(URL)
    assert (record.kind, record.text_chars, record.sha256) == (
        "pdf",
        0,
        cache.digest(URL),
    )
    assert names(cache) == [f"{stem(URL)}.capture.json", f"{stem(URL)}.pdf"]


def test_a_page_stored_without_a_record_loses_the_old_one(cache):
    cache.put_capture(captured(SUSPECT))
    cache.put_web(URL, "other", None)
    assert cache.capture_record(URL) is None
    cache.put_capture(captured())
    (cache.task_dir / f"{stem(URL)}.txt").write_text("written in place", encoding="utf-8")
    assert cache.capture_record(URL) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"kind": "web"}', b"\xff"])
def test_a_damaged_record_is_none(cache, caplog, content):
    cache.put_capture(captured())
    (cache.task_dir / f"{stem(URL)}.capture.json").write_bytes(content)
    assert cache.capture_record(URL) is None
    assert cache.capture_records() == {}
    assert cache.get_web(URL)[0] == "text"
    assert "capture record ignored" in caplog.text


def test_clearing_removes_records(cache):
    cache.put_capture(captured())
    cache.put_capture(captured(FAILED, url="https://example.com/gone"))
    cache.clear()
    assert names(cache) == []


def test_the_target_of_a_redirect_finds_the_page(cache):
    """The target has an entry of its own, whose record tells both URLs."""
    cache.put_capture(captured(url="https://short.example/x", final_url=URL))
    assert cache.get_all_urls() == [URL, "https://short.example/x"]
    assert cache.get_web(URL) == cache.get_web("https://short.example/x")
    assert cache.capture_record(URL).requested_url == "https://short.example/x"


@pytest.mark.parametrize(
    ("quality", "final_url"),
    [
        (SUSPECT, "https://example.com/login"),
        (FAILED, "https://example.com/other"),
        (CLEAN, "http://www.example.com/page/#part"),
        (CLEAN, "about:blank"),
        (CLEAN, "file:///etc/passwd"),
        (CLEAN, ""),
    ],
)
def test_other_redirects_make_no_entry(cache, quality, final_url):
    cache.put_capture(captured(quality, final_url=final_url))
    assert cache.get_all_urls() == ([] if quality == FAILED else [URL])


@pytest.mark.parametrize(
    ("route", "final_route", "known"),
    [
        ("#/about", "", 1),
        ("", "#/home", 1),
        ("#/about", "#/home", 1),
        ("#/about", "#/about", 2),
        ("#part", "", 2),
    ],
)
def test_a_client_side_route_is_no_redirect(cache, route, final_route, known):
    """One view of an application never stands for another, or for all of it."""
    cache.put_capture(captured(url=f"https://old.example/x{route}", final_url=URL + final_route))
    assert len(cache.get_all_urls()) == known


def test_a_redirect_leaves_what_is_stored_for_its_target(cache):
    cache.put_web(URL, "asked for", None)
    cache.put_capture(captured(text="redirected", url="https://short.example/x", final_url=URL))
    assert cache.get_web(URL)[0] == "asked for"
    assert cache.get_web("https://short.example/x")[0] == "redirected"


def test_pages_are_copied_with_their_records(cache, tmp_path):
    """Web pages and PDFs, under the spelling asked for; without a record where there is none."""
    other = CacheFileSys(tmp_path / "agent" / "other")
    cache.put_capture(captured(SUSPECT))
    cache.put_capture(captured(url="https://example.com/b", pdf=b"%PDF-1.7"))
    cache.put_web("https://example.com/old", "old", None)
    cache.put_pdf("https://example.com/old.pdf", b"%PDF-1.4")
    cache.put_capture(captured(FAILED, url="https://example.com/gone"))
    urls = [
        "http://example.com/page",
        "http://example.com/b",
        "http://example.com/old.pdf",
    ]
    assert all(other.copy_page(url, cache) for url in (*urls, "http://example.com/old"))
    assert not other.copy_page("https://example.com/gone", cache)
    assert other.get_all_urls() == sorted((*urls, "http://example.com/old"))
    for url in other.get_all_urls():
        assert other.digest(url) == cache.digest(url)
        assert other.capture_record(url) == cache.capture_record(url)


def test_what_cannot_be_stored_is_told(cache):
    with pytest.raises(CacheWriteError):
        cache.put_capture(captured(url="no url at all"))
    with pytest.raises(DocumentError):
        cache.put_capture(
            CapturedPage(captured().record, text="x", screenshot=b"\xff\xd8\xffdamaged")
        )
    assert cache.get_all_urls() == []


_REPLACING = dedent("""
    import sys
    sys.path[:0] = sys.argv[2:]
    from test_cache_captures import URL, captured, jpeg
    from dataclasses import replace
    from mind2web2.pages.cache import CacheFileSys
    cache = CacheFileSys(sys.argv[1])
    for number in range(100_000):
        color = ("red", "blue")[number % 2]
        cache.put_capture(replace(captured(text=color, title=color), screenshot=jpeg(color)))
        print(number, flush=True)
""")


def test_replacing_is_never_seen_half_done(tmp_path):
    cache = CacheFileSys(tmp_path)
    moments = random.Random(5)
    folders = [str(folder) for folder in Path(__file__).parents[:2]]
    for _ in range(3):
        command = [sys.executable, "-c", _REPLACING, str(tmp_path), *folders]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            for _ in range(moments.randrange(1, 100)):
                check_is_whole(cache)
            writer.kill()
        check_is_whole(cache)
        assert cache.capture_record(URL).title == cache.get_web(URL)[0]


def check_is_whole(cache):
    """Check that the text and the screenshot belong together."""
    text, screenshot = cache.get_web(URL)
    assert screenshot == jpeg(text)


COMMAND = [
    sys.executable,
    "-c",
    "from mind2web2.cli import main; raise SystemExit(main())",
    "cache",
    "bot",
    "--allow_private_network",
]


def test_a_killed_run_leaves_no_browser(tmp_path):
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
            COMMAND,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
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

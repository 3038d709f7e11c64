"""The page cache as its users see it: files, lookups, replacing, and what other programs wrote."""

import base64
import hashlib
import io
import json
import logging
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from mind2web2.errors import CacheMiss, CacheReadError, CacheWriteError, DocumentError
from mind2web2.pages.cache import CacheFileSys

VECTORS = Path(__file__).parents[1] / "fixtures/vectors"
FIXTURE = VECTORS / "cache_fixture"
EXPECTED = json.loads((FIXTURE / "expected.json").read_text(encoding="utf-8"))
URLS = json.loads((VECTORS / "urls.json").read_text(encoding="utf-8"))
PAGE = "https://www.example.com/page"


def image_bytes(image_format="JPEG", color="red"):
    """Return a small image."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), color).save(buffer, image_format)
    return buffer.getvalue()


def file_contents(folder):
    """Return every file of a folder with its content."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def md5(key):
    """Return the stem of a page's files."""
    return hashlib.md5(key.encode()).hexdigest()


def sha256(content):
    """Return a hex digest as the fixture gives it."""
    return hashlib.sha256(content).hexdigest()


def write_index(folder, listed):
    """Write an index in place, as older programs do, with a text file for each web page."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, kind in listed.items():
        if kind == "web":
            (folder / f"{md5(key)}.txt").write_text(f"text of {key}", encoding="utf-8")
    (folder / "index.json").write_text(json.dumps(listed), encoding="utf-8")


@pytest.fixture
def fixture_cache(tmp_path):
    """Return a cache opened on a copy of the fixture."""
    shutil.copytree(FIXTURE / "cache", tmp_path / "cache")
    return CacheFileSys(tmp_path / "cache")


@pytest.fixture
def cache(tmp_path):
    """Return a cache whose folder does not exist yet."""
    return CacheFileSys(tmp_path / "agent" / "task")


@pytest.mark.parametrize("query", EXPECTED["queries"], ids=lambda query: query["query"])
def test_fixture_lookups(fixture_cache, query):
    url = query["query"]
    found = (
        fixture_cache.has(url),
        fixture_cache.has_web(url),
        fixture_cache.has_pdf(url),
    )
    assert found == (query["has"], query["has_web"], query["has_pdf"])
    if query["has_web"]:
        text, screenshot = fixture_cache.get_web(url)
        assert (text, sha256(text.encode())) == (query["text"], query["text_sha256"])
        assert sha256(screenshot) == query["screenshot_sha256"]
        assert fixture_cache.get_web(url, get_screenshot=False) == (text, None)
    if query["has_pdf"]:
        assert sha256(fixture_cache.get_pdf(url)) == query["pdf_sha256"]


def test_reading_and_saving_leave_the_fixture_as_it_is(fixture_cache):
    """The listing and the counts are as recorded; no byte changes and no file is added."""
    assert fixture_cache.get_all_urls() == EXPECTED["all_urls"]
    assert fixture_cache.summary() == EXPECTED["summary"]
    for query in EXPECTED["queries"]:
        fixture_cache.digest(query["query"])
    fixture_cache.save()
    written = file_contents(fixture_cache.task_dir)
    assert written == file_contents(FIXTURE / "cache")


def test_the_same_pages_are_written_as_the_same_files(fixture_cache, cache):
    """Storing the fixture's pages again gives its folder, byte for byte."""
    for url in EXPECTED["written"]:
        if fixture_cache.has_pdf(url):
            cache.put_pdf(url, fixture_cache.get_pdf(url))
        else:
            cache.put_web(url, *fixture_cache.get_web(url))
    cache.save()
    assert file_contents(cache.task_dir) == file_contents(FIXTURE / "cache")


def test_url_vectors(cache):
    """Every query gets the page it means, at once and after reopening."""
    for url in URLS["stored"]:
        cache.put_web(url, url, None)
    cache.save()
    for opened in (cache, CacheFileSys(cache.task_dir)):
        for query in URLS["queries"]:
            found = opened.get_web(query["query"])[0] if opened.has_web(query["query"]) else None
            assert found == query["expected"], query


def test_opening_and_reading_create_nothing(cache):
    """A folder that does not exist is an empty cache and stays absent."""
    assert cache.has(PAGE) is None
    assert cache.digest(PAGE) is None
    assert cache.get_all_urls() == []
    assert cache.summary() == {"total_urls": 0, "web_pages": 0, "pdf_pages": 0}
    cache.clear()
    assert not cache.task_dir.parent.exists()


@pytest.mark.parametrize("get", [CacheFileSys.get_web, CacheFileSys.get_pdf])
def test_what_is_not_stored_is_a_key_error_naming_the_url(cache, get):
    with pytest.raises(KeyError) as caught:
        get(cache, PAGE)
    assert isinstance(caught.value, CacheMiss)
    assert PAGE in str(caught.value)


def test_the_other_kind_is_a_miss(cache):
    """A PDF is not a web page, nor the reverse."""
    cache.put_pdf(PAGE, b"%PDF-1.4")
    with pytest.raises(CacheMiss):
        cache.get_web(PAGE)
    cache.put_web(PAGE, "text", None)
    with pytest.raises(CacheMiss):
        cache.get_pdf(PAGE)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        *(
            (text, text)
            for text in (
                "",
                "plain",
                "two\r\nlines\n",
                "é東\U0001f600",
                "\x00\x0b",
                "x" * 2_000_000,
            )
        ),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_text_comes_back_as_it_was(cache, text, read):
    """Line ends, odd characters and length survive.

    Lone surrogates become replacement characters.
    """
    cache.put_web(PAGE, text, None)
    assert cache.get_web(PAGE) == (read, None)


SCREENSHOT_SPELLINGS = {
    "bytes": bytes,
    "base64": lambda raw: base64.b64encode(raw).decode(),
    "base64 in lines": lambda raw: base64.encodebytes(raw).decode(),
    "data URL": lambda raw: f"data:image/jpeg;base64,{base64.b64encode(raw).decode()}",
    "data URL in percent-encoding": lambda raw: f"data:image/jpeg,{quote(raw)}",
}


@pytest.mark.parametrize("encode", SCREENSHOT_SPELLINGS.values(), ids=SCREENSHOT_SPELLINGS)
def test_a_jpeg_is_stored_unchanged_however_it_is_given(cache, encode):
    """The bytes in the file are those of the image."""
    cache.put_web(PAGE, "", encode(image_bytes()))
    assert cache.get_web(PAGE) == ("", image_bytes())
    assert (cache.task_dir / f"{md5(PAGE)}.jpg").read_bytes() == image_bytes()


def test_other_formats_become_jpeg(cache):
    """The layout knows JPEG only."""
    cache.put_web(PAGE, "text", image_bytes("PNG"))
    with Image.open(io.BytesIO(cache.get_web(PAGE)[1])) as image:
        assert (image.format, image.size) == ("JPEG", (8, 6))


@pytest.mark.parametrize("screenshot", [b"no image", "no base64!", "data:image/png;base64,AAAA"])
def test_a_damaged_screenshot_is_refused(cache, screenshot):
    """Nothing is stored, so that the page can be captured again."""
    with pytest.raises(DocumentError):
        cache.put_web(PAGE, "text", screenshot)
    assert cache.has(PAGE) is None


@pytest.mark.parametrize("nothing", [None, b"", ""])
def test_a_new_capture_without_screenshot_removes_the_old_one(cache, nothing):
    """Text and screenshot are always of the same capture."""
    cache.put_web(PAGE, "old", image_bytes())
    cache.put_web(PAGE, "new", nothing)
    assert cache.get_web(PAGE) == ("new", None)


@pytest.mark.parametrize("url", ["", "two words", "a@b.com", "https://a.com/\ud800"])
def test_what_is_no_url_cannot_be_stored(cache, url):
    with pytest.raises(CacheWriteError, match="not a URL"):
        cache.put_web(url, "text", None)
    assert cache.has(url) is None
    assert not cache.task_dir.exists()


def test_the_last_kind_stored_is_the_page(cache):
    """A PDF replaces a web page and the reverse, leaving no stale file."""
    cache.put_web(PAGE, "text", image_bytes())
    cache.put_pdf(PAGE, b"%PDF-1")
    assert cache.has(PAGE) == "pdf"
    assert set(file_contents(cache.task_dir)) == {"index.json", f"{md5(PAGE)}.pdf"}
    cache.put_web(PAGE, "text", None)
    assert CacheFileSys(cache.task_dir).has(PAGE) == "web"
    assert set(file_contents(cache.task_dir)) == {"index.json", f"{md5(PAGE)}.txt"}


def test_the_exact_spelling_wins(cache):
    """Spellings that mean one page may hold several captures.

    Each finds its own, others the likest.
    """
    captures = {
        "http://example.com/a": "plain",
        "https://example.com/a": "secure",
        "https://example.com/a?utm_source=x": "tracked",
    }
    for url, text in captures.items():
        cache.put_web(url, text, None)
    for opened in (cache, CacheFileSys(cache.task_dir)):
        assert {url: opened.get_web(url)[0] for url in captures} == captures
        assert opened.get_web("https://example.com/a/#part")[0] == "secure"
        assert opened.get_web("http://www.example.com/a")[0] == "plain"
        assert opened.get_web("https://example.com/a?utm_source=y")[0] == "tracked"


def test_a_spelling_whose_files_are_missing_gives_way_to_another(cache):
    """The page is stored after all."""
    cache.put_web("https://example.com/a", "secure", None)
    cache.put_web("http://example.com/a", "plain", None)
    (cache.task_dir / f"{md5('https://example.com/a')}.txt").unlink()
    assert cache.get_web("https://example.com/a")[0] == "plain"


def test_encoded_and_bare_slashes_are_two_pages(cache):
    """Older tools stored both under one name."""
    cache.put_web("https://example.com/a%2Fb", "encoded", None)
    cache.put_web("https://example.com/a/b", "bare", None)
    opened = CacheFileSys(cache.task_dir)
    assert opened.get_web("https://example.com/a%2fb")[0] == "encoded"
    assert opened.get_web("https://example.com/a/b/")[0] == "bare"


@pytest.mark.parametrize(
    "tail",
    [
        "F%23",
        "100%25",
        "100%2525",
        "100%",
        "a%20",
        "x%5C_",
        "%C3",
        "é%3F",
        "?q=%26%3D%2B",
        "#/r%23",
    ],
)
def test_awkward_urls_can_be_read_again(cache, tail):
    url = f"https://example.com/{tail}"
    cache.put_web(url, tail, None)
    opened = CacheFileSys(cache.task_dir)
    assert opened.get_web(url)[0] == tail
    assert [opened.get_web(key)[0] for key in opened.get_all_urls()] == [tail]


@pytest.mark.parametrize(
    ("key", "query"),
    [
        ("https://example.com/docs/F#", "https://example.com/docs/F%23"),
        (
            "https://example.com/docs/F#-guide",
            "https://www.example.com/docs/F%23-guide/",
        ),
        ("https://example.com/100%", "https://example.com/100%25"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("https://example.com/x\\_y", "https://example.com/x_y"),
        ("https://example.com/%E9", "https://example.com/%e9"),
        ("https://example.com/dir/", "https://example.com/dir"),
        ("HTTPS://EXAMPLE.COM/x", "https://example.com/x"),
    ],
)
def test_keys_of_older_tools_are_read_as_they_stand(tmp_path, key, query):
    """The file name is the hash of the key in the index, and any spelling of the URL finds it."""
    write_index(tmp_path, {key: "web"})
    cache = CacheFileSys(tmp_path)
    assert cache.get_all_urls() == [key]
    assert cache.get_web(query)[0] == cache.get_web(key)[0] == f"text of {key}"
    assert cache.digest(query) == cache.digest(key)


def test_a_decoded_number_sign_is_not_taken_for_a_fragment(tmp_path):
    """The page F is not the page F%23-guide, which an older tool listed as F#-guide."""
    write_index(tmp_path, {"https://example.com/F#-guide": "web"})
    assert CacheFileSys(tmp_path).has("https://example.com/F") is None


def test_writing_keeps_what_other_programs_listed(tmp_path):
    """Unknown kinds and keys that are not URLs stay in the file and are not read."""
    listed = {
        PAGE: "web",
        "no url": "web",
        "https://example.com/film": "video",
        "https://example.com/x": None,
    }
    write_index(tmp_path, listed)
    cache = CacheFileSys(tmp_path)
    cache.put_pdf("https://example.com/paper", b"%PDF-1")
    assert cache.get_all_urls() == ["https://example.com/paper", PAGE]
    assert [cache.has(url) for url in listed] == ["web", None, None, None]
    written = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))
    assert written == {**listed, "https://example.com/paper": "pdf"}


def test_text_that_is_not_utf8_is_read_with_a_warning(tmp_path, caplog):
    """The damaged bytes show as replacement characters."""
    write_index(tmp_path, {PAGE: "web"})
    (tmp_path / f"{md5(PAGE)}.txt").write_bytes(b"caf\xe9 au lait")
    assert CacheFileSys(tmp_path).get_web(PAGE)[0] == "caf\ufffd au lait"
    assert "not valid utf-8" in caplog.text


@pytest.mark.parametrize(("kind", "suffix"), [("web", "txt"), ("pdf", "pdf")])
def test_a_listed_page_without_file_is_not_cached(cache, caplog, kind, suffix):
    """Every call agrees, and one warning names the page."""
    cache.put_web(PAGE, "text", image_bytes()) if kind == "web" else cache.put_pdf(PAGE, b"%PDF-1")
    (cache.task_dir / f"{md5(PAGE)}.{suffix}").unlink()
    for opened in (cache, CacheFileSys(cache.task_dir)):
        caplog.clear()
        assert (opened.has(PAGE), opened.digest(PAGE), opened.get_all_urls()) == (
            None,
            None,
            [],
        )
        assert opened.summary()["total_urls"] == 0
        with pytest.raises(CacheMiss):
            opened.get_web(PAGE) if kind == "web" else opened.get_pdf(PAGE)
        assert [PAGE in record.getMessage() for record in caplog.records] == [True]


def test_the_index_written_lists_only_what_exists(cache):
    """Entries without files go when the index is replaced, and a copy of the old index stays."""
    cache.put_web(PAGE, "text", None)
    cache.put_web("https://example.com/other", "text", None)
    old_index = (cache.task_dir / "index.json").read_bytes()
    (cache.task_dir / f"{md5(PAGE)}.txt").unlink()
    cache.save()
    assert json.loads((cache.task_dir / "index.json").read_text()) == {
        "https://example.com/other": "web"
    }
    assert (cache.task_dir / "index.json.damaged-1").read_bytes() == old_index


def test_leftovers_of_killed_writers_disturb_nobody(cache):
    cache.put_web(PAGE, "text", None)
    (cache.task_dir / ".writing-0123456789abcdef").write_bytes(b"half a pa")
    opened = CacheFileSys(cache.task_dir)
    assert opened.get_all_urls() == [PAGE]
    opened.put_web("https://example.com/other", "text", None)
    assert not (cache.task_dir / ".writing-0123456789abcdef").exists()


def test_the_digest_changes_with_what_is_stored(cache):
    """Kind, text and screenshot each count; the spelling of the URL and storing again do not."""
    digests = []
    for text, screenshot in (
        ("text", None),
        ("text", image_bytes()),
        ("text", image_bytes(color="blue")),
        ("", None),
    ):
        cache.put_web(PAGE, text, screenshot)
        digests.append(cache.digest(PAGE))
        cache.put_web(PAGE, text, screenshot)
        assert cache.digest("example.com/page/") == digests[-1]
    cache.put_pdf(PAGE, b"text")
    digests += [cache.digest(PAGE), cache.digest("https://example.com/none")]
    assert len(set(digests)) == len(digests)
    assert digests[-1] is None
    assert all(len(digest) == 64 for digest in digests[:-1])


def test_clear_empties_this_task_only(cache):
    """Pages and leftovers go, other people's files stay, and the cache can be filled again."""
    cache.put_web(PAGE, "text", image_bytes())
    cache.put_pdf("https://example.com/paper", b"%PDF-1")
    neighbour = CacheFileSys(cache.task_dir.parent / "other")
    neighbour.put_web(PAGE, "neighbour", None)
    (cache.task_dir / "notes.txt").write_text("mine")
    (cache.task_dir / ".writing-0").write_text("half")
    cache.clear()
    assert set(file_contents(cache.task_dir)) == {"index.json", "notes.txt"}
    assert CacheFileSys(cache.task_dir).get_all_urls() == cache.get_all_urls() == []
    assert neighbour.get_web(PAGE)[0] == "neighbour"
    cache.put_web(PAGE, "again", None)
    assert cache.get_web(PAGE)[0] == "again"


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "\\",
        "http://",
        "https://[",
        "\ud800",
        "x" * 1_000_000,
        "https://a.com/" + "é" * 500_000,
    ],
)
def test_no_lookup_raises(fixture_cache, url):
    """Nothing is found, and nothing goes wrong."""
    assert (fixture_cache.has(url), fixture_cache.digest(url)) == (None, None)
    with pytest.raises(CacheMiss):
        fixture_cache.get_web(url)


@pytest.mark.parametrize(
    "write",
    [
        lambda cache: cache.put_web(PAGE, "text", None),
        lambda cache: cache.put_pdf(PAGE, b"%PDF-1"),
        CacheFileSys.save,
    ],
)
def test_a_folder_that_cannot_be_written_says_so(tmp_path, write):
    """Reading finds nothing, writing names the folder in one line."""
    (tmp_path / "file").write_text("in the way")
    cache = CacheFileSys(tmp_path / "file" / "task")
    assert cache.has(PAGE) is None
    with pytest.raises(CacheWriteError, match="make it writable") as caught:
        write(cache)
    assert str(cache.task_dir) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_index_that_cannot_be_read_is_not_an_empty_cache(tmp_path):
    """Its pages would count as absent otherwise, and claims as unsupported."""
    (tmp_path / "index.json").mkdir()
    with pytest.raises(CacheReadError, match=r"cannot read .*index\.json: .*the disk$"):
        CacheFileSys(tmp_path)


def test_a_page_file_that_cannot_be_read_is_not_a_miss(cache):
    """An error of the disk must not pass for an absent page."""
    cache.put_web(PAGE, "text", None)
    path = cache.task_dir / f"{md5(PAGE)}.txt"
    path.unlink()
    path.mkdir()
    with pytest.raises(CacheReadError, match="cannot read"):
        cache.get_web(PAGE)


def test_ordinary_use_logs_nothing(cache, caplog):
    """Warnings are for what somebody should look at."""
    caplog.set_level(logging.INFO)
    cache.put_web(PAGE, "text", None)
    cache.save()
    CacheFileSys(cache.task_dir).get_web(PAGE)
    assert caplog.records == []


@pytest.mark.parametrize("suffix", [".txt", ".jpg", ".capture.json"])
def test_a_link_in_a_cache_is_not_followed(tmp_path, suffix):
    """A cache from others may hold one that leads to a file of this machine."""
    cache = CacheFileSys(tmp_path / "cache")
    cache.put_web(PAGE, "text", image_bytes())
    secret = tmp_path / "secret"
    secret.write_text("{}")
    linked = tmp_path / "cache" / f"{md5(PAGE)}{suffix}"
    linked.unlink(missing_ok=True)
    linked.symlink_to(secret)
    with pytest.raises(CacheReadError, match="it is a link"):
        (cache.get_web(PAGE), cache.capture_record(PAGE))

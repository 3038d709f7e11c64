"""The index among threads, processes, kills and damage."""

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mind2web2.errors import CacheWriteError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.utils.files import is_leftover

WRITER = """
import itertools, sys
from mind2web2.pages.cache import CacheFileSys
cache, name, count = CacheFileSys(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in itertools.islice(itertools.count(), count or None):
    url = f"https://{name}.example/{number}"
    if number % 3:
        cache.put_web(url, f"text of {url}", None)
    else:
        cache.put_pdf(url, f"pdf of {url}".encode())
    print(url, flush=True)
"""


def start_writer(folder, name, count):
    """Start a process that stores ``count`` pages (0: endlessly) and prints each URL once it is stored."""
    command = [sys.executable, "-c", WRITER, str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def content_of(cache, url):
    """Return what is stored for a URL of the writer."""
    return cache.get_pdf(url).decode() if cache.has_pdf(url) else cache.get_web(url)[0]


def index_of(folder):
    """Return the index file's content."""
    return json.loads((folder / "index.json").read_text(encoding="utf-8"))


def md5(key):
    """Return the stem of a page's files."""
    return hashlib.md5(key.encode()).hexdigest()


def filled(folder, count=5):
    """Store a few pages and return their URLs."""
    cache = CacheFileSys(folder)
    urls = [f"https://example.com/{number}" for number in range(count)]
    for url in urls:
        cache.put_web(url, f"text of {url}", None)
    return urls


def test_what_was_stored_survives_a_kill(tmp_path):
    """After each SIGKILL every acknowledged page is there, and the index lists only whole files."""
    folder = tmp_path / "task"
    stored = []
    for round_number, acknowledged in enumerate((1, 2, 3, 7, 12)):
        with start_writer(folder, f"round{round_number}", 0) as writer:
            stored += [writer.stdout.readline().strip() for _ in range(acknowledged)]
            writer.kill()
        cache = CacheFileSys(folder)
        for url in stored:
            assert content_of(cache, url).endswith(f"of {url}")
        for url, kind in index_of(folder).items():
            assert (
                (folder / f"{md5(url)}.{'txt' if kind == 'web' else 'pdf'}").read_text().endswith(f"of {url}")
            )
    assert not list(folder.glob("*.damaged-*"))
    cache.save()
    assert not [path for path in folder.iterdir() if is_leftover(path.name)]


def test_two_processes_at_once_lose_nothing(tmp_path):
    """Both write the same folder, and a third sees the pages of both."""
    bystander = CacheFileSys(tmp_path)
    with start_writer(tmp_path, "one", 40) as one, start_writer(tmp_path, "two", 40) as two:
        urls = one.communicate()[0].split() + two.communicate()[0].split()
    assert len(urls) == 80
    assert bystander.get_all_urls() == sorted(urls) == sorted(index_of(tmp_path))
    assert all(content_of(bystander, url).endswith(f"of {url}") for url in urls)


def test_a_process_sees_what_another_stores_meanwhile(tmp_path):
    """Without reopening, page by page, and keeps it when it writes itself."""
    cache = CacheFileSys(tmp_path)
    with start_writer(tmp_path, "other", 5) as writer:
        for number, line in enumerate(writer.stdout):
            assert content_of(cache, line.strip()).endswith(f"of {line.strip()}")
            cache.put_web(f"https://mine.example/{number}", "mine", None)
    assert len(index_of(tmp_path)) == cache.summary()["total_urls"] == 10


def test_threads_share_one_cache(tmp_path):
    """Pages stored and read at once by many threads are all there."""
    cache = CacheFileSys(tmp_path)

    def store_and_read(number):
        url = f"https://example.com/{number % 30}"
        cache.put_web(url, f"text of {url}", None)
        return cache.get_web(url)[0] == f"text of {url}" and cache.has("https://example.com/none") is None

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(store_and_read, range(60)))
    assert cache.summary()["total_urls"] == len(index_of(tmp_path)) == 30


def test_an_index_written_in_place_by_another_program_is_noticed(tmp_path):
    """Older tools do not replace the file."""
    filled(tmp_path)
    cache = CacheFileSys(tmp_path)
    added = "https://example.com/added"
    (tmp_path / f"{md5(added)}.txt").write_text("added")
    (tmp_path / "index.json").write_text(json.dumps({**index_of(tmp_path), added: "web"}))
    assert cache.get_web(added)[0] == "added"


def test_a_removed_folder_is_an_empty_cache(tmp_path):
    """Somebody may clean up while a run reads."""
    cache = CacheFileSys(tmp_path / "task")
    cache.put_web("https://example.com/", "text", None)
    for path in cache.task_dir.iterdir():
        path.unlink()
    cache.task_dir.rmdir()
    assert cache.has("https://example.com/") is None
    cache.put_web("https://example.com/", "again", None)
    assert cache.get_web("https://example.com/")[0] == "again"


DAMAGES = {
    "cut": lambda whole: whole[: len(whole) - 40],
    "cut in a key": lambda whole: whole[:-12],
    "no object": lambda whole: b"[" + whole + b"]",
    "not utf-8": lambda whole: whole.replace(b"{", b"{ \xff", 1),
    "two glued": lambda whole: whole + whole,
    "nul tail": lambda whole: whole + b"\0" * 100,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_index_is_set_aside_and_rebuilt(tmp_path, caplog, damage):
    """What the damaged text still names is listed again; the damaged file is kept, with a warning."""
    urls = filled(tmp_path)
    damaged = damage((tmp_path / "index.json").read_bytes())
    (tmp_path / "index.json").write_bytes(damaged)
    named = [url for url in urls if f'"{url}": "web"'.encode() in damaged]
    assert len(named) >= 3
    cache = CacheFileSys(tmp_path)
    assert cache.get_all_urls() == named == sorted(index_of(tmp_path))
    assert (tmp_path / "index.json.damaged-1").read_bytes() == damaged
    assert "is damaged" in caplog.text
    assert f"pages_of_unknown_url={len(urls) - len(named)}" in caplog.text


def test_every_damaged_index_is_kept(tmp_path):
    """The second does not replace the first."""
    filled(tmp_path)
    for damaged in (b"", b"{", b"\0" * 10):
        (tmp_path / "index.json").write_bytes(damaged)
        CacheFileSys(tmp_path)
    kept = [(tmp_path / f"index.json.damaged-{number}").read_bytes() for number in (1, 2, 3)]
    assert kept == [b"", b"{", b"\0" * 10]


def test_an_index_damaged_while_open_is_rebuilt_before_writing(tmp_path):
    """A running process does not write over it either."""
    urls = filled(tmp_path)
    cache = CacheFileSys(tmp_path)
    damaged = (tmp_path / "index.json").read_bytes()[:-3]
    (tmp_path / "index.json").write_bytes(damaged)
    cache.put_web("https://example.com/new", "new", None)
    assert (tmp_path / "index.json.damaged-1").read_bytes() == damaged
    assert set(index_of(tmp_path)) >= {*urls[:-1], "https://example.com/new"}


def test_where_nothing_can_be_set_aside_pages_are_still_read(tmp_path):
    """The damaged index stays until the folder can be written, and is set aside then."""
    urls = filled(tmp_path)
    damaged = (tmp_path / "index.json").read_bytes()[:-3]
    (tmp_path / "index.json").write_bytes(damaged)
    (tmp_path / ".index.lock").mkdir()  # stops every writer, whoever it is
    cache = CacheFileSys(tmp_path)
    assert cache.get_web(urls[0])[0] == f"text of {urls[0]}"
    with pytest.raises(CacheWriteError):
        cache.save()
    assert (tmp_path / "index.json").read_bytes() == damaged
    (tmp_path / ".index.lock").rmdir()
    cache.save()
    assert (tmp_path / "index.json.damaged-1").read_bytes() == damaged
    assert set(index_of(tmp_path)) >= set(urls[:-1])


def test_the_list_of_cited_urls_gives_names_back(tmp_path):
    """Files alone do not tell their URL, but the task's list of URLs does."""
    folder = tmp_path / "task.v2"
    cache = CacheFileSys(folder)
    cache.put_web("https://example.com/caf%C3%A9#part", "café", None)
    cache.put_pdf("https://example.com/paper", b"%PDF-1")
    older_key = "https://example.com/a/b"  # from a%2Fb
    (folder / f"{md5(older_key)}.txt").write_text("older")
    cited = ["https://example.com/caf%C3%A9#part", "https://example.com/paper", "https://example.com/none", 7]
    cited += ["https://example.com/a%2Fb/", "https://example.com/\ud800"]
    (tmp_path / "task.v2.json").write_text(json.dumps({"all_unique_urls": cited}))
    (folder / "index.json").write_bytes(b"")
    assert CacheFileSys(folder).get_all_urls() == [
        older_key,
        "https://example.com/café",
        "https://example.com/paper",
    ]


@pytest.mark.parametrize("neighbour", [b"", b"[]", b'{"all_unique_urls": 3}', b"\xff{"])
def test_a_useless_list_of_cited_urls_does_no_harm(tmp_path, neighbour):
    """Rebuilding goes on with the damaged text alone."""
    urls = filled(tmp_path / "task")
    (tmp_path / "task.json").write_bytes(neighbour)
    (tmp_path / "task" / "index.json").write_text(
        '{"https://example.com/0": "web", "https://example.com/9": "web",'
    )
    assert CacheFileSys(tmp_path / "task").get_all_urls() == urls[:1]

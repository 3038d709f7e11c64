"""The index among threads, processes, kills and damage."""

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from mind2web2.errors import CacheReadError
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
    """Start a process that stores ``count`` pages (0: endlessly) and prints each URL."""
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
                (folder / f"{md5(url)}.{'txt' if kind == 'web' else 'pdf'}")
                .read_text()
                .endswith(f"of {url}")
            )
    assert not list(folder.glob("*.damaged-*"))
    cache.save()
    assert not [path for path in folder.iterdir() if is_leftover(path.name)]


def test_two_processes_at_once_lose_nothing(tmp_path):
    bystander = CacheFileSys(tmp_path)
    with (
        start_writer(tmp_path, "one", 40) as one,
        start_writer(tmp_path, "two", 40) as two,
    ):
        urls = one.communicate()[0].split() + two.communicate()[0].split()
    assert len(urls) == 80
    assert bystander.get_all_urls() == sorted(urls) == sorted(index_of(tmp_path))
    assert all(content_of(bystander, url).endswith(f"of {url}") for url in urls)


def test_a_process_sees_what_another_stores_meanwhile(tmp_path):
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
        return (
            cache.get_web(url)[0] == f"text of {url}"
            and cache.has("https://example.com/none") is None
        )

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
    "deeply nested": lambda whole: whole[:-1] + b', "x": ' + b"[" * 200_000,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_index_is_an_error_that_names_it(tmp_path, damage):
    """Nothing is judged by what is left of it, and it stays for its repair."""
    filled(tmp_path)
    cache = CacheFileSys(tmp_path)
    damaged = damage((tmp_path / "index.json").read_bytes())
    (tmp_path / "index.json").write_bytes(damaged)
    for use in (
        lambda: CacheFileSys(tmp_path),
        lambda: cache.put_web("https://example.com/n", "new", None),
    ):
        with pytest.raises(CacheReadError, match=r"index\.json is damaged: repair it"):
            use()
    assert (tmp_path / "index.json").read_bytes() == damaged

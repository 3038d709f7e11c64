"""The next process completes a page whose replacement was interrupted."""

import json

import pytest
from PIL import Image

from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cache_files import PageFiles
from mind2web2.utils.files import stage_file

URL = "https://example.com/page"
NOTE = ".replacing.json"
LOCK = ".index.lock"


def jpeg(tmp_path, color):
    """Return a small screenshot."""
    Image.new("RGB", (8, 6), color).save(tmp_path / "any.jpg")
    return (tmp_path / "any.jpg").read_bytes()


@pytest.fixture
def cache(tmp_path):
    """Return a cache with one page."""
    cache = CacheFileSys(tmp_path / "task")
    cache.put_web(URL, "old", jpeg(tmp_path, "red"))
    return cache


def leave_note(cache, note):
    """Leave what a killed process leaves: a note and a lock file that nobody holds."""
    (cache.task_dir / NOTE).write_text(
        note if isinstance(note, str) else json.dumps(note), encoding="utf-8"
    )
    (cache.task_dir / LOCK).touch()


@pytest.mark.parametrize("moves_done", [0, 1, 2])
def test_a_reader_completes_what_was_begun(cache, tmp_path, moves_done):
    files = PageFiles.of(cache.task_dir, URL)
    new = {files.text: b"new", files.screenshot: jpeg(tmp_path, "blue")}
    staged = {path: stage_file(cache.task_dir, content) for path, content in new.items()}
    leave_note(
        cache,
        {
            **{path.name: made.name for path, made in staged.items()},
            files.sidecar.name: None,
        },
    )
    files.sidecar.write_text("an old record", encoding="utf-8")
    for path in list(new)[:moves_done]:
        staged[path].replace(path)
    assert CacheFileSys(cache.task_dir).get_web(URL) == ("new", new[files.screenshot])
    assert {path.name for path in cache.task_dir.iterdir()} == {
        "index.json",
        files.text.name,
        files.screenshot.name,
    }


@pytest.mark.parametrize(
    "note",
    [
        "",
        "[]",
        "{",
        {"../other.txt": None},
        {"index.json": None},
        {"0" * 32 + ".txt": "../.writing-0"},
        {"0" * 32 + ".txt": "index.json"},
        {"0" * 32 + ".txt": 5},
    ],
)
def test_a_note_that_is_none_of_ours_does_nothing(cache, tmp_path, note):
    (tmp_path / "other.txt").write_text("mine", encoding="utf-8")
    (tmp_path / ".writing-0").write_text("mine", encoding="utf-8")
    leave_note(cache, note)
    assert CacheFileSys(cache.task_dir).get_web(URL)[0] == "old"
    assert (tmp_path / "other.txt").exists() and (tmp_path / ".writing-0").exists()
    assert CacheFileSys(cache.task_dir).get_all_urls() == [URL]
    assert not (cache.task_dir / NOTE).exists()


def test_a_reader_without_rights_to_complete_reads_what_is_there(cache):
    """A lock that cannot be taken, as in a read-only folder, keeps nobody from reading."""
    (cache.task_dir / LOCK).mkdir()
    assert cache.get_web(URL)[0] == "old"

"""The file of cited URLs: what it holds, in which order, and what older or damaged ones are read as."""

import json
from pathlib import Path

import pytest

from mind2web2 import CacheFileSys
from mind2web2.errors import CacheReadError, CacheWriteError
from mind2web2.pages.citations import citations_as_json, listed_urls, write_citations

EXAMPLE = Path(__file__).parents[2] / "cache/example"
ANSWERS = {
    "answer_10.md": ["https://b.org/x", "https://A.org"],
    "answer_2.md": ["https://b.org/x/", "https://c.org/y"],
    "answer_1.md": ["http://www.b.org/x", "https://c.org/y#part", "https://c.org/y", "ftp://d.org"],
}


def content(folder, task="task"):
    """Return a file's content, in the order of its keys."""
    return json.loads((folder / f"{task}.json").read_text(encoding="utf-8"))


def test_the_file_is_as_specified(tmp_path):
    """Keys in the order of file-layouts.md, most cited first, answers in natural order."""
    write_citations(tmp_path / "agent", "task", ANSWERS)
    assert list(content(tmp_path / "agent").items()) == [
        ("agent_name", "agent"),
        ("task_id", "task"),
        ("total_unique_urls", 3),
        ("all_unique_urls", ["http://www.b.org/x", "https://A.org", "https://c.org/y"]),
        (
            "urls",
            {
                "http://www.b.org/x": ["answer_1.md", "answer_2.md", "answer_10.md"],
                "https://c.org/y": ["answer_1.md", "answer_2.md"],
                "https://A.org": ["answer_10.md"],
            },
        ),
        ("url_types", {}),
        ("cached_url_count", 0),
    ]
    cited = content(tmp_path / "agent")["urls"]
    assert list(cited) == ["http://www.b.org/x", "https://c.org/y", "https://A.org"]


def test_urls_are_sorted_ignoring_case():
    """In the list, among equally cited ones and among the cached ones."""
    urls = ["https://b.org", "https://C.org", "https://a.org", "https://D.org/a", "https://d.org/B"]
    citations = citations_as_json("agent", "task", {"answer_1.md": urls})
    expected = ["https://a.org", "https://b.org", "https://C.org", "https://D.org/a", "https://d.org/B"]
    assert citations["all_unique_urls"] == list(citations["urls"]) == expected


def test_cached_pages_are_listed_with_their_kind(tmp_path):
    """Whatever spelling they are stored under."""
    pages = CacheFileSys(tmp_path / "task")
    pages.put_web("https://b.org/x", "text", None)
    pages.put_pdf("http://c.org/y", b"%PDF-1.4")
    write_citations(tmp_path, "task", ANSWERS, pages)
    assert content(tmp_path)["url_types"] == {"http://www.b.org/x": "web", "https://c.org/y": "pdf"}
    assert content(tmp_path)["cached_url_count"] == 2


@pytest.mark.parametrize("task", ["library_facts", "museum_saturday", "step_free_walks"])
def test_the_files_in_use_stay_as_they_are(task):
    """Written again, the example's files have the same content, lists in the same order."""
    existing, urls_by_answer = content(EXAMPLE, task), {}
    for url, names in existing["urls"].items():
        for name in names:
            urls_by_answer.setdefault(name, []).append(url)
    written = citations_as_json("example", task, urls_by_answer, CacheFileSys(EXAMPLE / task))
    assert written == existing
    assert list(written) == list(existing)
    assert set(written["urls"]) == set(existing["urls"])


@pytest.mark.parametrize(
    ("old", "urls"),
    [
        ({}, []),
        ({"all_unique_urls": ["https://a.org", 7]}, ["https://a.org"]),
        ({"urls": {"https://a.org": None}, "all_unique_urls": None}, ["https://a.org"]),
        ({"urls": None, "all_unique_urls": ["https://b.org"]}, ["https://b.org"]),
    ],
)
def test_files_of_older_tools_are_read(tmp_path, old, urls):
    """Parts may be missing or strange."""
    (tmp_path / "task.json").write_text(json.dumps(old), encoding="utf-8")
    assert listed_urls(tmp_path / "task.json") == urls
    assert listed_urls(tmp_path / "other.json") == []


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"urls": {',
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"urls": 5}',
        b'{"all_unique_urls": "https://a.example"}',
    ],
)
def test_a_damaged_file_is_named(tmp_path, damaged):
    """With the cure, rather than taken for an empty one."""
    (tmp_path / "task.json").write_bytes(damaged)
    with pytest.raises(CacheReadError, match=r"task\.json .*delete it"):
        listed_urls(tmp_path / "task.json")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    """In one line, with the cure."""
    (tmp_path / "agent").write_text("a file in its place", encoding="utf-8")
    with pytest.raises(CacheWriteError, match=r"cannot write .*task\.json"):
        write_citations(tmp_path / "agent", "task", ANSWERS)

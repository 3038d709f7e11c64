"""The file of cited URLs, its order and damaged ones; and barred sources among them."""

import json
import re
from pathlib import Path

import pytest
from projects import Project, call, read_json, run_command
from servers.judge_server import JudgeServer

from mind2web2.capture.models import CapturedPage, CaptureRecord
from mind2web2.cli import main
from mind2web2.errors import CacheReadError, CacheWriteError, UsageError
from mind2web2.pages.barred import BarredList, default_barred
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.citations import citations_as_json, listed_urls, write_citations
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.keys import AnswerKey

EXAMPLE = Path(__file__).parents[2] / "cache/example"
ANSWERS = {
    "answer_10.md": ["https://b.org/x", "https://A.org"],
    "answer_2.md": ["https://b.org/x/", "https://c.org/y"],
    "answer_1.md": [
        "http://www.b.org/x",
        "https://c.org/y#part",
        "https://c.org/y",
        "ftp://d.org",
    ],
}


def content(folder, task="task"):
    """Return a file's content, in the order of its keys."""
    return json.loads((folder / f"{task}.json").read_text(encoding="utf-8"))


def test_the_file_is_as_specified(tmp_path):
    """Keys in the order of file-layouts.md, most cited first, answers in natural order."""
    write_citations(tmp_path / "agent", "task", ANSWERS, CacheFileSys(tmp_path / "none"))
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
    urls = [
        "https://b.org",
        "https://C.org",
        "https://a.org",
        "https://D.org/a",
        "https://d.org/B",
    ]
    citations = citations_as_json("agent", "task", {"answer_1.md": urls}, CacheFileSys("none"))
    expected = [
        "https://a.org",
        "https://b.org",
        "https://C.org",
        "https://D.org/a",
        "https://d.org/B",
    ]
    assert citations["all_unique_urls"] == list(citations["urls"]) == expected


def test_cached_pages_are_listed_with_their_kind(tmp_path):
    """Whatever spelling they are stored under."""
    pages = CacheFileSys(tmp_path / "task")
    pages.put_web("https://b.org/x", "text", None)
    pages.put_pdf("http://c.org/y", b"%PDF-1.4")
    write_citations(tmp_path, "task", ANSWERS, pages)
    assert content(tmp_path)["url_types"] == {
        "http://www.b.org/x": "web",
        "https://c.org/y": "pdf",
    }
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
    (tmp_path / "task.json").write_bytes(damaged)
    with pytest.raises(CacheReadError, match=r"task\.json .*delete it"):
        listed_urls(tmp_path / "task.json")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "agent").write_text("a file in its place", encoding="utf-8")
    with pytest.raises(CacheWriteError, match=r"cannot write .*task\.json"):
        write_citations(tmp_path / "agent", "task", ANSWERS, CacheFileSys(tmp_path / "none"))


@pytest.mark.parametrize(
    ("url", "is_barred"),
    [
        ("https://huggingface.co/datasets/osunlp/Mind2Web-2", True),
        (
            "http://www.huggingface.co/datasets/OSUNLP/mind2web-2/tree/main?x=1#files",
            True,
        ),
        ("https://huggingface.co/datasets/osunlp/Mind2Web-2-other", False),
        ("https://huggingface.co/datasets/osunlp/Mind2Web", False),
        ("https://arxiv.org/abs/2506.21506v2", True),
        ("https://export.arxiv.org/pdf/2506.21506.pdf", True),
        ("https://arxiv.org/abs/2504.01382", False),
        ("https://notarxiv.org/abs/2506.21506", False),
        ("https://osu-nlp-group.github.io/Mind2Web-2/#leaderboard", True),
        (
            "https://raw.githubusercontent.com/OSU-NLP-Group/Mind2Web-2/main/README.md",
            True,
        ),
        (
            "https://web.archive.org/web/2025/https://github.com/OSU-NLP-Group/Mind2Web-2",
            True,
        ),
        ("https://proxy.example/?url=https%3A%2F%2Farxiv.org%2Fabs%2F2506.21506", True),
        ("https://lake.example/github.com", False),
        ("not a URL", False),
    ],
)
def test_the_own_list_names_the_benchmarks_pages(url, is_barred):
    assert (default_barred().rule_for_url(url) is not None) is is_barred


def test_titles_are_named_by_patterns():
    """Whatever the case and the spaces."""
    assert default_barred().rule_for_title("mirror:  MIND2WEB 2 | tasks") == "title: *Mind2Web 2*"
    assert default_barred().rule_for_title("Mind2Web: a dataset") is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            b"example.org\n\nnothing\n",
            "a.txt, line 3: 'nothing' is not a host, address or title",
        ),
        (b"title:\n", "a.txt, line 1: 'title:' is not a host"),
        (b"a.example b.example\n", "a.txt, line 1: 'a.example b.example' is not a host"),
        (b"\xff", "not UTF-8"),
        (b"x" * 2_000_000, "more than 1,000,000 bytes"),
        (None, "No such file"),
    ],
)
def test_a_wrong_list_is_refused_with_its_line(tmp_path, monkeypatch, content, problem):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(problem)):
        BarredList.read(Path("a.txt"))


def captured(url, final_url, title=""):
    """Return a page as its capture stored it."""
    record = CaptureRecord(
        requested_url=url,
        final_url=final_url,
        kind="web",
        status=200,
        title=title,
        captured_at="2026-01-01",
    )
    return CapturedPage(record, text="The lake is deep.")


def test_sources_are_found_by_citation_redirect_and_title(tmp_path):
    (tmp_path / "list.txt").write_text("barred.example\ntitle: *solutions*\n")
    pages = CacheFileSys(tmp_path / "pages")
    pages.put_capture(captured("https://short.example/a", "https://www.barred.example/task"))
    pages.put_capture(
        captured("https://copy.example/b", "https://copy.example/b", "All Solutions here")
    )
    answer = "See [a](https://short.example/a), https://sub.barred.example/x."
    judged = [
        "https://copy.example/b",
        "https://short.example/a",
        "https://fine.example",
    ]
    found = BarredList.read(tmp_path / "list.txt").sources_of(
        answer, judged, CacheFileSys(tmp_path / "pages")
    )
    assert [(each["url"], each["rule"], each["shown"]) for each in found] == [
        (
            "https://short.example/a",
            "barred.example",
            "https://www.barred.example/task",
        ),
        (
            "https://sub.barred.example/x",
            "barred.example",
            "https://sub.barred.example/x",
        ),
        ("https://copy.example/b", "title: *solutions*", "All Solutions here"),
    ]


def test_metrics_and_the_viewer_name_barred_sources_and_change_no_score(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    project = Project(tmp_path)
    project.add_script({"deep": ("The lake is deep.", None)})
    project.add_answer("answer_1", "Deep: https://arxiv.org/abs/2506.21506")
    project.add_answer("answer_2", "Deep: https://lake.example/depth")
    project.add_script({"deep": ("The pond is deep.", None)}, task="pond")
    project.add_answer("answer_1", "Deep: https://pond.example/depth", "pond")
    project.add_answer("answer_2", "Deep: https://pond.example/depth", "pond")
    (tmp_path / "own.txt").write_text("# mine\nlake.example\n")
    with JudgeServer(
        lambda body: {"reasoning": "r", "result": "2506" not in json.dumps(body)}
    ) as judge:
        words = ["--agent_name", "bot", "--judge_base_url", judge.base_url, "--no_capture"]
        run_command(*words, cwd=tmp_path)
    printed = call(main, "metrics", "bot").stdout
    assert (
        "barred sources, which changes no score: 1 (lake/answer_1.md); without them: partial "
        "completion 100%, success rate 100%"
    ) in printed
    assert "1 (lake/answer_2.md)" in call(main, "metrics", "bot", "--barred", "own.txt").stdout
    # The barred answer is left out, where a missing one counts as 0.
    listed = call(main, "metrics", "bot", "--task_id", "lake", "--task_id", "pond")
    assert "without them: partial completion 100%, success rate 100%" in listed.stdout
    assert read_json(project.results / "summary.json")["avg_score"] == 0.75
    shown = Catalog(project.paths).answer(AnswerKey("bot", "lake", "answer_1"))
    assert [each["url"] for each in shown["facts"]["barred"]] == [
        "https://arxiv.org/abs/2506.21506"
    ]

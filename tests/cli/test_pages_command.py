"""``mind2web2 import pages``."""

import base64
import json

import pytest
from evaluations import image
from fixtures.pdf_files import pdf
from projects import call, read_json
from servers.toothed_site import picture

from mind2web2.cli import main
from mind2web2.pages.cache import CacheFileSys

SITE = "https://ottermoss.example"
TEXT = "The weir of Ottermoss was built of oak in the year 1911, and has stood since."
NAMES = ("weir", "lock", "boat", "paper", "moved")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose two tasks cite pages of one site; returns the first task's cache."""
    monkeypatch.chdir(tmp_path)
    for task, names in (("lake", NAMES), ("moon", ("weir",))):
        folder = tmp_path / "answers" / "bot" / task
        folder.mkdir(parents=True)
        (folder / "answer_1.md").write_text(" ".join(f"[{name}]({SITE}/{name})" for name in names))
    return CacheFileSys(tmp_path / "cache" / "bot" / "lake")


def json_lines(folder, *lines):
    """Write lines to a file; a string as it is."""
    path = folder / "pages.jsonl"
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return path


def pages(*words):
    """Run ``mind2web2 pages``."""
    return call(main, "import", "pages", *words)


def test_json_lines(project, tmp_path):
    (tmp_path / "shot.png").write_bytes(picture("PNG"))
    (tmp_path / "lock.pdf").write_bytes(pdf(["as seen"]))
    jpeg = image()
    file = json_lines(
        tmp_path,
        {
            "url": f"{SITE}/weir",
            "text": TEXT,
            "fetched_at": "2025-03-14T10:30:00+01:00",
            "status": 200,
        },
        "",
        {"url": f"{SITE}/lock", "pdf": "lock.pdf"},
        {
            "url": f"{SITE}/boat/",
            "text": TEXT,
            "screenshot": base64.b64encode(jpeg).decode(),
        },
        {"url": f"{SITE}/moved", "text": TEXT, "screenshot": "shot.png", "status": 404},
        {"url": f"{SITE}/uncited", "text": TEXT},
    )
    run = pages("bot", file)
    assert run.returncode == 0, run.stderr
    assert "Imported 5 pages" in run.stdout
    assert f"no answer cites it (--task_id ID stores it for a task): {SITE}/uncited" in run.stdout
    texts = {name: project.get_web(f"{SITE}/{name}") for name in ("weir", "boat", "moved")}
    assert {text.strip() for text, _ in texts.values()} == {TEXT}
    assert project.get_pdf(f"{SITE}/lock").startswith(b"%PDF")
    assert texts["weir"][1] is None
    assert texts["moved"][1].startswith(b"\xff\xd8\xff")
    assert texts["boat"][1] == jpeg
    record = project.capture_record(f"{SITE}/weir")
    assert (record.captured_at, record.imported_from, record.status) == (
        "2025-03-14T09:30:00+00:00",
        "pages.jsonl",
        200,
    )
    assert record.sha256 == project.digest(f"{SITE}/weir")
    assert [trouble.kind for trouble in project.capture_record(f"{SITE}/moved").troubles] == [
        "http_error"
    ]
    assert CacheFileSys(tmp_path / "cache" / "bot" / "moon").get_web(f"{SITE}/weir")[0] == TEXT
    assert read_json(tmp_path / "cache" / "bot" / "lake.json")["cached_url_count"] == 4
    assert "moon: 5 pages imported" in pages("bot", file, "--task_id", "moon").stdout


def test_bad_lines_are_listed_and_nothing_is_stored(project, tmp_path):
    """Every one with its number, whatever else is in order."""
    good = {"url": f"{SITE}/weir", "text": TEXT}
    bad = {
        2: "{",
        3: {"url": "mailto:a@b.example", "text": TEXT},
        4: {"url": f"{SITE}/boat"},
        5: {"text": TEXT},
        6: {"url": f"{SITE}/boat", "text": 3},
        7: {"url": f"{SITE}/boat", "text": TEXT, "screenshot": "missing.png"},
        8: {
            "url": f"{SITE}/boat",
            "text": TEXT,
            "screenshot": base64.b64encode(b"no image").decode(),
        },
        9: {"url": f"{SITE}/boat", "text": TEXT, "fetched_at": "yesterday"},
        10: {"url": f"{SITE}/boat", "text": TEXT, "status": 20},
        11: {"url": f"{SITE}/weir/", "text": TEXT},
        12: {"url": f"{SITE}/lock", "pdf": "pages.jsonl"},
        13: {"url": f"{SITE}/lock", "pdf": "missing.pdf"},
    }
    run = pages("bot", json_lines(tmp_path, good, *bad.values()))
    assert run.returncode == 2
    numbered = [
        line.partition("pages.jsonl: line ")[2].partition(":")[0]
        for line in run.stderr.splitlines()
    ]
    assert [int(number) for number in numbered if number] == list(bad)
    assert "the same page as line 1" in run.stderr
    assert "Nothing was imported: 12 errors" in run.stderr
    assert project.get_all_urls() == []


@pytest.mark.parametrize("screenshot", ["../private.png", "{root}/private.png", "linked.png"])
def test_a_screenshot_lies_in_the_folder_of_its_file(project, tmp_path, screenshot):
    """One from somewhere else is an error, however its path leads there."""
    (tmp_path / "private.png").write_bytes(picture("png"))
    folder = tmp_path / "handed-in"
    folder.mkdir()
    (folder / "linked.png").symlink_to(tmp_path / "private.png")
    line = {
        "url": f"{SITE}/weir",
        "text": TEXT,
        "screenshot": screenshot.format(root=tmp_path),
    }
    run = pages("bot", json_lines(folder, line))
    assert (run.returncode, project.get_all_urls()) == (2, [])
    assert "is outside of the folder of the imported file" in run.stderr


def test_nothing_to_import(project, tmp_path):
    """Each says what to do."""
    assert "there is no file" in pages("bot", tmp_path / "none.jsonl").stderr
    (tmp_path / "a.zip").write_bytes(b"")
    assert "is not one of .jsonl" in pages("bot", tmp_path / "a.zip").stderr
    assert "it holds no page" in pages("bot", json_lines(tmp_path, "")).stderr
    assert project.get_all_urls() == []

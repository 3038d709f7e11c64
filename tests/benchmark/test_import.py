"""``mind2web2 import answers``: answers from JSON lines and CSV."""

import json
import subprocess
import sys

import pytest
from projects import call, clean_environment, read_json

from mind2web2.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in a project with two tasks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/dev.csv").write_text(
        "task_id,task_description\nlake,How deep\\nis it?\nmill,Where?\n"
    )
    return tmp_path


def take(folder, name, content, *options):
    """Import a file with this content."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return call(main, "import", "answers", "bot", name, *options)


def lines(*rows):
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_json_lines(folder):
    content = lines(
        {
            "task_id": "lake",
            "answer": "Deep.",
            "seconds": 12.5,
            "model": "solo3",
            "question_id": 7,
            "uid": 8,
        },
        {"task_id": "lake", "answer": "Very."},
        {"question": " Where? ", "response": "There.", "run": 3},
        {"task_id": "mill", "answer": "", "run": 1},
    )
    run = take(folder, "a.jsonl", content)
    assert (run.returncode, run.stderr) == (0, "")
    assert "4 runs in a.jsonl: 4 stored" in run.stdout
    answers = folder / "answers/bot"
    assert [path.read_text() for path in sorted(answers.glob("*/*.md"))] == [
        "Deep.",
        "Very.",
        "",
        "There.",
    ]
    meta = read_json(answers / "lake/answer_1.meta.json")
    assert meta == {"time_seconds": 12.5, "model": "solo3"}
    assert "0 stored" in take(folder, "a.jsonl", content).stdout


def test_csv(folder):
    """Answers may have several lines."""
    run = take(folder, "a.csv", 'task_id,answer,run\nlake,"Deep,\nvery.",2\nmill,,1\n')
    assert (run.returncode, run.stderr) == (0, "")
    assert (folder / "answers/bot/lake/answer_2.md").read_text() == "Deep,\nvery."
    assert (folder / "answers/bot/mill/answer_1.md").read_text() == ""


def test_a_meta_file_goes_with_its_answer(folder):
    """Another one counts as another answer, and none stays behind."""
    old = lines({"task_id": "lake", "answer": "Deep.", "seconds": 9, "model": "solo3"})
    take(folder, "a.jsonl", old)
    meta = folder / "answers/bot/lake/answer_1.meta.json"
    new = lines({"task_id": "lake", "answer": "Deep.", "seconds": 77})
    assert take(folder, "b.jsonl", new).returncode == 2
    assert "1 stored" in take(folder, "b.jsonl", new, "--overwrite").stdout
    assert read_json(meta) == {"time_seconds": 77}
    take(folder, "c.jsonl", lines({"task_id": "lake", "answer": "Flat."}), "--overwrite")
    assert read_json(meta) == {}


def test_other_answers_are_kept(folder):
    take(folder, "a.jsonl", lines({"task_id": "lake", "answer": "Deep."}))
    run = take(folder, "b.jsonl", lines({"task_id": "lake", "answer": "Flat."}))
    assert (run.returncode, "other answers at lake/answer_1" in run.stderr) == (2, True)
    assert (folder / "answers/bot/lake/answer_1.md").read_text() == "Deep."
    assert (
        take(
            folder,
            "b.jsonl",
            lines({"task_id": "lake", "answer": "Flat."}),
            "--overwrite",
        ).returncode
        == 0
    )
    assert (folder / "answers/bot/lake/answer_1.md").read_text() == "Flat."


GOOD = lines({"task_id": "mill", "answer": "x"})


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", GOOD + '{"task_id"', "a.jsonl, line 2: it is not JSON"),
        ("a.jsonl", GOOD + "[]\n", "a.jsonl, line 2: it is not a JSON object"),
        (
            "a.jsonl",
            GOOD + lines({"task_id": "sea", "answer": "x"}),
            "a.jsonl, line 2: unknown task 'sea'",
        ),
        (
            "a.jsonl",
            GOOD + lines({"question": "Why?", "answer": "x"}),
            "line 2: no task has this question: 'Why?'",
        ),
        (
            "a.jsonl",
            GOOD + lines({"answer": "x"}),
            "line 2: it has neither task_id nor question",
        ),
        (
            "a.jsonl",
            lines(*[{"task_id": "lake", "answer": "x", "run": 1}] * 2),
            "line 2: lake/answer_1 is also in",
        ),
        (
            "a.jsonl",
            lines({"task_id": "lake", "answer": "x", "run": "1.5"}),
            "line 1: run: it should be a valid integer",
        ),
        (
            "a.jsonl",
            lines({"task_id": "lake", "answer": "x", "seconds": -1}),
            "line 1: seconds: it should be greater than or equal to 0",
        ),
        (
            "a.jsonl",
            lines({"task_id": "lake", "answer": 5}),
            "line 1: answer: it should be a valid string",
        ),
        (
            "a.jsonl",
            lines({"task_id": "lake", "answer": "x" * 1_000_001}),
            "line 1: the answer has more than",
        ),
        (
            "a.jsonl",
            GOOD + lines({"task_id": "lake", "answer": "The lake \ud83d is deep."}),
            "line 2: answer: Value error, 'utf-8' codec can't encode character '\\ud83d' in position 9",
        ),
        (
            "a.jsonl",
            GOOD + lines({"task_id": "lake\ud83d", "answer": "x"}),
            "line 2: unknown task 'lake\\ud83d'",
        ),
        (
            "a.jsonl",
            GOOD + lines({"task_id": "lake", "answer": "x" * 1_000_001}),
            "line 2: the answer has more than 1,000,000 bytes",
        ),
        ("a.jsonl", b"\xff", "is not UTF-8 text"),
        ("a.jsonl", "", "a.jsonl has no answers"),
        (
            "a.jsonl",
            GOOD + lines({"task_id": "lake", "answr": "hi"}),
            "line 2: it has no answer",
        ),
        (
            "a.jsonl",
            GOOD + lines({"task_id": "lake", "text": "hi"}),
            "line 2: it has no answer",
        ),
        (
            "a.csv",
            "task_id,asnwer\nlake,x\n",
            "a.csv, line 2: it has no answer",
        ),
        (
            "a.csv",
            "name,text\nlake,x\n",
            "a.csv, line 2: it has neither task_id nor question",
        ),
        ("a.csv", "task_id;answer\nlake;x\n", "a comma separates columns of CSV"),
        (
            "a.csv",
            "task_id,answer\nlake,x,y\n",
            "a.csv, line 2: more fields than columns",
        ),
        ("a.csv", "task_id,answer\nlake\n", "a.csv, line 2: fewer fields than columns"),
        (
            "a.jsonl",
            GOOD + lines({"task_id": "lake", "answer": "I gave", "status": "error"}),
            "line 2: status: it should be 'answered'",
        ),
    ],
)
def test_a_wrong_file_stores_nothing(folder, name, content, problem):
    """One line names the place."""
    run = take(folder, name, content)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert problem in run.stderr
    assert not list(folder.glob("answers/bot/*/*"))


def test_all_wrong_lines_are_named(folder):
    """Up to ten of them, in one line, and nothing is stored."""
    wrong = lines(*[{"task_id": "sea", "answer": "x"}] * 11)
    run = take(folder, "a.jsonl", GOOD + "no JSON\n" + wrong)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "a.jsonl, line 2: it is not JSON" in run.stderr
    assert "; line 3: unknown task 'sea'" in run.stderr
    assert "; line 11: unknown task" in run.stderr and "line 12" not in run.stderr
    assert run.stderr.endswith("; and 2 more wrong lines. Nothing was imported\n")
    assert not list(folder.glob("answers/bot/*/*"))


def test_a_killed_import_continues(folder):
    """Each run is stored once, and no answer is partial."""
    rows = [{"task_id": "lake", "answer": f"Answer {k}. " * 1000, "run": k} for k in range(1, 301)]
    (folder / "a.jsonl").write_text(lines(*rows))
    words = [sys.executable, "-m", "mind2web2", "import", "answers", "bot", "a.jsonl"]
    process = subprocess.Popen(words, cwd=folder, env=clean_environment())
    while not (folder / "answers/bot/lake/answer_20.md").exists():
        assert process.poll() is None
    process.kill()
    process.wait()
    run = call(main, "import", "answers", "bot", "a.jsonl")
    assert (run.returncode, run.stderr) == (0, "")
    stored = sorted((folder / "answers/bot/lake").glob("*.md"))
    assert len(stored) == 300
    assert all(path.read_text() == rows[int(path.stem[7:]) - 1]["answer"] for path in stored)

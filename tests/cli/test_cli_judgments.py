"""``mind2web2 judgments``: handing judgments on."""

import json

import pytest
from projects import REPOSITORY, call

from mind2web2.cli import main
from mind2web2.judge.store import STORE_NAME, JudgmentStore

RECORDED = REPOSITORY / "examples" / "judgments.jsonl"


@pytest.fixture
def part(tmp_path, monkeypatch):
    """Work in an empty folder with a file of three judgments."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "three.jsonl"
    path.write_bytes(b"".join(RECORDED.read_bytes().splitlines(keepends=True)[:3]))
    return path


def test_there_and_back(part):
    """The export of an import is the same file; what is there stays."""
    run = call(main, "import", "judgments", "bot", "three.jsonl")
    assert (run.returncode, run.stdout, run.stderr) == (
        0,
        "new judgments in eval_results/bot/judgments.sqlite3: 3 of 3\n",
        "",
    )
    run = call(main, "import", "judgments", "bot", "three.jsonl")
    assert run.stdout.endswith(": 0 of 3\n")
    run = call(main, "export", "bot", "--judgments", "out/[red]back.jsonl")
    assert (run.returncode, run.stdout) == (
        0,
        "3 judgments written to out/[red]back.jsonl; the newest results use 0 of them\n"
        "To score the same answers from this file: mind2web2 evaluate bot --llm_provider replay "
        "--judgments "
        "'out/[red]back.jsonl'\n",
    )
    exported = (part.parent / "out" / "[red]back.jsonl").read_bytes()
    assert exported == part.read_bytes()


def test_two_replies_to_one_question_are_refused(part):
    lines = part.read_text().splitlines()
    other = json.dumps({**json.loads(lines[0]), "text": "other"})
    part.write_text("\n".join([*lines, lines[0], other]))
    run = call(main, "import", "judgments", "bot", "three.jsonl")
    assert "three.jsonl: lines 1 and 5 hold two replies to one question" in run.stderr


def test_a_damaged_file_is_not_imported_in_part(part):
    """One line that names the line; nothing of it is kept."""
    first = json.loads(part.read_text().splitlines()[0])
    part.write_text(json.dumps({**first, "key": "new"}) + "\n{}\n")
    run = call(main, "import", "judgments", "bot", "three.jsonl")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "mind2web2: three.jsonl:2 is not a judgment: key: Field required\n"
    assert not (part.parent / "eval_results").exists()


@pytest.mark.usefixtures("part")
def test_a_store_is_no_file_to_import(tmp_path):
    """The error says which files are taken."""
    with JudgmentStore(tmp_path / STORE_NAME):
        pass
    run = call(main, "import", "judgments", "bot", STORE_NAME)
    assert (run.returncode, run.stderr) == (
        2,
        f"mind2web2: {STORE_NAME} is not a .jsonl file: a file of judgments is one that "
        "`mind2web2 export AGENT --judgments FILE` wrote\n",
    )


@pytest.mark.usefixtures("part")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["export", "bot", "--judgments", "x.jsonl"],
            "no judgments at eval_results/bot/judgments.sqlite3: run mind2web2 ev",
        ),
        (["export", "../bot", "--judgments", "x.jsonl"], "agent '../bot' begins with a dot"),
        (["import", "judgments", "a/b", "three.jsonl"], "agent 'a/b' contains"),
        (["import", "judgments", "bot", "gone.jsonl"], "cannot read judgments from gone.jsonl: "),
        (["import", "judgments", "bot", "."], "cannot read judgments from .: "),
    ],
)
def test_judgments_that_cannot_be_exported_or_imported(words, message):
    run = call(main, *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("mind2web2: ")
    assert message in run.stderr
    assert run.stderr.count("\n") == 1


def test_places_that_cannot_be_written(part):
    assert call(main, "import", "judgments", "bot", "three.jsonl").returncode == 0
    run = call(main, "export", "bot", "--judgments", "three.jsonl/x.jsonl")
    assert run.returncode == 2
    assert run.stderr.startswith("mind2web2: cannot use three.jsonl/x.jsonl: ")
    store = part.parent / "eval_results" / "other" / STORE_NAME
    store.parent.mkdir()
    store.write_text("no database, though somebody may have put it here. " * 10)
    run = call(main, "import", "judgments", "other", "three.jsonl")
    assert run.returncode == 2
    assert "cannot be used: file is not a database" in run.stderr


def test_a_damaged_store_is_no_dead_end(part):
    """An import begins a new file in its place.

    An export has nothing to hand on, and says what helps.
    """
    store = part.parent / "eval_results" / "bot" / STORE_NAME
    store.parent.mkdir(parents=True)
    store.write_text("no database, though somebody may have put it here. " * 10)
    run = call(main, "export", "bot", "--judgments", "out.jsonl")
    assert run.returncode == 2
    assert "cannot be used: file is not a database; move the file away; " in run.stderr
    store.rename("away")
    assert call(main, "import", "judgments", "bot", "three.jsonl").returncode == 0
    assert call(main, "export", "bot", "--judgments", "out.jsonl").returncode == 0


def test_another_results_folder(part):
    assert (
        call(main, "import", "judgments", "bot", "three.jsonl", "--eval-results-root=r").returncode
        == 0
    )
    with JudgmentStore(part.parent / "r" / "bot" / STORE_NAME) as store:
        assert len(store.all()) == 3

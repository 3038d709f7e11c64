"""What a user is told to do about a damaged store of judgments."""

import sqlite3

import pytest

from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.store import CHECKING_NAMED, CHECKING_OWN, COMPARING, FILE_NAME, Judgment, JudgmentStore
from mind2web2.judge.transfer import export_judgments, open_for_replay, reading

KEPT = Judgment(
    key="key 1", endpoint="a", model="m", outcome="reply", text="yes", created="now", purpose="verify"
)
AGENT = "bot"


def garbage(path):
    """Put something else into its place."""
    path.write_bytes(b"no database at all " * 200)


def malformed(path):
    """Overwrite the pages of the table, as a disk that fails does."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def foreign_table(path):
    """Put a database of something else into its place."""
    path.unlink()
    changed(path, "CREATE TABLE judgments (title, verdict)")


def with_a_view(path):
    """Add what no store has."""
    changed(path, "CREATE VIEW extra AS SELECT 1")


def changed(path, statement):
    """Execute a statement on a file."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def by_a_judged_run(path):
    """Read all judgments as a run does that pays."""
    with JudgmentStore(path) as store:
        store.all()


def by_a_replay(path):
    """Read all judgments as a run does that asks nothing."""
    with open_for_replay(path) as store:
        store.all()


def beside_a_run(path, use=COMPARING):
    """Read a store as a command does that changes nothing."""
    with reading(path, use) as connection:
        connection.execute("SELECT key, text FROM judgments").fetchall()


def by_a_check_of_results(path):
    """Read judgments as ``verify-results`` does by default."""
    beside_a_run(path, CHECKING_OWN)


def by_a_check_with_this_file(path):
    """Read judgments as ``verify-results`` does with ``--judgments``."""
    beside_a_run(path, CHECKING_NAMED)


@pytest.mark.parametrize(
    ("read", "verb", "cure"),
    [
        (
            by_a_judged_run,
            "kept",
            "move the file away, and run the same command again: results stay, and what ",
        ),
        (
            by_a_replay,
            "read",
            "name another file with --judgments, such as an export, or evaluate with a judge",
        ),
        (beside_a_run, "read", "put a sound copy in its place, or move the file away"),
        (
            by_a_check_of_results,
            "read",
            "name another file with --judgments, such as an export, or move this ",
        ),
        (
            by_a_check_with_this_file,
            "read",
            "name another file with --judgments, or none for the agent's own",
        ),
    ],
)
@pytest.mark.parametrize("damage", [garbage, malformed, foreign_table, with_a_view])
def test_the_way_out_of_damage_is_named(tmp_path, damage, read, verb, cure):
    """In one line, by what the file was wanted for: who asks nothing is not told what is asked anew."""
    path = tmp_path / AGENT / FILE_NAME
    with JudgmentStore(path) as store:
        store.add([KEPT])
    damage(path)
    with pytest.raises(Mind2Web2Error) as caught:
        read(path)
    said = str(caught.value)
    assert said.startswith(f"judgments in {path} cannot be {verb}: ")
    assert f"; {cure}" in said
    assert ("paid for, anew" in said) == (read is by_a_judged_run)
    assert "\n" not in said


def test_the_ways_out_of_damage_are_some(tmp_path):
    """An export in the file's place, a new file, or none."""
    path = tmp_path / AGENT / FILE_NAME
    with JudgmentStore(path) as store:
        store.add([KEPT])
        export_judgments(store, tmp_path / "out.jsonl")
    garbage(path)
    by_a_replay(tmp_path / "out.jsonl")
    path.rename(tmp_path / "away")
    by_a_judged_run(path)

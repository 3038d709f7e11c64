"""What a user is told to do about a damaged store of judgments."""

import sqlite3

import pytest

from mind2web2.errors import JudgmentStoreError
from mind2web2.judgment import Judgment
from mind2web2.judgment_reading import StoreLookup
from mind2web2.judgments import FILE_NAME, JudgmentStore

KEPT = Judgment(
    key="key 1", endpoint="a", model="m", outcome="reply", text="yes", created="now", purpose="verify"
)
MOVE_AWAY = (
    "; move the file away, and run the same command again: results stay, and what they lack is asked, and "
    "paid for, anew, unless an export is brought in first (mind2web2 judgments import)"
)


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


def read_by_the_run(path):
    """Read all judgments as a run does."""
    with JudgmentStore(path) as store:
        store.all()


def read_beside(path):
    """Read a judgment as a command does that changes nothing."""
    StoreLookup(path).replies(["key 1"])


@pytest.mark.parametrize("read", [read_by_the_run, read_beside])
@pytest.mark.parametrize("damage", [garbage, malformed, foreign_table, with_a_view])
def test_the_way_out_of_damage_is_named(tmp_path, damage, read):
    """In one line, with what it costs; and it is one."""
    path = tmp_path / FILE_NAME
    with JudgmentStore(path) as store:
        store.add([KEPT])
    damage(path)
    with pytest.raises(JudgmentStoreError) as caught:
        read(path)
    said = str(caught.value)
    assert said.startswith(f"judgments in {path} cannot be ")
    assert said.endswith(MOVE_AWAY)
    assert "\n" not in said
    path.rename(tmp_path / "away")
    read_by_the_run(path)

"""Which scripts have changed since they ran or were accepted."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest
from projects import read_json

from mind2web2.script_trust import FILE_NAME, accept, note_run, scripts_trusted
from mind2web2.utils.path_config import ScriptFile


@pytest.fixture
def script(tmp_path):
    """Return a script."""
    path = tmp_path / "eval_scripts" / "example" / "lake.py"
    path.parent.mkdir(parents=True)
    path.write_text("one")
    return ScriptFile(path, "example")


def state(root, script):
    """Return a script's state, and what is said of it without its date."""
    [found] = scripts_trusted(root, [script])
    return found.state, " ".join(word for word in found.in_words().split() if not word.startswith("2"))


def test_a_script_is_compared_with_how_it_last_ran(tmp_path, script):
    """A run notes it; the next one says that it changed, once."""
    root = tmp_path / "eval_results"
    assert state(root, script) == ("new", "new, neither run nor accepted yet")
    assert not root.exists()
    assert note_run(root, [script]) == []
    assert state(root, script) == ("same", "unchanged since last run")
    script.path.write_text("two")
    was = sha256(b"one").hexdigest()[:12]
    assert state(root, script) == ("changed", f"changed since last run when it was {was}...")
    [changed] = note_run(root, [script])
    assert (changed.name, changed.sha256) == ("example/lake.py", sha256(b"two").hexdigest())
    assert note_run(root, [script]) == []
    assert state(root, script) == ("same", "unchanged since last run")


def test_what_was_accepted_counts_before_what_ran(tmp_path, script):
    """A changed script is told of in every run until it is accepted, or as it was."""
    assert [found.state for found in accept(tmp_path, [script])] == ["new"]
    assert state(tmp_path, script) == ("same", "unchanged since accepted")
    script.path.write_text("two")
    for _ in range(2):
        assert [changed.name for changed in note_run(tmp_path, [script])] == ["example/lake.py"]
    assert state(tmp_path, script)[0] == "changed"
    accept(tmp_path, [script])
    assert note_run(tmp_path, [script]) == []
    script.path.write_text("one")
    assert state(tmp_path, script)[0] == "changed"


def test_versions_and_tasks_are_told_apart(tmp_path, script):
    """A script of the same task in another version is another program."""
    other = ScriptFile(tmp_path / "eval_scripts" / "2026_01_01" / "lake.py", "2026_01_01")
    other.path.parent.mkdir()
    other.path.write_text("one")
    accept(tmp_path, [script])
    assert [found.state for found in scripts_trusted(tmp_path, [script, other])] == ["same", "new"]


def test_what_is_known_of_other_scripts_stays(tmp_path, script):
    """And of this one's other moment."""
    accept(tmp_path, [script])
    known = {"x/y.py": {"accepted": {"sha256": "ab", "at": "2026-01-01T00:00:00+00:00"}}}
    content = read_json(tmp_path / FILE_NAME) | known
    (tmp_path / FILE_NAME).write_text(json.dumps(content))
    note_run(tmp_path, [script])
    after = read_json(tmp_path / FILE_NAME)
    assert after["x/y.py"] == known["x/y.py"]
    assert after["example/lake.py"]["accepted"] == content["example/lake.py"]["accepted"]
    assert after["example/lake.py"]["last_run"]["sha256"] == sha256(b"one").hexdigest()


def test_runs_at_the_same_time_lose_nothing_of_each_other(tmp_path):
    """Each notes its own scripts."""
    scripts = [ScriptFile(tmp_path / f"t{number}.py", "v") for number in range(40)]
    for script in scripts:
        script.path.write_text(script.path.name)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda script: note_run(tmp_path, [script]), scripts))
    assert [found.state for found in scripts_trusted(tmp_path, scripts)] == ["same"] * 40


@pytest.mark.parametrize("content", ["{", "[]", '{"example/lake.py": {"accepted": 1}}'])
def test_a_damaged_file_makes_all_scripts_new(tmp_path, script, content, caplog):
    """Trust is not to be had by damage; the next run writes the file anew."""
    (tmp_path / FILE_NAME).write_text(content)
    assert state(tmp_path, script)[0] == "new"
    [told] = [record.getMessage() for record in caplog.records]
    assert told == (
        f"{tmp_path / FILE_NAME} cannot be read (damaged): all scripts count as new, and which of them were "
        "accepted, or have changed since, is lost; look at them, then run: mind2web2 trust --accept"
    )
    note_run(tmp_path, [script])
    assert state(tmp_path, script)[0] == "same"


def test_a_script_that_cannot_be_read_does_not_stop_a_run(tmp_path, script):
    """It costs its own answers only."""
    gone = ScriptFile(script.path.with_name("gone.py"), "example")
    pipe = ScriptFile(script.path.with_name("pipe.py"), "example")
    os.mkfifo(pipe.path)
    assert note_run(tmp_path, [gone, pipe, script]) == []
    assert read_json(tmp_path / FILE_NAME).keys() == {"example/lake.py"}
    assert state(tmp_path, gone) == state(tmp_path, pipe) == ("unreadable", "cannot be read")
    assert [found.state for found in accept(tmp_path, [pipe, script])] == ["unreadable", "same"]
    assert read_json(tmp_path / FILE_NAME).keys() == {"example/lake.py"}

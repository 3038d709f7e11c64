"""``check-judge --anchor`` notices a hosted model that has changed, and no other."""

import json
from pathlib import Path

import pytest
from projects import call
from servers.labelled_judge import labelled_judge

from mind2web2.cli import main
from mind2web2.judge.record import JudgeIdentity
from mind2web2.judge_check.anchor import AnchorRecord, drift, drifts
from mind2web2.judge_check.labelled_set import shipped_set

# The categories on which the model errs; a test changes them, as a provider does behind a model's
# name.
WEAK: set[str] = set()


def errs(case, right):
    """Return the wrong verdict on claims of the weak categories."""
    return not right if isinstance(right, bool) and case.category in WEAK else None


@pytest.fixture
def anchor(tmp_path, monkeypatch):
    """Return a function that asks the anchor in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setenv("COLUMNS", "160")
    WEAK.clear()
    with labelled_judge({"hosted": errs}) as server:
        words = ("--judge_model", "hosted", "--judge_base_url", server.base_url)
        run = ("--anchor", "--votes", "1", "--no_screenshots", *words)
        yield lambda *more: (call(main, "check-judge", *run, *more), len(server.calls))


def test_a_model_that_changed_is_noticed(anchor):
    """It is asked again each time.

    A change beyond chance has a sentence, and a status where it is wanted.
    """
    first, asked = anchor()
    assert "The first anchor of this judge" in first.stdout
    assert first.returncode == 0 and asked >= 60
    second, asked_again = anchor("--fail_if_changed")
    assert asked_again == 2 * asked
    assert "No sign that the judge has changed since 20" in second.stdout
    assert second.returncode == 0

    WEAK.update(shipped_set().categories[:6])
    third, _ = anchor("--fail_if_changed", "--json")
    found = json.loads(third.stdout)["news"]["hosted"]
    assert third.returncode == 5
    assert [(one["lost"] > 5, one["gained"], one["is_shown"]) for one in found] == [
        (True, 0, True)
    ] * 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--anchor", "--sample", "4"),
            "--anchor has its own cases: leave out --sample",
        ),
        (("--fail_if_changed",), "--fail_if_changed goes with --anchor"),
        (
            ("--anchor", "--labels", "labels.jsonl"),
            "leave one of --labels and --anchor out",
        ),
    ],
)
def test_words_that_contradict_each_other(tmp_path, monkeypatch, words, message):
    """One line, and exit status 2."""
    monkeypatch.chdir(tmp_path)
    row = {"claim": "The lake is deep.", "label": True, "text": "It is deep."}
    Path("labels.jsonl").write_text(json.dumps(row))
    outcome = call(main, "check-judge", *words)
    assert outcome.returncode == 2 and message in outcome.stderr


def record(right, votes=3, digest="a"):
    """Return replies to cases that are named by their places."""
    return AnchorRecord(
        judge=JudgeIdentity(model="m", endpoint="e"),
        set_version=2,
        set_digest=digest,
        votes=votes,
        right={str(place): mark == "r" for place, mark in enumerate(right)},
        checked="2026-11-01T00:00:00+00:00",
    )


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("rrrrrrrr", "rrrrrrrr", (0, 0, 1.0)),
        ("rrrrrrrr", "wwwwwwrr", (6, 0, 2**-6)),
        ("wwrr", "rrww", (2, 2, 1.0)),
        ("rrr", "ww", (2, 0, 0.25)),
    ],
)
def test_both_kinds_of_changes_are_counted(before, now, expected):
    found = drift(record(before), record(now))
    assert (found.lost, found.gained, found.p_value) == pytest.approx(
        expected, abs=0.4 if expected[2] == 1.0 else 1e-9
    )


def test_replies_that_differ_are_held_against_those_of_the_judge_itself():
    """Its accuracy is the same, and the judge is another."""
    before, now = record("r" * 55 + "w" * 5), record("r" * 50 + "w" * 5 + "r" * 5)
    for divided, is_shown in ((2, True), (8, False), (None, False)):
        found = drift(before, now.model_copy(update={"divided": divided}))
        assert found.p_value > 0.05
        assert found.is_shown is is_shown
    found = drift(before, now.model_copy(update={"divided": 2}))
    said = "10 of 60 replies differ; it differs from itself in 2. 5 are wrong that were right"
    assert said in found.sentence


def test_the_last_and_the_first_time_count():
    """Checks with other cases or votes are not compared; slow changes add up."""
    one, two, other = record("rrrr"), record("rrrw"), record("rrrr", votes=1)
    now = record("rrww")
    assert [found.lost for found in drifts([one, two, other], now)] == [1, 2]
    assert drifts([other, record("rrrr", digest="b")], now) == []

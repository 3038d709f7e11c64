"""A judge that does not beat guessing is marked by its check and beside all its scores."""

import pytest
from projects import AGENT, call, entered
from servers.labelled_judge import labelled_judge

from mind2web2.cli import main
from mind2web2.judge.check_record import CheckRecord
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.catalog import Catalog

# How a judge replies to a case; ``None`` for what is right.
JUDGES = {
    "yes-man": lambda _, right: True if isinstance(right, bool) else None,
    "right": lambda *_: None,
}
CHECK = ("--votes", "1", "--no_screenshots", "--sample", "60")


def record(accuracy, low, high, claims_low=None, cases=326):
    """Return a check with this accuracy and interval."""
    fields = {
        "set_version": 1,
        "set_digest": "d",
        "is_whole_set": cases == 326,
        "checked": "2026-11-22",
    }
    return CheckRecord(
        **fields,
        cases=cases,
        accuracy=accuracy,
        low=low,
        high=high,
        claims_low=claims_low,
    )


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (record(0.531, 0.48, 0.58), "guessing"),
        (record(0.59, 0.54, 0.64, claims_low=0.44), "guessing"),
        (record(0.59, 0.54, 0.64, claims_low=0.51), "too weak"),
        (record(0.82, 0.77, 0.86), "too weak"),
        (record(0.88, 0.84, 0.91), "unclear"),
        (record(0.90, 0.86, 0.93), "fit"),
        (record(1.0, 0.72, 1.0, cases=10), "unclear"),
        (record(1.0, 0.94, 1.0, cases=60), "fit"),
        (record(0.2, 0.06, 0.51, cases=10), "guessing"),
    ],
)
def test_the_rule(check, expected):
    """The interval alone decides, so that a check of few cases leaves it open."""
    assert check.fitness == expected
    assert (check.failure is not None) is (expected in ("guessing", "too weak"))
    assert check.verdict.startswith("Verdict: ")


@pytest.fixture(name="judge")
def of_both_kinds(tmp_path, monkeypatch):
    """Stand in a project with two agents, beside a server with both judges; return its options."""
    project = entered(tmp_path, monkeypatch)
    for agent in (AGENT, "other"):
        path = project.add_answer()
        target = tmp_path / "answers" / agent / "lake" / "answer_1.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    project.add_script({"leaf": ("The lake is deep.", None)})
    with labelled_judge(JUDGES) as server:
        yield lambda model: (
            "--judge_model",
            model,
            "--judge_base_url",
            server.base_url,
        )


def test_a_check_ends_with_a_verdict(judge):
    guessing = call(main, "check-judge", *judge("yes-man"), *CHECK, "--fail_under", "0.9")
    assert guessing.returncode == 5
    assert "\nVerdict: No better than guessing: do not use this judge.\n" in guessing.stdout
    assert "Below --fail_under 0.9: yes-man " in guessing.stdout
    assert call(main, "check-judge", *judge("yes-man"), *CHECK).returncode == 0
    sound = call(main, "check-judge", *judge("right"), *CHECK, "--fail_under", "0.9")
    assert sound.returncode == 0
    assert sound.stdout.endswith(
        "Verdict: Enough to compare agents (90% right); docs/trust.md says what other decisions "
        "need.\n"
    )
    both = call(main, "check-judge", *judge("right"), "--judge_model", "yes-man", *CHECK)
    assert "right: Verdict: Enough" in both.stdout and "yes-man: Verdict: No better" in both.stdout
    nonsense = call(main, "check-judge", "--fail_under", "90")
    assert (
        nonsense.returncode,
        "'90' is not a score from 0 to 1" in nonsense.stderr,
    ) == (2, True)


@pytest.mark.parametrize(("model", "is_warned"), [("yes-man", True), ("right", False)])
def test_scores_of_a_judge_that_failed_are_shown_with_a_warning(judge, tmp_path, model, is_warned):
    """The scores appear in evaluate, metrics, compare and the overview.

    Evaluate warns before and after, and the report has the warning of the overview too.
    """
    call(main, "check-judge", *judge(model), *CHECK)
    words = ("--no_capture", "--no_screenshots", *judge(model))
    runs = [call(main, "evaluate", agent, *words) for agent in (AGENT, "other")]
    assert [run.returncode for run in runs] == [0, 0]
    assert runs[0].stdout.count("Warning: the judge failed its check: ") == 2 * is_warned
    shown = call(main, "metrics", AGENT).stdout
    assert ("Warning: the judge failed its check: " in shown) is is_warned
    compared = call(main, "compare", AGENT, "other").stdout
    assert ("Warning: other: the judge failed its check: " in compared) is is_warned
    agents = Catalog(PathConfig(tmp_path)).overview()["agents"]
    assert [agent["failed_check"] is not None for agent in agents] == [
        is_warned,
        is_warned,
    ]


def test_a_check_made_after_the_run_counts(judge):
    """The results do not name it."""
    assert (
        call(
            main,
            "evaluate",
            AGENT,
            "--no_capture",
            "--no_screenshots",
            *judge("yes-man"),
        ).returncode
        == 0
    )
    assert "failed its check" not in call(main, "metrics", AGENT).stdout
    call(main, "check-judge", *judge("yes-man"), *CHECK)
    assert (
        "no better than guessing; do not trust these scores" in call(main, "metrics", AGENT).stdout
    )

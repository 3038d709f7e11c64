"""No option is taken and then does nothing."""

import pytest
from projects import Project, call

from mind2web2.cli import evaluate_main, main

REPLAY = ["--llm_provider", "replay"]


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    """Work in a project that could be evaluated."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.add_answer()
    project.add_script({"leaf": ("The lake is deep.", None)})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["--judgments", "x.jsonl"],
            "--judgments FILE goes with --llm_provider replay",
        ),
        ([*REPLAY, "--overwrite"], "leave one of them out"),
        (
            ["--no_capture", "--cdp_url", "http://127.0.0.1:9"],
            "--no_capture captures nothing: leave --cdp_url out",
        ),
        (
            [*REPLAY, "--cdp_url", "http://127.0.0.1:9"],
            "replay captures nothing: leave --cdp_url out",
        ),
    ],
)
@pytest.mark.parametrize("more", [[], ["--estimate"]])
def test_an_option_without_effect_is_refused(given, message, more):
    """Exit status 2 and one line with what to leave out or add.

    An estimate is of the same command.
    """
    run = call(evaluate_main, "--agent_name", "bot", *given, *more)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert message in run.stderr


@pytest.mark.parametrize(
    "given",
    [
        [*REPLAY, "--max_cost", "5", "--max_llm_requests", "9", "--no_capture"],
        [
            "--no_capture",
            "--allow_private_network",
            "--ahead",
            "values",
            "--max_llm_requests",
            "9",
        ],
    ],
)
def test_options_with_an_effect_are_accepted(given):
    """A replay costs no more than its budget."""
    run = call(main, "evaluate", "bot", *given, "--estimate")
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--headed", "--cdp_url", "http://127.0.0.1:1"], "leave --headed out"),
    ],
)
def test_an_option_of_caching_without_effect_is_refused(given, message):
    run = call(main, "cache", "bot", *given)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert message in run.stderr

"""No option is taken and then does nothing."""

import pytest
from projects import Project, call

from mind2web2.cli import evaluate_main, main

REPLAY = ["--llm_provider", "replay"]
RAY = ["--engine", "ray", "--judgments", "postgresql://db.example/judgments"]


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    """Work in a project that could be evaluated."""
    monkeypatch.setenv("SET", "")
    monkeypatch.delenv("UNSET", raising=False)
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
        (["--batch_poll", "3"], "--batch_poll goes with --batch"),
        (["--batch", *REPLAY], "evaluate without --batch"),
        (["--batch", "--max_llm_requests", "9"], "leave it out with --batch"),
        (
            ["--no_capture", "--headed"],
            "--no_capture captures nothing: leave --headed out",
        ),
        (
            [*REPLAY, "--cdp_url", "http://127.0.0.1:9"],
            "replay captures nothing: leave --cdp_url out",
        ),
        (["--cdp_url", "http://127.0.0.1:9", "--headed"], "leave --headed out"),
        (
            ["--script_env", "SET", "--script_env", "UNSET"],
            "that is set, not 'UNSET': set it, or leave --script_env out",
        ),
        (["--ray_address", "10.0.0.1:6379"], "--ray_address goes with --engine ray"),
        (
            ["--script_env", "SET=north"],
            "the name of a variable that is set, not 'SET=north'",
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
    ("given", "message"),
    [
        ([*REPLAY, "--engine", "ray"], "leave --engine ray out"),
        (
            ["--engine", "ray", "--batch"],
            "--batch belongs to one machine: leave it out with --engine ray",
        ),
        (["--engine", "ray"], "add --judgments postgresql://HOST/DATABASE"),
        (
            [*RAY, "--self_debug"],
            "--self_debug belongs to one machine: leave it out with --engine ray",
        ),
    ],
)
def test_an_option_that_a_cluster_cannot_have_is_refused(given, message):
    run = call(evaluate_main, "--agent_name", "bot", *given)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert message in run.stderr


@pytest.mark.parametrize(
    "given",
    [
        [*REPLAY, "--max_cost", "5", "--max_llm_requests", "9", "--no_capture"],
        [
            "--batch",
            "--batch_poll",
            "3",
            "--max_concurrent_tasks",
            "9",
        ],
        ["--script_env", "SET"],
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
        (
            ["--no_llm", "--judge_model", "m", "--judge_base_url", "http://x"],
            "--no_llm asks no model: leave --judge_model and --judge_base_url out",
        ),
        (["--headed", "--cdp_url", "http://127.0.0.1:1"], "leave --headed out"),
    ],
)
def test_an_option_of_caching_without_effect_is_refused(given, message):
    run = call(main, "cache", "bot", *given)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert message in run.stderr

"""Commands that a command prints for the user to copy mean the same folders."""

import shutil

import pytest
from projects import REPOSITORY, call

from mind2web2.cli import evaluate_main, main

FOLDERS = {
    "--answer_folder": "my answers",
    "--eval_scripts_root": "scripts",
    "--eval_results_root": "results",
    "--cache_root": "pages",
}
ALL = [word for pair in FOLDERS.items() for word in pair]
PAGES = ["--answer_folder", "my answers", "--cache_root", "pages"]
REPLAY = ["--llm_provider", "replay", "--judgments", str(REPOSITORY / "examples/judgments.jsonl")]
SHOWN = "--answer_folder 'my answers' --eval_scripts_root scripts --eval_results_root results"


@pytest.fixture(autouse=True)
def _example(tmp_path, monkeypatch):
    """Stand in a project whose folders have other names, with a task that has no result."""
    monkeypatch.chdir(tmp_path)
    for name, own in {"answers": "my answers", "eval_scripts": "scripts", "cache": "pages"}.items():
        shutil.copytree(REPOSITORY / name, own)
    run = call(evaluate_main, "--agent_name", "example", *REPLAY, *ALL)
    assert "show example TASK ANSWER --eval_results_root results --cache_root pages\n" in run.stdout
    shutil.rmtree("results/example/museum_saturday")
    shutil.copytree("results/example", "results/it's")


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (["verify-results", "example", *ALL], f"{SHOWN} --cache_root pages"),
        (["metrics", "example", *ALL], f"evaluate example {SHOWN} --cache_root pages"),
        (["submit", "example", *ALL], f"evaluate example {SHOWN} --cache_root pages"),
        (
            ["compare", "example", "it's", *ALL],
            f"""compare example 'it'"'"'s' --why {SHOWN} --cache_root pages""",
        ),
        (
            ["show", "example", "--eval_results_root", "results", "--cache_root", "pages"],
            "show example library_facts --eval_results_root results --cache_root pages",
        ),
        (
            ["cache", "example", *PAGES, "--task_id", "museum_saturday", "--allow_private_network"],
            "cache example --only failed --answer_folder 'my answers' --cache_root pages "
            "--allow_private_network",
        ),
    ],
)
def test_the_folders_stay(words, suggested):
    run = call(main, *words)
    assert f"{suggested}\n" in run.stdout, run.stdout


def test_an_export_says_how_to_replay_these_results():
    judgments = ["--judgments", "stored.jsonl"]
    root = ["--eval_results_root", "results"]
    assert call(main, "import", "judgments", "example", REPLAY[-1], *root).returncode == 0
    run = call(main, "export", "example", *judgments, *root)
    assert "evaluate example --eval_results_root results --llm_provider replay" in run.stdout

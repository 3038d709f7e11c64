"""The published commands for caching pages: their files, arguments and defaults."""

import argparse
import os
import subprocess
import sys

import pytest
from projects import REPOSITORY, clean_environment

from mind2web2.cli.options import CommandParser, given_settings
from mind2web2.cli.parsers import cache

DEFAULTS = {
    "agent": "bot",
    "max_concurrent_pages": 5,
    "max_retries": 1,
    "overall_timeout": 120,
}


def parsed(add_arguments, *words):
    """Return the options that a command reads from words."""
    parser = CommandParser(prog="x")
    add_arguments(parser)
    return parser.parse_args(words)


def defaults_in(options):
    """Return the options of ``DEFAULTS`` as they were read."""
    return {name: value for name, value in vars(options).items() if name in DEFAULTS}


def test_batch_answer_cache_takes_agent_and_task():
    options = parsed(cache.add_task_command, "bot", "lake")
    assert defaults_in(options) == DEFAULTS
    settings = given_settings(options)
    assert (settings.task_ids, settings.llm_provider, settings.headed) == (
        ("lake",),
        "openai",
        False,
    )


def test_cache_all_answers_takes_an_agent_or_none():
    assert defaults_in(parsed(cache.add_agents_command, "bot")) == DEFAULTS
    assert parsed(cache.add_agents_command).agent is None


@pytest.mark.parametrize(
    "word",
    [
        "--llm_provider=azure_openai",
        "--llm-provider=bedrock_anthropic",
        "--max_concurrent_pages=2",
        "--max-concurrent-pages=2",
        "--max_retries=0",
        "--overall_timeout=9.5",
        "--headless",
    ],
)
def test_the_flags_that_users_know(word):
    """The flags are spelled with underscores or hyphens."""
    assert isinstance(parsed(cache.add_task_command, "bot", "lake", word), argparse.Namespace)


@pytest.mark.parametrize("script", ["batch_answer_cache.py", "cache_all_answers.sh"])
def test_the_scripts_run_from_anywhere(tmp_path, script):
    path = REPOSITORY / script
    command = [path] if script.endswith(".sh") else [sys.executable, path]
    environment = clean_environment(PYTHON=sys.executable)
    del environment["PYTHONPATH"]
    run = subprocess.run(
        [*command, "--help"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"usage: {script} ")
    assert "--max_concurrent_pages" in run.stdout


def test_the_shell_script_is_executable():
    """Users write ``./cache_all_answers.sh``."""
    assert os.access(REPOSITORY / "cache_all_answers.sh", os.X_OK)

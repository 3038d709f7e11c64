"""The first page of the help, and where the rest is."""

import re

import pytest
from projects import call

from mind2web2.cli import evaluate_main, main


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_the_help_shows_ten_commands_and_where_the_others_are(words):
    printed = call(main, *words).stdout
    commands = re.findall(r"(?m)^  mind2web2 ([a-z-]+)", printed)
    assert len(commands) - commands.count("more") == 10
    others = re.findall(r"(?m)^  mind2web2 ([a-z-]+)", call(main, "more").stdout)
    assert "rejudge" in others
    assert set(commands) & set(others) == set()


def test_evaluate_shows_fifteen_options_and_all_where_they_are_wanted():
    few, everything = (
        set(re.findall(r"(?m)^  (--\w+)", call(main, "evaluate", *words).stdout))
        for words in (("--help",), ("--help", "all"))
    )
    assert len(few) == 15
    assert few < everything
    assert "--shard" in everything - few


def test_a_command_with_few_options_shows_all_of_them():
    assert "--rejudged_root" in call(main, "compare", "--help").stdout


def test_run_eval_has_the_same_help():
    assert "--help all shows" in call(evaluate_main, "--help").stdout

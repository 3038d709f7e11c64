"""The first page of the help, where the rest is, and that its sentences are whole."""

import argparse
import re

import pytest
from projects import call

from mind2web2.cli import command_modules, evaluate_main, main
from mind2web2.cli.options import CommandParser


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_the_help_shows_the_commands_of_the_readme_and_where_the_others_are(words):
    printed = call(main, *words).stdout
    commands = re.findall(r"(?m)^  mind2web2 ([a-z-]+)", printed.partition("--help all")[0])
    assert len(commands) == 12
    everything = re.findall(r"(?m)^  mind2web2 ([a-z-]+)", call(main, "--help", "all").stdout)
    assert set(commands) < set(everything)
    assert "rejudge" in everything


def test_options_before_a_command():
    """The version may come with -v on either side; others are refused in one line."""
    assert call(main, "-v", "--version").stdout == call(main, "--version", "-v").stdout
    refused = call(main, "-v").stderr
    assert refused == "mind2web2: error: unrecognized arguments: -v; see mind2web2 --help\n"


def test_evaluate_shows_the_common_options_and_all_where_they_are_wanted():
    few, everything = (
        set(re.findall(r"(?m)^  (--\w+)", call(main, "evaluate", *words).stdout))
        for words in (("--help",), ("--help", "all"))
    )
    assert len(few) == 13
    assert few < everything
    assert "--shard" in everything - few


def test_a_command_with_few_options_shows_all_of_them():
    assert "--rejudged_root" in call(main, "compare", "--help").stdout


def test_run_eval_has_the_same_help():
    assert "--help all shows" in call(evaluate_main, "--help").stdout


def test_the_help_has_no_run_of_spaces_inside_a_sentence():
    helps = list(_parsers(CommandParser(prog="mind2web2")))
    assert len(helps) > 20
    for parser in helps:
        texts = [action.help or "" for action in parser._actions]
        paragraphs = re.findall(r"(?m)^[^ \n].*", parser.format_help().partition("arguments:")[0])
        for text in (*texts, *paragraphs):
            assert "  " not in text, (parser.prog, text)


def test_each_argument_is_explained():
    for parser in _parsers(CommandParser(prog="mind2web2")):
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (
                parser.prog,
                action.dest,
            )


def test_the_help_of_an_option_names_no_option_that_the_command_lacks():
    for parser in _parsers(CommandParser(prog="mind2web2")):
        options = {name for action in parser._actions for name in action.option_strings}
        for action in parser._actions:
            named = set(re.findall(r"--[a-z][a-z_]+", action.help or ""))
            assert named <= options, (parser.prog, action.dest)


def test_brackets_of_each_help_are_closed():
    for parser in _parsers(CommandParser(prog="mind2web2")):
        rendered = re.sub(r"[^][(){}]", "", parser.format_help())
        while rendered != (rendered := re.sub(r"\(\)|\[\]|\{\}", "", rendered)):
            pass
        assert rendered == "", (parser.prog, rendered)


def test_no_help_ends_in_the_middle_of_a_sentence():
    middle = re.compile(
        r"([,;(]|(?<![-\w])(a|an|and|as|by|for|if|in|is|its|of|or|such|than|the|to|with))$"
    )
    for parser in _parsers(CommandParser(prog="mind2web2")):
        whole = parser.format_help().partition("\n\n  mind2web2 ")[0]
        texts = [action.help or "" for action in parser._actions]
        for text in (*texts, *whole.split("\n\n")):
            assert not middle.search(text.strip()), (parser.prog, text)


def _parsers(together):
    """Yield the parser of each command and of each of its actions."""
    commands = together.add_subparsers()
    for module in command_modules():
        module.add_command(commands)
    for parser in commands.choices.values():
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.values()

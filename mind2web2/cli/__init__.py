"""The commands: ``mind2web2`` with its subcommands, and those that the root scripts call."""

from __future__ import annotations

import argparse
import errno
import io
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from mind2web2 import __version__
from mind2web2.cli.loading import load_function
from mind2web2.cli.options import CommandParser, Handler
from mind2web2.errors import Mind2Web2Error, StorageError
from mind2web2.runs.paths import take_away_changes
from mind2web2.utils.entry_points import (
    hook_names,
    load_part,
    load_parts,
    removed_plugin,
)
from mind2web2.utils.values import one_of

_DESCRIPTION = """\
Find out whether an AI search agent's cited answers are true.

start
  mind2web2 example              write an example project and evaluate it, offline
write a task
  mind2web2 new TASK             write a task of your own
  mind2web2 rehearse TASK        test the task, before any agent answers it
judge
  mind2web2 check-judge          find out how often a judge is right
  mind2web2 cache AGENT          store the pages that the agent's answers cite
  mind2web2 evaluate AGENT       judge the agent's answers and show the scores
look
  mind2web2 show AGENT           show why an answer has its score
  mind2web2 view                 look at all results in the browser
decide
  mind2web2 compare AGENT AGENT  find out whether agents differ by more than chance
  mind2web2 report AGENT         write the results into one HTML file

  mind2web2 more                 list the other commands
  mind2web2 COMMAND --help       explain a command
"""


# The module of each command's parser. Only that of the command line is loaded.
_PARSERS = {
    **{"example": "example"},
    **dict.fromkeys(("get", "answers", "validate", "submit"), "benchmark"),
    **{"new": "new", "rubric": "rubric", "rehearse": "rehearse"},
    **dict.fromkeys(("cache", "pages"), "pages"),
    **{"check-judge": "check_judge", "evaluate": "evaluate", "serve": "serve"},
    **{"show": "show", "audit": "audit", "export": "export"},
    **dict.fromkeys(("view", "report"), "view"),
    **dict.fromkeys(("metrics", "compare"), "metrics"),
    **{"rejudge": "rejudge", "verify-results": "verify_results"},
    **dict.fromkeys(("judgments", "merge"), "transfer"),
    **{"more": "more", "plugins": "plugins"},
}
# The commands that --help shows.
FIRST_COMMANDS = frozenset(re.findall(r"(?m)^  mind2web2 ([a-z-]+)", _DESCRIPTION))


# Commands of earlier versions, and what to do without them.
_GONE = {
    "trust": "verify-results says which results are out of date, as where a script has changed "
    "since",
    "injection": "make injection runs that suite, in a clone",
}


# Earlier names of commands, which work for one more version.
_RENAMED = {
    "lint": ("rehearse", "--no_run"),
    "tasks": ("rehearse", "--no_run"),
    "leaves": ("metrics", "--leaves"),
}


def _own_parser(name: str) -> ModuleType:
    return import_module(f"{__name__}.parsers.{name}")


def command_modules() -> tuple[ModuleType, ...]:
    """Return the modules that have the parsers of all commands."""
    own = [_own_parser(name) for name in dict.fromkeys(_PARSERS.values())]
    return (*own, *dict.fromkeys(load_parts("commands").values()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mind2web2`` and return its exit status."""
    usage = "%(prog)s COMMAND [options]"
    parser = CommandParser(prog="mind2web2", usage=usage, description=_DESCRIPTION)
    version = f"mind2web2 {__version__}"
    parser.add_argument("--version", action="version", version=version, help="print the version")
    given = list(sys.argv[1:] if arguments is None else arguments)
    word = given[0] if given else ""
    if word in _RENAMED:
        print(f"mind2web2 {word} is now {' '.join(_RENAMED[word])}", file=sys.stderr)  # noqa: T201
        given[:1] = _RENAMED[word]
        word = given[0]
    if not word:
        parser.print_help()
        return 0
    if word.startswith("-"):
        # Nothing but --help and --version is possible.
        parser.add_argument("command", metavar="COMMAND", help=argparse.SUPPRESS)
        return _run(parser, given)
    _check_command(parser, word)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog="mind2web2")
    _module_of(parser, word).add_command(commands)
    return _run(parser, given)


def _module_of(parser: CommandParser, word: str) -> Any:
    """Return the module of a command, which adds its parser."""
    if word in _PARSERS:
        return _own_parser(_PARSERS[word])
    module = load_part("commands", word)
    if module is None:
        parser.error(f"the command {word} is of a plugin that cannot be loaded")
    return module


def _check_command(parser: CommandParser, word: str) -> None:
    """Name the command that a misspelled one is near to; argparse would list all."""
    if word in _GONE:
        parser.error(f"the command {word} is gone: {_GONE[word]}")
    if plugin := removed_plugin(word):
        parser.error(f"the command {word} needs the plugin {plugin}")
    try:
        one_of((*_PARSERS, *hook_names("commands")))(word)
    except ValueError as error:
        parser.error(f"argument COMMAND: {error}")


def evaluate_main(arguments: Sequence[str] | None = None) -> int:
    """Run ``run_eval.py`` and return its exit status."""
    evaluate = _own_parser("evaluate")
    description = evaluate.description("python run_eval.py --agent_name my_agent")
    parser = CommandParser(prog="run_eval.py", description=description)
    evaluate.add_options(parser)
    return _run(parser, arguments)


def batch_cache_main(arguments: Sequence[str] | None = None) -> int:
    """Run ``batch_answer_cache.py`` and return its exit status."""
    pages = _own_parser("pages")
    parser = CommandParser(prog="batch_answer_cache.py", description=pages.CACHE)
    pages.add_task_command(parser)
    return _run(parser, arguments)


def cache_all_main(arguments: Sequence[str] | None = None) -> int:
    """Run ``cache_all_answers.sh`` and return its exit status."""
    pages = _own_parser("pages")
    parser = CommandParser(prog="cache_all_answers.sh", description=pages.CACHE)
    pages.add_agents_command(parser)
    return _run(parser, arguments)


def _run(parser: CommandParser, arguments: Sequence[str] | None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An output that cannot show a character, or half a surrogate pair, does not stop the
        # command.
        sys.stdout.reconfigure(errors="backslashreplace")
    options = parser.parse_args(arguments)
    try:
        run: Handler = load_function(options.run)
        return _store_remotely(parser, run(options))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "mind2web2":
            raise
        command = f"./{parser.prog}" if parser.prog.endswith(".sh") else parser.prog
        return _print_failure(
            parser,
            f"this Python ({sys.executable}) lacks the package {package}: install the "
            f"dependencies, or run it as: uv run {command}",
        )
    except Mind2Web2Error as error:
        return _print_failure(parser, " ".join(str(error).split()))
    except KeyboardInterrupt:
        _print_failure(parser, "stopped")
        return 130
    except BrokenPipeError:
        # The reader of our output is gone, as with `head`.
        sys.stderr.close()
        return 1
    except OSError as error:
        return _print_failure(parser, _system_failure(error))


_OUTPUT_FAILURES = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG)


def _system_failure(error: OSError) -> str:
    """Return what the system refused, in one line with its place."""
    reason = error.strerror or str(error)
    if error.filename is None and error.errno in _OUTPUT_FAILURES:
        return f"cannot write the output: {reason}"
    if error.filename is None:
        return f"the system reports: {reason}"
    return f"cannot use {error.filename}: {reason}"


def _store_remotely(parser: CommandParser, exit_status: int) -> int:
    """Bring the files of remote roots to where they belong, and return the exit status."""
    try:
        take_away_changes()
    except StorageError as error:
        _print_failure(parser, str(error))
        return exit_status or 1
    return exit_status


def _print_failure(parser: CommandParser, message: str) -> int:
    print(f"{parser.prog}: {message}", file=sys.stderr)  # noqa: T201
    return 2

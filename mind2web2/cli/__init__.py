"""The commands: ``mind2web2`` with its subcommands, and those that the root scripts call."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from mind2web2 import __version__
from mind2web2.cli.options import CommandParser, Handler, load_function
from mind2web2.errors import Mind2Web2Error
from mind2web2.utils.entry_points import HOOKS, load_part, load_parts, parts_of
from mind2web2.utils.values import one_of

_DESCRIPTION = """\
Find out whether an AI search agent's cited answers are true.

start
  mind2web2 example              write an example project and evaluate it, offline
  mind2web2 check REPORT         check whether the cited pages say what a report says
write a task
  mind2web2 new TASK             write a task of your own
  mind2web2 rehearse TASK        test the task, before any agent answers it
  mind2web2 get                  download the benchmark's tasks
judge
  mind2web2 cache AGENT          store the pages that the agent's answers cite
  mind2web2 evaluate AGENT       judge the agent's answers and show the scores
look
  mind2web2 show AGENT           show why an answer has its score
  mind2web2 view                 look at all results in the browser
decide
  mind2web2 metrics AGENT        average the agent's results
  mind2web2 compare AGENT AGENT  find out whether agents differ by more than chance
  mind2web2 report AGENT         write the results into one HTML file

  mind2web2 --help all           list the other commands
  mind2web2 COMMAND --help       explain a command
"""


# The module of each command's parser. Only that of the command line is loaded.
_PARSERS = {
    "example": "example",
    "get": "benchmark",
    "validate": "benchmark",
    "submit": "benchmark",
    "cache": "cache",
    "import": "import_files",
    "evaluate": "evaluate",
    "serve": "serve",
    "show": "show",
    "export": "export",
    "view": "view",
    "report": "view",
    "metrics": "metrics",
    "compare": "metrics",
    "verify-results": "verify_results",
}


def _own_parser(name: str) -> ModuleType:
    return import_module(f"{__name__}.parsers.{name}")


def command_modules() -> tuple[ModuleType, ...]:
    """Return the modules that have the parsers of all commands."""
    parsers = [_own_parser(name) for name in dict.fromkeys(_PARSERS.values())]
    return (*parsers, *dict.fromkeys(load_parts("commands").values()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mind2web2`` and return its exit status."""
    usage = "%(prog)s COMMAND [options]"
    parser = CommandParser(prog="mind2web2", usage=usage, description=_DESCRIPTION)
    version = "print the version; with -v, also what plugins add"
    parser.add_argument("--version", action="store_true", help=version)
    words = list(sys.argv[1:] if arguments is None else arguments)
    word = words[0] if words else ""
    if not word:
        parser.print_help()
        return 0
    if word.startswith("-"):
        if "--version" in words:
            return _print_version(is_verbose="-v" in words)
        if words == ["--help", "all"]:
            return _print_all_commands()
        # This prints the help, or refuses the option.
        parser.parse_args(words)
        parser.error("the command is missing")
    _check_command(parser, word)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog="mind2web2")
    _module_of(parser, word).add_command(commands)
    return _run(parser, words)


def _print_all_commands() -> int:
    """Print a line for each command, those of plugins included."""
    together = CommandParser(prog="mind2web2")
    commands = together.add_subparsers()
    for module in command_modules():
        module.add_command(commands)
    helps = {each.dest: each.help for each in commands._choices_actions}
    width = max(map(len, helps))
    for name, text in helps.items():
        print(f"  mind2web2 {name:{width}}  {text}")  # noqa: T201
    return 0


def _print_version(*, is_verbose: bool) -> int:
    lines = [f"mind2web2 {__version__}"]
    for hook in HOOKS if is_verbose else ():
        lines += [f"{hook} {part.name}: {part.value}" for part in parts_of(hook).values()]
    print("\n".join(lines))  # noqa: T201
    return 0


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
    try:
        one_of((*_PARSERS, *parts_of("commands")))(word)
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
    cache = _own_parser("cache")
    parser = CommandParser(prog="batch_answer_cache.py", description=cache.CACHE)
    cache.add_task_command(parser)
    return _run(parser, arguments)


def cache_all_main(arguments: Sequence[str] | None = None) -> int:
    """Run ``cache_all_answers.sh`` and return its exit status."""
    cache = _own_parser("cache")
    parser = CommandParser(prog="cache_all_answers.sh", description=cache.CACHE)
    cache.add_agents_command(parser)
    return _run(parser, arguments)


def _run(parser: CommandParser, arguments: Sequence[str] | None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An output that cannot show a character, or half a surrogate pair, does not stop the
        # command.
        sys.stdout.reconfigure(errors="backslashreplace")
    options = parser.parse_args(arguments)
    try:
        run: Handler = load_function(options.run)
        return run(options)
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
    except KeyboardInterrupt as stop:
        _print_failure(parser, str(stop) or "stopped")
        return 130
    except BrokenPipeError:
        # The reader of our output is gone, as with `head`.
        sys.stderr.close()
        return 1
    except OSError as error:
        return _print_failure(parser, _system_failure(error))


def _system_failure(error: OSError) -> str:
    """Return what the system refused, in one line with its place."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"the system reports: {reason}"
    return f"cannot use {error.filename}: {reason}"


def _print_failure(parser: CommandParser, message: str) -> int:
    print(f"{parser.prog}: {message}", file=sys.stderr)  # noqa: T201
    return 2

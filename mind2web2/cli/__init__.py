"""The commands: ``mind2web2`` with its subcommands, and what the root scripts call."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from mind2web2 import __version__
from mind2web2.cli import evaluate
from mind2web2.cli.options import CommandParser, Handler
from mind2web2.errors import Mind2Web2Error

_DESCRIPTION = """\
Find out whether an AI search agent's cited answers are true.

  mind2web2 cache AGENT               store the pages that the agent's answers cite
  mind2web2 evaluate AGENT            judge the agent's answers and show the scores
  mind2web2 show AGENT TASK ANSWER    show why an answer has its score
  mind2web2 view                      look at all of it in the browser
  mind2web2 report AGENT -o FILE      write that into one HTML file
  mind2web2 metrics AGENT             average the results that are there
  mind2web2 compare AGENT AGENT       test whether agents differ by more than chance
  mind2web2 verify-results AGENT      check that every score is right and still holds
  mind2web2 judgments export AGENT F  write what the judge said to a file, for others to replay
  mind2web2 judgments import AGENT F  take such a file in
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``mind2web2`` and return its exit status."""
    from mind2web2.cli import cache, judgments, metrics, show, verify_results
    from mind2web2.cli.results import audit, compare, view

    parser = CommandParser(prog="mind2web2", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"mind2web2 {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in (cache, evaluate, show, view, audit, metrics, compare, verify_results, judgments):
        module.add_command(commands)
    return _run(parser, arguments)


def evaluate_main(arguments: Sequence[str] | None = None) -> int:
    """Run ``run_eval.py`` and return its exit status."""
    description = evaluate.description("python run_eval.py --agent_name my_agent")
    parser = CommandParser(prog="run_eval.py", description=description)
    evaluate.add_options(parser)
    return _run(parser, arguments)


def batch_cache_main(arguments: Sequence[str] | None = None) -> int:
    """Run ``batch_answer_cache.py`` and return its exit status."""
    from mind2web2.cli import cache

    parser = CommandParser(prog="batch_answer_cache.py", description=cache.DESCRIPTION)
    cache.add_task_command(parser)
    return _run(parser, arguments)


def cache_all_main(arguments: Sequence[str] | None = None) -> int:
    """Run ``cache_all_answers.sh`` and return its exit status."""
    from mind2web2.cli import cache

    parser = CommandParser(prog="cache_all_answers.sh", description=cache.DESCRIPTION)
    cache.add_agents_command(parser)
    return _run(parser, arguments)


def _run(parser: CommandParser, arguments: Sequence[str] | None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An output that cannot show a character, or half a surrogate pair, is no reason to stop.
        sys.stdout.reconfigure(errors="backslashreplace")
    options = parser.parse_args(arguments)
    run: Handler = options.run
    try:
        return run(options)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "mind2web2":
            raise
        print(  # noqa: T201
            f"{parser.prog}: this Python ({sys.executable}) lacks the package {package}: install the "
            f"dependencies, or run it as: uv run {'./' * parser.prog.endswith('.sh')}{parser.prog}",
            file=sys.stderr,
        )
        return 2
    except Mind2Web2Error as error:
        # The run could not start (options.md); what fails later is told in its table.
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print(f"{parser.prog}: stopped", file=sys.stderr)  # noqa: T201
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does.
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"{parser.prog}: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 2

"""Parser of ``mind2web2 evaluate`` and ``run_eval.py``."""

from __future__ import annotations

from mind2web2.cli.options import CommandParser, Subcommands
from mind2web2.runs.setting import Setting
from mind2web2.runs.settings import SETTINGS

# A machine needs these once: ``mind2web2.toml`` names them, or ``cache`` captures ahead.
_IN_FILE = frozenset({"headed", "no_sandbox"})
_DESCRIPTION = """\
Judge an agent's answers. The command runs each task's eval script, checks every claim against the cited
pages, scores the rubric tree, and shows the scores and the agent's metrics.

  {command}                    judge with OpenAI's o4-mini (OPENAI_API_KEY)
  {command} --estimate         print what that will cost, and ask nothing
  {command} --max_cost 20      stop asking when the run has cost $20
  {command} --task_id TASK     judge one task only; may be repeated
  {command} --judge_base_url http://localhost:8000/v1 --judge_model NAME
  {indent}                    judge with your own server
  {command} --llm_provider replay
  {indent}                    score again from stored judgments, offline

If a run was stopped, the same command continues it: it reuses every result that is up to date, and every
stored judgment. Exit status: 0 every selected answer has a result, 1 some have none, 2 the run could not
start.
"""


def description(command: str) -> str:
    """Return the purpose of the command, with examples spelled as the user has started it."""
    return _DESCRIPTION.format(command=command, indent=" " * len(command))


def evaluation_settings() -> dict[str, Setting]:
    """Return the settings of the command."""
    left = {"task_list", *_IN_FILE}
    return {name: each for name, each in SETTINGS.items() if name not in left}


def add_command(commands: Subcommands) -> None:
    """Add ``evaluate`` to ``mind2web2``."""
    parser = commands.add_parser(
        "evaluate",
        help="judge an agent's answers",
        description=description("mind2web2 evaluate my_agent"),
    )
    add_options(parser)


def add_options(parser: CommandParser) -> None:
    """Add the arguments of both spellings of the command."""
    parser.add_argument(
        "agent",
        nargs="?",
        metavar="AGENT",
        help="the agent, a folder under answers/; the same as --agent_name",
    )
    parser.add_settings(evaluation_settings())
    takes = parser.get_default("takes") | _IN_FILE
    parser.set_defaults(run="mind2web2.cli.evaluate", takes=takes)

"""``mind2web2 answer`` and ``mind2web2 answers import``: where an agent's answers come from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.benchmark.get import add_task_list, add_tasks_root
from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_task_option,
    count,
    paths_of,
    positive_dollars,
    positive_int,
    positive_seconds,
    web_address,
)

if TYPE_CHECKING:
    from mind2web2.benchmark.agents import Agent
    from mind2web2.benchmark.tasks import Task

ANSWER = """\
Ask an agent the questions of the tasks and store its answers under answers/AGENT/.

  mind2web2 answer my_agent --command 'my-agent --question {question_file} --out {answer_file}'
  mind2web2 answer my_agent --callable my_module:my_function
  mind2web2 answer my_agent --openai_responses gpt-5      Responses API with web search, in the background
  mind2web2 answer my_agent --chat my-model --base_url http://localhost:8000/v1

A command that was interrupted continues where it was. Runs that ended with an error or an empty answer
count as 0; those that --max_cost prevented have no score. The exit status is 1 where a run has no answer.
"""
IMPORT = """\
Store answers from a file: JSON lines or CSV with task_id (or question) and answer, and optionally run,
seconds, cost_usd and status (answered, empty, error, out_of_budget). Nothing is stored unless the
whole file is right.

  mind2web2 answers import my_agent answers.jsonl
"""


def add_command(commands: Subcommands) -> None:
    """Add ``answer`` and ``answers`` to ``mind2web2``."""
    answer = commands.add_parser("answer", help="ask an agent the questions of the tasks", description=ANSWER)
    answer.add_argument("agent", metavar="AGENT", help="a folder under answers/")
    kinds = answer.add_mutually_exclusive_group(required=True)
    kinds.add_argument(
        "--command",
        metavar="TEXT",
        help="a program and its arguments, run without a shell: {question_file} or {question}, {answer_file} "
        '(else standard output), {meta_file} (JSON with "cost_usd"), {task_id}, {run}',
    )
    kinds.add_argument(
        "--callable",
        metavar="M:F",
        help="a Python function from the question to its answer, or to a dict with answer and cost_usd",
    )
    kinds.add_argument("--openai_responses", metavar="MODEL", help="OpenAI's Responses API with web search")
    kinds.add_argument("--chat", metavar="MODEL", help="chat completions of any compatible server")
    answer.add_argument(
        "--base_url",
        metavar="URL",
        type=web_address,
        help="the model's server; its key is OPENAI_API_KEY (default: OPENAI_BASE_URL, else OpenAI)",
    )
    answer.add_argument(
        "--runs", metavar="N", type=positive_int, default=1, help="answers to each question (default: 1)"
    )
    answer.add_argument(
        "--parallel", metavar="N", type=positive_int, default=4, help="questions at once (default: 4)"
    )
    answer.add_argument(
        "--time_limit",
        metavar="S",
        type=positive_seconds,
        default=3600.0,
        help="seconds for one attempt (default: 3600)",
    )
    answer.add_argument(
        "--retries", metavar="N", type=count, default=2, help="further attempts after a failure (default: 2)"
    )
    answer.add_argument(
        "--max_cost",
        metavar="USD",
        type=positive_dollars,
        help="start no run that may pass this cost of all the agent's runs, going by the dearest so far",
    )
    answer.add_argument(
        "--retry_failed",
        action="store_true",
        help="ask again where a run ended with an error or an empty answer",
    )
    answers = commands.add_parser("answers", help="import answers from a file")
    actions = answers.add_subparsers(title="actions", required=True, metavar="ACTION")
    take = actions.add_parser("import", help="store answers from a file", description=IMPORT)
    take.add_argument("agent", metavar="AGENT")
    take.add_argument("file", metavar="FILE", type=Path)
    take.add_argument(
        "--overwrite", action="store_true", help="replace other answers to the same tasks and runs"
    )
    add_task_option(answer, "all")
    for parser in (answer, take):
        add_task_list(parser)
        add_tasks_root(parser)
        add_folder_options(parser, "answer_folder", "eval_scripts_root")
    answer.set_defaults(run=run_answer)
    take.set_defaults(run=run_import)


def run_answer(options: argparse.Namespace) -> int:
    """Ask the agent and return the exit status: 1 where a run has no answer."""
    import asyncio
    from collections import Counter

    from mind2web2.benchmark.answering import Plan, RunPlace, answer_questions
    from mind2web2.benchmark.tasks import questions_of, select_tasks
    from mind2web2.cli.console import counted, plain_console
    from mind2web2.cli.settings_file import apply_settings_file
    from mind2web2.runs.answers import RunRecord
    from mind2web2.utils.text import check_name

    apply_settings_file(options)
    folder = paths_of(options).answers_root / check_name("agent", options.agent)
    questions = questions_of(select_tasks(_tasks(options), options.task_ids or ()))
    plan = Plan(
        runs=options.runs,
        parallel=options.parallel,
        timeout_s=options.time_limit,
        retries=options.retries,
        max_cost=options.max_cost,
        retry_failed=options.retry_failed,
    )
    console = plain_console()

    def show(place: RunPlace, record: RunRecord) -> None:
        facts = [record.status, record.reason, None if record.seconds is None else f"{record.seconds:.0f} s"]
        shown = ", ".join(fact for fact in facts if fact)
        console.print(f"{place.name}: {shown}", soft_wrap=True, markup=False, highlight=False)

    records = asyncio.run(answer_questions(_agent(options), questions, folder, plan, show))
    counts = Counter(record.status for record in records.values())
    cost = sum(record.cost_usd or 0.0 for record in records.values())
    listed = ", ".join(f"{number} {status.replace('_', ' ')}" for status, number in sorted(counts.items()))
    console.print(
        f"{counted(len(records), 'run')}: {listed}; ${cost:.2f} in all", soft_wrap=True, highlight=False
    )
    failed = {name: record for name, record in records.items() if record.status != "answered"}
    for name, record in failed.items():
        reason = f": {record.reason}" if record.reason else ""
        status = record.status.replace("_", " ")
        console.print(f"  {name} {status}{reason}", soft_wrap=True, markup=False, highlight=False)
    return 1 if failed else 0


def run_import(options: argparse.Namespace) -> int:
    """Store the answers and return the exit status."""
    from mind2web2.benchmark.imports import import_answers, read_answers
    from mind2web2.cli.console import counted, plain_console
    from mind2web2.utils.text import check_name

    folder = paths_of(options).answers_root / check_name("agent", options.agent)
    runs = read_answers(options.file, _tasks(options), folder)
    new = import_answers(runs, folder, overwrite=options.overwrite)
    found = f"{counted(len(runs), 'run')} in {options.file}"
    text = f"{found}: {new} stored under {folder}, {len(runs) - new} already there"
    plain_console().print(text, soft_wrap=True, markup=False, highlight=False)
    return 0


def _tasks(options: argparse.Namespace) -> list[Task]:
    from mind2web2.benchmark.tasks import find_tasks

    return find_tasks(paths_of(options), options.tasks_root, options.task_list)


def _agent(options: argparse.Namespace) -> Agent:
    from mind2web2.benchmark.agents import CommandAgent, ModelAgent
    from mind2web2.errors import UsageError

    if options.base_url and not (options.chat or options.openai_responses):
        raise UsageError("--base_url goes with --chat or --openai_responses")
    if options.command is not None:
        return CommandAgent.parsed(options.command)
    if options.callable is not None:
        return CommandAgent.of_callable(options.callable)
    model = options.openai_responses or options.chat
    return ModelAgent(model, options.base_url, with_search=options.openai_responses is not None)

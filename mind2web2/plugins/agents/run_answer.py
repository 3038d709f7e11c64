"""``mind2web2 answer``: ask an agent the questions of the tasks."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter

from mind2web2.benchmark.answering import RunPlace
from mind2web2.benchmark.tasks import questions_of, select_tasks
from mind2web2.cli.console import line, plain_console
from mind2web2.cli.listed_tasks import tasks_of
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.errors import UsageError
from mind2web2.plugins.agents.agents import Agent, CommandAgent, ModelAgent
from mind2web2.plugins.agents.asking import Plan, answer_questions
from mind2web2.results.answers import RunRecord
from mind2web2.utils.names import check_name
from mind2web2.utils.text import counted


def run(options: argparse.Namespace) -> int:
    """Ask the agent and return the exit status: 1 where a run has no answer."""
    settings = settings_of(options, is_announced=True)
    folder = paths_of(settings, options.agent).answers_root / check_name("agent", options.agent)
    tasks = select_tasks(tasks_of(settings, options.tasks_root), settings.task_ids)
    questions = questions_of(tasks)
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
        facts = [
            record.status,
            record.reason,
            None if record.seconds is None else f"{record.seconds:.0f} s",
        ]
        shown = ", ".join(fact for fact in facts if fact)
        line(console, f"{place.name}: {shown}")

    agent = _agent(
        options.command,
        options.callable,
        options.chat,
        options.openai_responses,
        options.base_url,
    )
    records = asyncio.run(answer_questions(agent, questions, folder, plan, show))
    counts = Counter(record.status for record in records.values())
    cost = sum(record.cost_usd or 0.0 for record in records.values())
    listed = ", ".join(
        f"{number} {status.replace('_', ' ')}" for status, number in sorted(counts.items())
    )
    line(console, f"{counted(len(records), 'run')}: {listed}; ${cost:.2f} in all")
    failed = {name: record for name, record in records.items() if record.status != "answered"}
    for name, record in failed.items():
        reason = f": {record.reason}" if record.reason else ""
        status = record.status.replace("_", " ")
        line(console, f"  {name} {status}{reason}")
    left_out = [task for task in tasks if task.task_id not in questions]
    for task in left_out:
        line(console, f"Not asked: {task.task_id}: {task.script_problem}")
    return 1 if failed or left_out else 0


def _agent(
    command: str | None,
    function: str | None,
    chat_model: str | None,
    responses_model: str | None,
    base_url: str | None,
) -> Agent:
    model = responses_model or chat_model
    if base_url and not model:
        raise UsageError("--base_url goes with --chat or --openai_responses")
    if command is not None:
        return CommandAgent.parse(command)
    if function is not None:
        return CommandAgent.of_callable(function)
    assert model is not None, "the parser asks for one of the four"
    return ModelAgent(model, base_url, with_search=responses_model is not None)

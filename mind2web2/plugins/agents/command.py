"""``mind2web2 answer``: its options."""

from __future__ import annotations

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_task_option,
    count,
    positive_dollars,
    positive_int,
    positive_seconds,
    web_address,
)
from mind2web2.cli.task_options import add_task_list, add_tasks_root

DESCRIPTION = """\
Ask an agent the questions of the tasks and store its answers under answers/AGENT/.

  mind2web2 answer my_agent --command 'my-agent --question {question_file} --out {answer_file}'
  mind2web2 answer my_agent --callable my_module:my_function
  mind2web2 answer my_agent --openai_responses gpt-5      Responses API with web search, in the background
  mind2web2 answer my_agent --chat my-model --base_url http://localhost:8000/v1

A command that was interrupted continues where it was. Runs that ended with an error or an empty answer
count as 0; those that --max_cost prevented have no score. The exit status is 1 where a run has no answer.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``answer`` to ``mind2web2``."""
    answer = commands.add_parser(
        "answer",
        help="ask an agent the questions of the tasks",
        description=DESCRIPTION,
    )
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
    kinds.add_argument(
        "--openai_responses",
        metavar="MODEL",
        help="OpenAI's Responses API with web search",
    )
    kinds.add_argument("--chat", metavar="MODEL", help="chat completions of any compatible server")
    answer.add_argument(
        "--base_url",
        metavar="URL",
        type=web_address,
        help="the model's server; its key is OPENAI_API_KEY (default: OPENAI_BASE_URL, else OpenAI)",
    )
    answer.add_argument(
        "--runs",
        metavar="N",
        type=positive_int,
        default=1,
        help="answers to each question (default: 1)",
    )
    answer.add_argument(
        "--parallel",
        metavar="N",
        type=positive_int,
        default=4,
        help="questions at once (default: 4)",
    )
    answer.add_argument(
        "--time_limit",
        metavar="S",
        type=positive_seconds,
        default=3600.0,
        help="seconds for one attempt (default: 3600)",
    )
    answer.add_argument(
        "--retries",
        metavar="N",
        type=count,
        default=2,
        help="further attempts after a failure (default: 2)",
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
    add_task_option(answer, "all")
    add_task_list(answer)
    add_tasks_root(answer)
    add_folder_options(answer, "answer_folder", "eval_scripts_root")
    answer.set_defaults(run="mind2web2.plugins.agents.run_answer")

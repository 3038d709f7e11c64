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
Ask your agent the tasks' questions, and store its answers under answers/AGENT/.

  mind2web2 answer my_agent --command 'my-agent --question {question_file} --out {answer_file}'
                                                          run a program
  mind2web2 answer my_agent --callable my_module:my_function
                                                          call a Python function
  mind2web2 answer my_agent --openai_responses gpt-5      use OpenAI's Responses API with web search
  mind2web2 answer my_agent --chat my-model --base_url http://localhost:8000/v1
                                                          use a chat model of any compatible server

If the command was stopped, the same command continues. A run that ends with an error or an empty answer
counts as 0. A run that --max_cost prevents has no score. The exit status is 1 if a run has no answer.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``answer`` to ``mind2web2``."""
    answer = commands.add_parser(
        "answer",
        help="ask your agent the tasks' questions",
        description=DESCRIPTION,
    )
    answer.add_argument("agent", metavar="AGENT", help="the agent, a folder under answers/")
    kinds = answer.add_mutually_exclusive_group(required=True)
    kinds.add_argument(
        "--command",
        metavar="TEXT",
        help="run this program, without a shell. Its arguments may name {question_file} or "
        "{question}, "
        "{answer_file} (otherwise the answer is the program's output), {meta_file} (for JSON with "
        '"cost_usd"), {task_id} and {run}',
    )
    kinds.add_argument(
        "--callable",
        metavar="M:F",
        help="call this Python function with the question. It returns the answer, or a dict with "
        "answer and "
        "cost_usd",
    )
    kinds.add_argument(
        "--openai_responses",
        metavar="MODEL",
        help="ask this model in OpenAI's Responses API, with web search",
    )
    kinds.add_argument(
        "--chat", metavar="MODEL", help="ask this model of any server with chat completions"
    )
    answer.add_argument(
        "--base_url",
        metavar="URL",
        type=web_address,
        help="the model's server, with the key in OPENAI_API_KEY (default: OPENAI_BASE_URL, else "
        "OpenAI)",
    )
    answer.add_argument(
        "--runs",
        metavar="N",
        type=positive_int,
        default=1,
        help="the number of answers to each question (default: 1)",
    )
    answer.add_argument(
        "--parallel",
        metavar="N",
        type=positive_int,
        default=4,
        help="ask at most N questions at once (default: 4)",
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
        help="retry a failed question at most N times (default: 2)",
    )
    answer.add_argument(
        "--max_cost",
        metavar="USD",
        type=positive_dollars,
        help="start no run that could bring the cost of all the agent's runs above this, if it "
        "costs as "
        "much as the most expensive one so far",
    )
    answer.add_argument(
        "--retry_failed",
        action="store_true",
        help="ask again if a run ended with an error or an empty answer",
    )
    add_task_option(answer, "all")
    add_task_list(answer)
    add_tasks_root(answer)
    add_folder_options(answer, "answer_folder", "eval_scripts_root")
    answer.set_defaults(run="mind2web2.plugins.agents.run_answer")

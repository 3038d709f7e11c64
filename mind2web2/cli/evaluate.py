"""``mind2web2 evaluate`` and ``run_eval.py``: judge an agent's answers."""

from __future__ import annotations

import argparse

from mind2web2.cli.options import (
    JUDGE_PROVIDERS,
    JUDGE_PROVIDERS_HELP,
    Subcommands,
    add_folder_options,
    add_judge_parameters,
    add_network_options,
    add_task_option,
    as_of,
    browser_address,
    byte_count,
    check_options,
    image_count,
    paths_of,
    positive_dollars,
    positive_int,
    positive_seconds,
)

_DESCRIPTION = """\
Judge an agent's answers: run each task's eval script, check every claim against the cited pages, score
the rubric trees, and show the scores with the agent's metrics.

  {command}                    judge with OpenAI's o4-mini (OPENAI_API_KEY)
  {command} --estimate         say first what that will cost, and ask nothing
  {command} --max_cost 20      stop asking when the run has cost $20
  {command} --batch            for half the price, if it may take a day
  {command} --task_id TASK     one task only; may be repeated
  {command} --judge_base_url http://localhost:8000/v1 --judge_model NAME
  {indent}                    a server of your own
  {command} --llm_provider replay
  {indent}                    score again from stored judgments, offline

Running the same command again goes on where it stopped: results that still hold are reused, and so is
every stored judgment. Exit status: 0 every selected answer has a result, 1 some have none, 2 the run
could not start.
"""


def description(command: str) -> str:
    """Return what the command is for, with examples of it as a user has called it."""
    return _DESCRIPTION.format(command=command, indent=" " * len(command))


def add_command(commands: Subcommands) -> None:
    """Add ``evaluate`` to ``mind2web2``."""
    parser = commands.add_parser(
        "evaluate", help="judge an agent's answers", description=description("mind2web2 evaluate my_agent")
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what both spellings of the command take."""
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="the agent; the same as --agent_name")
    parser.add_argument("--agent_name", metavar="NAME", help="the agent, a folder under answers/")
    add_task_option(parser)
    add_folder_options(parser, "answer_folder", "eval_scripts_root", "eval_results_root", "cache_root")
    parser.add_argument(
        "--eval_version",
        metavar="V",
        help="version of the eval scripts, a folder such as 2025_07_14 (default: the newest dated one that "
        "has the task, then the undated ones)",
    )
    _add_judge_options(parser)
    _add_pace_options(parser)
    _add_money_options(parser)
    _add_capture_options(parser)
    _add_script_options(parser)
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="reuse neither results nor stored judgments: ask everything anew",
    )
    parser.add_argument(
        "--dump_cache",
        action="store_true",
        help="when a task is done, rewrite its cache index to list exactly the pages on disk",
    )
    parser.add_argument(
        "--self_debug",
        action="store_true",
        help="show on the console what is logged of each answer, for writing eval scripts",
    )
    parser.set_defaults(run=run)


def _add_judge_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("judge")
    group.add_argument(
        "--llm_provider",
        choices=(*JUDGE_PROVIDERS, "replay"),
        default="openai",
        help=f"{JUDGE_PROVIDERS_HELP}; replay answers from stored judgments alone",
    )
    group.add_argument(
        "--judge_model",
        metavar="M",
        help="the model that judges, whatever the scripts name (default: o4-mini; replay: the one stored)",
    )
    add_judge_parameters(group)
    images = group.add_mutually_exclusive_group()
    images.add_argument(
        "--max_images",
        metavar="N",
        type=image_count,
        help="images of a page shown to the judge with one question, the first N of them (default: all that "
        "the judge takes, as its server says; what it refuses is left out and noted in the result)",
    )
    images.add_argument(
        "--no_screenshots",
        dest="max_images",
        nargs=0,
        const=0,
        help="show the judge no images, only the text of pages and PDFs: for models that read none",
    )
    group.add_argument(
        "--judge_outage_wait",
        metavar="S",
        type=positive_seconds,
        default=120.0,
        help="seconds to wait for a judge that becomes unreachable during the run (default: 120)",
    )
    group.add_argument(
        "--judgments",
        metavar="FILE",
        help="with --llm_provider replay: a judgments.sqlite3 or exported .jsonl file (default: the agent's "
        "own under eval_results/)",
    )


def _add_pace_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how much at once")
    for name, what in (("tasks", "tasks"), ("answers", "answers of one task")):
        group.add_argument(
            f"--max_concurrent_{name}",
            metavar="N",
            type=positive_int,
            help=f"{what} at once, at most (default: as many as keep the judge requests busy, within a "
            "quarter of the memory; all with --batch)",
        )
    group.add_argument(
        "--max_webpage_retrieval",
        metavar="N",
        type=positive_int,
        default=10,
        help="page captures, over the whole run (default: 10)",
    )
    group.add_argument(
        "--max_llm_requests",
        metavar="N",
        type=positive_int,
        help="judge requests, over the whole run; not with --batch (default: 30)",
    )
    group.add_argument(
        "--sequential",
        action="store_true",
        help="one verification after another, as the scripts have them; the scores are the same",
    )
    group.add_argument(
        "--page_memory",
        metavar="SIZE",
        type=byte_count,
        default="256M",
        help="memory for prepared pages, such as 512M or 2G; the least recently used are dropped and "
        "prepared again when a claim needs them (default: 256M)",
    )
    group.add_argument(
        "--answer_timeout",
        metavar="S",
        type=positive_seconds,
        default=3600.0,
        help="seconds that a script may take for one answer; one that lets nothing else run (an endless "
        "loop, time.sleep) is stopped after half of that, at most 60 (default: 3600)",
    )


def _add_money_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what it costs")
    _add_batch_option(group)
    group.add_argument(
        "--estimate",
        action="store_true",
        help="say how many answers, judge requests, tokens and dollars this command would take, and which "
        "pages are not cached; asks, runs and writes nothing, and needs no key",
    )
    group.add_argument(
        "--max_cost",
        metavar="USD",
        type=positive_dollars,
        help="stop asking when the run has cost so many dollars; what is done is kept, answers that are not "
        "finished have no result, and the same command goes on with as much again",
    )


def _add_batch_option(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--batch",
        action="store_true",
        help="ask by the provider's batch endpoints (openai, azure_openai), at half the price, for those who "
        "can wait up to a day for each round of questions; may be interrupted: the same command goes on. "
        "--answer_timeout counts only while no batch is waited for",
    )
    group.add_argument(
        "--batch_poll",
        metavar="S",
        type=positive_seconds,
        help="with --batch: seconds to the first look at a batch; later ones are up to 60 apart (default: 5)",
    )


def _add_script_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("eval scripts")
    isolation = group.add_mutually_exclusive_group()
    isolation.add_argument(
        "--isolate",
        action="store_true",
        default=None,
        help="run the script of each answer in a process of its own, without keys and held to limits, so "
        "that whatever it does costs its own answer only (default, except with --batch, where all answers "
        "are under way at once and each takes 15 MB, and on Windows, which cannot fork)",
    )
    isolation.add_argument(
        "--no_isolate",
        action="store_false",
        dest="isolate",
        help="run scripts in the process of the run, as to debug them; what they print is then seen at once",
    )
    group.add_argument(
        "--script_memory",
        metavar="SIZE",
        type=byte_count,
        help="memory for the process of each isolated script; one that takes more is ended, and its answer "
        "has no result (default: 1G, on Linux)",
    )
    group.add_argument(
        "--as_of",
        metavar="DATE",
        type=as_of,
        help="the date that isolated scripts take for today: 2025-03-14 (noon, and the clock stands still), "
        "with a time such as 2025-03-14T09:30, or 'answer': when each answer was made, by 'created' in its "
        "meta file or else by the time of its file (default: the real date; replay: that of the result)",
    )
    group.add_argument(
        "--script_env",
        metavar="NAME",
        action="append",
        default=[],
        help="an environment variable that isolated scripts are given, beside those that any program needs "
        "(PATH, HOME, LANG and the like); proxies with a password in them are not among those (repeatable)",
    )


def _add_capture_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "pages that are not cached", "are captured when a claim needs them, and are in the cache next time"
    )
    group.add_argument(
        "--no_capture",
        action="store_true",
        help="capture nothing: such a page counts as one that cannot be had, and claims on it fail",
    )
    group.add_argument("--headed", action="store_true", help="in a browser with a window")
    group.add_argument(
        "--cdp_url",
        metavar="URL",
        type=browser_address,
        help="through your own running Chrome, logged in and past its captchas, such as http://127.0.0.1:9222",
    )
    add_network_options(group)


def run(options: argparse.Namespace) -> int:
    """Evaluate and return the exit status."""
    from mind2web2.cli.options import apply_settings_file
    from mind2web2.errors import UsageError
    from mind2web2.utils.gc_tuning import loading

    agent_name = _agent_name(options)
    apply_settings_file(options)
    check_options(options)
    if not options.estimate and _is_isolated(options):
        # It loads what scripts need while this process loads what judges need.
        from mind2web2.scripts.isolation.processes import fork_server

        fork_server.warm_up()
    with loading():
        from mind2web2.runs.answers import select_work
    is_captured = not options.no_capture and options.llm_provider != "replay"
    # A new folder is filled with what is captured; where nothing is, a typing error would fail every claim.
    root = options.cache_root
    if root is not None and not root.is_dir() and (root.exists() or not is_captured):
        raise UsageError(f"--cache_root {root} is no folder: name the one with the cached pages")
    paths = paths_of(options)
    work = select_work(paths, agent_name, options.task_ids or ())
    if options.estimate:
        from mind2web2.cli.estimate import print_estimate

        return print_estimate(options, agent_name, paths, work)
    # Only now: the judge's libraries take a while to load.
    with loading():
        from mind2web2.cli.evaluate_run import run_evaluation

    return run_evaluation(options, agent_name, paths, work)


def _is_isolated(options: argparse.Namespace) -> bool:
    if options.isolate is False:  # check_options refuses --as_of with it
        return False
    from mind2web2.errors import UsageError
    from mind2web2.scripts.isolation.processes import IS_POSSIBLE

    if options.isolate and not IS_POSSIBLE:
        raise UsageError("--isolate needs a system that can fork processes: evaluate without it")
    if options.isolate is None:
        # Measured by benchmarks/isolation.py: 20 ms and 15 MB an answer, half a millisecond a question. That
        # is nothing beside a judge's seconds, unless hundreds of answers wait for a batch at the same time.
        options.isolate = IS_POSSIBLE and not options.batch
    if options.as_of is not None and not options.isolate:
        raise UsageError(
            "--as_of sets the clock of isolated scripts, which this system has not: leave it out"
        )
    return bool(options.isolate)


def _agent_name(options: argparse.Namespace) -> str:
    from mind2web2.errors import UsageError

    given = [name for name in (options.agent_name, getattr(options, "agent", None)) if name]
    if not given:
        raise UsageError(
            "which agent? Name a folder under answers/: --agent_name NAME, or mind2web2 evaluate AGENT"
        )
    if len(set(given)) > 1:
        raise UsageError(f"which agent? Both {' and '.join(given)} are named")
    name: str = given[0]
    return name.rstrip("/")  # which a shell's completion adds

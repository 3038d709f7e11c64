"""``mind2web2 evaluate`` and ``run_eval.py``: judge an agent's answers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import (
    JUDGE_PROVIDERS,
    JUDGE_PROVIDERS_HELP,
    RAY,
    REPLAY,
    Subcommands,
    add_browser_options,
    add_engine_options,
    add_folder_options,
    add_task_option,
    as_of,
    byte_count,
    check_options,
    file_or_database,
    image_count,
    paths_of,
    positive_dollars,
    positive_int,
    positive_seconds,
    temperature,
)
from mind2web2.cli.settings import add_judge_server_options, apply_settings_file
from mind2web2.errors import UsageError

if TYPE_CHECKING:
    from mind2web2.runs.shards import Shard

_DESCRIPTION = """\
Judge an agent's answers: run each task's eval script, check every claim against the cited pages, score
the rubric trees, and show the scores with the agent's metrics.

  {command}                    judge with OpenAI's o4-mini (OPENAI_API_KEY)
  {command} --estimate         print first what that will cost, and ask nothing
  {command} --max_cost 20      stop asking when the run has cost $20
  {command} --batch            for half the price, if it may take a day
  {command} --task_id TASK     one task only; may be repeated
  {command} --judge_base_url http://localhost:8000/v1 --judge_model NAME
  {indent}                    a server of your own
  {command} --llm_provider replay
  {indent}                    score again from stored judgments, offline

The same command continues a run that was stopped: results that are up to date are reused, and so is every
stored judgment. Exit status: 0 every selected answer has a result, 1 some have none, 2 the run could not
start.
"""


def description(command: str) -> str:
    """Return the purpose of the command, with examples spelled as the user has started it."""
    return _DESCRIPTION.format(command=command, indent=" " * len(command))


def add_command(commands: Subcommands) -> None:
    """Add ``evaluate`` to ``mind2web2``."""
    parser = commands.add_parser(
        "evaluate", help="judge an agent's answers", description=description("mind2web2 evaluate my_agent")
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both spellings of the command."""
    add = parser.add_argument
    add("agent", nargs="?", metavar="AGENT", help="the agent; the same as --agent_name")
    add("--agent_name", metavar="NAME", help="the agent, a folder under answers/")
    add_task_option(parser)
    add_folder_options(parser)
    add(
        "--eval_version",
        metavar="V",
        help="version of the eval scripts, a folder such as 2025_07_14 (default: the newest dated one that "
        "has the task, then the undated ones)",
    )
    add(
        "--shard",
        metavar="I/N",
        type=_shard,
        help="judge part I of N of all answers, such as 3/20; another machine judges each other part, and "
        "mind2web2 merge brings the results together",
    )
    add_judging_options(parser)
    _add_capture_options(parser)
    add_engine_options(parser)
    barred = parser.add_mutually_exclusive_group()
    barred.add_argument(
        "--barred",
        metavar="FILE",
        type=Path,
        help="hosts, addresses and titles that flag an answer which rests on them (default: the benchmark's "
        "own dataset, code, paper and leaderboard); a flag changes no score",
    )
    barred.add_argument("--no_barred", action="store_true", help="flag no answer")
    add(
        "--overwrite",
        action="store_true",
        help="reuse neither results nor stored judgments: ask everything again",
    )
    add(
        "--dump_cache",
        action="store_true",
        help="when a task is done, rewrite its cache index to list exactly the pages on disk",
    )
    add(
        "--strict",
        action="store_true",
        help="no result for an answer whose script adds a leaf that it never judges, or gives add_* or "
        "initialize a keyword that they do not know (default: a warning, as published scripts do both)",
    )
    add(
        "--self_debug",
        action="store_true",
        help="print the log of each answer with the extracted values, for writing eval scripts",
    )
    parser.set_defaults(run=run)


def add_judging_options(parser: argparse.ArgumentParser) -> None:
    """Add who judges, at which pace and cost, and how scripts run."""
    _add_judge_options(parser.add_argument_group("judge"))
    _add_limit_options(parser.add_argument_group("limits"))
    _add_cost_options(parser.add_argument_group("costs"))
    _add_script_options(parser.add_argument_group("eval scripts"))


def _add_judge_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--llm_provider",
        choices=(*JUDGE_PROVIDERS, REPLAY),
        default="openai",
        help=f"{JUDGE_PROVIDERS_HELP}; replay answers from stored judgments alone",
    )
    add(
        "--judge_model",
        metavar="M",
        help="the model that judges, whatever the scripts name (default: o4-mini; replay: the one stored)",
    )
    add_judge_parameters(group)
    add(
        "--judgments",
        metavar="FILE_OR_URL",
        type=file_or_database,
        help="with --llm_provider replay: a judgments.sqlite3 or exported .jsonl file (default: the agent's "
        "own under eval_results/). Else postgresql://HOST/DATABASE: judgments that several machines share",
    )


def add_judge_parameters(group: argparse._ArgumentGroup) -> None:
    """Add the options of a judge beside provider and model."""
    add = group.add_argument
    add_judge_server_options(group)
    add("--judge_reasoning_effort", metavar="E", help="for reasoning models, such as low, medium or high")
    add(
        "--judge_temperature",
        metavar="T",
        type=temperature,
        help="default: 0, and none for reasoning models",
    )
    images = group.add_mutually_exclusive_group()
    images.add_argument(
        "--max_images",
        metavar="N",
        type=image_count,
        help="show the judge at most the first N images of a page (default: as many as its server accepts; "
        "the result notes which were left out)",
    )
    images.add_argument(
        "--no_screenshots",
        dest="max_images",
        nargs=0,
        const=0,
        help="show the judge no images, only the text of pages and PDFs: for models without vision",
    )
    add(
        "--judge_outage_wait",
        metavar="S",
        type=positive_seconds,
        default=120.0,
        help="seconds to wait for a judge that becomes unreachable during the run (default: 120)",
    )


def _add_limit_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    for name, items in (("tasks", "tasks"), ("answers", "answers of one task")):
        add(
            f"--max_concurrent_{name}",
            metavar="N",
            type=positive_int,
            help=f"at most N {items} at once (default: as many as keep the judge requests busy, within a "
            "quarter of the memory; all with --batch)",
        )
    add(
        "--max_webpage_retrieval",
        metavar="N",
        type=positive_int,
        default=10,
        help="at most N page captures at once, over the whole run (default: 10)",
    )
    add(
        "--max_llm_requests",
        metavar="N",
        type=positive_int,
        help="at most N judge requests at once, over the whole run; not with --batch (default: 30)",
    )
    add(
        "--sequential",
        action="store_true",
        help="one verification after another, in the order of the scripts; the scores are the same",
    )
    add(
        "--page_memory",
        metavar="SIZE",
        type=byte_count,
        default="256M",
        help="memory for prepared pages, such as 512M or 2G; the least recently used are dropped, and "
        "prepared again when a claim needs them (default: 256M)",
    )
    add(
        "--answer_timeout",
        metavar="S",
        type=positive_seconds,
        default=3600.0,
        help="seconds that a script may take for one answer; one that blocks everything else (an endless "
        "loop, time.sleep) is stopped after half of that, at most 60 (default: 3600)",
    )


def _add_cost_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--batch",
        action="store_true",
        help="ask through the provider's batch endpoints (openai, azure_openai) at half the price; each "
        "round of questions may take up to a day. May be interrupted: the same command continues. "
        "--answer_timeout does not count the time in which batches are awaited",
    )
    add(
        "--batch_poll",
        metavar="S",
        type=positive_seconds,
        help="with --batch: seconds until a batch is first checked; later checks are up to 60 apart "
        "(default: 5)",
    )
    add(
        "--estimate",
        action="store_true",
        help="print how many answers, judge requests, tokens and dollars this command would take, and how "
        "many cited pages are not cached; asks, runs and writes nothing, and needs no key",
    )
    add(
        "--max_cost",
        metavar="USD",
        type=positive_dollars,
        help="stop asking when the run has cost this many dollars; what is done is kept, unfinished answers "
        "have no result, and the same command continues with as much again",
    )


def _add_capture_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "pages that are not cached", "are captured when a claim needs them, and added to the cache"
    )
    group.add_argument(
        "--no_capture",
        action="store_true",
        help="capture nothing: such a page counts as unavailable, and claims on it fail",
    )
    group.add_argument("--headed", action="store_true", help="capture in a browser with a window")
    add_browser_options(group)


def _add_script_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    isolation = group.add_mutually_exclusive_group()
    isolation.add_argument(
        "--isolate",
        action="store_true",
        default=None,
        help="run the script of each answer in a process of its own, with limits and without keys, so that "
        "its failure costs only its own answer (default, except with --batch, where all answers run at once "
        "and each process takes 15 MB, and on Windows, which cannot fork)",
    )
    isolation.add_argument(
        "--no_isolate",
        action="store_false",
        dest="isolate",
        help="run scripts in the process of the run, for debugging; their output then appears at once",
    )
    add(
        "--script_memory",
        metavar="SIZE",
        type=byte_count,
        help="memory of each isolated script; one that takes more is ended, and its answer has no result "
        "(default: 1G, on Linux)",
    )
    add(
        "--as_of",
        metavar="DATE",
        type=as_of,
        help="the date that isolated scripts see: 2025-03-14 (noon, and the clock stands still), with a time "
        "such as 2025-03-14T09:30, or 'answer': 'created' in each answer's meta file, or else the time of "
        "its file (default: the real date; replay: that of the result)",
    )
    add(
        "--script_env",
        metavar="NAME",
        action="append",
        default=[],
        help="pass an environment variable to isolated scripts, beside those that any program needs (PATH, "
        "HOME, LANG and the like, but no proxy with a password); may be repeated",
    )


def _shard(text: str) -> Shard:
    from mind2web2.runs.shards import Shard

    try:
        return Shard.parsed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    """Evaluate and return the exit status."""
    from mind2web2.utils.garbage_collection import gc_paused

    agent_name = _agent_name(options)
    apply_settings_file(options)
    prepare(options)
    if options.barred is not None:
        from mind2web2.pages.citations import BarredList

        options.barred = BarredList.read(options.barred)
    with gc_paused():
        from mind2web2.runs.answers import select_work
    captures = not options.no_capture and options.llm_provider != REPLAY
    paths = paths_of(options)
    # Captures fill a new folder; without them, a typing error would fail every claim.
    root = paths.cache_root
    if options.cache_root is not None and not root.is_dir() and (root.exists() or not captures):
        raise UsageError(f"--cache_root {root} is no folder: name the one with the cached pages")
    if isinstance(options.cache_root, str) and not captures and not (root / agent_name).is_dir():
        raise UsageError(f"--cache_root {options.cache_root} has no pages of {agent_name}: check the URL")
    work = select_work(paths, agent_name, options.task_ids or ())
    if options.shard is not None:
        work = options.shard.share_of(work)
    if options.estimate:
        from mind2web2.cli.evaluate_report import print_estimate

        return print_estimate(options, agent_name, paths, work)
    # Only now: the judge's libraries take a while to load.
    with gc_paused():
        from mind2web2.cli.evaluate_run import run_evaluation

    return run_evaluation(options, agent_name, paths, work)


def prepare(options: argparse.Namespace) -> None:
    """Check the options, and start the server of isolated scripts where they are needed.

    Raises:
        UsageError: options contradict each other, or this system lacks something that they need.
    """
    check_options(options)
    if _is_isolated(options) and not options.estimate and options.engine != RAY:
        # It loads what scripts need while this process loads what judges need.
        from mind2web2.scripts.isolation.processes import fork_server

        fork_server.warm_up()


def _is_isolated(options: argparse.Namespace) -> bool:
    if options.isolate is False:  # check_options refuses --as_of with it
        return False
    from mind2web2.scripts.isolation.processes import IS_POSSIBLE

    if options.isolate and not IS_POSSIBLE:
        raise UsageError("--isolate needs a system that can fork processes: evaluate without it")
    if options.isolate is None:
        # benchmarks/isolation.py: 20 ms and 15 MB an answer, too much only if hundreds wait for a batch.
        options.isolate = IS_POSSIBLE and not options.batch
    if options.as_of is not None and not options.isolate:
        raise UsageError("--as_of needs isolated scripts, which this system cannot run: leave it out")
    return bool(options.isolate)


def _agent_name(options: argparse.Namespace) -> str:
    given = [name for name in (options.agent_name, options.agent) if name]
    if not given:
        raise UsageError(
            "which agent? Name a folder under answers/: --agent_name NAME, or mind2web2 evaluate AGENT"
        )
    if len(set(given)) > 1:
        raise UsageError(f"which agent? Both {' and '.join(given)} are named")
    return str(given[0]).rstrip("/")  # which a shell's completion adds

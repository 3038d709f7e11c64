"""The commands that messages suggest: spelled as the user started this one, with the judge of the results."""

from __future__ import annotations

import argparse
import copy
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mind2web2.cli.options import REPLAY, given_options, paths_of
from mind2web2.utils.text import mapping

_FOLDERS = {
    "cache": ("answer_folder", "cache_root"),
    "check-judge": ("eval_results_root",),
    "evaluate": ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root", "eval_version"),
    "judgments": ("eval_results_root",),
    "metrics": ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root", "eval_version"),
    "show": ("eval_results_root", "cache_root"),
}
_USER_INFO = re.compile(r"(?<=//)[^/]*@|^[^/]*@")


def suggested_command(options: argparse.Namespace, command: str, *words: str) -> str:
    """Return a command to be copied into the shell that the present one was started from.

    Args:
        options: of the present command; its folders are named again.
    """
    given = vars(options)
    folders = [(name, given.get(name)) for name in _FOLDERS[command]]
    named = [word for name, value in folders if value is not None for word in (f"--{name}", str(value))]
    return shlex.join([*_program(), command, *words, *named])


def checked_under(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options with the folder of results in which checks of judges are kept.

    A shard and ``rejudge`` write to folders of their own, where no other run looks for a check.
    """
    own = copy.copy(options)
    own.eval_results_root = None if options.shard else options.eval_results_root
    own.eval_results_root = getattr(options, "counted_root", own.eval_results_root)
    return own


def suggested_check(options: argparse.Namespace) -> str:
    """Return the command that checks the judge of an evaluation with these options."""
    names = ("llm_provider", *(name for name in vars(options) if name.startswith("judge_")))
    given = given_options(options)
    words = []
    for name in (name for name in names if name in given and name != "judge_outage_wait"):
        value = getattr(options, name)
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            words += [f"--{name}", str(each)]
    if options.max_images is not None and "max_images" in given:
        words += ["--max_images", str(options.max_images)] if options.max_images else ["--no_screenshots"]
    return suggested_command(options, "check-judge", *words)


def suggested_evaluation(
    options: argparse.Namespace, agent_name: str, result: Mapping[str, Any] | None, *words: str
) -> str:
    """Return the command that evaluates the agent with the judge and options of one of its results."""
    return suggested_command(options, "evaluate", agent_name, *words, *evaluation_options(result))


def suggested_forgetting(options: argparse.Namespace, agent_name: str, task_ids: Iterable[str]) -> str:
    """Return which folders hold results of tasks without answers, with the command that deletes them."""
    root = paths_of(options).eval_results_root / agent_name
    folders = ", ".join(str(root / task_id) for task_id in task_ids)
    words = [word for task_id in task_ids for word in ("--forget", task_id)]
    command = suggested_command(options, "metrics", agent_name, *words)
    return f"tasks without answers, whose stored results still count: {folders}; to delete them: {command}"


def caching_command(agent_name: str, options: argparse.Namespace, *more: str) -> str:
    """Return the caching command that fits a run with these options."""
    given = vars(options)
    words = [agent_name, *more]
    for task_id in given.get("task_ids") or ():
        words += ["--task_id", task_id]
    if given.get("cdp_url") is not None:
        words += ["--cdp_url", given["cdp_url"]]
    if given.get("storage_state") is not None:
        words += ["--storage_state", str(given["storage_state"])]
    if given.get("proxy") is not None:
        words += ["--proxy", _USER_INFO.sub("USER:PASSWORD@", given["proxy"])]
    if given.get("archive_url") is not None:
        words += ["--archive_url", given["archive_url"]]
    words += [f"--{name}" for name in ("archive", "allow_private_network", "no_llm") if given.get(name)]
    return suggested_command(options, "cache", *words)


def evaluation_options(result: Mapping[str, Any] | None) -> list[str]:
    """Return the options of ``evaluate`` with which a result was made, as far as its provenance tells."""
    made_from = mapping(None if result is None else result.get("provenance"))
    judge = mapping(made_from.get("judge"))
    if not judge:
        return []
    words = [word for name, value in _judge_options(judge) for word in (f"--{name}", value)]
    replayed_from = mapping(made_from.get("replayed_from"))
    if replayed_from.get("path"):
        words += ["--judgments", str(replayed_from["path"])]
    if judge.get("max_images") == 0:
        words.append("--no_screenshots")
    inputs = mapping(made_from.get("inputs"))
    words += [word for name in mapping(inputs.get("variables")) for word in ("--script_env", str(name))]
    if inputs.get("as_of") and not replayed_from:
        words += ["--as_of", str(inputs["as_of"])]
    if made_from.get("with_private_network"):
        words.append("--allow_private_network")
    if not made_from.get("with_captures") and judge.get("provider") != REPLAY:
        words.append("--no_capture")
    return words


def _judge_options(judge: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    provider = str(judge.get("provider"))
    if provider not in ("openai", "client"):
        yield "llm_provider", provider
    yield "judge_model", str(judge.get("model"))
    # "openai http://127.0.0.1:8000/v1": the provider's name and the server's address.
    endpoint = str(judge.get("endpoint"))
    server = endpoint.rpartition(" ")[2]
    if provider in ("openai", "anthropic", "gemini") and "://" in server:
        from mind2web2.llm_client.settings import endpoint_of

        if endpoint != endpoint_of(provider):
            yield "judge_base_url", server
    if server == "pool":
        yield "judge_pool", "FILE"
    if judge.get("extra_body"):
        yield "judge_extra_body", str(judge["extra_body"])
    for name in ("reasoning_effort", "temperature"):
        if judge.get(name) is not None:
            yield f"judge_{name}", str(judge[name])
    if judge.get("max_images"):
        yield "max_images", str(judge["max_images"])


def _program() -> list[str]:
    started_as = Path(sys.argv[0]).name
    if os.environ.get("UV"):  # which `uv run` sets
        return ["uv", "run", "mind2web2"]
    if started_as == "__main__.py" or (started_as.endswith(".py") and shutil.which("mind2web2") is None):
        return ["python", "-m", "mind2web2"]
    return ["mind2web2"]

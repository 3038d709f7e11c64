"""Commands that messages suggest: spelled as the user started this one, with the judge of the results."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_FOLDERS = {
    "cache": ("answer_folder", "cache_root"),
    "evaluate": ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root", "eval_version"),
    "judgments": ("eval_results_root",),
    "metrics": ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root", "eval_version"),
    "show": ("eval_results_root", "cache_root"),
}
_OPENAI = "https://api.openai.com/v1"
_REPLAY = "replay"


def suggested_command(options: argparse.Namespace, command: str, *words: str) -> str:
    """Return a command to be copied into the shell that the present one was started from.

    Args:
        options: of the present command; its folders are named again.
        command: a subcommand of ``mind2web2``.
        words: its arguments and options.
    """
    given = vars(options)
    folders = [(name, given.get(name)) for name in _FOLDERS[command]]
    named = [word for name, value in folders if value is not None for word in (f"--{name}", str(value))]
    return shlex.join([*_program(), command, *words, *named])


def suggested_evaluation(
    options: argparse.Namespace, agent_name: str, result: Mapping[str, Any] | None, *words: str
) -> str:
    """Return the command that evaluates the agent by the judge, and in the way, of one of its results.

    Args:
        result: the content of a result file, where there is one.
        words: further options.
    """
    return suggested_command(options, "evaluate", agent_name, *words, *evaluation_options(result))


def caching_command(agent_name: str, options: argparse.Namespace, *more: str) -> str:
    """Return the caching command that fits a run with these options."""
    given = vars(options)
    words = [agent_name, *more]
    for task_id in given.get("task_ids") or ():
        words += ["--task_id", task_id]
    if given.get("cdp_url") is not None:
        words += ["--cdp_url", given["cdp_url"]]
    words += [f"--{name}" for name in ("allow_private_network", "no_llm") if given.get(name)]
    return suggested_command(options, "cache", *words)


def evaluation_options(result: Mapping[str, Any] | None) -> list[str]:
    """Return the options of ``evaluate`` with which a result was made, as far as its provenance tells."""
    made_from = _mapping(None if result is None else result.get("provenance"))
    judge = _mapping(made_from.get("judge"))
    if not judge:
        return []
    words = [word for name, value in _judge(judge) for word in (f"--{name}", value)]
    if source := _mapping(made_from.get("replayed_from")).get("path"):
        words += ["--judgments", str(source)]
    if judge.get("max_images") == 0:
        words.append("--no_screenshots")
    inputs = _mapping(made_from.get("inputs"))
    words += [word for name in _mapping(inputs.get("variables")) for word in ("--script_env", str(name))]
    if inputs.get("as_of") and not _mapping(made_from.get("replayed_from")):
        words += ["--as_of", str(inputs["as_of"])]
    if made_from.get("with_private_network"):
        words.append("--allow_private_network")
    if not made_from.get("with_captures") and judge.get("provider") != _REPLAY:
        words.append("--no_capture")
    return words


def _judge(judge: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    provider = str(judge.get("provider"))
    if provider not in ("openai", "client"):
        yield "llm_provider", provider
    yield "judge_model", str(judge.get("model"))
    # "openai http://127.0.0.1:8000/v1": the provider's name and the server's address.
    server = str(judge.get("endpoint")).rpartition(" ")[2]
    if provider == "openai" and "://" in server and server != (os.environ.get("OPENAI_BASE_URL") or _OPENAI):
        yield "judge_base_url", server
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


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}

"""Commands that messages suggest, with the settings of the present one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from mind2web2.llm_client.settings import endpoint_of, public_address
from mind2web2.results.provenance import JudgeRecord, Provenance
from mind2web2.runs.paths import paths_of
from mind2web2.runs.settings import JUDGE_SETTINGS, REPLAY, RunSettings
from mind2web2.utils.program import program_words

_FOLDERS = {
    "cache": ("answer_folder", "cache_root"),
    "check-judge": ("eval_results_root",),
    "evaluate": (
        "answer_folder",
        "eval_scripts_root",
        "eval_results_root",
        "cache_root",
        "eval_version",
    ),
    "judgments": ("eval_results_root",),
    "metrics": (
        "answer_folder",
        "eval_scripts_root",
        "eval_results_root",
        "cache_root",
        "eval_version",
    ),
    "rehearse": ("eval_scripts_root", "eval_version"),
    "show": ("eval_results_root", "cache_root"),
}
_USER_INFO = re.compile(r"(?<=//)[^/]*@|^[^/]*@")


def suggested_command(settings: RunSettings, command: str, *words: str) -> str:
    """Return a command to be copied into the shell that the present one was started from.

    Args:
        settings: of the present command; the folders that its command line names are named again.
    """
    folders = [
        (name, getattr(settings, name))
        for name in _FOLDERS[command]
        if name not in settings.from_file
    ]
    named = [
        word for name, value in folders if value is not None for word in (f"--{name}", str(value))
    ]
    return shlex.join([*program_words(), command, *words, *named])


def suggested_check(settings: RunSettings) -> str:
    """Return the command that checks the judge of an evaluation with these settings."""
    words = []
    for name in JUDGE_SETTINGS:
        value = getattr(settings, name)
        is_left_out = name == "max_images" or value is None
        if name not in settings.given or is_left_out:
            continue
        for each in value if isinstance(value, tuple) else (value,):
            shown = public_address(each) if name == "judge_base_url" else str(each)
            words += [f"--{name}", shown]
    cascade = settings.judge_cascade
    if cascade is not None:
        models = (cascade.strong,) if cascade.server else (cascade.first, cascade.strong)
        words += [word for model in models for word in ("--judge_model", model)]
    if settings.max_images is not None and "max_images" in settings.given:
        words += (
            ["--max_images", str(settings.max_images)]
            if settings.max_images
            else ["--no_screenshots"]
        )
    return suggested_command(settings, "check-judge", *words)


def suggested_evaluation(
    settings: RunSettings, agent_name: str, made_from: Provenance | None, *words: str
) -> str:
    """Return the command that evaluates the agent with the judge and options of one of its results."""
    return suggested_command(
        settings, "evaluate", agent_name, *words, *evaluation_options(made_from)
    )


def suggested_forgetting(settings: RunSettings, agent_name: str, task_ids: Iterable[str]) -> str:
    """Return which folders hold results of tasks without answers, with the command that deletes them."""
    root = paths_of(settings).eval_results_root / agent_name
    folders = ", ".join(str(root / task_id) for task_id in task_ids)
    words = [word for task_id in task_ids for word in ("--forget", task_id)]
    command = suggested_command(settings, "metrics", agent_name, *words)
    return (
        f"these tasks have no answers, but their stored results still count: {folders}. To "
        f"delete the results: {command}"
    )


def caching_command(agent_name: str, settings: RunSettings, *more: str) -> str:
    """Return the caching command that fits a run with these settings."""
    words = [agent_name, *more]
    for task_id in settings.task_ids:
        words += ["--task_id", task_id]
    if settings.cdp_url is not None:
        words += ["--cdp_url", public_address(settings.cdp_url)]
    if settings.storage_state is not None:
        words += ["--storage_state", str(settings.storage_state)]
    if settings.proxy is not None:
        words += ["--proxy", _USER_INFO.sub("USER:PASSWORD@", settings.proxy)]
    if settings.allow_private_network and "allow_private_network" not in settings.from_file:
        words.append("--allow_private_network")
    return suggested_command(settings, "cache", *words)


def evaluation_options(made_from: Provenance | None) -> list[str]:
    """Return the options of ``evaluate`` with which a result was made, as far as its provenance tells."""
    if made_from is None:
        return []
    judge, replayed_from = made_from.judge, made_from.replayed_from
    words = [word for name, value in _judge_options(judge) for word in (f"--{name}", value)]
    if replayed_from is not None:
        words += ["--judgments", replayed_from.path]
    if judge.max_images == 0:
        words.append("--no_screenshots")
    words += [word for name in made_from.inputs.variables for word in ("--script_env", name)]
    if made_from.inputs.as_of and replayed_from is None:
        words += ["--as_of", str(made_from.inputs.as_of)]
    if made_from.with_private_network:
        words.append("--allow_private_network")
    if not made_from.with_captures and judge.provider != REPLAY:
        words.append("--no_capture")
    return words


def _judge_options(judge: JudgeRecord) -> Iterator[tuple[str, str]]:
    if judge.provider not in ("openai", "client"):
        yield "llm_provider", judge.provider
    if judge.first_model is None:
        yield "judge_model", judge.model
    else:
        yield "judge_cascade", _cascade_named(judge)
    # "openai http://127.0.0.1:8000/v1": the provider's name and the server's address.
    server = judge.endpoint.rpartition(" ")[2]
    is_named = judge.provider != "azure_openai" and "://" in server
    if is_named and judge.endpoint != endpoint_of(judge.provider):
        yield "judge_base_url", server
    if server == "pool":
        yield "judge_pool", "FILE"
    if judge.extra_body:
        yield "judge_extra_body", judge.extra_body
    if judge.reasoning_effort is not None:
        yield "judge_reasoning_effort", judge.reasoning_effort
    if judge.temperature is not None:
        yield "judge_temperature", str(judge.temperature)
    if judge.max_images:
        yield "max_images", str(judge.max_images)
    if judge.votes.isdecimal():
        yield "votes", judge.votes


def _cascade_named(judge: JudgeRecord) -> str:
    server = "" if judge.first_endpoint is None else judge.first_endpoint
    address = server.rpartition(" ")[2]
    if server == judge.endpoint or ("://" not in address and address != "pool"):
        return f"{judge.first_model},{judge.model}"
    return f"{judge.first_model}@{'FILE' if address == 'pool' else address},{judge.model}"

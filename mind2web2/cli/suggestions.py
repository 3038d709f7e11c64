"""Commands that messages suggest, with the settings of the present one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from datetime import datetime

from mind2web2.llm_client.settings import public_address
from mind2web2.results.provenance import Provenance
from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.paths import paths_of
from mind2web2.runs.recorded_settings import recorded_settings
from mind2web2.runs.settings import JUDGE_SETTINGS, RunSettings
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
    if settings.other_judge_names:
        *others, own = judge_spec(settings).judges
        # The command asks judges of one server.
        models = [each.model for each in others if each.base_url == own.base_url]
        words += [word for model in (*models, own.model) for word in ("--judge_model", model)]
    if settings.max_images is not None and "max_images" in settings.given:
        words += _option("max_images", settings.max_images)
    return suggested_command(settings, "check-judge", *words)


def suggested_evaluation(
    settings: RunSettings, agent_name: str, made_from: Provenance | None, *words: str
) -> str:
    """Return the command that evaluates the agent like one of its results.

    The command has the judge and options of that result.
    """
    return suggested_command(
        settings, "evaluate", agent_name, *words, *evaluation_options(made_from)
    )


def suggested_forgetting(settings: RunSettings, agent_name: str, task_ids: Iterable[str]) -> str:
    """Return which folders hold results of tasks without answers.

    The text includes the command that deletes them.
    """
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
    """Return the options of ``evaluate`` with which a result was made.

    They are as complete as its provenance tells.
    """
    if made_from is None:
        return []
    words: list[str] = []
    for name, value in recorded_settings(made_from).items():
        words += _option(name, value)
    return words


def _option(name: str, value: object) -> list[str]:
    """Return a setting as words of the command line."""
    if name == "max_images" and not value:
        return ["--no_screenshots"]
    if value is True:
        return [f"--{name}"]
    if isinstance(value, datetime):
        return [f"--{name}", value.isoformat()]
    values = value if isinstance(value, tuple) else (value,)
    return [word for each in values for word in (f"--{name}", str(each))]

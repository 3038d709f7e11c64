"""The folders of a run's settings, of which those in object stores have working copies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mind2web2.runs.settings import FOLDER_NAMES, RunSettings
from mind2web2.storage.working_copy import FOLDERS
from mind2web2.utils.path_config import PathConfig


def paths_of(settings: RunSettings, agents: Iterable[str] = ()) -> PathConfig:
    """Return the folders that the settings name, the others under the working directory.

    A root in an object store has a working copy, whose files are brought up to date once in a process.

    Args:
        agents: whose files are needed, beside those of the settings' own agent.
    """
    roots: dict[str, Path | str | None] = {
        name: getattr(settings, name) for name in FOLDER_NAMES
    }
    if any(isinstance(root, str) for root in roots.values()):
        names = {name.rstrip("/") for name in (settings.agent_name, *agents) if name}
        roots = {**FOLDERS.bring(roots, sorted(names), settings.task_ids)}
    return PathConfig(Path()).apply_overrides(
        answers_root=roots["answer_folder"],
        eval_scripts_root=roots["eval_scripts_root"],
        eval_results_root=roots["eval_results_root"],
        cache_root=roots["cache_root"],
        eval_version=settings.eval_version,
    )

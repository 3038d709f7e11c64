"""The folders of a run's settings."""

from __future__ import annotations

from pathlib import Path

from mind2web2.runs.settings import RunSettings
from mind2web2.utils.path_config import PathConfig


def paths_of(settings: RunSettings) -> PathConfig:
    """Return the folders that the settings name, the others under the working directory."""
    return PathConfig(Path()).apply_overrides(
        answers_root=settings.answer_folder,
        eval_scripts_root=settings.eval_scripts_root,
        eval_results_root=settings.eval_results_root,
        cache_root=settings.cache_root,
        eval_version=settings.eval_version,
    )

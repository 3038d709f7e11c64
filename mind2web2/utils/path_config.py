"""Where answers, eval scripts, results and cached pages are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Self
from unicodedata import normalize

from mind2web2.errors import UsageError
from mind2web2.utils.files import folder_names
from mind2web2.utils.names import check_name, name_list
from mind2web2.utils.program import program

# The endings of eval scripts and of rubric files.
SCRIPT_SUFFIXES = (".py", ".yaml")


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A task's eval script or rubric file, and the version folder it was found in."""

    path: Path
    version: str


class PathConfig:
    """The four folders of a project, and which version of the eval scripts counts.

    Args:
        project_root: the folder that holds ``answers/``, ``eval_scripts/``, ``eval_results/`` and
            ``cache/``.
    """

    def __init__(self, project_root: str | Path) -> None:
        self.project_root = Path(project_root)
        self.answers_root = self.project_root / "answers"
        self.eval_scripts_root = self.project_root / "eval_scripts"
        self.eval_results_root = self.project_root / "eval_results"
        self.cache_root = self.project_root / "cache"
        self.eval_version: str | None = None

    def apply_overrides(
        self,
        *,
        answers_root: str | Path | None = None,
        eval_scripts_root: str | Path | None = None,
        eval_results_root: str | Path | None = None,
        cache_root: str | Path | None = None,
        eval_version: str | None = None,
    ) -> Self:
        """Replace the given settings, relative folders being relative to the working directory.

        Raises:
            UsageError: ``eval_version`` is not the plain name of a folder.
        """
        if eval_version is not None:
            self.eval_version = check_name("eval version", eval_version)
        self.answers_root = Path(answers_root or self.answers_root)
        self.eval_scripts_root = Path(eval_scripts_root or self.eval_scripts_root)
        self.eval_results_root = Path(eval_results_root or self.eval_results_root)
        self.cache_root = Path(cache_root or self.cache_root)
        return self

    def script_versions(self) -> list[str]:
        """Return the version folders: newest date first, then the undated ones.

        Raises:
            UsageError: the pinned version does not exist.
        """
        folders = folder_names(self.eval_scripts_root)
        # Python keeps compiled scripts in __pycache__.
        names = [name for name in folders if not name.startswith("__")]
        if self.eval_version is None:
            dated = [name for name in names if _is_dated(name)]
            return [*reversed(dated), *(name for name in names if not _is_dated(name))]
        if self.eval_version not in names:
            where, known = self.eval_scripts_root, name_list(names)
            raise UsageError(f"no eval version {self.eval_version} under {where}. Found: {known}")
        return [self.eval_version]

    def find_script(self, task_id: str) -> ScriptFile | None:
        """Return the script that judges a task, ``None`` if no searched version has one.

        Raises:
            UsageError: ``task_id`` is not a plain name, the pinned version does not exist, or a
                version has both a script and a rubric file.
        """
        check_name("task", task_id)
        for version in self.script_versions():
            path = script_in(self.eval_scripts_root / version, task_id)
            if path is not None:
                return ScriptFile(path, version)
        root = self.eval_scripts_root
        path = script_in(root, task_id) if self.eval_version is None else None
        return None if path is None else ScriptFile(path, root.name)

    def default_script_for(self, task_id: str) -> Path:
        """Return the path of the script that judges a task.

        Raises:
            UsageError: there is none; the text says where it was looked for.
        """
        script = self.find_script(task_id)
        if script is None:
            raise UsageError(self.missing_script(task_id))
        return script.path

    def missing_script(self, task_id: str) -> str:
        """Return one line that says which script is missing and where it was looked for."""
        if not self.eval_scripts_root.is_dir():
            return f"no script for task {task_id}: there is no folder {self.eval_scripts_root}"
        searched = name_list(self.script_versions())
        return (
            f"no script for task {task_id} under {self.eval_scripts_root} (versions searched: "
            f"{searched}): "
            f"add <version>/{task_id}.py or <version>/{task_id}.yaml, or make one by {program()} "
            f"new {task_id}"
        )


def script_in(folder: Path, task_id: str) -> Path | None:
    """Return a task's script or rubric file in a folder, ``None`` if there is none.

    Raises:
        UsageError: there are both.
    """
    # Archives made on macOS have accents apart from their letters.
    names = (task_id, normalize("NFC", task_id), normalize("NFD", task_id))
    found = next(filter(None, (_scripts_named(folder, name) for name in names)), [])
    if len(found) > 1:
        raise UsageError(
            f"two scripts for task {task_id}: keep {found[0]} or {found[1]}, move the other away"
        )
    return found[0] if found else None


def _scripts_named(folder: Path, name: str) -> list[Path]:
    paths = (folder / f"{name}{suffix}" for suffix in SCRIPT_SUFFIXES)
    return [path for path in paths if path.is_file()]


def _is_dated(name: str) -> bool:
    if re.fullmatch(r"[0-9]{4}_[0-9]{2}_[0-9]{2}", name) is None:
        return False
    try:
        date.fromisoformat(name.replace("_", "-"))
    except ValueError:
        return False
    return True

"""The folders of a run's settings, of which those in object stores have working copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from mind2web2.errors import UsageError
from mind2web2.runs.settings import FOLDER_NAMES, RunSettings
from mind2web2.utils.entry_points import load_part, removed_plugin
from mind2web2.utils.path_config import PathConfig


class RemoteFolders(Protocol):
    """The hook ``folders``: roots elsewhere, whose files are here while a command works on them.

    Its name is the scheme of such a root's URL, such as ``s3``.
    """

    def bring(
        self,
        roots: Mapping[str, Path | str | None],
        agents: Sequence[str],
        task_ids: Sequence[str],
    ) -> Mapping[str, Path | str | None]:
        """Return the roots by the names of their settings.

        A folder here takes the place of each URL of the scheme.

        A command may call it again; what is here already need not be brought again.
        """

    def take_away(self) -> None:
        """Bring the changes of all such folders back where they belong, at the end of a command."""


# The folders that this command works on.
_in_use: list[RemoteFolders] = []


def take_away_changes() -> None:
    """Bring the changes that a command has made to where its roots are.

    Raises:
        StorageError: this is impossible.
    """
    while _in_use:
        _in_use.pop().take_away()


def _folders_of(root: str) -> RemoteFolders:
    scheme = root.partition("://")[0]
    folders: RemoteFolders | None = load_part("folders", scheme)
    if folders is None:
        plugin = removed_plugin(f"{scheme}://")
        why = f"needs the plugin {plugin}" if plugin else "is not a folder"
        raise UsageError(f"{root} {why}: name a folder of this machine")
    return folders


def paths_of(settings: RunSettings, agents: Iterable[str] = ()) -> PathConfig:
    """Return the folders that the settings name, the others under the working directory.

    A root in an object store has a working copy, whose files are brought up to date once in a
    process.

    Args:
        agents: whose files are needed, beside those of the settings' own agent.
    """
    roots: dict[str, Path | str | None] = {name: getattr(settings, name) for name in FOLDER_NAMES}
    by_scheme = {root.partition("://")[0]: root for root in roots.values() if isinstance(root, str)}
    if by_scheme:
        names = sorted(name.rstrip("/") for name in {settings.agent_name, *agents} if name)
        for root in by_scheme.values():
            folders = _folders_of(root)
            if folders not in _in_use:
                _in_use.append(folders)
            roots = {**folders.bring(roots, names, settings.task_ids)}
    return PathConfig(Path()).apply_overrides(
        answers_root=roots["answer_folder"],
        eval_scripts_root=roots["eval_scripts_root"],
        eval_results_root=roots["eval_results_root"],
        cache_root=roots["cache_root"],
        eval_version=settings.eval_version,
    )

"""``mind2web2 trust``: which eval scripts have changed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind2web2.cli.options import Subcommands, add_folder_options, paths_of

if TYPE_CHECKING:
    from mind2web2.utils.path_config import PathConfig, ScriptFile

DESCRIPTION = """\
Show the SHA-256 of each eval script, and whether it has changed since you accepted it or, where you did not,
since it last ran. Scripts are programs of others: read what is new or changed before you run it.

  mind2web2 trust                          all scripts
  mind2web2 trust --task_id TASK           those of one task; may be repeated
  mind2web2 trust --accept                 they are fine as they are

What you accept is kept in eval_results/script_hashes.json, away from the scripts, so that it is not handed on
with them; mind2web2 evaluate says in one line which scripts have changed, and each result names the hash of
its script. Exit status: 0 no script is new or has changed, or they are accepted now; 1 some are new, have
changed or cannot be read; 2 there are no such scripts.
"""

_NO_HASH = "-" * 64


def add_command(commands: Subcommands) -> None:
    """Add ``trust`` to ``mind2web2``."""
    parser = commands.add_parser(
        "trust", help="show which eval scripts have changed", description=DESCRIPTION
    )
    parser.add_argument(
        "--task_id",
        metavar="ID",
        action="append",
        dest="task_ids",
        help="the scripts of this task only; may be repeated",
    )
    parser.add_argument("--eval_version", metavar="V", help="those of this version only, such as 2025_07_14")
    parser.add_argument("--accept", action="store_true", help="accept the scripts as they are now")
    add_folder_options(parser, "eval_scripts_root", "eval_results_root")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print what is known of the scripts and return the exit status."""
    from mind2web2.cli.console import plain_console
    from mind2web2.script_trust import accept, scripts_trusted

    paths = paths_of(options)
    scripts = _scripts(paths, options.task_ids)
    console = plain_console()
    if options.accept:
        before = accept(paths.eval_results_root, scripts)
        for each in before:
            words = each.in_words()
            accepted = words if each.sha256 is None else f"accepted (it was {words})"
            console.print(f"{each.sha256 or _NO_HASH}  {each.name}  {accepted}", soft_wrap=True)
        return 1 if any(each.sha256 is None for each in before) else 0
    found = scripts_trusted(paths.eval_results_root, scripts)
    for each in found:
        console.print(f"{each.sha256 or _NO_HASH}  {each.name}  {each.in_words()}", soft_wrap=True)
    states = [each.state for each in found]
    new, changed, unreadable = (states.count(state) for state in ("new", "changed", "unreadable"))
    more = f"; cannot be read: {unreadable}" if unreadable else ""
    console.print(f"Scripts: {len(states)}; new: {new}; changed: {changed}{more}", soft_wrap=True)
    if new or changed:
        console.print("Next, when you have read them: mind2web2 trust --accept", soft_wrap=True)
    return 1 if new or changed or unreadable else 0


def _scripts(paths: PathConfig, task_ids: Sequence[str] | None) -> list[ScriptFile]:
    """Return the scripts of all versions, in the order in which they are looked for."""
    from mind2web2.errors import UsageError
    from mind2web2.utils.names import check_name, name_list, natural_key
    from mind2web2.utils.path_config import ScriptFile

    wanted = None if task_ids is None else {check_name("task", task_id) for task_id in task_ids}
    root = paths.eval_scripts_root
    found = [
        ScriptFile(path, version)
        for version in paths.script_versions()
        for path in sorted((root / version).glob("*.py"), key=lambda path: natural_key(path.name))
        if (wanted is None or path.stem in wanted) and not path.name.startswith(("_", "."))
    ]
    lacking = (wanted or set()) - {script.path.stem for script in found}
    if lacking or not found:
        what = f"tasks {name_list(lacking)}" if lacking else "any task"
        raise UsageError(f"no scripts for {what} under {root}: expected <version>/<task_id>.py")
    return found

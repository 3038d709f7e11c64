"""``mind2web2 compare --why``: read both sides, evaluate what is between them, and print it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from mind2web2.plugin import (
    PlainConsole,
    RunSettings,
    StoredRuns,
    UsageError,
    command_line,
    settings_of,
    write_whole,
)
from mind2web2_trust.why.evaluation import Evaluation
from mind2web2_trust.why.explanation import Explanation, explain
from mind2web2_trust.why.output import print_explanation
from mind2web2_trust.why.sides import (
    Pair,
    Side,
    changed_side,
    named_side,
    pairs,
    with_changes,
)

# Beside the results of the second side, for the viewer.
WHY_FILE = "why.json"
# Where the second side is found; other settings would change its results.
_FOLDERS = ("answer_folder=", "eval_scripts_root=", "cache_root=")


def run(options: argparse.Namespace, folders: Sequence[Path], task_ids: Sequence[str]) -> int:
    """Print what moved the score, and return the exit status: 1 where replies are missing.

    Args:
        folders: of the results of the agents that the options name.
    """
    settings = settings_of(options)
    sides = _sides(options, folders, task_ids, settings)
    is_asked = options.ask and not options.estimate
    explanation, spent = asyncio.run(_explained(sides, settings if is_asked else None))
    if options.json:
        PlainConsole().print_json(explanation.model_dump_json())
    else:
        print_explanation(PlainConsole(), explanation, spent)
    # The viewer shows two agents, with all their tasks.
    if len(folders) == 2 and not task_ids:
        _keep(sides[1].folder / WHY_FILE, explanation)
    return 1 if explanation.missing or explanation.gone else 0


def _keep(path: Path, explanation: Explanation) -> None:
    try:
        write_whole(path, explanation.model_dump_json(indent=2))
    except OSError as error:
        PlainConsole(sys.stderr).print_line(f"Not kept for the viewer: {error}")


def _sides(
    options: argparse.Namespace,
    folders: Sequence[Path],
    task_ids: Sequence[str],
    settings: RunSettings,
) -> tuple[Side, Side]:
    changed = with_changes(settings, options.changes)
    names = [name.rstrip("/") for name in options.agents]
    first = named_side(names[0], folders[0], settings, task_ids)
    if len(folders) == 2:
        for change in options.changes:
            if not change.startswith(_FOLDERS):
                raise UsageError(
                    f"--with {change}: {names[1]} has results of its own; leave one of them out"
                )
        return first, named_side(names[1], folders[1], changed, task_ids)
    if len(folders) > 2 or not options.changes:
        raise UsageError(
            "--why takes two agents, or one and what changes: "
            f"{command_line('compare', names[0], '--why', '--with', 'eval_version=NEW')}"
        )
    if changed.eval_results_root != settings.eval_results_root:
        folder = changed.paths.eval_results_root / first.agent
        return first, named_side(str(folder), folder, changed, task_ids)
    return first, changed_side(first, options.changes)


async def _explained(
    sides: tuple[Side, Side], asking: RunSettings | None
) -> tuple[Explanation, str]:
    """Return what moved the score, and what was asked for it with its price.

    Args:
        asking: settings to ask for missing replies; ``None`` where none are asked for.
    """
    shared = list(pairs(*sides))
    if not shared:
        raise UsageError(f"{sides[0].name} and {sides[1].name} share no answer with a score")
    with _runs(sides, shared, asking) as runs:
        evaluation = Evaluation(sides, runs, is_asked=asking is not None)
        corners = await asyncio.gather(*map(evaluation.evaluate, shared))
    left_out = len(set(sides[0].judged) ^ set(sides[1].judged))
    answers = list(zip(shared, corners, strict=True))
    spent = runs.usage.in_words() if asking else ""
    return explain(sides, answers, left_out, _rehearsals(shared)), spent


def _rehearsals(shared: Sequence[Pair]) -> list[str]:
    """Return the folders of cases of the scripts that differ."""
    tasks = {pair.place[0] for pair in shared if "rubric" in pair.causes}
    folders = (Path("rehearsals", task) for task in tasks)
    return sorted(str(folder) for folder in folders if folder.is_dir())


def _runs(
    sides: tuple[Side, Side], shared: Sequence[Pair], asking: RunSettings | None
) -> AbstractContextManager[StoredRuns]:
    """Return the runs from the replies of both sides; new ones stay with the second side."""
    materials = [each for pair in shared for each in pair.sides]
    files = list(dict.fromkeys(each.judgments for each in materials))
    if asking is None:
        if gone := [path for path in files if not path.is_file()]:
            raise UsageError(f"no judgments at {gone[0]}: bring the file back")
        return StoredRuns.opened(files)
    judges = {each.made_from.judge for each in materials}
    return StoredRuns.opened(files, asking, sides[1].folder, judges)
